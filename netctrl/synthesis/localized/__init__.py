"""Localized synthesis: finite-length columns in a region around each link."""
