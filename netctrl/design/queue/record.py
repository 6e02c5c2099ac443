"""Design of a queue that people run: inputs, the law in its implementation's steps, and what is proved of it."""

from __future__ import annotations

from itertools import groupby
from typing import Literal, NamedTuple

from netctrl.certificates.record import CertifyInputs, QueueVerdict, span_text
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.design.base import Design, Summary
from netctrl.model.design.queue_checks import Felt, GainsFigures
from netctrl.model.io.display import Explored
from netctrl.model.io.record_file import Record
from netctrl.model.law import QueueLaw

Objective = Literal["figures", "speed", "margin"]


_GAINS, _TIMES = ("alpha", "beta", "max_bytes", "probability", "max_percent"), ("target_s", "interval_s", "rtt_s")
"""What designs find, as parameters of laws."""


class Asked(NamedTuple):
    """What a user asks of a queue; None: nothing."""

    p99_s: float | None = None
    """Longest 99th percentile of the delay [s]."""
    utilization: float | None = None
    """Least share of the link's rate."""
    step_s: float | None = None
    """Longest time above two targets after a step of the load [s]."""

    def excess(self, felt: Felt) -> tuple[float, float, float]:
        """By how much figures miss what is asked [s, share, s]; 0 where they don't, or nothing is asked."""
        p99 = 0.0 if self.p99_s is None else max((felt.delay_99_s or 0.0) - self.p99_s, 0.0)
        used = 0.0 if self.utilization is None else max(self.utilization - felt.utilization, 0.0)
        return p99, used, 0.0 if self.step_s is None else max(felt.above_s - self.step_s, 0.0)

    def miss(self, felt: Felt) -> float:
        """Sum of what figures miss, each over what is asked."""
        return sum(by / wanted for by, wanted in zip(self.excess(felt), self, strict=True) if wanted)

    def missing(self, felt: Felt) -> str:
        """The same in words; empty where nothing is missed."""
        p99, used, step = self.excess(felt)
        longer = [(p99, "the 99th percentile of the delay"), (step, "the time above two targets after a step")]
        said = [f"{what} is {format_quantity(by, 's', 3)} too long" for by, what in longer if by > 0.0]
        return ", ".join([*said, *[f"utilization lacks {100.0 * used:.2g} %"] * (used > 0.0)])


class QueueInputs(Record, frozen=True):
    """Inputs of a queue's design."""

    law: str
    """As in `netctrl design NAME`."""
    objective: Objective
    """figures: what users feel, on packets, with a disk margin of at least `least_disk_margin`, or the shipped gains.
    speed: the greatest integral gain, or the steepest line, with that disk margin. margin: the greatest disk margin
    with the integral gain that is given."""
    least_disk_margin: float | None
    """Disk margin that is kept in the whole box; null where the objective is margin, and of CoDel."""
    parameters: dict[str, float | int | str | bool]
    """Parameters of the law that were given, in SI units."""
    box: CertifyInputs
    """Where it runs."""
    p99_s: float | None = None
    """Longest 99th percentile of the delay that is asked for [s]; null: none is."""
    utilization: float | None = None
    """Least utilization that is asked for; null: none is."""
    step_s: float | None = None
    """Longest time above two targets after a step of the load that is asked for [s]; null: none is."""

    @property
    def asked(self) -> Asked:
        """What is asked of the figures."""
        return Asked(self.p99_s, self.utilization, self.step_s)


class QueueProof(Record, frozen=True):
    """Certificate of a queue's design: the loop of the law that is exported, proved at every point of the box; of CoDel
    its cycle, looked at on a grid."""

    status: Status
    """admissible: 6 dB and 30 degrees at every point of the box, proved; of the objective figures its disk margin,
    proved, which CoDel hasn't, and what is asked for, on packets."""
    disk_margin: float | None
    """2/‖S − T‖∞ at the worst point; 0 where a loop is unstable; null of CoDel."""
    disk_margin_proved: float | None
    """No point of the box has less."""
    sender: str
    """Sender of the worst point."""
    flows: float | None
    """Number of flows there; null where the window is given."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    speed: float | None
    """Integral gain a second where nothing scales it, alpha/T [1/s²], of RED and WRED the slope [1/byte].

    A change Δx of the load, in the law's output, leaves an integral of the delay's deviation of Δx/speed [s²]."""
    verdict: QueueVerdict
    """Gain, phase and delay margins with their proofs, or CoDel's cycle, as `netctrl certify` finds them."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    figures: tuple[GainsFigures, ...] = ()
    """What its queue is like at corners of the box, where it was asked for."""
    shipped: tuple[GainsFigures, ...] = ()
    """The same with the gains that the implementation ships."""
    keep: bool | None = None
    """Whether the law is the shipped one, as no other that keeps the margins is better in one figure and no worse in
    the others; null with another objective."""


