"""Design of a queue that people run: inputs, the law in its implementation's steps, and what is proved of it."""

from __future__ import annotations

from typing import Literal

from netctrl.certificates.record import CertifyInputs, QueueVerdict, span_text
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.design.base import Design, Summary
from netctrl.model.design.queue_checks import GainsFigures
from netctrl.model.io.record_file import Record
from netctrl.model.law import QueueLaw

_ALIKE = 0.1
"""Relative difference up to which figures are alike."""

Objective = Literal["speed", "margin"]


class QueueInputs(Record, frozen=True):
    """Inputs of a queue's design."""

    law: str
    """As in `netctrl design NAME`."""
    objective: Objective
    """speed: the greatest integral gain, or the steepest line, with a disk margin of at least `least_disk_margin`.
    margin: the greatest disk margin with the integral gain that is given."""
    least_disk_margin: float | None
    """Disk margin that is kept in the whole box; null where the objective is margin."""
    parameters: dict[str, float | int | str | bool]
    """Parameters of the law that were given, in SI units."""
    box: CertifyInputs
    """Where it runs."""


class QueueProof(Record, frozen=True):
    """Certificate of a queue's design: the loop of the law that is exported, proved at every point of the box."""

    status: Status
    """admissible: 6 dB and 30 degrees at every point of the box, proved."""
    disk_margin: float
    """2/‖S − T‖∞ at the worst point; 0 where a loop is unstable."""
    disk_margin_proved: float
    """No point of the box has less."""
    sender: str
    """Sender of the worst point."""
    flows: float | None
    """Number of flows there; null where the window is given."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    speed: float
    """Integral gain a second where nothing scales it, alpha/T [1/s²], of RED and WRED the slope [1/byte].

    A change Δx of the load, in the law's output, leaves an integral of the delay's deviation of Δx/speed [s²]."""
    verdict: QueueVerdict
    """Gain, phase and delay margins with their proofs, as `netctrl certify` finds them."""
    warnings: tuple[str, ...]
    """Cautions before using the law."""
    figures: tuple[GainsFigures, ...] = ()
    """What its queue is like where windows are largest and smallest, where it was asked for."""
    shipped: tuple[GainsFigures, ...] = ()
    """The same with the gains that the implementation ships."""


def queue_summary(inputs: QueueInputs, law: QueueLaw, proof: QueueProof) -> Summary:
    """Title and (name, text) rows: gains, disk margin, and the margins of the certificate."""
    asked = (
        f"disk margin of at least {inputs.least_disk_margin:.3g}"
        if inputs.least_disk_margin is not None
        else "greatest disk margin"
    )
    title = f"{law.name} ({law.implementation}), {asked}, {_where(inputs.box)}"
    flows = "" if proof.flows is None else f" with {proof.flows:.4g} flows"
    unit = "1/byte" if law.name in ("red", "wred") else "1/s²"
    rows = [
        ("parameters", ", ".join(f"{name} {_text(value)}" for name, value in law.parameters.items())),
        ("in effect", ", ".join(f"{name} {value:.6g}" for name, value in law.gains.items())),
        ("disk margin", f"{proof.disk_margin:.3f}, proved {proof.disk_margin_proved:.3f} at every point"),
        ("  worst point", f"{proof.sender}{flows} at {format_quantity(proof.rtt_s, 's', 4)}"),
        ("speed", f"{proof.speed:.4g} {unit}"),
    ]
    found = proof.verdict.sampled
    if found is not None:
        least = "" if found.gain_margin_db_proved is None else f" (proved {found.gain_margin_db_proved:.2f} dB)"
        rows += [
            ("gain margin", f"{found.gain_margin_db:.2f} dB{least}"),
            ("phase margin", f"{found.phase_margin_deg:.1f}°"),
        ]
    return title, [*rows, *_beside_shipped(proof)]


def _beside_shipped(proof: QueueProof) -> list[tuple[str, str]]:
    """Rows with the figures of a design's gains and of the shipped ones, and which are better."""
    rows = []
    for ours, theirs in zip(proof.figures, proof.shipped, strict=True):
        where = f"{ours.flows:.4g} {ours.senders} at {format_quantity(ours.rtt_s, 's', 4)}"
        rows += [
            (f"{ours.engine}, {where}", f"these gains: {ours.text}"),
            ("", f"shipped {_gains(theirs)}: {theirs.text}"),
            ("", _better(ours, theirs)),
        ]
    return rows


def _gains(figures: GainsFigures) -> str:
    return ", ".join(f"{name} {figures.parameters[name]:.6g}" for name in ("alpha", "beta"))


def _better(ours: GainsFigures, theirs: GainsFigures) -> str:
    """Which gains are better in what, by more than a tenth."""
    told = {
        "faster after a start": (ours.above_s, theirs.above_s, 0.05),
        "quieter": (ours.deviation_s or 0.0, theirs.deviation_s or 0.0, 0.0),
        "shorter at 99 %": (ours.delay_99_s or 0.0, theirs.delay_99_s or 0.0, 0.0),
        "less idle": (1.0 - ours.utilization, 1.0 - theirs.utilization, 0.005),
    }
    said = []
    for who, sign in (("these", 1.0), ("the shipped ones", -1.0)):
        better = [what for what, (a, b, least) in told.items() if sign * (b - a) > max(_ALIKE * max(a, b), least)]
        if better:
            said.append(f"{who} are {', '.join(better)}")
    return "; ".join(said) or "neither are better by more than a tenth"


def queue_verdict(inputs: QueueInputs, proof: QueueProof) -> str:
    """Whether the law holds in the box, and what is proved."""
    where = f"{inputs.law} for {_where(inputs.box)}"
    if proof.status is Status.ADMISSIBLE:
        return f"{where}: holds, with a disk margin of at least {proof.disk_margin_proved:.3f} at every point"
    return f"{where}: {proof.status}, outside the design rule of 6 dB and 30 degrees"


class QueueDesign(Design[QueueInputs, QueueLaw, QueueProof], frozen=True, tag="queue"):
    """A queue's law in the steps of its implementation, with its certificate (`netctrl.queue_design`)."""

    summarise = staticmethod(queue_summary)
    judge = staticmethod(queue_verdict)


def _where(box: CertifyInputs) -> str:
    load = (
        f"windows of {span_text(box.window_packets)} packets"
        if box.window_packets is not None
        else f"{span_text(box.flows or (0.0, 0.0))} flows"
    )
    low, high = (format_quantity(end, "s") for end in box.rtt_s)
    return f"{load} at {low if low == high else f'{low} to {high}'}"


def _text(value: float | int | str | bool) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value).lower()
