"""ARC: an AQM's gain for TCP on one congested link."""
