"""Checks of this machine: what netctrl needs and finds; no privilege is needed and nothing is changed."""
