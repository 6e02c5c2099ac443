"""What tests call inside the kernel in virtual time: streams over two nodes, and the books of CONNET's link."""

from __future__ import annotations

import time
from typing import Any

from linux.connet_plant import KernelLink, Plant
from linux.stream import TAP, Seen, Streamed, round_trips, send_frames, tap
from linux.testbed import Testbed
from linux.traffic import absorb_tcp, open_tcp_sink

from netctrl.linux.kernel.qdisc import TbfOptions
from netctrl.model.network import Link, Network

PORT, SEGMENT, HEADERS = 9000, 1448, 66
DELAY_S, PER_PACKET_S = 0.02, 1e-3
"""Of acknowledgements; between two frames that wait for the link of 12.112 Mbit/s."""
FRAMES_PER_S = 5.0
NETWORK = Network(
    name="two nodes",
    links=(
        Link(id="there", source="sender", target="receiver", capacity=1e9),
        Link(id="back", source="receiver", target="sender", capacity=1e9),
    ),
)
LOST_AT, WITHOUT_S = 2.0, 0.1


def stream(packets: int, seconds: float, lose: bool) -> dict[str, list[float]]:
    """Frames of whole packets, from the time of the first one; with `lose` one frame and what follows it for 0.1 s."""
    with Testbed(NETWORK) as bed:
        rate = 8 * (SEGMENT + HEADERS) / PER_PACKET_S
        bed.program("sender", ["ip", "link", "set", "dev", bed.interface("there"), "gso_max_segs", "1"])
        replace = ["tc", "qdisc", "replace", "dev"]
        there = [*replace, bed.interface("there"), "root", "netem", "limit", "1000", "rate", f"{rate:g}bit"]
        back = [*replace, bed.interface("back"), "root", "netem", "delay", f"{1e3 * DELAY_S:g}ms"]
        bed.program("sender", there)
        bed.program("receiver", back)
        tap(bed, "there")
        with bed.inside("receiver"):
            listener = open_tcp_sink(PORT)
        taking = bed.start("receiver", absorb_tcp, listener, time.monotonic() + seconds + 20.0, 1)
        bits = 8 * packets * SEGMENT * FRAMES_PER_S
        begin = time.monotonic()
        sending = bed.start(
            "sender", send_frames, bed.address("receiver"), PORT, seconds, bit_per_s=bits, frames_per_s=FRAMES_PER_S
        )
        if lose:
            time.sleep(begin + LOST_AT - 0.05 - time.monotonic())
            bed.program("sender", [*there, "loss", "100%"])
            time.sleep(WITHOUT_S)
            bed.program("sender", there)
        run = sending.result(seconds + 20.0)
        taking.result(20.0)
    return answer(run)


def answer(run: Streamed) -> dict[str, list[float]]:
    found = {"again": [float(run.info.total_retrans)], "late": [run.late_s], "rtt": [1e-6 * (run.info.min_rtt or 0)]}
    for place in (TAP, interface(run.seen)):
        trips = round_trips(run.seen, place)
        name = "tap" if place == TAP else "wire"
        found[f"{name}_sent"] = (trips.sent_s - run.begin_s).tolist()
        found[f"{name}_trips"] = trips.round_trips_s.tolist()
        found[f"{name}_again"] = (trips.again_s - run.begin_s).tolist()
    return found


def interface(seen: Seen) -> str:
    """What packets leave by."""
    return str(next(place for place in seen.places[seen.outgoing] if place != TAP))


def connet_books() -> dict[str, Any]:
    """Three periods of the paper's link, the second within the dead-band; the third regulator is dead."""
    with KernelLink(Plant(), 3.0, 1) as link:
        link.failed = frozenset({2})
        samples = [link.advance(rate) for rate in (50.0, 50.0 * 1.005, 25.0)]
        rates = [TbfOptions.decode(each.qdisc(index).options).rate for each, index in link._regulators]
        books = link.close_books()
    queues = [(each.packets, each.drops, each.backlog_packets) for each in (*books.regulators, books.bottleneck)]
    sent = {"sent": books.sent, "premium_sent": books.premium_sent, "premium_received": books.premium_received}
    return sent | {"rates": rates, "sampled": [each.rate for each in samples], "queues": queues}
