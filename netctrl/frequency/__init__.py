"""Loops with exact delay: margins, sampled-data stability, stability maps."""
