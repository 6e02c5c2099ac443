"""Records of a certificate at one operating point: margins of the loop, or the limit cycle where there is no loop."""

from __future__ import annotations

from typing import Literal

from netctrl.core.errors import Status
from netctrl.core.units import format_quantity
from netctrl.model.io.record_file import Record

MIN_GAIN_DB, MIN_PHASE_DEG = 6.0, 30.0
"""The design rule."""
GUARD_GAIN_DB, GUARD_PHASE_DEG = 3.0, 20.0
"""Margins against errors of the model, of a loop whose delays in ms are known and as asked."""
MOST_TARGETS, LEAST_UTILIZATION = 3.0, 0.98
"""What is asked of a queue by default: 99 % of packets wait at most so many targets, and the link is used so much."""


def most_p99_s(asked_s: float | None, standing_s: float) -> float:
    """Delay below which 99 % of packets are to wait [s]: what is asked, else three targets, or standing delays of a law
    without one.

    Parameters
    ----------
    asked_s : float or None
        As in `netctrl.certify` [s].
    standing_s : float
        Target, or standing delay [s].
    """
    return MOST_TARGETS * standing_s if asked_s is None else asked_s


class LinearMargins(Record, frozen=True):
    """Continuous loop as it is usually given, for comparison with published margins; the verdict doesn't use it.

    The law's nominal gains, TCP's window undelayed on itself, no queue in the round trip, no hold, no age of the
    reading.
    """

    sender: str
    """Sender of the worst corner."""
    rtt_s: float
    """R [s]."""
    window_packets: float
    """[packet]"""
    stable: bool
    """Whether the closed loop is stable."""
    gain_margin_db: float
    """[dB]"""
    phase_margin_deg: float
    """[degree]"""


class SampledLoop(Record, frozen=True):
    """Loop that runs, at its worst point: hold, age of the reading, queue, delayed windows and arithmetic counted."""

    sender: str
    """Sender of the worst point."""
    flows: float | None
    """Number of flows there, in the range that was asked for; null where the window is given."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    queue_delay_s: float
    """Standing delay of the queue [s]."""
    windows_packets: tuple[float, ...]
    """Windows of the classes of flows [packet]."""
    probabilities: tuple[float, ...]
    """Marking or loss probabilities of the classes."""
    stable: bool
    """Whether the closed loop is stable."""
    gain_margin_db: float
    """At the worst point [dB]; of an unstable loop, below 0, by how much the gain must fall: −inf, in JSON null, where
    no gain is stable."""
    gain_margin_db_proved: float | None
    """No point of the box has less [dB]; null where the loop is unstable, or only points were looked at."""
    gain_reduction_db: float | None
    """Factor by which the gain may fall at the worst point [dB]; null where it may fall to 0, or the loop is
    unstable."""
    phase_margin_deg: float
    """At the worst gain crossover [degree]."""
    delay_margin_s: float | None
    """Extra delay that the loop tolerates [s]; 0 where it is unstable, null where it is unlimited."""
    disk_margin: float
    """2/||S - T||; 0 where it is unstable."""
    capacity_bit_per_s: float | None = None
    """Rate of the link there [bit/s]; null where the window is given."""

    def keeps(self, gain_db: float = MIN_GAIN_DB, phase_deg: float = MIN_PHASE_DEG) -> bool:
        """Whether the margins are those of the design rule, or of another [dB, degree]."""
        room = self.gain_reduction_db is None or -self.gain_reduction_db >= gain_db
        return self.gain_margin_db >= gain_db and self.phase_margin_deg >= phase_deg and room

    @property
    def point(self) -> str:
        """The operating point in words."""
        flows = "" if self.flows is None else f"{_load_text(self.flows, self.capacity_bit_per_s)}, "
        return (
            f"{self.sender}, {flows}{rounded(self.rtt_s, 's')} and {rounded(self.queue_delay_s, 's')} of queue, "
            f"windows {', '.join(f'{w:.4g}' for w in self.windows_packets)}"
        )


class LoadStep(Record, frozen=True):
    """What a queue does when its load changes at once."""

    name: str
    """What changes: "all flows begin", "flows double", "flows halve", "capacity halves" or "capacity doubles"."""
    peak_s: float
    """Longest delay of the queue after it [s]."""
    above_two_targets_s: float
    """Time for which the delay is above two targets, or two standing delays of a law without one [s]."""
    underused_s: float
    """Time for which the link is used by less than 95 %, in means of 100 ms [s]."""

    @property
    def text(self) -> str:
        """The step in words."""
        times = (rounded(each, "s", 3) for each in (self.peak_s, self.above_two_targets_s, self.underused_s))
        return "up to {}, above two targets for {}, link below 95 % for {}".format(*times)


class LoadPoint(Record, frozen=True):
    """Point of a box whose load is known."""

    sender: str
    """Sender of the point."""
    flows: float
    """Number of flows there."""
    capacity_bit_per_s: float
    """Rate of the link there [bit/s]."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""

    @property
    def point(self) -> str:
        """The point in words."""
        return f"{self.sender}, {_load_text(self.flows, self.capacity_bit_per_s)}, {rounded(self.rtt_s, 's')}"


