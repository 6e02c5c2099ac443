"""Published defaults of queues' laws: verdicts, margins, longest round-trip times and maps.

`PYTHONPATH=experiments python -m engines.shipped` prints a table; `--docs` writes docs/assets/shipped.csv and .png.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd

from netctrl.certificates.certify import subject_of
from netctrl.certificates.ecn.subjects import EcnSubject
from netctrl.certificates.map import margin_map
from netctrl.certificates.record import QueueCertificate, span_text
from netctrl.certificates.shipped import CORE, HOME, SHIPPED, Shipped, certify_shipped
from netctrl.errors import Status
from netctrl.plotting.certificates import margins_figure
from netctrl.units import format_quantity

ASSETS = Path(__file__).resolve().parents[2] / "docs" / "assets"
WORDS = {
    Status.ADMISSIBLE: "holds",
    Status.STABLE: "stable",
    Status.UNSTABLE: "unstable",
    Status.INFEASIBLE: "no equilibrium",
}


def certificate(name: str) -> QueueCertificate:
    found = certify_shipped([name]).queues[0].certificate
    if found is None:
        raise ValueError(f"{name} has no certificate where people run it")
    return found


def row(default: Shipped, found: QueueCertificate) -> dict[str, str]:
    verdict = found.certificate
    sampled, linear, reach, cycle = verdict.sampled, verdict.linear, verdict.reach, verdict.step
    if cycle is not None:
        queue = f"{cycle.fluid.lowest_packets:.0f} to {cycle.fluid.highest_packets:.0f} packets"
    else:
        queue = "" if sampled is None else format_quantity(float(f"{sampled.queue_delay_s:.3g}"), "s")
    longest = None if reach is None else reach.longest_rtt_s
    far = ("" if cycle is not None else "none") if longest is None else format_quantity(float(f"{longest:.3g}"), "s")
    return {
        "default": default.title,
        "name": f"`{default.name}`",
        "where": _place(default, found),
        "verdict": WORDS[verdict.status],
        "gain [dB]": "" if sampled is None else f"{sampled.gain_margin_db:.1f}",
        "phase [degrees]": "" if sampled is None else f"{sampled.phase_margin_deg:.0f}",
        "textbook [dB]": "" if linear is None else f"{linear.gain_margin_db:.1f}",
        "queue": queue,
        "6 dB up to": far,
    }


def _place(default: Shipped, found: QueueCertificate) -> str:
    for name, where in (("home", HOME), ("router", CORE)):
        if default.where == where:
            return name
    inputs = found.inputs
    capacity = format_quantity(inputs.capacity_bit_per_s[1], "bit/s")
    return f"{capacity}, {span_text(inputs.flows)} flows, {span_text(inputs.rtt_s, 's')}"


def main(argv: list[str]) -> int:
    found = {name: certificate(name) for name in SHIPPED}
    made = pd.DataFrame([row(SHIPPED[name], each) for name, each in found.items()])
    print(made.to_string(index=False))
    if "--docs" in argv:
        made.to_csv(ASSETS / "shipped.csv", index=False)
        entries = []
        for name, each in found.items():
            default = SHIPPED[name]
            law = subject_of(default.law, default.parameters)
            if not isinstance(law, EcnSubject):
                entries.append((default.title, each, margin_map(law, each.inputs, 121)))
        margins_figure(entries).savefig(ASSETS / "shipped.png", dpi=110)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
