"""Margins of any rational loop with delays, with crossovers isolated by proof."""
