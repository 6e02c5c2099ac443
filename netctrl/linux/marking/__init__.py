"""ARC as a marking program at a host's queue."""
