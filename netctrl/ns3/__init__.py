"""Scenarios and designs as ns-3 programs: text rendered, compiled, run and read back."""
