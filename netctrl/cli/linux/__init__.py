"""`netctrl linux VERB`: one file for each verb."""
