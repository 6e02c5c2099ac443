"""Certificates of queues against independent models: the nonlinear fluid's onset of oscillation, packets, the kernel.

`PYTHONPATH=tests/oracles python experiments/full.py certified-onset [NUMBER ...]` finds the gain at which the fluid of
tests/oracles begins to oscillate at the worst points of 200 random boxes; `python experiments/full.py
certified-engines` runs random queues at .7 and 1.3 of the limit. `PYTHONPATH=experiments python -m engines.certified
--docs` writes the tables in docs/assets.
"""

import sys
from collections.abc import Iterator
from itertools import product
from math import pi
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from common import ASSETS, tables
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from study import Made, Study, made_by

import netctrl
from netctrl.certificates.box import MIN_WINDOW
from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.loops import classes_of, read_mixture
from netctrl.certificates.record import SampledLoop
from netctrl.checks.engines import check_packets
from netctrl.checks.laws import KERNEL_HZ
from netctrl.checks.point import point_of
from netctrl.core.errors import InvalidValue
from netctrl.core.units import packets_per_second
from netctrl.frequency.sampled_stability import stable_gains
from netctrl.plants.queues.queue_loop import QueueLoop

BOXES = 200
KINDS = ("pie", "pi2", "dualpi2")
SENDERS = {
    "pie": ("reno", "creno", "reno+creno", "dctcp"),
    "pi2": ("reno", "creno", "reno+creno", "dctcp", "reno+dctcp"),
    "dualpi2": ("reno", "creno", "reno+creno", "reno+dctcp", ".8creno+.2dctcp"),
}
GAINS = ("alpha", "beta")
WITHIN = 0.03
PACKET = 1500.0
QUEUES = 10
"""Random queues of each law in an engine."""
CLOCKED = {
    ("packet", "dualpi2"): "rfc-reno",
    ("packet", "pie"): "rfc-reno",
    ("kernel", "dualpi2"): "linux-reno",
    ("kernel", "pie"): "linux-reno-noecn",
}
"""Senders under the laws of each engine."""
FLOWS = {"packet": (300, 600), "kernel": (250, 350)}
"""Least and most: the noise of marks falls as the root of their number."""
RATES: dict[Any, tuple[float, float]] = {"packet": (5.5, 6.5), "kernel": (5.5, 6.5), ("kernel", "pie"): (5.5, 6.1)}
"""Powers of ten of a flow's rate [bit/s]: a run has as many packets as the kernel takes at most."""
TARGETS_S = {"packet": (0.01, 0.03), "kernel": (0.02, 0.03)}
WINDOWS = {
    ("packet", "dualpi2"): (4.0, 40.0),
    ("packet", "pie"): (4.0, 40.0),
    ("kernel", "dualpi2"): (6.0, 10.0),
    ("kernel", "pie"): (6.0, 16.0),
}
"""Least and greatest [packet], of the laws in each engine. Linux's pie drops: where it should mark, it marks every
packet from time to time (`netctrl.laws.targets.pie`)."""
KEY = ["engine", "law", "number", "share_of_limit"]
SHARES = (0.7, 1.3)
"""Gain over the certified limit."""


class Box(NamedTuple):
    """A law and where it runs."""

    kind: str
    parameters: dict[str, Any]
    sender: str
    stretches: tuple[float, ...]
    rtt: tuple[float, float]
    """[s]"""
    flows: tuple[float, float]
    rate: float
    """[bit/s]"""

    @property
    def arguments(self) -> dict[str, Any]:
        return {
            "rtt_s": self.rtt,
            "flows": self.flows,
            "capacity_bit_per_s": self.rate,
            "senders": self.sender,
            "stretches": self.stretches,
            "parameters": self.parameters,
        }


