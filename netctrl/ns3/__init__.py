"""Scenarios and designs as ns-3 programs: rendered, compiled, run, and their results read."""
