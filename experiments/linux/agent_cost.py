"""What the control agent costs: `python experiments/linux/agent_cost.py --links 12 --interval 10ms --duration 60s`.

Interfaces in a namespace of its own, one token bucket filter each, real netlink. The counters that the agent reads get
noise added, and the dead-band is 0, so that every rate is changed in every interval, which is the most that it can
cost. With `--peer-links N` a second agent controls N links more, and they exchange messages. Each agent is a process
of its own, which imports what an agent does. With `--flood` the second one is a program that sends forged datagrams
from its address instead, as fast as it can; `chrt -f 10` shows what an idle machine would.

Printed as JSON: processor time over wall time, lateness, step times, changes, and resident memory as it went.
"""

import argparse
import contextlib
import itertools
import json
import os
import resource
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from netctrl.core.units import parse_duration
from netctrl.linux import namespace
from netctrl.linux.agent.links import KernelLinks
from netctrl.linux.agent.loop import Links, run_agent
from netctrl.linux.agent.message import Echo, Kind, Message, pack
from netctrl.linux.agent.sockets import AgentSockets
from netctrl.linux.agent.state import Reading, plan
from netctrl.linux.export.agent import AgentConfig, ControlledLink, Peer, agent_configs, read_agent_config
from netctrl.linux.export.agent_law import link_rate_table
from netctrl.linux.kernel.messages import ROOT, add_veth, set_up
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import TbfOptions
from netctrl.linux.log import AgentLog
from netctrl.model.network import Demand, Link, Network

RATE, BURST, LIMIT = 10e6, 5000, 60000
HANDLE = 1 << 16
FIRST_INDEX = 100


def network(links: int, delay: float) -> Network:
    """A chain of links that one demand crosses, with another one at each link."""
    names = [f"n{i}" for i in range(links + 1)]
    pairs = list(itertools.pairwise(names))
    made = tuple(Link(source=a, target=b, id=f"l{i}", capacity=20e6, delay=delay) for i, (a, b) in enumerate(pairs))
    local = tuple(Demand(source=a, target=b, mean=2e6, std=1e6, id=f"d{i}") for i, (a, b) in enumerate(pairs))
    return Network(links=made, demands=(*local, Demand(source=names[0], target=names[-1], mean=8e6, std=2e6, id="all")))


class Noisy:
    """Links whose counters are noisier than any traffic."""

    def __init__(self, links: Links, count: int) -> None:
        self.links, self.random = links, np.random.default_rng(1)
        self.sent = np.zeros(count, dtype=np.int64)

    def read(self):
        """Of the kernel, with noise added."""
        readings, elsewhere = self.links.read()
        self.sent += self.random.integers(6000, 18000, len(self.sent))
        waiting = self.random.integers(0, 8000, len(self.sent)).tolist()
        return [
            Reading(each.sent_bytes + more, each.backlog_bytes + wait) if isinstance(each, Reading) else each
            for each, more, wait in zip(readings, self.sent.tolist(), waiting, strict=True)
        ], elsewhere

    def set_rate(self, link: int, rate: float) -> float:
        """In the kernel."""
        return self.links.set_rate(link, rate)

    def restore(self) -> None:
        """In the kernel."""
        self.links.restore()


def interfaces(names: list[str]) -> None:
    """Pairs of veth, each with a token bucket filter, in this thread's namespace."""
    options = TbfOptions.desired(RATE, BURST, LIMIT).encode(BURST)
    with RouteSocket() as route:
        route.request("switch on the loopback", set_up(1))
        for number, name in enumerate(names):
            one, other = FIRST_INDEX + 2 * number, FIRST_INDEX + 2 * number + 1
            made = add_veth(one, name, other, f"{name}x", None, bytes((2, 0, 0, 0, 0, number)))
            route.request(f"make {name}", made, set_up(one), set_up(other))
            route.add_qdisc(one, ROOT, HANDLE, "tbf", options)


