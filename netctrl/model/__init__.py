"""Immutable records of networks, traces, models, laws and designs, without algorithms."""
