"""Quadratic programs: record, scaling, solution, certificate."""
