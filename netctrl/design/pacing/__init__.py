"""MPC pacing: a sender's rate from its round-trip times."""
