"""Whole controllers as C: estimator, references, program."""
