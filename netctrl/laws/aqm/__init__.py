"""Queue laws: ARC and its peers."""
