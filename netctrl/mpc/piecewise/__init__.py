"""Explicit MPC: a quadratic program's solution as a piecewise affine law."""
