"""Designs as configuration of Linux: tc commands, agents, marking programs."""