class BeyondLoop(LoadPoint, frozen=True):
    """Point of a box at which the loop alone says nothing about delays in ms."""

    why: str
    """Reason in words."""


class PredictedFigures(LoadPoint, frozen=True):
    """What users of the queue feel, at the point of the box whose 99th percentile of the delay is longest beside what
    is asked there."""

    delay_mean_s: float
    """Mean delay of the queue [s]."""
    delay_std_s: float
    """Its standard deviation [s]."""
    delay_p99_s: float
    """Delay below which 99 % of packets wait [s]."""
    utilization: float
    """Of the link, the least at all points that were looked at."""
    most_p99_s: float
    """What is asked of `delay_p99_s` there: at most this, three targets by default, or three standing delays of a law
    without a target [s]."""
    least_utilization: float = LEAST_UTILIZATION
    """What is asked of `utilization`: at least this."""
    by: Literal["loop", "cycle", "packet", "kernel"] = "loop"
    """What they come from: the certified loop and the chance of marks, the cycle of CoDel or of DCTCP's fluid, whose
    longest queue is the 99th percentile, or packets of an engine where these have none."""
    steps: tuple[LoadStep, ...] = ()
    """Steps of the load at the worst point of the loop, by a check on packets; empty without one."""

    @property
    def as_asked(self) -> bool:
        """Whether the queue is as short and the link as busy as is asked."""
        return self.short and self.busy

    @property
    def short(self) -> bool:
        """Whether 99 % of packets wait no longer than is asked."""
        return self.delay_p99_s <= self.most_p99_s

    @property
    def busy(self) -> bool:
        """Whether the link is used as much as is asked."""
        return self.utilization >= self.least_utilization

    @property
    def text(self) -> str:
        """The figures in words, with what is asked of those that miss it."""
        mean, most = (rounded(each, "s", 3) for each in (self.delay_mean_s, self.delay_p99_s))
        queue = f"{mean} ± {rounded(self.delay_std_s, 's', 2)} of queue, 99 % below {most}"
        queue += "" if self.short else f" (at most {rounded(self.most_p99_s, 's', 3)} is asked)"
        used = f"{queue}, link {100.0 * self.utilization:.3g} % used"
        used += "" if self.busy else f" (at least {100.0 * self.least_utilization:.3g} % is asked)"
        return used + {"packet": ", by packets", "kernel": ", by the kernel"}.get(self.by, "")


class SenderVerdict(Record, frozen=True):
    """Verdict of a box with one of its senders."""

    sender: str
    """Sender or mixture."""
    status: Status
    """As in `QueueVerdict`."""
    sampled: SampledLoop | None
    """The loop that runs, at this sender's point of least gain margin; null without an equilibrium."""


def rounded(value: float, unit: str, digits: int = 4) -> str:
    """A quantity with its unit in words, to a number of digits."""
    return format_quantity(float(f"{value:.{digits}g}"), unit)


