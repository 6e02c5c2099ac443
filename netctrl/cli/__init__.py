"""Command lines: one file for each verb, `app.py` for what they share; and exit statuses, one rule for every verb."""

from __future__ import annotations

GOOD = 0
"""The answer is yes, or the work is done."""
FAILURE = 1
"""A program failed, or a requirement is missing."""
WRONG_USE = 2
"""An option, a value or a file cannot be used."""
NO = 3
"""The answer is no: a design, a law or a queue is not safe, or there is none."""
INTERRUPTED = 130
"""Stopped by Ctrl-C, as in shells."""

STATUSES = "exit status: 0 yes or done, 1 failure, 2 wrong use, 3 the answer is no"
"""The rule in the help of every command."""
