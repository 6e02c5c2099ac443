"""Quadratic-programming solvers, one adapter per file."""
