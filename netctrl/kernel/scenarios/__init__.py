"""Scenarios in the kernel: their plans, the programs beside them, and their results."""
