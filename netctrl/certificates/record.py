"""Certificate of a queue's law as people run it: what was asked, the margins, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from netctrl.certificates.point_records import (
    LEAST_UTILIZATION,
    MIN_GAIN_DB,
    MIN_PHASE_DEG,
    BeyondLoop,
    CodelSwing,
    LinearMargins,
    PredictedFigures,
    RampCycle,
    SampledLoop,
    SenderVerdict,
    StepCycle,
    busy_text,
    ramp_rows,
    rounded,
    step_rows,
)
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.design.queue_checks import FailedCheck, QueueCheck, check_text
from netctrl.model.io.display import Explored, Reported, Rows
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import FileRecord, Record

__all__ = [
    "ANSWERS",
    "CERTIFICATE_SCHEMA",
    "MIN_GAIN_DB",
    "MIN_PHASE_DEG",
    "CertifiedLaw",
    "CertifyInputs",
    "GainsThatHold",
    "LinearMargins",
    "PredictedFigures",
    "QueueCertificate",
    "QueueReach",
    "QueueVerdict",
    "SampledLoop",
    "SenderVerdict",
    "span_text",
]

CERTIFICATE_SCHEMA = "netctrl.certificate/1"
ANSWERS = {
    Status.ADMISSIBLE: "holds",
    Status.STABLE: "stable, but with less than 6 dB or 30 degrees",
    Status.UNSTABLE: "unstable",
    Status.INFEASIBLE: "no equilibrium",
}
"""Verdicts in words."""


class CertifiedLaw(Record, frozen=True):
    """Law whose loop is certified, with the numbers that its implementation computes with."""

    name: str
    """As in `netctrl certify NAME`."""
    implementation: str
    """Whose arithmetic, as in "Linux sch_pie"."""
    parameters: dict[str, float | int | str | bool]
    """As given, in SI units, as in `netctrl.certify(..., parameters=...)`."""
    gains: dict[str, float]
    """As computed: integral and proportional gain of an update where nothing scales them [1/s], a slope, or g of a
    sender's average."""
    reading_age: str
    """Age of the delay that the law reads, in words."""
    marked: str
    """Place at which packets are marked or dropped, in words."""


class CertifyInputs(Record, frozen=True):
    """Box of operating points. A single point has both ends of its ranges equal."""

    rtt_s: tuple[float, float]
    """Round-trip time without the queue [s]."""
    flows: tuple[float, float] | None
    """Number of flows; null where the window is given."""
    capacity_bit_per_s: tuple[float, float] | None
    """Rate of the link [bit/s]; null where the window is given."""
    packet_size_bytes: float
    """[byte]"""
    window_packets: tuple[float, float] | None
    """Window of one flow [packet]; null where flows and capacity are given."""
    senders: tuple[str, ...]
    """Each sender, or mixture as in "reno+dctcp", for which the certificate holds."""
    stretches: tuple[float, ...]
    """Round-trip times of equal groups of flows, over `rtt_s`."""
    p99_s: float | None = None
    """Delay of the queue below which 99 % of packets are to wait [s]; null: three targets, or three standing delays."""
    utilization: float = LEAST_UTILIZATION
    """Of the link, which is to be reached."""


class QueueReach(Record, frozen=True):
    """How far the loop keeps the design rule, 6 dB and 30 degrees, at every point that was looked at, without proof."""

    longest_rtt_s: float | None
    """Longest round-trip time without the queue, with all numbers of flows or at the largest window [s]; null: none."""
    fewest_flows: float | None
    """Fewest flows at the longest round-trip time; null: none, or the window is given."""
    largest_window_packets: float | None
    """Largest window at the longest round-trip time [packet]; null: none, or flows are given."""
    smallest_max_bytes: float | None = None
    """Of DCQCN, smallest upper threshold with the same lower one and probability [byte]; null for other laws, and where
    packets are marked as they come."""

    @property
    def text(self) -> str:
        """Reach in words."""
        parts = []
        if self.longest_rtt_s is not None:
            parts.append(f"up to {rounded(self.longest_rtt_s, 's', 3)}")
        if (few := self.fewest_flows) is not None:
            parts.append(f"down to {few:.3g} flows" if few > 1.0 else "down to a single flow")
        if self.largest_window_packets is not None:
            parts.append(f"up to windows of {self.largest_window_packets:.3g} packets")
        if self.smallest_max_bytes is not None:
            parts.append(f"from an upper threshold of {rounded(self.smallest_max_bytes, 'B', 3)} on")
        return " or ".join(parts) if parts else "nowhere in the range that was searched"


