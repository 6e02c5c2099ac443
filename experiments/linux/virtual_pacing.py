"""Pacing in virtual time, kept in data/results/: `python experiments/full.py virtual-pacing [REPEAT ...]`.

Senders through 100 Mbit/s, 20 ms on the way of acknowledgements. Where these come each by itself, the kernel's netem
delays them; bunches need the delay line of the testbed.
"""

import time
from itertools import product
from typing import NamedTuple

import msgspec
import numpy as np
import pandas as pd
from common import interval
from linux.testbed import Testbed
from linux.traffic import MIN_FRAME, UdpSource, absorb_tcp, open_tcp_sink, open_udp_sink, receive_udp, send_udp
from linux.virtual import called
from study import Case, Made, Record, Study, kernel_used, made_by

import netctrl
from netctrl.kernel.build import chosen_kernel
from netctrl.kernel.scenarios.traffic import constant_times
from netctrl.linux.pacing.socket import paced_transfer
from netctrl.linux.pacing.tcp import TcpRun
from netctrl.model.law import PacingLaw
from netctrl.model.network import Link, Network

SECONDS, WARM_UP = 20.0, 2.0
BIN = 0.1
"""Of throughput, for its spread within a run [s]."""
CAPACITY, DELAY, BUFFER = 100e6, 0.02, 1.25e6
PROBES = 200.0
"""A second."""
NETWORK = Network(
    name="100 Mbit/s, 20 ms back",
    links=(
        Link(source="sender", target="router", capacity=1e9),
        Link(source="router", target="sender", capacity=1e9, delay=DELAY),
        Link(source="router", target="receiver", capacity=CAPACITY, buffer=BUFFER),
        Link(source="receiver", target="router", capacity=1e9),
    ),
)
BOTTLENECK, BACK = "router->receiver", "router->sender"
PATHS = {"each by itself": 0.0, "in bunches of 1 ms": 1e-3}
"""How acknowledgements come: the delay line sends them back each on its time, or at each millisecond, as one does that
waits with poll(2), whose time is in milliseconds, and as media do that are shared in turns."""
ALONE, BUNCHES = PATHS
LINE = "each by itself, delay line"
"""The delay line of the testbed without bunches."""
QUEUES = ("fifo", "fq_codel")
_PACKETS = "10000"


class Sender(NamedTuple):
    congestion: str
    law: PacingLaw | float | None


SENDERS = {
    "Cubic": Sender("cubic", None),
    "BBR": Sender("bbr", None),
    "fixed cap, 95": Sender("cubic", 95e6),
    "paper's law, R = 95": Sender("cubic", netctrl.pacing(max_rate_bit_per_s=95e6, rtt_s=DELAY).law),
    "paper's law, R = 200": Sender("cubic", netctrl.pacing(max_rate_bit_per_s=200e6, rtt_s=DELAY).law),
    "own rate, R = 200": Sender("cubic", netctrl.pacing(mode="own-rate", max_rate_bit_per_s=200e6, rtt_s=DELAY).law),
    "H-TCP": Sender("htcp", None),
}
"""R in Mbit/s, of TCP's payload: 95 of it are 99.3 of the bottleneck's Ethernet."""
OURS, PEER, FILLED = "own rate, R = 200", "BBR", "paper's law, R = 200"


def of_transfer(run: TcpRun, warmup: float) -> dict[str, float]:
    """Throughput of what has arrived, and the kernel's smoothed RTT, which is all that TCP_INFO has."""
    since = run.times_s - run.times_s[0]
    counted = since >= warmup
    edges = np.arange(warmup, since[-1], BIN)
    arrived = np.interp(edges, since, run.column("arrived_bytes"))
    rates = 8e-6 * np.diff(arrived) / BIN
    rtt = 1e3 * run.column("rtt_s")[counted]
    return {
        "mbit": float(8e-6 * (arrived[-1] - arrived[0]) / (edges[-1] - edges[0])),
        "mbit_std": float(rates.std()),
        "rtt_ms": float(rtt.mean()),
        "rtt_std_ms": float(rtt.std()),
        "rtt_p99_ms": float(np.percentile(rtt, 99.0)),
        "rtt_least_ms": float(1e-3 * run.infos[-1].min_rtt) if run.infos[-1].min_rtt else float("nan"),
        "sent_again": float(run.infos[-1].total_retrans),
        "looks_per_s": float(counted.sum() / (since[-1] - warmup)),
    }


