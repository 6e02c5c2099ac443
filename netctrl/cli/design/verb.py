"""`python -m netctrl.design arc --N 50`: gains with a certificate, as a table, JSON, a Design file and a picture."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from netctrl.cli.app import new_app, run
from netctrl.cli.design.common import OPTIONS
from netctrl.register import DESIGN_COMMANDS

__all__ = ["main"]

app = new_app("python -m netctrl.design", "Control laws for congestion management, with certificates.")
for name in DESIGN_COMMANDS:
    command = DESIGN_COMMANDS[name]
    app.command(command, name=name, help=inspect.getdoc(command))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
