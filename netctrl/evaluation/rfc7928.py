"""RFC 7928's sections for an AQM: 10 Mbit/s, 100 ms, a buffer of one bandwidth-delay product, NewReno without ECN.

The RFC leaves the topology's numbers open (Section 3.1). Its loss without an AQM is 0.76 N²/S² for N flows, with S the
bandwidth-delay product and the buffer in packets (Section 8.2.1, from Morris, INFOCOM 2000); the numbers of flows of
the congestion levels follow from it.

Source: RFC 7928, July 2016, whose numbers stand here where it has some; what it leaves open is said beside the case.
"""

from __future__ import annotations

from dataclasses import replace
from math import sqrt

from netctrl.evaluation.case import BOTTLENECK, Case, Entry, Group, Line, Turn
from netctrl.scenario.tcp_aqm.offers import Bursts, Stream, Web

_RATE, _RTT, _PACKET = 10e6, 0.1, 1500
_SPACE = 2.0 * _RATE * _RTT / 8.0 / _PACKET
_EPISODE = 20.0
"""Duration of a phase of Sections 8.2.5 and 8.2.6 [s]."""
_OTHERS = (0.005, 0.02, 0.05, 0.2, 0.56)
"""Round-trip times beside one of 100 ms, from 5 to 560 ms (Section 6.2) [s]."""
_HALVES = 12
"""Number of phases."""


def flows_for(loss: float, space: float = _SPACE) -> int:
    """Flows that lose this share of their packets in a drop-tail queue: S √(l/0.76), rounded.

    Parameters
    ----------
    loss : float
        Share of the packets, from 0 to 1.
    space : float
        S: bandwidth-delay product and buffer [packet].
    """
    return round(space * sqrt(loss / 0.76))


LEVELS = {"mild": flows_for(0.001), "medium": flows_for(0.005), "heavy": flows_for(0.01)}
"""Congestion level -> number of flows (Sections 8.2.2 to 8.2.4)."""

_TRANSFER = Group(id="transfer", start=(60.0, 80.0), offers=100e3)
"""From 10 to 100 packets, after the long flow has come to its steady state."""
_WEB = Group(id="web", offers=Web(objects_per_page=6, mean_object=90e3, pareto_shape=3.0, think_time=1.0))
"""A page has at least 50 objects of at least 1 kB over six connections: 54 here, the nine of a connection in a row."""
_VIDEO = Group(id="video", offers=Bursts(rate=1e6, burst=8, pause_variation=0.0))
_CBR = Group(id="cbr", offers=Stream(rate=0.2e6, spacing="constant"))
_BULK = Group(id="bulk")
_WHOLE = "datagrams have whole packets of 1500 bytes"
_PAGE = "a connection carries its nine objects in one transfer"
_MIX = f"{_WHOLE}; {_PAGE}"


def _level(name: str) -> Case:
    return Case(name=f"{LEVELS[name]} flows", groups=(Group(id="bulk", count=LEVELS[name]),))


def _varying_load() -> Case:
    """Mild, medium and heavy congestion in turn: flows beyond the mild level come and go."""
    rest = [Group(id="mild", count=LEVELS["mild"])]
    for phase in range(_HALVES):
        level = ("mild", "medium", "heavy")[phase % 3]
        more = LEVELS[level] - LEVELS["mild"]
        if more:
            begin = phase * _EPISODE
            rest.append(
                Group(id=f"phase-{phase}", count=more, start=(begin, begin), stop=begin + _EPISODE, measured=False)
            )
    return Case(name="mild, medium, heavy in turn", groups=tuple(rest), duration=_HALVES * _EPISODE)


def _varying_capacity(name: str, episode: float, duration: float) -> Case:
    """100 and 10 Mbit/s in turn."""
    times = [episode * k for k in range(1, round(duration / episode))]
    turns = tuple(Turn(time, capacity=10e6 if k % 2 == 0 else 100e6) for k, time in enumerate(times))
    two = (Group(id="bulk", count=2),)
    return Case(name=name, groups=two, capacity=100e6, turns=turns, duration=duration)


