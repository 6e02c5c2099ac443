"""RFC 9743's sections for a congestion control: 20 Mbit/s, 40 ms and a drop-tail buffer of one product, unless said.

The RFC asks for a representative range of rates, delays and buffers (Section 6) and gives no numbers; those here are
netctrl's. Competitors are Reno (RFC 5681) and Cubic (RFC 9438).
"""

from __future__ import annotations

from functools import partial

from netctrl.evaluation.case import LAW, Case, Entry, Group, Turn
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.disciplines import FqCodelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.scenario.tcp_aqm.offers import Stream

_case = partial(Case, capacity=20e6, rtt=0.04, queue=DropTailQueue())
_law = partial(Group, id="law", sender=LAW)
_OTHERS = ("reno", "cubic")
_REAL_TIME = Group(id="real-time", offers=Stream(rate=1.5e6, spacing="constant"))
_transfers = partial(Group, id="short", count=100, start=(20.0, 110.0), offers=100e3)
_IN_ORDER = "jitter keeps the order of packets, which wait behind a late one: no reordering is tested"
_WHOLE = "datagrams have whole packets of 1500 bytes"


def _against(other: str, count: int) -> Case:
    groups = (_law(count=count), Group(id=other, count=count, sender=other))
    return _case(name=f"{count} beside {count} of {other}", groups=groups, ratio=("law", other))


def _path(rate: float, rtt: float, buffer: float) -> Case:
    name = f"{rate / 1e6:g} Mbit/s, {1e3 * rtt:g} ms, {buffer:g} products"
    return _case(name=name, groups=(_law(count=2),), capacity=rate, rtt=rtt, buffer=buffer)


def _queue(name: str, queue: object, ecn: bool) -> Case:
    groups = (_law(count=2, ecn=ecn), Group(id="cubic", count=2, sender="cubic", ecn=ecn))
    return _case(name=name, groups=groups, queue=queue, ratio=("law", "cubic"))


