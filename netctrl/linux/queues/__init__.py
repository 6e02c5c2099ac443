"""Queues of this machine: planned, applied, watched, put back."""
