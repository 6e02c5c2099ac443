"""Fluid simulation of TCP under AQM."""
