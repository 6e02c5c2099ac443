"""Scenarios and their results: records, no simulation."""