def _fairness(rtt: float, *, ecn: bool = False) -> Case:
    groups = (Group(id="usual", rtt=_RTT, ecn=ecn), Group(id="other", rtt=rtt, ecn=ecn))
    return Case(name=f"{1e3 * rtt:g} ms", groups=groups, ratio=("other", "usual"), duration=300.0)


def _first_window(packets: int) -> Case:
    return Case(
        name=f"a transfer with a window of {packets}",
        groups=(_BULK, _TRANSFER),
        initial_window=packets,
        note=f"the long flow starts with {packets} too: all flows of a scenario do; figures are after the warm-up",
    )


_TWO_WAYS = Case(
    name="bulk both ways",
    groups=(
        Group(id="forward", count=LEVELS["mild"], ack_path=("back",)),
        Group(id="backward", count=LEVELS["mild"], path=("back",), ack_path=(BOTTLENECK,)),
    ),
    others=(Line("back", "b", "a", _RATE),),
)
_MULTI = Case(
    name="senders A through two queues, B through the second",
    groups=(
        Group(id="A", count=LEVELS["mild"] // 2, path=(BOTTLENECK, "second")),
        Group(id="B", count=LEVELS["mild"] // 2, path=("second",)),
    ),
    others=(Line("second", "b", "c", 2.0 * _RATE),),
    ratio=("A", "B"),
    note="the RFC's first option, equal laws; the second link has twice the rate, so that both may queue",
)
_SIZES = Case(
    name="packets of 500 and 1500 bytes",
    groups=(
        Group(id="small", count=LEVELS["mild"] // 2, fields={"packet_size": 500.0}),
        Group(id="large", count=LEVELS["mild"] // 2),
    ),
    ratio=("small", "large"),
)
"""Half of the flows of mild congestion with smaller packets; equal windows of packets give them 24 % of the goodput."""
_TALK = Stream(rate=87e3, spacing="constant")
_MIXED = Case(
    name="bulk, web, voice both ways, CBR, video",
    groups=(
        Group(id="bulk", count=5),
        replace(_WEB, count=6),
        Group(id="voice", offers=_TALK),
        Group(id="voice-back", path=("back",), offers=_TALK),
        _CBR,
        _VIDEO,
    ),
    others=(Line("back", "b", "a", _RATE),),
    note=f"video at a constant mean rate: no sender of the engines adapts one; {_MIX}",
)
_SCHEDULED = frozenset({"codel", "fq_codel", "fq_pie", "cake", "dualpi2"})
_SCALABLE = frozenset({"pi2", "dualpi2"})

ENTRIES = (
    Entry("2.1", "Flow completion time", metrics=("completion time", "completion time 95 %", "completed")),
    Entry("2.2", "Flow startup time", reason="the engines record when an object is complete, not its first byte"),
    Entry("2.3", "Packet loss", metrics=("loss",)),
    Entry("2.4", "Packet loss synchronization", reason="the engines count losses by link, not by flow"),
    Entry("2.5", "Goodput", metrics=("goodput", "utilization")),
    Entry("2.6", "Latency and jitter", metrics=("queueing delay", "queueing delay 95 %", "one-way delay", "jitter")),
    Entry("2.7", "Trade-off of latency and goodput", metrics=("queueing delay", "utilization", "delay variation")),
    Entry(
        "3.2",
        "Buffer size",
        tuple(replace(_level("medium"), name=f"buffer of {size:g} products", buffer=size) for size in (0.5, 2.0, 4.0)),
    ),
    Entry(
        "3.3",
        "Congestion controls",
        tuple(
            Case(name=sender, groups=(Group(id="bulk", count=LEVELS["medium"], sender=sender),))
            for sender in ("cubic", "bbr")
        ),
    ),
    Entry("4.4", "Packet sizes and congestion notification", (_SIZES,)),
    Entry(
        "4.5",
        "Interaction with ECN",
        (
            *(_fairness(rtt, ecn=True) for rtt in _OTHERS),
            Case(
                name="ECN of Reno and Cubic",
                groups=tuple(Group(id=sender, count=7, sender=sender, ecn=True) for sender in ("reno", "cubic")),
                ratio=("cubic", "reno"),
            ),
            Case(
                name="half of the flows with ECN",
                groups=(Group(id="ecn", count=7, ecn=True), Group(id="without", count=7)),
                ratio=("ecn", "without"),
            ),
        ),
    ),
    Entry(
        "4.5 (RFC 9332)",
        "ECN of scalable and classic senders",
        (
            Case(
                name="Prague and Cubic",
                groups=tuple(Group(id=name, count=4, sender=name, ecn=True) for name in ("prague", "cubic")),
                ratio=("prague", "cubic"),
            ),
        ),
        reason="the law doesn't tell scalable senders from classic ones",
        only=_SCALABLE,
    ),
    Entry(
        "4.6",
        "Interaction with scheduling",
        (
            Case(
                name="few packets beside bulk",
                groups=(Group(id="bulk", count=LEVELS["medium"]), _CBR),
                note=f"codel runs alone and fq_codel in its scheduler: compare both; {_WHOLE}",
            ),
        ),
        reason="the engines have no scheduler around this law; fq_codel, fq_pie, cake and dualpi2 have one",
        only=_SCHEDULED,
    ),
    Entry(
        "5.1.1",
        "TCP-friendly sender, same initial window",
        (Case(name="window of 3", groups=(_BULK,), initial_window=3),),
    ),
    Entry("5.1.2", "TCP-friendly sender, different initial windows", tuple(map(_first_window, (3, 10)))),
    Entry("5.2", "Aggressive transport sender", (Case(name="Cubic", groups=(Group(id="bulk", sender="cubic"),)),)),
    Entry(
        "5.3",
        "Unresponsive transport sender",
        (
            Case(name="UDP at 12 Mbit/s", groups=(replace(_CBR, id="udp", offers=Stream(rate=12e6)),), note=_WHOLE),
            Case(
                name="UDP at 7.5 Mbit/s beside TCP",
                groups=(_BULK, replace(_CBR, id="udp", offers=Stream(rate=7.5e6))),
                note=f"the RFC asks for a rate between half of the capacity and all of it; {_WHOLE}",
            ),
        ),
    ),
    Entry(
        "5.4",
        "Less-than-best-effort transport sender",
        (
            Case(name="LEDBAT++", groups=(Group(id="lbe", sender="ledbat++"),)),
            Case(
                name="LEDBAT++ beside Reno", groups=(Group(id="lbe", sender="ledbat++"), _BULK), ratio=("lbe", "bulk")
            ),
        ),
    ),
    Entry("6.2", "Fairness between round-trip times", tuple(map(_fairness, _OTHERS))),
    Entry(
        "7.2",
        "Burst absorption",
        (
            Case(name="I: web and CBR", groups=(_WEB, _CBR), note=_MIX),
            Case(name="II: web, CBR, bulk", groups=(_WEB, _CBR, _BULK), note=_MIX),
            Case(name="III: video, web, CBR", groups=(_VIDEO, _WEB, _CBR), note=_MIX),
            Case(name="IV: video, web, CBR, bulk", groups=(_VIDEO, _WEB, _CBR, _BULK), note=_MIX),
        ),
    ),
    Entry("8.2.2", "Mild congestion (0.1 % of loss)", (_level("mild"),)),
    Entry("8.2.3", "Medium congestion (0.5 % of loss)", (_level("medium"),)),
    Entry("8.2.4", "Heavy congestion (1 % of loss)", (_level("heavy"),)),
    Entry("8.2.5", "Varying congestion level", (_varying_load(),)),
    Entry(
        "8.2.6",
        "Varying available capacity",
        (
            _varying_capacity("100 and 10 Mbit/s, 20 s each", _EPISODE, 120.0),
            _varying_capacity("100 and 10 Mbit/s, 100 ms each", 0.1, 60.0),
        ),
    ),
    Entry("8.3", "Parameter sensitivity", (_level("medium"),), varied=True),
    Entry("9.1", "Traffic mix", (_MIXED,)),
    Entry("9.2", "Bidirectional traffic", (_TWO_WAYS,)),
    Entry("10.2", "Multi-AQM scenario", (_MULTI,)),
    Entry("11", "Implementation cost", reason="to be judged on the target; netctrl export gives the code"),
    Entry(
        "12",
        "Operator control and auto-tuning",
        reason="all cases run with the parameters above, none tuned to a case; Section 8.3's cases vary them",
    ),
)
"""Sections in the RFC's order."""
