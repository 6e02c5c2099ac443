"""Margins of any rational loop with delays, with certified crossovers."""
