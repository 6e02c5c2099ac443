"""ARC's design: margins, maps and limits of loops."""

from collections.abc import Iterator

import control
import msgspec
import numpy as np
from rows import Agreement, Row, Turns, against, alternate, relative
from scipy.optimize import brentq

from netctrl.design.arc.design import arc_gain_bands
from netctrl.frequency.loop import magnitude, phase_lag, to_control
from netctrl.frequency.margins import margins
from netctrl.frequency.sampled import gain_limit, spectral_radius
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_loop, arc_sampled_loop

SETTING = ArcSetting(capacity_packet_per_s=1250.0)
MILLION = 1000


def rows() -> Iterator[Row]:
    yield exact_margins()
    yield margins_of_a_transfer_function()
    yield margins_by_isolation()
    yield million_points()
    yield sampled_limit()


def exact_margins() -> Row:
    loop = arc_loop(50.0, 0.5, SETTING, "paper").scaled(1.42e-5)
    pade = to_control(loop, 5)
    turns = alternate(lambda: margins(loop), lambda: control.margin(pade), rounds=15, repeats=40)
    return against("exact margins, one loop", "python-control margin, Pade-5", turns, ">= 8x", same_margins(turns))


def same_margins(turns: Turns) -> Agreement:
    """Gain margins; the peer's delay is a Padé approximant."""
    found, theirs = turns.answers
    return relative([10.0 ** (found.gain_margin_db / 20.0)], [theirs[0]], 1e-3, "gain margins")


def margins_of_a_transfer_function() -> Row:
    """The same loop as a user brings it: converted each time."""
    loop = arc_loop(50.0, 0.5, SETTING, "paper").scaled(1.42e-5)
    undelayed, pade = to_control(msgspec.structs.replace(loop, delay=0.0), 5), to_control(loop, 5)
    turns = alternate(
        lambda: margins(undelayed, delay_s=loop.delay), lambda: control.margin(pade), rounds=15, repeats=20
    )
    return against("exact margins, from python-control", "its margin, Pade-5", turns, ">= 8x", same_margins(turns))


def margins_by_isolation() -> Row:
    """Three equal poles and delay: no DelayLoop, crossings isolated with proof."""
    plant, delay = control.tf([2.0], [1.0, 3.0, 3.0, 1.0]), 0.5
    pade = plant * control.tf(*control.pade(delay, 5))
    turns = alternate(lambda: margins(plant, delay_s=delay), lambda: control.margin(pade), rounds=9, repeats=3)
    return against("margins by isolation, 3 equal poles", "its margin, Pade-5", turns, "none", same_margins(turns))


def million_points() -> Row:
    flows, rtt = np.geomspace(5, 500, MILLION), np.geomspace(0.02, 3.0, MILLION)[:, None]
    sample = 300
    random = np.random.default_rng(0)
    some = list(zip(random.uniform(5, 500, sample), random.uniform(0.02, 3.0, sample), strict=True))

    def by_brentq() -> list[float]:
        """The same three roots, one point at a time, with SciPy's solver on the same loop functions."""
        limits = []
        for n, tau in some:
            loop = arc_loop(n, tau, SETTING, "paper")
            for level in (np.pi, 5 * np.pi / 6, 2 * np.pi / 3):
                w = brentq(lambda x, loop=loop, level=level: phase_lag(loop, x) - level, 1e-9, 4.0 / tau, rtol=1e-14)
                if level == np.pi:
                    limits.append(1.0 / magnitude(loop, w))
        return limits

    turns = alternate(lambda: arc_gain_bands(flows, rtt, SETTING), by_brentq, rounds=5)
    scaled = turns._replace(theirs=[t * MILLION**2 / sample for t in turns.theirs])
    what = f"map of {MILLION**2} (N, tau) points"
    limits = arc_gain_bands(*np.array(some).T, SETTING).limit
    same = relative(limits, turns.answers[1], 1e-9, "limits of some")
    return against(what, f"SciPy brentq a point, from {sample}", scaled, "<= 3 s", same)


def sampled_limit() -> Row:
    loop = arc_sampled_loop(50.0, 0.5, ArcSetting(capacity_packet_per_s=1250.0, epoch_s=0.1), "noq")

    def by_eigenvalues() -> float:
        low, high = 0.0, 1e-3
        while high - low > 1e-12 * high:
            middle = 0.5 * (low + high)
            low, high = (middle, high) if spectral_radius(loop, middle) < 1.0 else (low, middle)
        return low

    turns = alternate(lambda: gain_limit(loop), by_eigenvalues, rounds=9, repeats=3)
    same = relative([turns.answers[0]], [turns.answers[1]], 1e-9, "limits")
    return against("limit of the sampled loop", "bisection on numpy eigvals", turns, "none", same)
