"""`netctrl linux VERB`."""
