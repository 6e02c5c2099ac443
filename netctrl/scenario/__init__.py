"""Scenarios and their results as records; the simulation is elsewhere."""
