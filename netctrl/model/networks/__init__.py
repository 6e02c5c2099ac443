"""Readers of the files in which operators and researchers keep networks and traffic matrices."""
