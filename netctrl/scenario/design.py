"""Designs in scenarios: the plant of a design, and its law in place of the queues or senders of another scenario."""

from __future__ import annotations

import msgspec

from netctrl.core.errors import InvalidValue
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.laws.aqm.arc import ArcQueue, arc_queue
from netctrl.laws.aqm.records import DesignQueue, Queue
from netctrl.laws.rate.paced import PacedSender
from netctrl.model.design.arc import ArcInputs
from netctrl.model.design.design import MpcDesign
from netctrl.model.design.hftrac import HftracInputs
from netctrl.model.law import ArcLaw, ArxPacer, PacingLaw
from netctrl.scenario.builders import bottleneck, routed
from netctrl.scenario.links import Change, Link
from netctrl.scenario.network.policy import DesignPolicy, HftracPolicy, Messages
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream

_MIN_BUFFER, _MBIT = 30e3, 1e6
_DESIGN_S, _DESIGN_RTTS, _DESIGN_PACKETS = 60.0, (50.0, 1200.0), 3e6


def with_queue(scenario: Scenario, queue: Queue, capacity_bit_per_s: float) -> Scenario:
    """The scenario with `queue`, designed for a capacity, on each link that has an `arc` or a `design` queue.

    Raises
    ------
    InvalidValue
        No link has such a queue, or one of these links has another capacity.
    """
    links = []
    for link in scenario.links:
        if isinstance(link.queue, ArcQueue | DesignQueue):
            if abs(link.capacity / capacity_bit_per_s - 1.0) > 1e-9:
                takes = f"a Design for the {format_quantity(link.capacity, 'bit/s')} of link {link.id}"
                raise InvalidValue("design", format_quantity(capacity_bit_per_s, "bit/s"), takes)
            link = msgspec.structs.replace(link, queue=queue)
        links.append(link)
    if not any(isinstance(link.queue, ArcQueue | DesignQueue) for link in scenario.links):
        raise InvalidValue("scenario", scenario.name, 'one with a link whose queue is of kind "design" or "arc"')
    return scenario.replace(links=tuple(links))


def design_scenario(inputs: ArcInputs, law: ArcLaw) -> Scenario:
    """The plant of an ARC design: its flows, and one link with its law and a buffer of one bandwidth-delay product.

    A single round-trip time is spread by 2 %, since synchronous flows don't behave like a fluid. A box takes its
    smallest number of flows and its whole range of round-trip times. The run lasts 300 s, with 100 s of warm-up.
    """
    low, high = inputs.rtt_s
    rtt = (0.98 * low, 1.02 * high) if low == high else (low, high)
    line = Link(
        id="bottleneck",
        source="left",
        target="right",
        capacity=law.capacity_bit_per_s,
        delay=min(0.01, 0.1 * rtt[0]),
        buffer=max(law.capacity_bit_per_s * high / BITS_PER_BYTE, 10.0 * law.packet_size_bytes),
        queue=arc_queue(law, law.packet_size_bytes),
    )
    flows = Flow(id="bulk", rtt=rtt, start=(0.0, 20.0), count=max(1, round(inputs.flows[0])))
    return Scenario(
        name=f"{flows.count} flows through the link of the design",
        links=(line,),
        flows=(flows,),
        packet_size=law.packet_size_bytes,
        duration=300.0,
        warmup=100.0,
    )


def design_bottleneck(bottleneck_bit_per_s: float, rtt_s: float, packet_size_bytes: float) -> Scenario:
    """The bottleneck of a Design's certificate, with a buffer of one bandwidth-delay product and one paced flow.

    It runs for 60 s, 1200 round trips or 3 million packets, whichever is least, but at least 50 round trips.

    Parameters
    ----------
    bottleneck_bit_per_s, rtt_s, packet_size_bytes : float
    """
    buffer = max(bottleneck_bit_per_s * rtt_s / BITS_PER_BYTE, _MIN_BUFFER)
    packets_s = _DESIGN_PACKETS * BITS_PER_BYTE * packet_size_bytes / bottleneck_bit_per_s
    lasts = max(min(_DESIGN_S, _DESIGN_RTTS[1] * rtt_s, packets_s), _DESIGN_RTTS[0] * rtt_s)
    return bottleneck(
        name="bottleneck of the design",
        capacity=bottleneck_bit_per_s,
        buffer=buffer,
        rtt=rtt_s,
        packet_size=packet_size_bytes,
        duration=lasts,
        warmup=lasts / 4.0,
        interval=max(rtt_s, lasts / 1e4),
    )