def boxes(number: int) -> Iterator[Box]:
    """Random boxes: 1 to 300 ms, 1 to 1000 Mbit/s, windows of 2 to 200 packets, evenly in their logarithms."""
    rng, kind = np.random.default_rng([24, number]), KINDS[number % 3]
    while True:
        target = round(10.0 ** rng.uniform(-2.5, -1.3), 6)
        if kind == "pie":
            parameters = {
                "target_s": target,
                "tupdate_s": float(rng.choice([0.008, 0.015, 0.03])),
                "alpha": int(rng.integers(1, 33)) / 16,
                "beta": int(rng.integers(0, 33)) / 16,
                "hz": int(rng.choice([100, 250, 1000])),
            }
        else:
            alpha = 10.0 ** rng.uniform(-2.3, 0.3)
            parameters = {
                "target_s": target,
                "tupdate_s": float(rng.choice([0.004, 0.016, 0.032])),
                "alpha": alpha,
                "beta": alpha * 10.0 ** rng.uniform(0.0, 1.7),
            }
        sender = str(rng.choice(SENDERS[kind]))
        stretches = (1.0,) if rng.random() < 0.75 else (1.0, float(rng.choice([2.0, 3.0, 5.0])))
        shortest = 10.0 ** rng.uniform(-3.0, np.log10(0.3))
        longest = min(0.3, shortest * 10.0 ** rng.uniform(0.0, 0.6))
        rate, window = 10.0 ** rng.uniform(6.0, 9.0), 10.0 ** rng.uniform(np.log10(2.0), np.log10(200.0))
        most = packets_per_second(rate, PACKET) * (longest + target) / window
        few = most * 10.0 ** -rng.uniform(0.0, 0.5)
        if few >= 1.0:
            yield Box(kind, parameters, sender, stretches, (shortest, longest), (few, most), rate)


def certified(number: int) -> tuple[Box, SampledLoop]:
    """First of a number's boxes whose loop is stable throughout, after its gains were scaled, with its worst point."""
    rng = np.random.default_rng([25, number])
    for box in boxes(number):
        for _ in range(4):
            try:
                factor = corner_factor(box)
            except InvalidValue:  # gains below the kernel's
                factor = 0.0
            if factor >= 1.0 or factor == 0.0 or box.kind == "pie":
                break
            box.parameters.update({name: box.parameters[name] * factor * rng.uniform(0.3, 0.9) for name in GAINS})
        if not 1.0 <= factor < 1e4:
            continue
        at = certify(box.kind, **box.arguments).certificate.sampled
        if at is not None and at.stable and at.gain_margin_db < 80.0 and max(at.windows_packets) <= 200.0:
            return box, at
    raise RuntimeError("unreachable")


def corner_factor(box: Box) -> float:
    """Least gain margin of the box's corners as a factor; 0 where a window is below 2 packets."""
    found = np.inf
    for flows, rtt in product(box.flows, box.rtt):
        loops = loops_at(box, flows, rtt)
        if not loops or loops[0].windows(flows, rtt).min() < MIN_WINDOW:
            return 0.0
        found = min(found, stable_gains(loops[0], flows, rtt).factor)
    return found


def loops_at(box: Box, flows: float, rtt: float) -> list[QueueLoop]:
    """Loops of a law at a point: two where its gains jump, none without an equilibrium."""
    subject = subject_of(box.kind, box.parameters)
    classes = classes_of(subject, read_mixture(box.sender), box.stretches)
    loops = subject.loops(classes, packets_per_second(box.rate, PACKET), PACKET)
    x = float(loops[0].output(flows, rtt))
    return [each for each in loops if each.within[0] * (1.0 - 1e-6) <= x <= each.within[1] * (1.0 + 1e-6)]


def loop_at(box: Box, flows: float, rtt: float, factor: float) -> QueueLoop:
    """Loop of a law at a point: of two that meet at a jump of PIE's gains, the one with this limit."""
    return min(loops_at(box, flows, rtt), key=lambda each: abs(stable_gains(each, flows, rtt).upper - factor))


def onset(box: Box, at: SampledLoop) -> float:
    """Gain at which the fluid begins to oscillate, over the certified limit; by the secant, or bisection beyond 3 %."""
    limit = 10.0 ** (at.gain_margin_db / 20.0)
    loop = loop_at(box, at.flows, at.rtt_s, limit)
    period = 2.0 * pi * loop.epoch / stable_gains(loop, at.flows, at.rtt_s).upper_angle

    from network_fluid import growth  # of tests/oracles

    def grows(share: float) -> float:
        return growth(loop, at.flows, at.rtt_s, limit * share, 60.0, period)

    low, high = 1.0 - WITHIN, 1.0 + WITHIN
    below, above = grows(low), grows(high)
    if below < 0.0 < above:
        return low + (high - low) * below / (below - above)
    low, high = 0.3, 3.0
    for _ in range(14):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if grows(middle) < 0.0 else (low, middle)
    return (low * high) ** 0.5


def inside_is_stable(box: Box, at: SampledLoop, number: int) -> bool:
    """Whether the fluid at a random point of the box decays at .97 of the limit of the worst one."""
    rng = np.random.default_rng([26, number])
    flows, rtt = (float(np.exp(rng.uniform(*np.log(ends)))) for ends in (box.flows, box.rtt))
    loop = loops_at(box, flows, rtt)[0]
    from network_fluid import growth

    period = 2.0 * pi * loop.epoch / stable_gains(loop, flows, rtt).upper_angle
    limit = 10.0 ** (at.gain_margin_db / 20.0)
    return growth(loop, flows, rtt, (1.0 - WITHIN) * limit, 12.0, period) < 0.0  # more periods end in rounding


