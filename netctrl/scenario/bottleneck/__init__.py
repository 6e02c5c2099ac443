"""Bottleneck: single flows at one link."""
