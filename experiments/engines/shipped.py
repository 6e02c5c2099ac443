"""Published defaults of queues' laws: verdicts, margins, longest round-trip times and maps.

`PYTHONPATH=experiments python -m engines.shipped` prints a table; `--docs` writes docs/assets/shipped.csv and .png.
"""

import sys

import pandas as pd
from common import ASSETS

from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.ecn import EcnSubject
from netctrl.certificates.record import QueueCertificate, span_text
from netctrl.certificates.search import margin_map
from netctrl.certificates.shipped import CORE, HOME, SHIPPED, Shipped, certify_shipped
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.plotting.certificates import margins_figure

LINUX = ("linux-reno", "linux-creno")
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


def with_linux(default: Shipped) -> QueueCertificate | None:
    """The same with Reno and Cubic as Linux sends them; None for defaults that are certified with other senders."""
    if default.where.get("senders") != HOME["senders"]:
        return None
    return certify(default.law, parameters=default.parameters, **{**default.where, "senders": LINUX})


def row(default: Shipped, found: QueueCertificate, linux: QueueCertificate | None) -> dict[str, str]:
    verdict = found.certificate
    sampled, linear, cycle = verdict.sampled, verdict.linear, verdict.step or verdict.cycle
    turned = verdict.least_phase or sampled
    if cycle is not None:
        queue = f"{cycle.fluid.lowest_packets:.0f} to {cycle.fluid.highest_packets:.0f} packets"
    else:
        queue = "" if sampled is None else format_quantity(float(f"{sampled.queue_delay_s:.3g}"), "s")
    return {
        "default": default.title,
        "name": f"`{default.name}`",
        "where": _place(default, found),
        "verdict": "runs empty" if cycle is not None and cycle.lost_share > 0.0 else WORDS[verdict.status],
        "gain [dB]": _gain(found),
        "phase [degrees]": "" if turned is None else f"{turned.phase_margin_deg:.0f}",
        "textbook [dB]": "" if linear is None else f"{linear.gain_margin_db:.1f}",
        "queue": queue,
        "holds up to": "" if cycle is not None else _reach(found),
        "with Linux's senders [dB]": "" if linux is None else _gain(linux),
        "holds up to, with them": "" if linux is None else _reach(linux),
    }


def _gain(found: QueueCertificate) -> str:
    sampled = found.certificate.sampled
    return "" if sampled is None else f"{sampled.gain_margin_db:.1f}"


def _reach(found: QueueCertificate) -> str:
    reach = found.certificate.reach
    longest = None if reach is None else reach.longest_rtt_s
    return "none" if longest is None else format_quantity(float(f"{longest:.3g}"), "s")


def _place(default: Shipped, found: QueueCertificate) -> str:
    for name, where in (("home", HOME), ("router", CORE)):
        if default.where == where:
            return name
    inputs = found.inputs
    capacity = format_quantity(inputs.capacity_bit_per_s[1], "bit/s")
    return f"{capacity}, {span_text(inputs.flows)} flows, {span_text(inputs.rtt_s, 's')}"


def main(argv: list[str]) -> int:
    found = {name: certificate(name) for name in SHIPPED}
    made = pd.DataFrame([row(SHIPPED[name], each, with_linux(SHIPPED[name])) for name, each in found.items()])
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
