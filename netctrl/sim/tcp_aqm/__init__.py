"""Fluid of TCP under AQM."""
