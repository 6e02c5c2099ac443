"""ns-3 program: an access link under output tracking."""
