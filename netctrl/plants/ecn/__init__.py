"""Fluids of senders that react to ECN marks of a queue's thresholds: DCTCP and DCQCN."""
