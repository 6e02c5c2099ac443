"""Design of an ECN threshold: inputs, the threshold in its target's unit, and what was looked at."""

from __future__ import annotations

from netctrl.certificates.box import MIN_WINDOW
from netctrl.certificates.point_records import step_rows
from netctrl.certificates.record import CertifyInputs, QueueVerdict, span_text
from netctrl.core.errors import Status
from netctrl.core.units import format_quantity, packets_per_second
from netctrl.laws.targets.step import StepUnit
from netctrl.model.design.base import Design, Summary
from netctrl.model.io.record_file import Record
from netctrl.model.law import QueueLaw


class EcnInputs(Record, frozen=True):
    """Inputs of a threshold's design."""

    unit: StepUnit
    """packets: whole packets. bytes: whole packets in bytes. time: whole microseconds."""
    gain: float
    """g of the senders' average of marks."""
    box: CertifyInputs
    """Where it runs."""
    p99_s: float | None = None
    """Longest delay that is asked for [s]; null: none is."""


class SmallerThreshold(Record, frozen=True):
    """Point of the box that fails with the threshold one step smaller."""

    parameters: dict[str, float | int | str | bool]
    """Of the smaller threshold, as in `netctrl.certify("dctcp", parameters=...)`."""
    flows: float
    """Number of flows there."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    capacity_bit_per_s: float
    """Rate of the link there [bit/s]."""
    window_packets: float
    """Window of a flow with the queue at the threshold there [packet]."""
    shortest_queue_packets: float
    """Shortest queue of the fluid there: at most a packet of each flow, or windows are below 2 packets [packet]."""
    lost_share: float
    """Share of the capacity that is unused in the fluid there."""


class EcnProof(Record, frozen=True):
    """Certificate of a threshold: limit cycles of the nonlinear fluid at points of the box; between them nothing is
    proved."""

    status: Status
    """admissible: at every point that was looked at the queue keeps more than a packet of each flow, and delays are at
    most what is asked for; stable: they are longer."""
    flows: float
    """Number of flows at the worst point: the shortest queue over the number of flows is least there."""
    rtt_s: float
    """Round-trip time without the queue there [s]."""
    capacity_bit_per_s: float
    """Rate of the link there [bit/s]."""
    shortest_queue_packets: float
    """Shortest queue there [packet]."""
    packets_of_each_flow: float
    """The same over the number of flows: above 1."""
    longest_queue_packets: float
    """Longest queue at all points [packet]."""
    longest_delay_s: float
    """Longest queueing delay at all points [s]."""
    points: int
    """Points that were looked at."""
    smaller: SmallerThreshold | None
    """Why the threshold isn't smaller; null where it is one step, so that there is no smaller one."""
    verdict: QueueVerdict
    """Limit cycle and predictions at the point that comes closest to running empty, as `netctrl certify dctcp` finds
    them."""
    warnings: tuple[str, ...]
    """Assumptions of the design."""


def threshold_text(law: QueueLaw, box: CertifyInputs) -> str:
    """Threshold in its own unit, and in the others."""
    size, (slow, fast) = box.packet_size_bytes, box.capacity_bit_per_s or (1.0, 1.0)
    given = law.parameters
    if "k_s" in given:
        seconds = float(given["k_s"])
        low, high = (float(f"{seconds * packets_per_second(rate, size):.4g}") for rate in (slow, fast))
        return f"{format_quantity(seconds, 's')}, {span_text((low, high))} packets"
    packets = float(given["k_packets"]) if "k_packets" in given else float(given["k_bytes"]) / size
    low, high = (float(f"{packets / packets_per_second(rate, size):.4g}") for rate in (fast, slow))
    return f"{packets:g} packets, {format_quantity(packets * size, 'B')} or {span_text((low, high), 's')}"


def ecn_summary(inputs: EcnInputs, law: QueueLaw, proof: EcnProof) -> Summary:
    """Title and (name, text) rows: threshold, limit cycle, delay, and what a smaller threshold costs."""
    title = f"step threshold for DCTCP, g {inputs.gain:g}, {_where(inputs.box)}"
    step = proof.verdict.step
    place = _point(proof.flows, proof.rtt_s, proof.capacity_bit_per_s)
    same = step is not None and place == _point(step.flows, step.rtt_s, step.capacity_bit_per_s)
    rows = [
        ("threshold K", threshold_text(law, inputs.box)),
        (
            "shortest queue",
            f"{proof.shortest_queue_packets:.4g} packets, {proof.packets_of_each_flow:.4g} of each flow"
            + (", at the worst point" if same else f", at {place}"),
        ),
        (
            "longest queue",
            f"{proof.longest_queue_packets:.4g} packets; longest delay "
            f"{format_quantity(proof.longest_delay_s, 's', 4)}",
        ),
        ("one step less", _less(proof.smaller)),
    ]
    return title, rows if step is None else [*rows, *step_rows(step, inputs.box.packet_size_bytes)]


def ecn_verdict(inputs: EcnInputs, proof: EcnProof) -> str:
    """Whether the link stays busy, and the longest delay."""
    delay = format_quantity(proof.longest_delay_s, "s", 3)
    return (
        f"ecn for {_where(inputs.box)}: the link stays busy with a packet of each flow to spare at all {proof.points} "
        f"points that were looked at, delays up to {delay}{_beyond(inputs, proof)}"
    )


def _beyond(inputs: EcnInputs, proof: EcnProof) -> str:
    """By how much delays are longer than what is asked for, in words; empty where they aren't."""
    if inputs.p99_s is None or proof.longest_delay_s <= inputs.p99_s:
        return ""
    by = format_quantity(proof.longest_delay_s - inputs.p99_s, "s", 3)
    return f": not met, {by} longer than asked for, and a smaller threshold loses rate"


class EcnDesign(Design[EcnInputs, QueueLaw, EcnProof], frozen=True, tag="ecn"):
    """The smallest threshold of a step in its target's unit, with its limit cycle (`netctrl.ecn_design`)."""

    summarise = staticmethod(ecn_summary)
    judge = staticmethod(ecn_verdict)


def _less(found: SmallerThreshold | None) -> str:
    if found is None:
        return "there is no smaller threshold"
    where = _point(found.flows, found.rtt_s, found.capacity_bit_per_s)
    if found.window_packets < MIN_WINDOW:
        return f"windows of {found.window_packets:.4g} packets with the queue at the threshold, at {where}"
    lost = f", {100.0 * found.lost_share:.3g} % unused" if found.lost_share > 0.0 else ""
    each = found.shortest_queue_packets / found.flows
    return f"shortest queue {found.shortest_queue_packets:.4g} packets, {each:.4g} of each flow{lost}, at {where}"


def _where(box: CertifyInputs) -> str:
    return f"{span_text(box.flows or (0.0, 0.0))} flows at {span_text(box.rtt_s, 's')}"


def _point(flows: float, rtt_s: float, capacity_bit_per_s: float) -> str:
    rtt, rate = (format_quantity(value, unit, 4) for value, unit in ((rtt_s, "s"), (capacity_bit_per_s, "bit/s")))
    return f"{flows:.4g} flows, {rtt}, {rate}"
