"""Fluid simulation of a network of links."""
