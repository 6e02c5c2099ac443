"""Agents on real queues: what they refuse, what happens when somebody else is at work there, and several together."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread

import msgspec
import numpy as np
import pytest
from agent_support import BURST, HANDLE, LIMIT, NAMES, RATE, config, index_of, link, program, queues, rate_of, veth
from linux.testbed import Testbed
from linux_support import chain, eventually, kernel

import netctrl
from netctrl.cli.linux import main
from netctrl.core.errors import FileError, InvalidValue
from netctrl.linux.agent.links import KernelLinks
from netctrl.linux.agent.loop import LinkTrouble, run_agent
from netctrl.linux.agent.sockets import AgentSockets
from netctrl.linux.agent.state import Reading, Trouble, plan
from netctrl.linux.export.agent import AgentConfig, ControlledLink, Peer, agent_configs
from netctrl.linux.export.agent_law import LinkRateTable, link_rate_table, scenario_table
from netctrl.linux.kernel.messages import ROOT, classid
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.qdisc import HtbClassOptions, TbfOptions
from netctrl.linux.log import AgentLog
from netctrl.linux.namespace import MissingCapability
from netctrl.model.network import Demand, Network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import CreditPolicy
from netctrl.sim.network.plan import link_plan


@kernel
@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((link("a", interface="eth9"),), r"links\[0\].interface: got 'eth9', takes an interface .*: a, ax, b"),
        ((link("a", parent="1:1"),), r"links\[0\]: got 'no queue', takes a token bucket filter"),
        ((link("a", handle="2:"),), r"links\[0\]: got 'tbf 1:', takes a token bucket filter 2:"),
        ((link("a"), link("b", limit=1000)), r"links\[1\].limit: got 1000.0, takes 60000"),
        ((link("a", burst=6000),), r"links\[0\].burst: got 6000.0, takes 5000"),
        ((link("a", interface="ax"),), r"links\[0\]: got 'a queue noqueue'|'no queue'"),
    ],
)
def test_queues_that_are_not_the_configs_are_refused(links: tuple[ControlledLink, ...], said: str) -> None:
    with queues() as route:
        with pytest.raises(InvalidValue, match=said), KernelLinks(config(links=links)):
            pass
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


@kernel
def test_a_link_has_one_agent() -> None:
    taken = pytest.raises(
        InvalidValue, match=r"links\[0\].interface: got 'a', takes a link that no other agent controls"
    )
    with queues(), KernelLinks(config(), watch=False), taken, KernelLinks(config(), watch=False):
        pass
    with queues(), KernelLinks(config(), watch=False):
        pass  # the lock went with the first


def without_capabilities(requested: AgentConfig) -> str:
    """What a child without any says of it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.setresuid(65534, 65534, 65534)
            with KernelLinks(requested) as links:
                os.write(writing, f"it went on: {links.read()}".encode())
        except MissingCapability as error:
            os.write(writing, str(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    said = os.read(reading, 1000).decode()
    os.close(reading)
    return said


@kernel
def test_without_the_capability_nothing_is_changed() -> None:
    with queues() as route:
        assert "this process lacks CAP_NET_ADMIN" in without_capabilities(config())
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


@kernel
def test_a_controller_needs_no_capability() -> None:
    peers = (Peer(name="S1", address="127.0.0.1", port=9001, links=NAMES),)
    central = config(name="C", role="controller", links=(), peers=peers, port=9000, key_file="key")
    assert without_capabilities(central) == "it went on: ((), None)"


# --- what happens to queues ------------------------------------------------------------------------------------------


@kernel
def test_counters_are_read_and_rates_set_and_put_back() -> None:
    with queues() as route, KernelLinks(config(), watch=False) as links:
        readings, elsewhere = links.read()
        assert elsewhere is None
        assert all(isinstance(each, Reading) for each in readings)
        assert links.set_rate(1, 7_000_003.0) == 7_000_000.0
        assert [rate_of(route, name) for name in NAMES] == [RATE, 7e6, RATE]
        options = TbfOptions.decode(route.qdisc(index_of(route, "b")).options)
        assert options == TbfOptions.desired(7e6, BURST, LIMIT)
        assert all(isinstance(each, Reading) for each in links.read()[0])
        links.restore()
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


def deleted(route: RouteSocket) -> None:
    program("ip", "link", "del", "dev", "b")


def replaced(route: RouteSocket) -> None:
    index = index_of(route, "b")
    route.delete_qdisc(index, ROOT, HANDLE)
    route.add_qdisc(index, ROOT, 9 << 16, "tbf", TbfOptions.desired(5e6, BURST, LIMIT).encode(BURST))


def removed(route: RouteSocket) -> None:
    route.delete_qdisc(index_of(route, "b"), ROOT, HANDLE)


def another_kind(route: RouteSocket) -> None:
    removed(route)
    program("tc", "qdisc", "add", "dev", "b", "root", "handle", "1:", "pfifo", "limit", "10")


def changed(route: RouteSocket) -> None:
    route.change_tbf(index_of(route, "b"), ROOT, HANDLE, 5e6, BURST, LIMIT)


def made_again(route: RouteSocket) -> None:
    deleted(route)
    veth("b")
    options = TbfOptions.desired(5e6, BURST, LIMIT).encode(BURST)
    route.add_qdisc(index_of(route, "b"), ROOT, HANDLE, "tbf", options)


@kernel
@pytest.mark.parametrize(
    ("act", "kind", "left"),
    [
        (deleted, "gone", None),
        (removed, "gone", None),
        (replaced, "foreign", 5e6),
        (another_kind, "foreign", None),
        (changed, "changed", 5e6),
        (made_again, "gone", 5e6),
    ],
)
def test_what_somebody_else_did_is_left_alone(
    act: Callable[[RouteSocket], None], kind: str, left: float | None
) -> None:
    """While an agent runs; it goes on with the others, and puts theirs back."""
    with queues() as route, KernelLinks(config(), watch=False) as links, AgentSockets(config()) as sockets:
        log: list[tuple[str, dict]] = []

        class Kept(AgentLog):
            def event(self, name: str, **fields: object) -> None:
                log.append((name, fields))

        seen: list[int] = []

        def stop() -> bool:
            seen.append(rate_of(route, "c"))
            if len(seen) == 20:
                act(route)
            return len(seen) > 40

        outcome = run_agent(plan(config()), links, sockets, Kept(), stop=stop)
        assert [name for name, _ in log] == ["agent-started", "link-lost", "agent-ended"]
        assert (log[1][1]["link"], log[1][1]["kind"]) == ("b", kind)
        assert outcome.state.lost == (False, True, False)
        assert 6e6 in seen
        assert [rate_of(route, name) for name in ("a", "c")] == [RATE] * 2
        if left is not None:
            assert rate_of(route, "b") == left


HTB = tuple(link(name, kind="htb") for name in NAMES)


@kernel
def test_classes_are_read_and_their_rates_set_and_put_back() -> None:
    with queues("htb") as route, KernelLinks(config(links=HTB), watch=False) as links:
        program("ip", "addr", "add", "10.9.9.1/24", "dev", "b")
        program("ip", "neigh", "replace", "10.9.9.2", "lladdr", "02:00:00:00:00:99", "dev", "b", "nud", "permanent")
        before = links.read()[0][1]
        with socket.socket(type=socket.SOCK_DGRAM) as here:
            for _ in range(40):
                here.sendto(bytes(958), ("10.9.9.2", 9))
        after = links.read()[0][1]
        assert isinstance(before, Reading)
        assert isinstance(after, Reading)
        assert after.sent_bytes - before.sent_bytes + after.backlog_bytes >= 40 * 1000
        assert after.backlog_bytes > 0
        assert links.set_rate(1, 7_000_003.0) == 7_000_000.0
        assert [rate_of(route, name) for name in NAMES] == [RATE, 7e6, RATE]
        for _ in range(250):
            assert all(isinstance(each, Reading) for each in links.read()[0])
        links.restore()
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


@kernel
def test_a_class_that_somebody_changed_is_left_alone() -> None:
    with queues("htb") as route, KernelLinks(config(links=HTB), watch=False) as links:
        links.set_rate(1, 7e6)
        route.change_htb_class(index_of(route, "b"), HANDLE, classid(HANDLE, 1), 5e6, BURST)
        found = [links.read()[0][1] for _ in range(100)]
        troubles = [each for each in found if isinstance(each, Trouble)]
        assert troubles[0].kind == "changed"
        links.restore()
        assert rate_of(route, "b") == 5e6


@kernel
@pytest.mark.parametrize(
    ("links", "said"),
    [
        ((link("a"),), r"links\[0\]: got 'a queue htb', takes a token bucket filter"),
        ((link("a", kind="htb", burst=9000),), r"links\[0\].burst: got 9000.0, takes 500\d"),
        ((link("a", kind="htb", limit=9000),), r"links\[0\].limit: got 9000.0, takes 60000"),
    ],
)
def test_classes_that_are_not_the_configs_are_refused(links: tuple[ControlledLink, ...], said: str) -> None:
    with queues("htb"), pytest.raises(InvalidValue, match=said), KernelLinks(config(links=links)):
        pass


@kernel
def test_an_htb_with_other_classes_is_refused() -> None:
    with queues("htb") as route:
        options = HtbClassOptions.desired(RATE, BURST).encode()
        route.add_class(index_of(route, "a"), HANDLE, classid(HANDLE, 7), "htb", options)
        refused = pytest.raises(InvalidValue, match=r"an htb with classes (1:7, 1:1|1:1, 1:7)")
        with refused, KernelLinks(config(links=HTB)):
            pass


@kernel
def test_a_queue_that_goes_between_a_look_and_a_change_is_trouble() -> None:
    with queues() as route, KernelLinks(config(), watch=False) as links:
        links.read()
        deleted(route)
        with pytest.raises(LinkTrouble) as caught:
            links.set_rate(1, 7e6)
        assert caught.value.found.kind == "gone"
        assert isinstance(links.read()[0][1], Trouble)


# --- sockets ---------------------------------------------------------------------------------------------------------


def requested(path: Path, request: bytes = b"GET /metrics HTTP/1.0\r\n\r\n") -> str:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as here:
        here.settimeout(20.0)
        here.connect(str(path))
        here.sendall(request)
        parts = []
        while part := here.recv(1 << 16):
            parts.append(part)
        return b"".join(parts).decode()


@pytest.fixture
def place() -> Iterator[Path]:
    """A path short enough for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="n") as folder:
        yield Path(folder) / "m"


def test_metrics_are_given_to_who_asks_and_their_socket_goes(place: Path) -> None:
    asking = config(metrics_socket=str(place))
    with AgentSockets(asking) as sockets:
        assert place.stat().st_mode & 0o777 == 0o600
        sockets.publish(lambda: "answer 1\n" * 2000)
        idle = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(20)]  # who say nothing
        for each in idle:
            each.setblocking(False)
            with suppress(BlockingIOError):
                each.connect(str(place))
            sockets.wait(sockets.now() + 0.001, 64)
        found: list[str] = []
        client = Thread(target=lambda: found.append(requested(place)))
        client.start()
        eventually(lambda: sockets.wait(sockets.now() + 0.01, 64) or found)
        client.join(20.0)
        for each in idle:
            each.close()
    assert found[0].startswith("HTTP/1.0 200 OK\r\n")
    assert found[0].endswith("answer 1\n")
    assert found[0].count("answer") == 2000
    assert not place.exists()


def test_one_path_gives_one_agents_metrics(place: Path) -> None:
    asking = config(metrics_socket=str(place))
    with AgentSockets(asking):
        with pytest.raises(FileError, match="another agent serves its metrics there"), AgentSockets(asking):
            pass
        assert place.exists()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as left_behind:
        left_behind.bind(str(place))
    with AgentSockets(asking):  # after a crash
        pass
    place.write_text("something else")
    with pytest.raises(FileError, match="is not a socket"), AgentSockets(asking):
        pass
    assert place.read_text() == "something else"


def test_datagrams_of_others_than_peers_never_come(tmp_path) -> None:
    """Flooded from two ports that are no peer's, and heard from the one that is."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer, socket.socket(type=socket.SOCK_DGRAM) as other:
        peer.bind(("127.0.0.1", 0))
        other.bind(("127.0.0.1", 0))
        with socket.socket(type=socket.SOCK_DGRAM) as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        peers = (Peer(name="S2", address="127.0.0.1", port=peer.getsockname()[1]),)
        with AgentSockets(config(peers=peers, port=port, key_file="key")) as sockets:
            assert sockets.send(0, b"to the peer")
            assert peer.recv(100) == b"to the peer"
            for _ in range(500):
                other.sendto(b"forged", ("127.0.0.1", port))
            peer.sendto(b"from the peer", ("127.0.0.1", port))
            peer.sendto(b"", ("127.0.0.1", port))
            assert sockets.wait(sockets.now() + 20.0, 64) == [(0, b"from the peer"), (0, b"")]
            assert sockets.wait(sockets.now() + 0.001, 64) == []
            peer.close()
            for _ in range(5):  # the kernel says that nobody is there: no error of ours
                sockets.send(0, b"x")
                assert sockets.wait(sockets.now() + 0.001, 64) == []


def test_an_address_that_is_not_ours_is_refused() -> None:
    peers = (Peer(name="S2", address="127.0.0.1", port=9),)
    there = config(peers=peers, port=9000, key_file="key", address="203.0.113.7")
    with pytest.raises(InvalidValue, match="addresses that this machine can use"), AgentSockets(there):
        pass


# --- the command line ------------------------------------------------------------------------------------------------


def key_file(folder: Path, mode: int = 0o600) -> str:
    path = folder / "key"
    path.write_bytes(os.urandom(32))
    path.chmod(mode)
    return str(path)


@kernel
def test_a_dry_run_says_what_would_run_and_changes_nothing(tmp_path, capsys) -> None:
    config().save(tmp_path / "S1.json")
    with queues() as route:
        assert main(["agent", str(tmp_path / "S1.json"), "--dry-run"]) == 0
        assert "tbf 1: at root of b" in capsys.readouterr().out
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


@kernel
def test_a_key_with_the_wrong_mode_is_an_error_before_anything_is_changed(tmp_path, capsys) -> None:
    peers = (Peer(name="S2", address="127.0.0.1", port=9001),)
    path = tmp_path / "S1.json"
    config(peers=peers, port=9000, key_file=key_file(tmp_path, 0o644)).save(path)
    with queues() as route:
        assert main(["agent", str(path), "--duration", "1s"]) == 2
        assert "has mode 0644, takes 0600" in capsys.readouterr().err
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3


@kernel
def test_an_unknown_interface_is_one_line(tmp_path, capsys) -> None:
    config(links=(link("a", interface="eth9"),)).save(tmp_path / "S1.json")
    with queues():
        assert main(["agent", str(tmp_path / "S1.json")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "eth9" in said


@kernel
def test_it_runs_for_a_time_and_puts_rates_back(tmp_path, capsys) -> None:
    config().save(tmp_path / "S1.json")
    with queues() as route:
        assert main(["agent", str(tmp_path / "S1.json"), "--duration", "100ms"]) == 0
        assert [rate_of(route, name) for name in NAMES] == [RATE] * 3
    _, first, last = capsys.readouterr().err.splitlines()  # the first: no record has these queues
    assert "event=agent-started agent=S1 links=3" in first
    assert 'event=agent-ended agent=S1 why="time is up" steps=' in last


# --- several together ------------------------------------------------------------------------------------------------

SWITCHES = ("S1", "S2", "S3")


def flood(address: str, port: int, target: str, count: int) -> None:
    """Forged datagrams from an address and a port."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        here.bind((address, port))
        for i in range(count):
            here.sendto(os.urandom(40 + i % 1200), (target, port))


def send(address: str, rate: float, seconds: float) -> None:
    """Datagrams of 1000 bytes, in bursts every 5 ms."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        end, due = time.monotonic() + seconds, time.monotonic()
        while due < end:
            for _ in range(round(rate * 0.005 / 8000)):
                here.sendto(bytes(958), (address, 9))
            due += 0.005
            time.sleep(max(due - time.monotonic(), 0.0))


def hftrac(network: Network, **architecture: object) -> LinkRateTable:
    design = netctrl.hftrac(network, 0.02, mu=0.1, **architecture)
    return link_rate_table(design, netctrl.network_model(network, 0.02), reference=1.05)


class Together:
    """Agents as programs in a testbed of three switches in a row, with traffic over their links, and what they say."""

    def __init__(self, bed: Testbed, folder: Path, sockets: Path, law: LinkRateTable, rate: float = 5e6) -> None:
        self.bed, self.folder, self.sockets = bed, folder, sockets
        self.links = dict(zip(SWITCHES, law.links, strict=True))
        places = [
            (Peer(name=name, address=bed.address(name), port=7700), [self.controlled(each)])
            for name, each in self.links.items()
        ]
        controller = Peer(name="C", address=bed.address("S1"), port=7701) if law.central else None
        made = agent_configs(law, 0.02, places, controller=controller, key_file=key_file(folder), silence=25)
        self.configs = made
        for name, each in made.items():
            msgspec.structs.replace(each, metrics_socket=str(self.sockets / name)).save(folder / name)
        self.running = {name: self.begin(name) for name in made}
        bed.start("S1", send, bed.address("H"), rate, 60.0)

    def controlled(self, name: str) -> ControlledLink:
        wire = self.bed.wires[name]
        rates = {"least_rate": 1e5, "greatest_rate": 10e6, "fallback_rate": 8e6}
        queue = {"handle": "1:", "burst": wire.burst_bytes, "limit": wire.limit_bytes}
        return ControlledLink(id=name, interface=wire.interface, **rates, **queue)

    def begin(self, name: str) -> subprocess.Popen:
        argv = [sys.executable, "-m", "netctrl", "linux", "agent", str(self.folder / name), "--duration", "90s"]
        with (self.folder / f"{name}.log").open("a") as log:
            return self.bed.start(name if name in SWITCHES else "S1", argv, stderr=log)

    def kill(self, name: str) -> None:
        self.running[name].send_signal(signal.SIGKILL)
        self.running[name].wait(20.0)

    def events(self, name: str) -> list[str]:
        return re.findall(r" event=(\S+)", (self.folder / f"{name}.log").read_text())

    def value(self, name: str, metric: str) -> float:
        """Sum of a metric's samples."""
        lines = requested(self.sockets / name).splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(f"netctrl_{metric}"))

    def at_work(self, name: str) -> bool:
        """Whether it heard all its peers and a good deal from them."""
        if self.events(name).count("peer-heard") < len(self.configs[name].peers):
            return False
        return self.value(name, "agent_messages_received_total") >= 50

    def rate(self, name: str) -> float:
        """In the kernel [bit/s]."""
        with self.bed.route_socket(name) as route:
            return 8 * TbfOptions.decode(route.qdisc(self.bed.index(self.links[name])).options).rate

    def end(self) -> list[int]:
        """Exit statuses."""
        for agent in self.running.values():
            agent.send_signal(signal.SIGTERM)
        return [agent.wait(20.0) for agent in self.running.values()]


@pytest.fixture
def switches() -> Iterator[Testbed]:
    network = chain("S1", "S2", "S3", "H", capacity=10e6, buffer=60e3)
    demands = (Demand(source="S1", target="H", mean=5e6, std=1e6), Demand(source="S2", target="H", mean=1e6, std=3e5))
    with Testbed(msgspec.structs.replace(network, demands=demands)) as bed:
        yield bed


@kernel
def test_three_switches_control_their_links_together(switches: Testbed, tmp_path, place: Path) -> None:
    """Coordinated agents, with messages over the links that they control; then one is killed, its address floods the
    others, and it comes back."""
    together = Together(
        switches, tmp_path, place.parent, hftrac(switches.network, architecture="coordinated", horizon=12)
    )
    for name in SWITCHES:
        eventually(lambda name=name: together.at_work(name))
        eventually(lambda name=name: together.value(name, "agent_rate_changes_total") >= 10)
        assert together.value(name, "link_controlled") == 1
        assert together.value(name, 'agent_dropped_total{reason="forged"}') == 0

    neighbour = together.configs["S3"].peers[0].name
    together.kill("S3")
    eventually(lambda: "peer-lost" in together.events(neighbour))
    switches.run("S3", flood, switches.address("S3"), 7700, switches.address(neighbour), 5000)
    eventually(lambda: together.value(neighbour, "agent_dropped_total") > 100)
    steps = together.value(neighbour, "agent_steps_total")
    eventually(lambda: together.value(neighbour, "agent_steps_total") >= steps + 20)
    heard = together.events(neighbour).count("peer-heard")
    together.running["S3"] = together.begin("S3")
    eventually(lambda: together.events(neighbour).count("peer-heard") == heard + 1)

    assert together.end() == [0] * 3
    assert [together.rate(name) for name in ("S1", "S2")] == [10e6] * 2
    assert not list(tmp_path.glob("*.s"))


@kernel
def test_the_credit_law_holds_traffic_back_before_a_full_queue(switches: Testbed, tmp_path, place: Path) -> None:
    """S1 and S2 both send 8 Mbit/s over the 10 Mbit/s from S2 on. S1 waits until S2's queue has room, and may send
    again all that S2's mean of 1 Mbit/s leaves when S2 is silent."""
    made = link_plan(routed(switches.network, interval=0.02, control=CreditPolicy(), duration=20.0), messages=True)
    together = Together(
        switches, tmp_path, place.parent, scenario_table(made.law, made.links, np.full(3, 10e6), made.paced), 8e6
    )
    for name in SWITCHES:
        eventually(lambda name=name: together.at_work(name))

    def mean(name: str) -> float:
        """Over a second [bit/s]."""
        rates = []
        for _ in range(20):
            rates.append(together.rate(name))
            time.sleep(0.05)
        return sum(rates) / len(rates)

    eventually(lambda: mean("S1") > 8.5e6)
    switches.start("S2", send, switches.address("H"), 8e6, 8.0)
    eventually(lambda: mean("S1") < 7.5e6)
    assert mean("S3") > 9e6  # nothing fills behind it
    eventually(lambda: mean("S1") > 8.5e6)
    assert together.end() == [0] * 3


@kernel
def test_without_the_central_controller_switches_fall_back_and_say_so(switches: Testbed, tmp_path, place: Path) -> None:
    law = hftrac(switches.network, architecture="centralized", information_delay=2)
    together = Together(switches, tmp_path, place.parent, law)
    for name in SWITCHES:
        eventually(lambda name=name: together.at_work(name))
        eventually(lambda name=name: together.value(name, "agent_fallback ") == 0)
    together.kill("C")
    for name in SWITCHES:
        eventually(lambda name=name: together.value(name, "agent_fallback ") == 1)
        eventually(lambda name=name: together.rate(name) == 8e6)
        eventually(lambda name=name: "peer-lost" in together.events(name))
        assert "fallback" in together.events(name)
    again = {name: together.events(name).count("commands-again") for name in SWITCHES}
    together.running["C"] = together.begin("C")
    for name in SWITCHES:
        eventually(lambda name=name: together.events(name).count("commands-again") > again[name])
    assert together.end() == [0] * 4
    assert [together.rate(name) for name in SWITCHES] == [10e6] * 3
