"""Certificates of queues: one point with its proofs, and maps of the gain margin."""

import time
from collections.abc import Iterator

import control
import numpy as np
from rows import Row, against, alternate

from netctrl.certificates.box import Where, box_of
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.loops import box_loops, classes_of, read_mixture
from netctrl.certificates.search import margin_map
from netctrl.certificates.shipped import SHIPPED
from netctrl.frequency.sampled_stability import stable_gains

SIDE = 1000
POINT: Where = {"rtt_s": 0.1, "window_packets": 8.0, "senders": "reno"}
LARGE: Where = {"rtt_s": 0.1, "window_packets": 60.0, "senders": "reno"}
"""Where the PI laws' defaults are unstable."""
POINTS: tuple[tuple[str, Where], ...] = (
    *((name, where) for name in ("linux-dualpi2", "linux-pie", "rfc9332") for where in (POINT, LARGE)),
    *(("red-1997", {"rtt_s": rtt, "flows": 10.0, "capacity_bit_per_s": 10e6}) for rtt in (0.05, 0.4)),
    *(("red-man", {"rtt_s": rtt, "flows": 20.0, "capacity_bit_per_s": 10e6}) for rtt in (0.02, 0.2)),
)
"""Published defaults, each at a stable and at an unstable point."""


def rows() -> Iterator[Row]:
    yield million_points("pie")
    yield million_points("dualpi2")
    for name, where in POINTS:
        yield one_point(name, where)


def million_points(name: str) -> Row:
    """The peer finds the same margins point by point, each refined to rounding."""
    law, inputs = subject_of(name, {}), certify(name, **POINT).inputs
    drawn = np.random.default_rng(0)
    some = list(zip(drawn.uniform(1.0, 5.0, 60), drawn.uniform(0.02, 0.5, 60), strict=True))
    loops = law.loops(classes_of(law, read_mixture("reno"), (1.0,)), 400.0, 1500.0)

    def by_point() -> None:
        for flows, rtt in some:
            x = float(loops[0].output(flows, rtt))
            stable_gains.__wrapped__(next(each for each in loops if each.within[0] <= x <= each.within[1]), flows, rtt)

    turns = alternate(lambda: margin_map(law, inputs, SIDE), by_point, rounds=5, clock=time.process_time)
    scaled = turns._replace(theirs=[t * SIDE**2 / len(some) for t in turns.theirs])
    what = f"gain margins of {name}, {SIDE**2} points"
    return against(what, f"stable_gains a point, from {len(some)}", scaled, "<= 5 s", "other points of the plane")


def one_point(name: str, where: Where) -> Row:
    """The peer has the loop's response at 4000 angles, and finds gain and phase margins between them, without proof."""
    shipped = SHIPPED[name]
    law = subject_of(shipped.law, shipped.parameters)
    found = certify(law, **where)
    sampled = found.certificate.sampled
    assert sampled is not None
    box = box_of(law, **where)
    flows, rtt = box.flows[0], sampled.rtt_s
    loop = next(each for _, each in box_loops(law, box) if each.starts(box.flows, box.rtt))
    angles = np.linspace(1e-3, np.pi, 4000)

    def peer() -> tuple[float, ...]:
        values = loop.at(angles, flows, rtt)
        return control.stability_margins(control.frd(values, angles / loop.epoch))

    turns = alternate(lambda: certify(law, **where), peer, rounds=9, clock=time.process_time)
    what = f"certificate of {name}, {'stable' if sampled.stable else 'unstable'}"
    against_control = "control.stability_margins from its response at 4000 angles"
    return against(what, against_control, turns, "<= 50 ms", "ours with proofs")