def onset_row(number: int) -> dict[str, Any]:
    box, at = certified(number)
    return {
        "number": number,
        "law": box.kind,
        "senders": box.sender,
        "round_trips": "+".join(f"{each:g}" for each in box.stretches),
        "rate_mbit_per_s": box.rate / 1e6,
        "flows": at.flows,
        "rtt_ms": 1e3 * at.rtt_s,
        "window_packets": max(at.windows_packets),
        "gain_margin_db": at.gain_margin_db,
        "onset": onset(box, at),
        "inside_stable": inside_is_stable(box, at, number),
    }


def queue(kind: str, number: int, share: float, engine: str) -> Box | None:
    """A random queue with the base round trip at which its gain is a share of the limit; None: there is none."""
    rng = np.random.default_rng([28, KINDS.index(kind), number])
    target = round(rng.uniform(*TARGETS_S[engine]), 3)
    few, many = FLOWS[engine]
    flows = float(rng.integers(few, many + 1))
    rate = round(flows * 10.0 ** rng.uniform(*RATES.get((engine, kind), RATES[engine])), -5)
    if kind == "pie":
        steps = int(rng.integers(1, 17))
        gains = {"alpha": steps / 16, "beta": min(int(steps * rng.uniform(4.0, 12.0)), 32) / 16}
        own = {"hz": KERNEL_HZ} if engine == "kernel" else {"implementation": "rfc", "dq_rate_estimator": True}
        parameters = {"target_s": target, "tupdate_s": 0.015, **gains, **own}
    else:
        alpha = round(256 * 10.0 ** rng.uniform(-1.5, 0.0)) / 256
        parameters = {"target_s": target, "tupdate_s": 0.016, "alpha": alpha}
        parameters["beta"] = round(256 * alpha * rng.uniform(5.0, 25.0)) / 256
    box = Box(kind, parameters, CLOCKED[engine, kind], (1.0,), (0.0, 0.0), (flows, flows), rate)

    def excess(rtt: float) -> float:
        return stable_gains(loops_at(box, flows, rtt)[0], flows, rtt).factor - 1.0 / share

    rtts, (least, most) = np.geomspace(0.005, 0.3, 60), WINDOWS[engine, kind]
    packets = packets_per_second(rate, PACKET) / flows
    rtts = rtts[(packets * (rtts + target) >= least) & (packets * (rtts + target) <= most)]
    values = [excess(rtt) for rtt in rtts]
    for low, high, before, after in zip(rtts[:-1], rtts[1:], values[:-1], values[1:], strict=True):
        if before > 0.0 >= after:
            for _ in range(40):
                middle = 0.5 * (low + high)
                low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
            if abs(excess(low)) < 0.01:  # not a jump of PIE's gains
                return box._replace(rtt=(low, low))
    return None


def queues(kind: str, engine: str) -> Iterator[tuple[int, list[Box]]]:
    """The first random queues that reach both shares of the limit at some round trip."""
    found = number = 0
    while found < QUEUES:
        pair = [box for share in SHARES if (box := queue(kind, number, share, engine)) is not None]
        if len(pair) == len(SHARES):
            found += 1
            yield number, pair
        number += 1


def engine_row(number: int, share: float, box: Box, engine: str, seeds: tuple[int, ...]) -> dict[str, Any]:
    certificate = netctrl.certify(box.kind, **box.arguments)
    at = certificate.certificate.sampled
    rates = netctrl.certify(box.kind, **box.arguments | {"senders": "reno"}).certificate.sampled
    made = check_packets(point_of(certificate), engine, seeds)
    return {
        "engine": engine,
        "law": box.kind,
        "number": number,
        "share_of_limit": share,
        "rate_mbit_per_s": box.rate / 1e6,
        "flows": box.flows[0],
        "rtt_ms": 1e3 * box.rtt[0],
        "target_ms": 1e3 * box.parameters["target_s"],
        "alpha": box.parameters["alpha"],
        "beta": box.parameters["beta"],
        "window_packets": at.windows_packets[0],
        "gain_margin_db": at.gain_margin_db,
        "reno_margin_db": rates.gain_margin_db,
        "envelope_ratio": made.envelope_ratio,
        "settles": made.settles,
        "swing_ms": 1e3 * float(np.mean([run.swing_s for run in made.runs])),
        "mean_delay_ms": 1e3 * float(np.mean([run.mean_delay_s for run in made.runs])),
        "utilization": float(np.mean([run.utilization for run in made.runs])),
    }


