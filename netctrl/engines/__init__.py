"""Engines that run scenarios (fluid, packet, ns-3, Linux), sweeps, and the comparison of engines."""
