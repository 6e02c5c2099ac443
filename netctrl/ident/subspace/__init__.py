"""Subspace identification: data compression, realisation, model order."""
