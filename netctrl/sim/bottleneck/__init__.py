"""Flows at a bottleneck, round trip by round trip."""
