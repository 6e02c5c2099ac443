"""The command line of the fluid simulator."""
