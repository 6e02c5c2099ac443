"""Laws for a sender's pacing rate."""
