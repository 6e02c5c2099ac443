"""`netctrl linux VERB`: this machine's queues, agents, marking and senders."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.cli.app import new_app, run
from netctrl.cli.linux.agent import agent
from netctrl.cli.linux.common import OPTIONS
from netctrl.cli.linux.congestion import cc
from netctrl.cli.linux.mark import mark
from netctrl.cli.linux.pace import pace
from netctrl.cli.linux.queues import apply, confirm, plan, restore, status

app = new_app(
    "netctrl linux",
    "Plans, applies, checks and restores queues of this machine.",
    "netctrl linux status",
    "netctrl linux apply router/arc.plan.json --dry-run",
)
app.command(plan, help="Shows what applying a plan would change here; needs no privilege.")
app.command(apply, help="Applies the plan's queues, reads them back, and keeps, holds or rolls them back.")
app.command(confirm, help="Confirms to `apply --confirm-within` that the machine can still be reached.")
app.command(restore, help="Restores the queues before `apply`, also after it was killed.")
app.command(agent, help="Controls the rates of queues here, alone or with other agents, until stopped.")
app.command(status, help="Shows netctrl's queues, since when they exist, and their counters.")
app.command(mark, help="Marks packets before a queue with the probability that ARC sets each epoch.")
app.command(cc, help="Loads a Design's law as a congestion control into the kernel, takes it out, or lists it.")
app.command(pace, help="Paces a program's TCP connections, or a transfer, by the law of a Design.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
