"""Descents from a first model: to the least simulation error, the least prediction error, the greatest likelihood."""
