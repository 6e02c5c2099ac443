"""The command line of identification."""
