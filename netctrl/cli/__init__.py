"""Command lines: one file for each verb; `app.py` has what they share."""
