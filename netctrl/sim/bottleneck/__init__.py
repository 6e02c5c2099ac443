"""Fluid simulation of flows at a bottleneck, round trip by round trip."""
