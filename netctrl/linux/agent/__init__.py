"""The agent: measures a host's queue, exchanges messages and sets its link's rate."""
