"""A Design's law as a congestion control in the kernel."""
