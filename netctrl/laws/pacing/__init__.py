"""Laws that set a sender's pacing rate."""
