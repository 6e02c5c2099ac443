"""`python -m netctrl.design arc --N 50`: gains with a certificate, as a table, JSON, a Design file and a picture."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.cli.app import new_app, run
from netctrl.cli.design.arc import arc
from netctrl.cli.design.common import OPTIONS
from netctrl.cli.design.connet import connet
from netctrl.cli.design.hftrac import hftrac
from netctrl.cli.design.mpcc import mpcc
from netctrl.cli.design.pacing import pacing

__all__ = ["main"]

app = new_app("python -m netctrl.design", "Control laws for congestion management, with certificates.")
app.command(arc, help="ARC: AQM gains for TCP on one congested link, exact for the delay and for the epoch.")
app.command(
    hftrac, help="HFTraC: rates of a network's links from backlogs and rates, and the price of each architecture."
)
app.command(
    connet, help="CONNET: the rate of other traffic, so that premium packets see the delay or jitter asked for."
)
app.command(mpcc, help="MPCC: windows of data-centre senders from a switch's queue, without a solver.")
app.command(pacing, help="MPC pacing: a sender's rate from its round-trip times, as published, and to a target RTT.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
