"""`netctrl design METHOD`."""