def queue_summary(inputs: QueueInputs, law: QueueLaw, proof: QueueProof) -> Summary:
    """Title and (name, text) rows: gains, disk margin, and the margins of the certificate."""
    least = inputs.least_disk_margin
    asked = "greatest disk margin" if least is None else f"disk margin of at least {least:.3g}"
    asked = "by its cycle and packets" if proof.disk_margin is None else asked
    title = f"{law.name} ({law.implementation}), {asked}, {_where(inputs.box)}"
    flows = "" if proof.flows is None else f" with {proof.flows:.4g} flows"
    unit = "1/byte" if law.name in ("red", "wred") else "1/s²"
    rows = [
        ("parameters", ", ".join(f"{name} {_text(value)}" for name, value in law.parameters.items())),
        ("in effect", ", ".join(f"{name} {value:.6g}" for name, value in law.gains.items())),
    ]
    if proof.disk_margin is not None:
        rows += [
            ("disk margin", f"{proof.disk_margin:.3f}, proved {proof.disk_margin_proved:.3f} at every point"),
            ("  worst point", f"{proof.sender}{flows} at {format_quantity(proof.rtt_s, 's', 4)}"),
            ("speed", f"{proof.speed:.4g} {unit}"),
        ]
    elif (cycle := proof.verdict.predicted) is not None:
        delay = f"99 % below {format_quantity(cycle.delay_p99_s, 's', 3)}"
        rows.append(("cycle, worst", f"{delay}, {100.0 * cycle.utilization:.1f} % used"))
    found = proof.verdict.sampled
    if found is not None:
        least = "" if found.gain_margin_db_proved is None else f" (proved {found.gain_margin_db_proved:.2f} dB)"
        rows += [
            ("gain margin", f"{found.gain_margin_db:.2f} dB{least}"),
            ("phase margin", f"{found.phase_margin_deg:.1f}°"),
        ]
    return title, [*rows, *_beside_shipped(proof)]


def _beside_shipped(proof: QueueProof) -> list[tuple[str, str]]:
    """Rows with what users feel of a design's gains and of the shipped ones, and which are better."""
    rows = []
    if not proof.shipped:
        return [(f"{engine}, worst", ours.text) for engine, ours in _felt(proof.figures)]
    for (engine, ours), (_, theirs) in zip(*map(_felt, (proof.figures, proof.shipped)), strict=True):
        if proof.keep:
            rows.append((f"{engine}, worst", f"shipped {_sought(proof)}: {ours.text}"))
            continue
        known, sought = proof.shipped[0].parameters, _GAINS if proof.disk_margin is not None else _TIMES
        gains = ", ".join(f"{name} {known[name]:.6g}" for name in sought if name in known)
        rows += [
            (f"{engine}, worst", f"these {_sought(proof)}: {ours.text}"),
            ("", f"shipped {gains}: {theirs.text}"),
            ("", _better(ours, theirs)),
        ]
    return rows


def _sought(proof: QueueProof) -> str:
    """What was sought, in a word."""
    return "gains" if proof.disk_margin is not None else "times"


def _felt(figures: tuple[GainsFigures, ...]) -> list[tuple[str, Felt]]:
    """Engines, and the worst figures of each."""
    return [(engine, Felt.worst(list(each))) for engine, each in groupby(figures, key=lambda one: one.engine)]


def _better(ours: Felt, theirs: Felt) -> str:
    """Which gains are better in what, by more than a tenth."""
    said = []
    for who, worse in (("these", theirs.worse_than(ours)), ("the shipped ones", ours.worse_than(theirs))):
        what = zip(("shorter at 99 %", "less idle", "faster after a step"), worse, strict=True)
        if better := [name for name, by in what if by > 1.0]:
            said.append(f"{who} are {', '.join(better)}")
    return "; ".join(said) or "neither are better by more than a tenth"


def queue_verdict(inputs: QueueInputs, proof: QueueProof) -> str:
    """Whether the law holds in the box, and what is proved."""
    where = f"{inputs.law} for {_where(inputs.box)}"
    if proof.keep is not None:
        (_, ours) = _felt(proof.figures)[0]  # on packets
        shipped = _felt(proof.shipped)[0][1].text if proof.shipped else "no equilibrium in this box"
        guard = f"{proof.status}, without the disk margin"
        if proof.disk_margin_proved is None:
            guard = "by packets"
        elif proof.status is Status.ADMISSIBLE:
            guard = f"with a disk margin of at least {proof.disk_margin_proved:.3f} at every point"
        if missing := inputs.asked.missing(ours):
            return f"{where}: not met, {missing}: {ours.text}"
        if proof.keep:
            what = _sought(proof)
            return f"{where}: keep the shipped {what}, {guard}: {ours.text}; no other {what} were better without a loss"
        return f"{where}: change, {guard}: {ours.text}; shipped: {shipped}"
    if proof.status is Status.ADMISSIBLE:
        return f"{where}: holds, with a disk margin of at least {proof.disk_margin_proved:.3f} at every point"
    return f"{where}: {proof.status}, outside the design rule of 6 dB and 30 degrees"


class QueueDesign(Design[QueueInputs, QueueLaw, QueueProof], Explored, frozen=True, tag="queue"):
    """A queue's law in the steps of its implementation, with its certificate (`netctrl.queue_design`)."""

    summarise = staticmethod(queue_summary)
    judge = staticmethod(queue_verdict)


def _where(box: CertifyInputs) -> str:
    load = (
        f"windows of {span_text(box.window_packets)} packets"
        if box.window_packets is not None
        else f"{span_text(box.flows or (0.0, 0.0))} flow{'' if box.flows == (1.0, 1.0) else 's'}"
    )
    low, high = (format_quantity(end, "s") for end in box.rtt_s)
    return f"{load} at {low if low == high else f'{low} to {high}'}"


def _text(value: float | int | str | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()
