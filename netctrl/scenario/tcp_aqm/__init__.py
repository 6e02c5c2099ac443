"""TCP and AQM: groups of flows over one or more queues."""
