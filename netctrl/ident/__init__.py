"""Traces to state-space models."""
