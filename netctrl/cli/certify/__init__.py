"""`netctrl certify LAW`: whether a queue's law as people run it is stable, for whom, and which gains hold instead."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

from netctrl.cli.app import new_app, run
from netctrl.cli.certify.common import OPTIONS
from netctrl.cli.certify.installed import as_command, sonic, tc
from netctrl.cli.certify.network import network
from netctrl.cli.certify.pi import dualpi2, pi2, pie
from netctrl.cli.certify.red import red, wred
from netctrl.cli.waiting import waiting

__all__ = ["main"]

app = new_app(
    "netctrl certify",
    "Certifies the laws of queues as people run them: exact margins, proved for a range of flows and round-trip times.",
    "netctrl certify pie --rtt 10ms:30ms --N 3:5 --capacity 20Mbit",
    "netctrl certify dualpi2 --rtt 20ms --window 50 --sender reno --json",
)
_COMMANDS = (pie, dualpi2, pi2, red, wred, network, tc, sonic)
for command in _COMMANDS:
    app.command(command, name=command.__name__, help=inspect.getdoc(command))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    tokens = as_command(sys.argv[1:] if argv is None else argv, [each.__name__ for each in _COMMANDS])
    with waiting("certifying"):
        return run(app, tokens, OPTIONS)
