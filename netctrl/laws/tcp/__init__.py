"""TCP congestion control: Reno, Cubic, H-TCP, BBR."""
