"""Certificates of queues: one point with its proofs, and maps of the gain margin."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from rows import Row, against, alternate

from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.map import margin_map
from netctrl.frequency.sampled_stability import stable_gains

SIDE = 1000
POINT = {"rtt_s": 0.1, "window_packets": 8.0}


def rows() -> Iterator[Row]:
    yield million_points("pie")
    yield million_points("dualpi2")
    yield one_point()


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
    return against(what, f"stable_gains a point, from {len(some)}", scaled, "<= 5 s", lambda t, _: t <= 5.0)


def one_point() -> Row:
    """The peer only evaluates the response on 4000 angles, without a margin or a proof."""
    law = subject_of("dualpi2", {})
    loop = law.loops(classes_of(law, read_mixture("reno"), (1.0,)), 8.0 / 0.115, 1500.0)[0]
    angles = np.linspace(1e-3, np.pi, 4000)
    turns = alternate(
        lambda: certify("dualpi2", **POINT), lambda: loop.at(angles, 1.0, 0.1), rounds=9, clock=time.process_time
    )
    return against(
        "certificate of dualpi2 at a point", "its response at 4000 angles", turns, "<= 50 ms", lambda t, _: t <= 0.05
    )
