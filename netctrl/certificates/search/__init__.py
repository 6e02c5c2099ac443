"""Searches in a box and beyond it: the points that decide, and how far the design rule is kept."""