def run_queue(engine: str, kind: str, number: int, share: float) -> Made:
    box = queue(kind, number, share, engine)
    assert box is not None
    return Made([engine_row(number, share, box, engine, (1, 2, 3) if engine == "packet" else (1,))])


ONSET = Study(
    name="certified-onset",
    key=("number",),
    repeats=range(BOXES),
    cases=lambda number: [(number,)],
    runs=made_by(lambda number: Made([onset_row(number)])),
    sort=("number",),
)
ENGINES = Study(
    name="certified-engines",
    key=KEY,
    repeats=range(len(WINDOWS)),
    cases=lambda place: [
        (*list(WINDOWS)[place], number, share)
        for number, _ in queues(list(WINDOWS)[place][1], list(WINDOWS)[place][0])
        for share in SHARES
    ],
    runs=made_by(run_queue),
    sort=KEY,
)
"""Its repeats are the laws of the engines, in the order of `WINDOWS`."""
STUDIES = (ONSET, ENGINES)


def onset_table() -> pd.DataFrame:
    kept = ONSET.read()
    off = 100.0 * (kept.onset - 1.0)
    rows = []
    for law in (*KINDS, "all"):
        chosen = (kept.law == law) | (law == "all")
        here = off[chosen]
        rows.append(
            {
                "law": law,
                "boxes": len(here),
                "within 3 %": int((here.abs() <= 100.0 * WITHIN).sum()),
                "median [%]": f"{here.abs().median():.2f}",
                "95 % below [%]": f"{here.abs().quantile(0.95):.2f}",
                "greatest [%]": f"{here.abs().max():.2f}",
                "points inside that decay": int(
                    (kept.inside_stable if law == "all" else kept.inside_stable[kept.law == law]).sum()
                ),
            }
        )
    return pd.DataFrame(rows)


def engines_table() -> pd.DataFrame:
    kept = ENGINES.read()
    rows = []
    for (engine, law), here in kept.groupby(["engine", "law"]):
        low, high = (here[here.share_of_limit == share] for share in SHARES)
        ratio = 10.0 ** ((low.reno_margin_db - low.gain_margin_db) / 20.0)
        rows.append(
            {
                "engine": engine,
                "senders": CLOCKED[engine, law],
                "law": law,
                "queues": len(low),
                "steady at .7": int(low.settles.sum()),
                "oscillating at 1.3": int((~high.settles).sum()),
                "envelope ratio at .7": f"{low.envelope_ratio.median():.2f}",
                "at 1.3": f"{high.envelope_ratio.median():.2f}",
                "swing at .7 [ms]": f"{low.swing_ms.median():.1f}",
                "at 1.3 [ms]": f"{high.swing_ms.median():.1f}",
                "reno's limit, of theirs": f"{ratio.median():.2f}",
            }
        )
    return pd.DataFrame(rows)


def figure() -> Figure:
    """Envelope ratios of all queues, by engine and law."""
    kept = ENGINES.read()
    drawn = Figure(figsize=(7.5, 3.0), layout="constrained")
    axis = drawn.subplots()
    names = []
    for row, ((engine, law), here) in enumerate(kept.groupby(["engine", "law"])):
        names.append(f"{law}, {engine}")
        for share, colour, shift in zip(SHARES, ("#1f4e9c", "#c0392b"), (0.12, -0.12), strict=True):
            found = here[here.share_of_limit == share].envelope_ratio
            axis.scatter(found, np.full(len(found), row + shift), 22, facecolors="none", edgecolors=colour)
    axis.axvline(pi / 2.0, color="#888888", lw=0.8)
    axis.set_yticks(range(len(names)), names)
    axis.set_xlabel("envelope ratio: 2 of noise, 1 of a cycle; line: π/2")
    entries = [
        Line2D([], [], ls="", marker="o", mfc="none", color="#1f4e9c", label=".7 of the limit"),
        Line2D([], [], ls="", marker="o", mfc="none", color="#c0392b", label="1.3 of it"),
    ]
    drawn.legend(handles=entries, loc="outside lower center", ncols=2, frameon=False)
    return drawn


if __name__ == "__main__":
    tables(certified_onset=onset_table, certified_engines=engines_table)
    if "--docs" in sys.argv:
        figure().savefig(ASSETS / "certified-engines.png", dpi=150)