class QueueVerdict(Record, frozen=True, kw_only=True):
    """Margins and verdict."""

    status: Status
    """admissible: delays and utilization as asked at every point that was looked at, `predicted`, and where the loop
    says so 3 dB and 20 degrees at every point of the box, proved; without such figures 6 dB and 30 degrees of the worst
    sender. Where nothing is proved it is every point that was looked at; of a step, a queue that keeps a packet of each
    flow at these. stable: less. infeasible: no equilibrium, and no figures."""
    linear: LinearMargins | None = None
    """The loop as it is usually given, worst of the box's corners; null for mixtures and laws without one."""
    sampled: SampledLoop | None = None
    """The loop that runs, at the point with the least gain margin of all senders; null without an equilibrium, and for
    a step."""
    reach: QueueReach | None = None
    """How far 6 dB and 30 degrees are kept; null where it isn't searched."""
    warnings: tuple[str, ...]
    """Assumptions of the verdict, and what the loop leaves out."""
    step: StepCycle | None = None
    """Limit cycle at a step, which has no linear loop; null for other laws."""
    cycle: RampCycle | None = None
    """What the verdict rests on where thresholds make no linear loop, or none that keeps the design rule; null where
    the linear loop decides."""
    codel: CodelSwing | None = None
    """What the verdict of CoDel and COBALT rests on, beside `predicted`; null for other laws."""
    least_phase: SampledLoop | None = None
    """The loop that runs at the point of the box with the least phase margin, of all senders; null where that is
    `sampled`'s, or a point is unstable."""
    least_reduction: SampledLoop | None = None
    """The same at the point where the gain may fall least; null where that is `sampled`'s, or it may fall to 0."""
    senders: tuple[SenderVerdict, ...] = ()
    """Each sender; empty for laws that are made for one, and where `cycle` decides."""
    predicted: PredictedFigures | None = None
    """What users feel in the worst case, in ms; null where nothing has said it."""
    beyond: tuple[BeyondLoop, ...] = ()
    """Points of which the loop alone doesn't say it, those that seem worst: their figures are those of packets."""

    @property
    def lacking(self) -> bool:
        """Whether a margin that stands here is less than the design rule asks for."""
        points = (self.sampled, self.least_phase, self.least_reduction)
        return not all(each.keeps() for each in points if each is not None)


class GainsThatHold(Record, frozen=True):
    """Gains of the same law that meet the design rule at every point of the box, in the target's steps."""

    parameters: dict[str, float | int | str | bool]
    """The law's, in SI units."""
    tc: str | None
    """Arguments of tc(8) after `tc qdisc add dev DEV root`; null for a law without a qdisc."""
    ns3: dict[str, str] | None
    """Attributes of ns-3's queue disc; null for a law without one."""
    gain_margin_db_proved: float
    """No point of the box has less [dB]."""
    phase_margin_deg: float
    """At the worst point [degree]."""
    disk_margin_proved: float
    """No point of the box has less."""


