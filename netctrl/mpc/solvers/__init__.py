"""Quadratic-programming solvers, one adapter a file."""