def of_probes(run: TcpRun, sent: np.ndarray, delay: np.ndarray, warmup: float) -> dict[str, float]:
    """What the bottleneck's queue adds to the way there, by packets that are not TCP's."""
    counted = (sent >= run.times_s[0] + warmup) & (sent <= run.times_s[-1])
    queue = 1e3 * (delay[counted] - delay.min())
    return {"queue_ms": float(queue.mean()), "queue_p99_ms": float(np.percentile(queue, 99.0))}


def cases() -> list[tuple[str, str, str]]:
    """Queue, path and sender; what few programs carry is first, as it takes less wall time."""
    return [(queue, ALONE, name) for queue, name in product(QUEUES, SENDERS)] + [
        ("fifo", path, name) for path, name in [(BUNCHES, OURS), *product((BUNCHES, LINE), (FILLED, PEER))]
    ]


def inside(queue: str, path: str, name: str, seconds: float = SECONDS, warmup: float = WARM_UP) -> dict[str, float]:
    """One transfer, called in the kernel, watched by itself and by probes that know nothing of it."""
    sender, bunch = SENDERS[name], PATHS.get(path, 0.0)
    links = tuple(msgspec.structs.replace(link, delay=0.0) if path == ALONE else link for link in NETWORK.links)
    with Testbed(msgspec.structs.replace(NETWORK, links=links), bunch_s={BACK: bunch} if bunch else None) as bed:
        if path == ALONE:
            delay = ["delay", f"{1e3 * DELAY:g}ms", "limit", _PACKETS]
            bed.program("router", ["tc", "qdisc", "replace", "dev", bed.interface(BACK), "root", "netem", *delay])
        if queue != "fifo":
            bed.program("router", ["tc", "qdisc", "add", "dev", bed.interface(BOTTLENECK), "parent", "1:1", queue])
        address = bed.address("receiver")
        with bed.inside("receiver"):
            listener, sink = open_tcp_sink(5001), open_udp_sink(5002)
        with listener, sink:
            begin = time.monotonic() + 0.1
            end = begin + seconds + 3.0
            probe = UdpSource(address, 5002, constant_times(PROBES * 8 * MIN_FRAME, MIN_FRAME, end - begin), MIN_FRAME)
            taking = bed.start("receiver", absorb_tcp, listener, end + 30.0, 1)
            hearing = bed.start("receiver", receive_udp, [sink], end)
            bed.start("sender", send_udp, [probe], begin)
            asked = (sender.law, address, 5001, seconds)
            options = {"congestion": sender.congestion, "timeout_s": seconds + 60.0}
            run, _ = bed.run("sender", paced_transfer, *asked, **options)
            taking.result(60.0)
            heard = hearing.result(60.0)[0]
        with bed.route_socket("router") as at_router:
            queues = at_router.qdiscs()
    dropped = next(row for row in queues if row.index == bed.index(BOTTLENECK) and row.kind == "tbf").counters.drops
    found = of_transfer(run, warmup) | of_probes(run, heard.sent_s, heard.delay_s, warmup)
    return found | {"dropped": float(dropped)}


def record(before: Record, data: pd.DataFrame, case: Case, about: None) -> Record:
    return before | {
        "network": msgspec.json.decode(NETWORK.to_json()),
        "senders": {name: sender._asdict() for name, sender in SENDERS.items()},
        "paths": PATHS,
        "seconds": SECONDS,
        "warm_up_s": WARM_UP,
        "probes_per_s": PROBES,
        "kernel": kernel_used(chosen_kernel()),
        "seed": "repeat",
        "runs": len(data),
    }


STUDY = Study(
    name="virtual-pacing",
    key=("queue", "path", "sender", "repeat"),
    repeats=(1, 2, 3),
    cases=lambda repeat: [(*case, repeat) for case in cases()],
    runs=made_by(lambda *key: Made([called("linux.virtual_pacing:inside", *key[:-1], seed=key[-1])])),
    record=record,
)


def ratios(data: pd.DataFrame, path: str) -> dict[str, tuple[float, float]]:
    """Ours over the peer's, repeat by repeat: of mean RTTs, throughputs and queues."""
    data = data[data.path == path]
    ours, peer = (data[data.sender == name].set_index("repeat") for name in (OURS, PEER))
    return {field: interval(ours[field] / peer[field]) for field in ("rtt_ms", "mbit", "queue_ms")}
