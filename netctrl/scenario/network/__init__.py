"""Routed network: demands, policies of link rates, sweeps."""
