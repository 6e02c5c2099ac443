"""Bottleneck: single flows that share one link."""