def _load_text(flows: float, capacity_bit_per_s: float | None) -> str:
    """Flows, and the rate that they share, in words."""
    rate = "" if capacity_bit_per_s is None else f" at {rounded(capacity_bit_per_s, 'bit/s')}"
    return f"{flows:.4g} {'flow' if flows == 1.0 else 'flows'}{rate}"


class QueueSwing(Record, frozen=True):
    """Limit cycle of a queue around the threshold of a step, by one method."""

    highest_packets: float
    """Longest queue [packet]."""
    lowest_packets: float
    """Shortest queue [packet]; below 0 where a prediction leaves out that a queue can't be shorter than 0."""
    mean_packets: float
    """Mean queue over a cycle [packet]."""
    period_s: float
    """[s]"""
    marked_share: float
    """Share of packets that is marked."""

    @property
    def text(self) -> str:
        """The swing in words."""
        if self.period_s == 0.0:
            return f"the queue rests at {self.mean_packets:.4g} packets"
        ends = f"queue {self.lowest_packets:.4g} to {self.highest_packets:.4g} packets, mean {self.mean_packets:.4g}"
        return f"{ends}, period {rounded(self.period_s, 's', 3)}"


class StepCycle(Record, frozen=True):
    """Queue at a step, at the point of the box where it comes closest to running empty or where most is lost."""

    flows: float
    """Number of flows there."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    capacity_bit_per_s: float
    """Rate of the link there [bit/s]."""
    threshold_packets: float
    """K there [packet]."""
    window_packets: float
    """Window of a flow with the queue at the threshold, W* = (C d + K)/N [packet]."""
    fluid: QueueSwing
    """Limit cycle of the nonlinear fluid, integrated in time: the verdict rests on it."""
    repeats: bool
    """True where the fluid repeats itself; else `fluid` covers its last 50 cycles."""
    described: QueueSwing
    """Prediction by the describing function of the step; no proof."""
    sawtooth: QueueSwing
    """Closed form for flows in step that are marked once a cycle (Alizadeh et al. 2010)."""
    lost_share: float
    """Share of the capacity that is unused in the fluid, since the queue runs empty."""
    longest_queue_packets: float
    """Longest queue of the fluid at all points of the box that were looked at [packet]."""
    smallest_threshold_packets: float
    """Smallest K in packets with which the fluid's queue runs empty at no point that was looked at [packet]."""
    smallest_threshold_s: float
    """The same for a threshold in time, K/C [s]."""
    safe_threshold_packets: float
    """Smallest K with which the fluid's queue keeps a packet of each flow: windows move by whole packets [packet]."""
    safe_threshold_s: float
    """The same for a threshold in time [s]."""
    rule_2010_packets: float
    """C d/7 at the largest C d of the box, the rule of Alizadeh et al. (2010) [packet]."""
    rule_2011_packets: float
    """.17 C d there, the rule of Alizadeh, Javanmard, Prabhakar (2011) [packet]."""
    points: int
    """Points of the box that were looked at; between them nothing is proved."""


