"""Thresholds of ECN and the senders that react to them: DCTCP at a step, DCQCN between two thresholds."""
