"""ARC as a marking program in front of a host's queue."""
