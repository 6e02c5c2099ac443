"""`netctrl design METHOD`: one file for each method."""
