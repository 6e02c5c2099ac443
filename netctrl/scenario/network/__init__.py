"""Network of links: demands, policies, sweeps."""
