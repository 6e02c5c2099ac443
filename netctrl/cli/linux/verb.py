"""`python -m netctrl.linux VERB`: this machine's queues, agents, marking and senders, and testbeds of namespaces."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.cli.app import new_app, run
from netctrl.cli.linux.agent import agent
from netctrl.cli.linux.apply import apply, confirm
from netctrl.cli.linux.common import OPTIONS
from netctrl.cli.linux.mark import mark
from netctrl.cli.linux.pace import pace
from netctrl.cli.linux.plan import plan
from netctrl.cli.linux.restore import restore
from netctrl.cli.linux.status import status
from netctrl.cli.linux.testbed import testbed

__all__ = ["main"]

app = new_app("python -m netctrl.linux", "Queues of this machine: planned, applied, read back, put back as they were.")
app.command(plan, help="Shows what wanted queues would change here; takes no right.")
app.command(apply, help="Puts the wanted queues in place, reads them back, and keeps, holds or rolls back.")
app.command(confirm, help="Says to `apply --confirm-within` that the machine can still be reached.")
app.command(restore, help="Puts back what was there before, after `apply` or after it was killed.")
app.command(agent, help="Controls the rates of queues here, alone or with other agents, until it is stopped.")
app.command(status, help="Shows which queues are netctrl's, since when, and what went through them.")
app.command(mark, help="Marks packets in front of a queue, with the probability that ARC sets each epoch.")
app.command(pace, help="Paces the TCP connections of a program, or a transfer of its own, by the law of a Design.")
app.command(testbed, help="Builds a network of namespaces, shaped links and delay lines, and holds it until Ctrl-C.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
