"""ns-3 program: paced flows and their peers at a bottleneck."""
