"""Command lines: a file a verb, `app.py` is what they share."""