class QueueCertificate(Reported, Explored, FileRecord, frozen=True):
    """Certificate of a queue's law by `netctrl certify`, saved as one file.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.certify("dualpi2", rtt_s=0.1, window_packets=50.0)
    >>> found.certificate.status.value, round(found.certificate.linear.gain_margin_db, 2)
    ('stable', 3.06)
    """

    schema: Literal["netctrl.certificate/1"]
    """Version of the file format."""
    law: CertifiedLaw
    """Law that runs."""
    inputs: CertifyInputs
    """Where it runs."""
    certificate: QueueVerdict
    """What holds there."""
    provenance: Provenance
    """Provenance of the certificate."""
    gains_that_hold: GainsThatHold | None = None
    """Other gains that hold, where they were asked for and exist."""
    checks: tuple[QueueCheck, ...] = ()
    """Nonlinear checks at the worst point, where they were asked for."""
    failed_checks: tuple[FailedCheck, ...] = ()
    """Those that couldn't run."""

    @property
    def verdict(self) -> str:
        """One sentence: whether the law is stable there, and how far it would be."""
        inputs, found = self.inputs, self.certificate
        load = (
            f"windows of {span_text(inputs.window_packets)} packets"
            if inputs.window_packets is not None
            else f"{span_text(inputs.flows or (0.0, 0.0))} {'flow' if inputs.flows == (1.0, 1.0) else 'flows'}"
        )
        where = f"{self.law.name} with {load} at {span_text(inputs.rtt_s, 's')}"
        held, figures, swings = found.status is Status.ADMISSIBLE, found.predicted, self._swings
        answer, swing = ANSWERS[found.status], found.step or found.cycle
        if figures is not None and not figures.as_asked:
            answer = "doesn't hold"
        elif figures is not None and found.status is Status.STABLE:
            answer = "stable, but 3 dB and 20 degrees are not proved at every point"
        elif found.status is Status.STABLE and not found.lacking:
            answer = "stable, but 6 dB and 30 degrees are not proved at every point"
        elif held and swings:
            answer = f"holds for small deviations, but oscillates in the check ({', '.join(swings)})"
        elif held and figures is None:
            answer = "margins hold"
        if swing is not None and figures is None:
            answer = busy_text(swing, held=held)
        elif self.law.name == "hpcc" and figures is None:
            answer = "not judged, as no loop of it is certified"
        if figures is not None and not swings:
            answer += f"; {figures.text}"
        return f"{where}: {answer}"

    @property
    def holds(self) -> bool:
        """Whether delays and utilization are as asked, or margins are where nobody says them, and no check oscillates
        to which the figures aren't due."""
        return self.certificate.status is Status.ADMISSIBLE and not self._swings

    @property
    def _swings(self) -> list[str]:
        """Checks that oscillate, of a certificate by its loop: packets have their swing in their figures."""
        figures = self.certificate.predicted
        measured = figures is not None and figures.by != "loop"
        return [] if measured else [check.engine for check in self.checks if not check.settles]

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(name, text) of what people read."""
        found = self.certificate
        rows = [("law", f"{self.law.implementation}: {_listed(self.law.parameters)}")]
        if len(found.senders) < 2:  # the margins of a single one stand in the rows below
            rows.append(("senders", ", ".join(self.inputs.senders)))
        for k, each in enumerate(found.senders if len(found.senders) > 1 else ()):
            margins = "" if each.sampled is None else f", {_margins(each.sampled)}"
            answer = ANSWERS[each.status].partition(",")[0]
            rows.append(("" if k else "senders", f"{each.sender}: {answer}{margins}"))
        if found.step is not None:
            rows += step_rows(found.step, self.inputs.packet_size_bytes)
        if found.cycle is not None:
            rows += ramp_rows(found.cycle)
        if found.predicted is not None:
            rows.append(("these delays", found.predicted.point))
        if found.codel is not None:
            rows += found.codel.rows
        if (at := found.sampled) is not None:
            delay = "unlimited" if at.delay_margin_s is None else rounded(at.delay_margin_s, "s", 3)
            rows += [
                ("worst point", at.point),
                ("loop that runs", _margins(at)),
                ("", f"delay margin {delay}, disk margin {at.disk_margin:.2f}"),
            ]
        if (least := found.least_phase) is not None:
            rows.append(("least phase margin", f"{least.phase_margin_deg:.1f} degrees: {least.point}"))
        if (least := found.least_reduction) is not None and least.gain_reduction_db is not None:
            rows.append(("least reduction", f"may fall by {-least.gain_reduction_db:.2f} dB: {least.point}"))
        if (linear := found.linear) is not None:
            margins = f"gain margin {linear.gain_margin_db:.2f} dB, phase margin {linear.phase_margin_deg:.1f} degrees"
            rows.append(("loop as usually given", margins))
        if found.reach is not None:
            rows.append(("keeps 6 dB and 30°", found.reach.text))
        rows += [(f"{check.engine} at the worst point", check_text(check)) for check in self.checks]
        rows += [(f"{each.engine} at the worst point", each.text) for each in self.failed_checks]
        steps = () if found.predicted is None else found.predicted.steps
        rows += [(f"if {step.name}", step.text) for step in steps]
        if (other := self.gains_that_hold) is not None:
            margins = f"gain margin {other.gain_margin_db_proved:.2f} dB (proved)"
            rows += [
                ("gains that hold", other.tc or _listed(other.parameters)),
                ("", f"{margins}, phase margin {other.phase_margin_deg:.1f} degrees"),
                ("", f"disk margin {other.disk_margin_proved:.3f} (proved)"),
            ]
        return rows

    def _shown(self) -> Rows:
        return self.verdict, self.rows


def _margins(found: SampledLoop) -> str:
    proved = "" if found.gain_margin_db_proved is None else f" (proved {found.gain_margin_db_proved:.2f} dB)"
    room = "" if found.gain_reduction_db is None else f", may fall by {-found.gain_reduction_db:.2f} dB"
    gain = f"gain margin {found.gain_margin_db:.2f} dB{proved}{room}"
    return f"{gain}, phase margin {found.phase_margin_deg:.1f} degrees"


def span_text(ends: tuple[float, float], unit: str = "") -> str:
    """A range in words, or its one value."""
    low, high = (format_quantity(end, unit) if unit else f"{end:g}" for end in ends)
    return low if ends[0] == ends[1] else f"{low} to {high}"


def _listed(parameters: Mapping[str, float | int | str | bool]) -> str:
    """Parameters in words, without those that are off."""
    shown = []
    for name, value in parameters.items():
        if name.endswith("_bit_per_s") and isinstance(value, float):
            shown.append(f"{name.removesuffix('_bit_per_s')} {format_quantity(value, 'bit/s')}")
        elif name.endswith("_s") and isinstance(value, float):
            shown.append(f"{name.removesuffix('_s')} {format_quantity(value, 's')}")
        elif value is True:
            shown.append(name)
        elif value is not False:
            shown.append(f"{name} {value:.6g}" if isinstance(value, float) else f"{name} {value}")
    return ", ".join(shown)
