"""The agent: measures a host's queue, exchanges messages with other agents, and sets its link's rate."""