class RampCycle(Record, frozen=True):
    """Queue between thresholds that make no linear loop, at the point of the box where it comes closest to running
    empty or where most is lost."""

    flows: float
    """Number of flows there."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    capacity_bit_per_s: float
    """Rate of the link there [bit/s]."""
    thresholds_packets: tuple[float, float]
    """Queues from which on some, and all, packets are marked [packet]."""
    window_packets: float
    """Window of a flow at the mean queue [packet]."""
    fluid: QueueSwing
    """Where the nonlinear fluid ends, integrated in time; at rest both ends are equal and the period is 0."""
    lost_share: float
    """Share of the capacity that is unused in the fluid, since the queue runs empty."""
    longest_queue_packets: float
    """Longest queue of the fluid at all points of the box that were looked at [packet]."""
    limit_packets: float | None
    """Longest queue that the law has room for [packet]; null: unlimited."""
    points: int
    """Points of the box that were looked at; between them nothing is proved."""

    @property
    def overflows(self) -> bool:
        """Whether the longest queue reaches the limit, so that packets are lost, which the fluid leaves out."""
        return self.limit_packets is not None and self.longest_queue_packets >= self.limit_packets

    @property
    def held(self) -> bool:
        """Whether the queue always keeps a packet of each flow, and has room."""
        return self.fluid.lowest_packets > self.flows and not self.overflows


class CodelSwing(LoadPoint, frozen=True):
    """Cycle of a flow in a queue with CoDel, at the point of the box where the link is used least."""

    utilization: float
    """Of the link there."""
    period_s: float
    """Mean time between two cuts of a window there [s]."""
    least_rate_bit_per_s: float
    """Rate of the link from which on the target can be met at all points [bit/s]; below it a few packets exceed it."""
    points: int
    """Points of the box that were looked at; between them only `longest_s_proved` is known."""
    longest_s_proved: float | None = None
    """Delay below which the fluid's queue ends in the whole box, from starts of up to twice of it [s]; null: none."""

    @property
    def rows(self) -> list[tuple[str, str]]:
        """(name, text) of what people read."""
        unused = rounded(round(1.0 - self.utilization, 6) * self.capacity_bit_per_s, "bit/s", 3)
        least = rounded(self.least_rate_bit_per_s, "bit/s", 3)
        bound, proved = (
            self.longest_s_proved,
            "proved of the fluid in the whole box; packets may wait for one packet more",
        )
        return [
            ("least used link", f"{self.point}: {unused} unused, a cut every {rounded(self.period_s, 's', 3)}"),
            ("rate for the target", f"from {least} on; below it a few packets wait longer than the target"),
            ("longest delay", "not proved" if bound is None else f"{rounded(bound, 's', 3)}, {proved}"),
        ]


def busy_text(step: StepCycle | RampCycle, *, held: bool) -> str:
    """Verdict in words."""
    if held:
        return "the link stays busy"
    if isinstance(step, RampCycle) and step.overflows:
        return "the queue reaches its limit, where packets are lost"
    if step.fluid.lowest_packets > 0.0:
        return "the link stays busy in the fluid, but with less than a packet of each flow in the queue"
    return f"the queue runs empty, {100.0 * step.lost_share:.3g} % of the capacity is lost"


def ramp_rows(cycle: RampCycle) -> list[tuple[str, str]]:
    """(name, text) of what people read."""
    low, high = cycle.thresholds_packets
    where = (
        f"{cycle.flows:.4g} flows, {rounded(cycle.rtt_s, 's', 3)}, "
        f"{format_quantity(cycle.capacity_bit_per_s, 'bit/s')}, "
        f"thresholds {low:.6g} and {high:.6g} packets, windows {cycle.window_packets:.4g}"
    )
    return [("worst point", where), ("fluid in time", cycle.fluid.text)]


def step_rows(step: StepCycle, packet_bytes: float) -> list[tuple[str, str]]:
    """(name, text) of what people read."""
    where = (
        f"{step.flows:.4g} flows, {rounded(step.rtt_s, 's')}, "
        f"{format_quantity(step.capacity_bit_per_s, 'bit/s')}, threshold {step.threshold_packets:.4g} packets, "
        f"windows {step.window_packets:.4g}"
    )

    def threshold(packets: float, seconds: float) -> str:
        size = rounded(packets * packet_bytes, "B")
        return f"{packets:.4g} packets, {size} or {rounded(seconds, 's', 3)}"

    return [
        ("worst point", where),
        ("fluid in time", step.fluid.text + ("" if step.repeats else ", doesn't repeat itself")),
        ("describing function", f"{step.described.text} (prediction)"),
        ("sawtooth", f"{step.sawtooth.text} (prediction)"),
        ("smallest threshold", f"{threshold(step.smallest_threshold_packets, step.smallest_threshold_s)} in the fluid"),
        ("", f"{threshold(step.safe_threshold_packets, step.safe_threshold_s)} with a packet of each flow to spare"),
        ("published rules", f"C d/7: {step.rule_2010_packets:.4g} packets, .17 C d: {step.rule_2011_packets:.4g}"),
    ]
