"""TCP through AQM: many flows at one or more queues, as a fluid."""
