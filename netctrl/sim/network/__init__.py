"""Fluid of a link network."""
