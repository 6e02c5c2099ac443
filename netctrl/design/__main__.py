"""`python -m netctrl.design arc --N 50`: gains with a certificate, as a table, JSON, a Design file and a picture."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from netctrl.cli import new_app, run
from netctrl.design._verb import OPTIONS
from netctrl.design._verb_arc import arc
from netctrl.design._verb_connet import connet
from netctrl.design._verb_hftrac import hftrac
from netctrl.design._verb_mpcc import mpcc
from netctrl.design._verb_pacing import pacing

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


if __name__ == "__main__":
    sys.exit(main())
