"""`netctrl design METHOD`: gains and a certificate, as a table, JSON, a Design file or a picture."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

from netctrl.cli.app import new_app, run, waiting
from netctrl.cli.design.common import OPTIONS
from netctrl.core.register import DESIGN_COMMANDS

app = new_app(
    "netctrl design",
    "Designs control laws for congestion management, with certificates.",
    "netctrl design arc --N 50",
    "netctrl design mpcc --N 4 --rate 100Gbit --rtt 8us",
)
for name in DESIGN_COMMANDS.usable():
    command = DESIGN_COMMANDS[name]
    app.command(command, name=name, help=inspect.getdoc(command))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    with waiting("designing"):
        return run(app, argv, OPTIONS)
