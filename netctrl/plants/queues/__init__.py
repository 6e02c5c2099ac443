"""Loops of queues: windows of senders, their queue, and the law that marks its packets."""
