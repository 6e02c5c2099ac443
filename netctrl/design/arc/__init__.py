"""ARC: an AQM's gains for TCP on one congested link."""
