"""Quadratic programs: the record, scaling, solution, certificate."""
