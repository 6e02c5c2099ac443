"""Loops of several signals: the generalised Nyquist criterion, its proofs, and multi-loop margins."""