ENTRIES = (
    Entry(
        "5.1.1",
        "Protection against congestion collapse",
        (
            _case(
                name="100 flows on 1 Mbit/s",
                groups=(_law(count=100),),
                capacity=1e6,
                rtt=0.1,
                extra=("packets per round trip",),
                note="a fair share of 0.08 packets in a round trip",
            ),
            _case(
                name="30 % of packets lost on the wire",
                groups=(_law(count=4),),
                loss=0.3,
                extra=("packets per round trip",),
                note="RFC 3714's persistently high loss",
            ),
        ),
    ),
    Entry(
        "5.1.2",
        "Protection against bufferbloat",
        tuple(
            _case(name=f"{n} flow{'s' if n > 1 else ''}, 10 products", groups=(_law(count=n),), buffer=10.0)
            for n in (1, 4)
        ),
    ),
    Entry(
        "5.1.3",
        "Protection against high packet loss",
        tuple(
            _case(name=f"8 flows, {size:g} products", groups=(_law(count=8),), buffer=size) for size in (0.25, 0.5, 1.5)
        ),
    ),
    Entry(
        "5.1.4",
        "Fairness within the algorithm",
        (
            _case(name="8 flows", groups=(_law(count=8),)),
            _case(
                name="2 flows, the second 20 s later",
                groups=(_law(), _law(id="late", start=(20.0, 20.0))),
                ratio=("late", "law"),
                warmup=30.0,
            ),
            _case(name="40 and 120 ms", groups=(_law(), _law(id="far", rtt=0.12)), ratio=("far", "law")),
        ),
    ),
    Entry(
        "5.1.5",
        "Short flows",
        (_case(name="transfers of 100 kB beside 2 long", groups=(_law(count=2), _transfers(sender=LAW))),),
    ),
    Entry(
        "5.2.1",
        "Existing general-purpose congestion control",
        tuple(_against(other, count) for other in _OTHERS for count in (1, 5)),
    ),
    Entry(
        "5.2.2",
        "Real-time congestion control",
        (
            _case(
                name="1.5 Mbit/s of datagrams beside 2",
                groups=(_law(count=2), _REAL_TIME),
                note=f"a constant rate: the engines have no real-time congestion control; {_WHOLE}",
            ),
        ),
    ),
    Entry(
        "5.2.3",
        "Short and long flows",
        (
            _case(name="transfers of Cubic beside 2 long", groups=(_law(count=2), _transfers(sender="cubic"))),
            _case(
                name="transfers beside 2 long of Cubic",
                groups=(Group(id="cubic", count=2, sender="cubic"), _transfers(sender=LAW)),
            ),
        ),
    ),
    Entry("5.3.1", "Differences with congestion control principles", reason="a matter of the specification"),
    Entry("5.3.2", "Incremental deployment", reason="a matter of the specification"),
    Entry(
        "6.1",
        "Paths with tail-drop queues",
        tuple(
            _path(*each)
            for each in (
                (2e6, 0.02, 1.0),
                (2e6, 0.2, 1.0),
                (20e6, 0.04, 0.25),
                (20e6, 0.04, 4.0),
                (100e6, 0.01, 1.0),
                (100e6, 0.1, 1.0),
            )
        ),
    ),
    Entry("6.2", "Tunnel behavior", reason="the engines have no tunnels, whose outer headers would carry marks"),
    Entry("6.3", "Wired paths", (_case(name="one flow", groups=(_law(),)),)),
    Entry(
        "6.4",
        "Wireless paths",
        (
            _case(name="1 % of packets lost", groups=(_law(),), loss=0.01),
            _case(
                name="1 % lost, 10 ms of jitter, 5 to 20 Mbit/s",
                groups=(_law(count=2),),
                loss=0.01,
                jitter=0.01,
                turns=tuple(Turn(5.0 * k, capacity=(20e6, 5e6, 10e6)[k % 3]) for k in range(1, 24)),
                note=f"the rate changes every 5 s; {_IN_ORDER}",
            ),
        ),
    ),
    Entry(
        "7.1",
        "Active queue management",
        (
            _queue("CoDel", CodelQueue(), ecn=False),
            _queue("PIE", PieQueue(), ecn=False),
            _queue("FQ-CoDel with ECN", FqCodelQueue(), ecn=True),
            _queue("PIE with ECN", PieQueue(), ecn=True),
            _queue("DualPI2 with ECN", DualPi2Queue(), ecn=True),
        ),
    ),
    Entry(
        "7.2",
        "Envelope of network circuit breakers",
        (
            _case(
                name="2 % of packets lost on the wire",
                groups=(_law(),),
                loss=0.02,
                extra=("over TCP's rate",),
                note="RFC 8083's rule for media; the engines have no breaker that acts",
            ),
        ),
    ),
    Entry(
        "7.3",
        "Paths with varying delay",
        (
            _case(name="20 ms of jitter", groups=(_law(),), jitter=0.02, note=_IN_ORDER),
            _case(
                name="60 ms more for 20 s of each 40 s",
                groups=(_law(),),
                turns=tuple(Turn(20.0 * k, delay=0.068 if k % 2 else 0.008) for k in range(1, 6)),
            ),
        ),
    ),
    Entry(
        "7.4",
        "Internet of Things and constrained nodes",
        (
            _case(
                name="2 flows on 100 kbit/s, packets of 127 bytes",
                groups=(_law(count=2),),
                capacity=1e5,
                rtt=0.2,
                packet=127,
                buffer=1.0,
                note="power and memory of nodes aren't modelled",
            ),
        ),
    ),
    Entry(
        "7.5",
        "Paths with high delay",
        (_case(name="600 ms, as over a satellite", groups=(_law(count=2),), rtt=0.6, duration=240.0, warmup=60.0),),
    ),
    Entry(
        "7.6",
        "Misbehaving nodes",
        (
            _case(
                name="beside 10 Mbit/s that doesn't respond",
                groups=(_law(count=2), Group(id="unresponsive", offers=Stream(rate=10e6))),
                note=f"a sender; the engines' receivers and routers are compliant; {_WHOLE}",
            ),
        ),
    ),
    Entry(
        "7.7",
        "Extreme packet reordering",
        tuple(
            _case(
                name=f"{1e3 * late:g} ms of jitter, in which packets overtake",
                groups=(_law(),),
                jitter=late,
                reorder=True,
            )
            for late in (0.004, 0.02)
        ),
    ),
    Entry(
        "7.8",
        "Transient events",
        (
            _case(
                name="16 Mbit/s of datagrams from 50 s to 60 s",
                groups=(_law(count=2), Group(id="burst", offers=Stream(rate=16e6), start=(50.0, 50.0), stop=60.0)),
                note=_WHOLE,
            ),
        ),
    ),
    Entry(
        "7.9",
        "Sudden changes in the path",
        (
            _case(
                name="4 Mbit/s and 100 ms from 60 s to 90 s",
                groups=(_law(count=2),),
                turns=(Turn(60.0, 4e6, 0.068), Turn(90.0, 20e6, 0.008)),
            ),
        ),
    ),
    Entry("7.10", "Multipath transport", reason="senders of the engines have one path"),
    Entry(
        "7.11",
        "Data centers",
        (
            _case(
                name="32 senders of 1 MB at once, 1 Gbit/s, 200 µs",
                groups=(_law(id="incast", count=32, start=(0.1, 0.1), offers=1e6),),
                capacity=1e9,
                rtt=2e-4,
                buffer=6.0,
                duration=5.0,
                warmup=0.05,
                interval=0.001,
                note="a buffer of 100 packets",
            ),
        ),
    ),
)
"""Sections in the RFC's order."""