def with_pacer(scenario: Scenario, law: PacingLaw) -> Scenario:
    """The scenario with a law for each paced flow without one; the paper's law caps H-TCP where no window is named.

    Raises
    ------
    InvalidValue
        No flow waits for a law.
    """
    flows = []
    for group in scenario.flows:
        sender = group.sender
        if isinstance(sender, PacedSender) and not sender.file and sender.law is None:
            window = "htcp" if sender.window is None and isinstance(law, ArxPacer) else sender.window
            group = msgspec.structs.replace(group, sender=PacedSender(law=law, window=window))
        flows.append(group)
    if tuple(flows) == scenario.flows:
        raise InvalidValue("scenario", scenario.name, "one with a flow of sender paced, whose rate the law sets")
    return scenario.replace(flows=tuple(flows))


def design_link(design: MpcDesign) -> Scenario:
    """The link of an MPC Design, with a stream that arrives at the rates of the design's course, or at the lowest and
    the highest ones in turn, and with a second stream of which the law isn't told where the course has one.

    Raises
    ------
    InvalidValue
        The Design is for no link.
    """
    law, asked, problem = design.law, design.inputs, design.law.problem
    if law.link is None:
        takes = "a Design for a link, or a scenario whose link's rate it sets"
        raise InvalidValue("design", "one of a plant that is no link", takes)
    horizon = problem["horizon"] * law.interval_s
    ((low, high),) = asked.disturbances
    course = asked.course
    told = [(0.0, low), (2.0 * horizon, high), (4.0 * horizon, low)] if course is None else course.disturbances
    told = [(0.0, 0.5 * (low + high)), *told] if not told or told[0][0] > 0.0 else told
    untold = [] if course is None else [(at, max(-rate, 0.0)) for at, rate in course.unmeasured]
    # Each begins with its first rate above 0.
    rates = {
        name: rows[next(place for place, (_, rate) in enumerate(rows) if rate > 0.0) :]
        for name, rows in (("told", list(told)), ("untold", untold))
        if any(rate > 0.0 for _, rate in rows)
    }
    most = max(problem.get("input_upper") or [2.0 * high])
    capacity = _MBIT * (2.0 * high if most is None else most)
    reference = max(high for _, high in asked.reference)
    changes = [Change(at=at, flow=name, rate=_MBIT * rate) for name, rows in rates.items() for at, rate in rows[1:]]
    lasts = 6.0 * horizon if course is None else course.samples * law.interval_s
    return Scenario(
        name=f"link {law.link} of the design",
        links=(
            Link(
                id=law.link,
                source="left",
                target="right",
                capacity=capacity,
                buffer=max(4.0 * _MBIT * reference, capacity * horizon) / BITS_PER_BYTE,
            ),
        ),
        flows=tuple(
            Flow(id=name, offers=Stream(rate=_MBIT * rows[0][1], spacing="constant"), start=rows[0][0])
            for name, rows in rates.items()
        ),
        changes=tuple(sorted(changes, key=lambda each: each.at)),
        control=DesignPolicy(file="design", announced=("told",) if law.preview else ()),
        duration=lasts,
        interval=law.interval_s,
    )


_STEPS, _WARMUP = 6000, 1000


def design_policy(inputs: HftracInputs, messages: Messages | None = None) -> HftracPolicy:
    """The policy that designs the same law, with messages between controllers as given."""
    names = ("architecture", "mu", "information_delay", "communication", "horizon", "reach")
    return HftracPolicy(**{name: getattr(inputs, name) for name in names}, messages=messages or Messages())


def design_network(inputs: HftracInputs) -> Scenario:
    """The network with Gaussian demands of its means and deviations; 6000 intervals, of which 1000 are warm-up."""
    name = f"{inputs.network.name or 'network'} of the design"
    tau = inputs.interval_s
    return routed(
        inputs.network,
        name=name,
        control=design_policy(inputs),
        duration=_STEPS * tau,
        warmup=_WARMUP * tau,
        interval=tau,
    )
