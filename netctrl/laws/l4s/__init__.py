"""Queues of L4S, which serve classic and scalable senders of one link at like rates."""