def configs(count: int, more: int, tau: float, key: Path) -> dict[str, AgentConfig]:
    """Files of one agent, or of two."""
    import netctrl

    requested = network(count + more, tau)
    design = netctrl.hftrac(requested, tau, architecture="coordinated", mu=0.1, horizon=24)
    table = link_rate_table(design, netctrl.network_model(requested, tau))
    links = [
        ControlledLink(
            id=name,
            interface=name,
            handle="1:",
            least_rate=1e5,
            greatest_rate=20e6,
            fallback_rate=RATE,
            burst=BURST,
            limit=LIMIT,
        )
        for name in table.links
    ]
    groups = [links[:count], links[count:]] if more else [links]
    places = [(Peer(name=f"agent{i}", address="127.0.0.1", port=9700 + i), each) for i, each in enumerate(groups)]
    return agent_configs(table, tau, places, key_file=str(key), dead_band=0.0)


def resident() -> int:
    """Memory of this process [byte]."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def measure(config: AgentConfig, key: bytes, duration: float) -> dict[str, object]:
    """Run one agent and say what it cost."""
    memory: list[tuple[float, int]] = []
    began = time.monotonic()

    def look() -> bool:
        now = time.monotonic() - began
        if now - (memory[-1][0] if memory else -1e9) >= duration / 20.0:
            memory.append((round(now, 1), resident()))
        return False

    with KernelLinks(config) as links, AgentSockets(config) as sockets:
        before = time.process_time()
        outcome = run_agent(
            plan(config, key), Noisy(links, len(config.links)), sockets, AgentLog(), stop=look, duration_s=duration
        )
        used = time.process_time() - before
    wall, metrics, counts = time.monotonic() - began, outcome.metrics, outcome.state.counts
    return {
        "agent": config.name,
        "links": len(config.links),
        "numbers in the law": len(config.law.control.taps) + len(config.law.predicted.taps),
        "interval_s": config.interval_s,
        "wall_s": round(wall, 2),
        "processor share": round(used / wall, 4),
        "lateness p50 <= s": metrics.lateness.quantile(0.5),
        "lateness p99 <= s": metrics.lateness.quantile(0.99),
        "step p50 <= s": metrics.duration.quantile(0.5),
        "step p99 <= s": metrics.duration.quantile(0.99),
        "resident MiB": [(at, round(size / 2**20, 2)) for at, size in memory],
        "counts": dict(sorted(counts.items())),
        "load": os.getloadavg(),
    }


def flood(config: AgentConfig, duration: float) -> None:
    """Datagrams as a peer's, signed with another key, until the time is over."""
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    peer, end = config.peers[0], time.monotonic() + duration
    message = Message(Kind.STATE, 1, 1, 1, 1, Echo(), ())
    forged = pack(message, plan(config).routes[0], bytes(32))
    with socket.socket(type=socket.SOCK_DGRAM) as here:
        here.bind((peer.address, peer.port))
        while time.monotonic() < end:
            with contextlib.suppress(OSError):
                for _ in range(200):
                    here.sendto(forged, (config.address, config.port))


def main() -> None:
    """Read arguments, make a namespace, run agents in it, print what the first one cost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--links", type=int, default=12)
    parser.add_argument("--peer-links", type=int, default=0)
    parser.add_argument("--interval", default="10ms")
    parser.add_argument("--duration", default="20s")
    parser.add_argument("--flood", action="store_true", help="with --peer-links")
    parser.add_argument("--run", type=Path, help="an agent's file: run it here")
    requested = parser.parse_args()
    duration = parse_duration(requested.duration)
    if requested.run is not None:
        config = read_agent_config(requested.run)
        print(json.dumps(measure(config, Path(config.key_file or os.devnull).read_bytes(), duration), indent=1))
        return
    with tempfile.TemporaryDirectory() as folder, namespace.inside(namespace.make_namespace()):
        key = Path(folder) / "key"
        with os.fdopen(os.open(key, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as file:
            file.write(os.urandom(32))
        made = configs(requested.links, requested.peer_links, parse_duration(requested.interval), key)
        interfaces([link.id for config in made.values() for link in config.links])
        children = []
        for name, config in made.items():
            config.save(Path(folder) / name)
            if children and requested.flood:
                break
            argv = [sys.executable, __file__, "--run", str(Path(folder) / name), "--duration", requested.duration]
            children.append(subprocess.Popen(argv, stdout=None if not children else subprocess.DEVNULL))
        if requested.flood:
            flood(next(iter(made.values())), duration)
        for child in children:
            child.wait(timeout=duration + 60.0)


if __name__ == "__main__":
    main()
