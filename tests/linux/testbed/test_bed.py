"""The testbed: what a network becomes, built in the kernel, and gone however its owner ends."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest
from linux_support import bare_namespace, chain, eventually, kernel, line

from netctrl.cli.linux import main
from netctrl.errors import InvalidValue, NetctrlError
from netctrl.linux import namespace
from netctrl.linux.processes import Job, start_function
from netctrl.linux.testbed.bed import Testbed
from netctrl.linux.testbed.delay_line import Line, pump
from netctrl.linux.testbed.plan import FRAME, UNLIMITED, plan_testbed
from netctrl.model.network import Link, Network


def echo(here: socket.socket, count: int) -> int:
    for _ in range(count):
        here.sendto(*here.recvfrom(100))
    return count


@contextmanager
def echoing(bed: Testbed, node: str, count: int) -> Iterator[Job]:
    """Something that answers at a node; the port is held before anybody asks."""
    with bed.inside(node), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.bind(("0.0.0.0", 7))
        here.settimeout(20.0)
        job = bed.start(node, echo, here, count)
    yield job


def ask(address: str, count: int) -> list[float]:
    """Round trips [s]."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
        here.settimeout(20.0)
        for number in range(count):
            began = time.monotonic()
            here.sendto(b"%d" % number, (address, 7))
            here.recv(100)
            found.append(time.monotonic() - began)
    return found


def test_a_link_and_the_first_that_goes_back_share_a_veth() -> None:
    links = [("a", "b", "x"), ("a", "b", "y"), ("b", "a", "z"), ("b", "c", "w")]
    network = Network(links=[Link(source=s, target=t, id=i, capacity=1e6) for s, t, i in links])
    plan = plan_testbed(network)
    assert plan.pairs == (("x", "z"), ("y", None), ("w", None))
    x, z = plan.wires["x"], plan.wires["z"]
    assert (x.interface, x.peer, x.address, x.next_hop) == ("x", "z", "10.128.0.0", "10.128.0.1")
    assert (z.interface, z.peer, z.address, z.next_hop) == ("z", "x", "10.128.0.1", "10.128.0.0")
    assert plan.wires["w"].peer == "w.b"
    assert len({wire.address for wire in plan.wires.values()}) == 4


def test_interfaces_are_named_after_links_where_the_kernel_takes_it() -> None:
    ids = ["s1->s2", "s1 s2", "s1/s2", "a link with a long id", "lo", "up"]
    links = [Link(source="a", target=f"n{k}", id=name, capacity=1e6) for k, name in enumerate(ids)]
    names = [wire.interface for wire in plan_testbed(Network(links=links)).wires.values()]
    assert names == ["link.0", "link.1", "link.2", "link.3", "link.4", "up"]
    assert all(len(name) <= 15 for name in names)


def test_routes_are_shortest_by_delay_then_by_links() -> None:
    edges = [("a", "b", 0.03), ("a", "c", 0.01), ("c", "b", 0.01), ("b", "d", 0.0), ("a", "e", 0.0), ("e", "c", 0.01)]
    network = Network(links=[Link(source=s, target=t, capacity=1e6, delay=d) for s, t, d in edges])
    routes = {(each.node, each.target): each.link for each in plan_testbed(network).routes}
    assert routes[("a", "b")] == "a->c"
    assert routes[("a", "c")] == "a->c"
    assert routes[("a", "d")] == "a->c"
    assert ("b", "a") not in routes


def test_nodes_without_a_way_back_are_named(tmp_path, capsys) -> None:
    both = chain("a", "b", "c")
    assert plan_testbed(both).one_way == ()
    there = Network(links=tuple(each for each in both.links if each.source < each.target))
    assert plan_testbed(there).one_way == (("a", "b"), ("a", "c"), ("b", "c"))
    (tmp_path / "n.json").write_bytes(there.to_json())
    assert main(["testbed", str(tmp_path / "n.json"), "--dry-run"]) == 0
    assert "no return path: a to b, a to c, b to c; TCP and ping get no answer there" in capsys.readouterr().out
    (tmp_path / "n.json").write_bytes(both.to_json())
    assert main(["testbed", str(tmp_path / "n.json"), "--dry-run"]) == 0
    assert "no return path" not in capsys.readouterr().out


def test_burst_and_limit() -> None:
    network = line(capacity=80e6, buffer=None)
    wires = plan_testbed(network).wires
    assert (wires["a->b"].burst_bytes, wires["a->b"].limit_bytes) == (2 * FRAME + 5000, UNLIMITED)
    wires = plan_testbed(network, burst_bytes={"a->b": 2000}).wires
    assert (wires["a->b"].burst_bytes, wires["b->a"].burst_bytes) == (2000, 2 * FRAME + 62500)
    assert plan_testbed(network, burst_bytes=1514).wires["b->a"].burst_bytes == 1514


@pytest.mark.parametrize(
    ("network", "burst", "named"),
    [
        (line(buffer=1000), None, "links.a->b.buffer"),
        (line(capacity=100e9), None, "links.a->b.capacity"),
        (line(), {"a->c": 2000}, "burst_bytes"),
        (line(), {"a->b": 1000}, "burst_bytes.a->b"),
        (line(), 100, "burst_bytes"),
        (Network(links=[Link(source="a", target=f"n{k}", capacity=1e6) for k in range(250)]), None, "network"),
    ],
)
def test_what_no_testbed_can_be_is_refused_by_name(network, burst, named) -> None:
    with pytest.raises(InvalidValue, match=r"takes") as refusal:
        Testbed(network, burst_bytes=burst)
    assert refusal.value.argument == named


@kernel
def test_a_network_in_the_kernel_has_its_queues_and_reaches_all_nodes() -> None:
    with Testbed(chain("a", "b", "c", capacity=20e6, buffer=50e3)) as bed:
        with echoing(bed, "c", 3) as answering:
            assert len(bed.run("a", ask, bed.address("c"), 3)) == 3
            assert answering.result(20.0) == 3
        with bed.route_socket("b") as at_b:
            rows = {row.index: row for row in at_b.qdiscs() if row.kind == "tbf"}
        row = rows[bed.index("b->c")]
        assert row.handle == 0x10000
        assert row.counters.packets == 3
        assert {bed.index("b->a"), bed.index("b->c")} == rows.keys()
        assert bed.interface("b->c") == "b-c"


@kernel
def test_a_delay_line_delays_one_way_and_loses_nothing() -> None:
    with Testbed(line(delay=0.05)) as bed:
        with echoing(bed, "b", 20) as answering:
            took = bed.run("a", ask, bed.address("b"), 20)
            assert answering.result(20.0) == 20
        assert min(took) >= 0.05


@kernel
def test_a_path_leads_over_its_links() -> None:
    links = [("a", "b", 0.0), ("a", "c", 0.0), ("c", "b", 0.0), ("b", "a", 0.0)]
    with Testbed(Network(links=[Link(source=s, target=t, capacity=1e8, delay=d) for s, t, d in links])) as bed:
        address = bed.path(["a->c", "c->b"])
        with echoing(bed, "b", 5) as answering:
            bed.run("a", ask, address, 5)
            assert answering.result(20.0) == 5
        with bed.route_socket("c") as at_c:
            (row,) = [row for row in at_c.qdiscs() if row.index == bed.index("c->b") and row.kind == "tbf"]
        assert row.counters.packets == 5
        with pytest.raises(InvalidValue, match="a chain"):
            bed.path(["a->c", "a->b"])
        with pytest.raises(InvalidValue, match="at least one link"):
            bed.path([])


@kernel
def test_neighbours_over_a_link_without_a_way_back_talk_by_the_addresses_of_its_ends() -> None:
    network = Network(links=[Link(source="a", target="b", capacity=1e8)])
    with Testbed(network) as bed, echoing(bed, "b", 3) as answering:
        bed.run("a", ask, bed.wire("a->b").next_hop, 3)
        assert answering.result(20.0) == 3


@kernel
def test_packets_pass_one_by_one_where_asked_for() -> None:
    with Testbed(line(), segment=True) as bed:
        assert "gso_max_segs 1 " in bed.run("a", ["ip", "-d", "link", "show", bed.interface("a->b")]).stdout


@kernel
def test_functions_and_programs_run_at_a_node_and_their_errors_come_back() -> None:
    with Testbed(line()) as bed:
        here = str(Path("/proc/self/ns/net").readlink())
        found = bed.run("a", os.readlink, "/proc/self/ns/net")
        assert found != here
        shown = bed.run("a", ["readlink", "/proc/self/ns/net"])
        assert (shown.returncode, shown.stdout.strip()) == (0, found)
        with pytest.raises(ZeroDivisionError):
            bed.run("a", divmod, 1, 0)
        with pytest.raises(NetctrlError, match="no-such-program can't be started"):
            bed.run("a", ["no-such-program"])
        with pytest.raises(TimeoutError, match="sleep wasn't done"):
            bed.run("a", ["sleep", "30"], timeout_s=0.1)
        with pytest.raises(TimeoutError):
            bed.run("a", time.sleep, 30.0, timeout_s=0.1)
        job = bed.start("b", time.sleep, 30.0)
        job.stop()
        with pytest.raises(NetctrlError, match="without a result"):
            job.result()
        with pytest.raises(NetctrlError, match="can't be sent"):
            bed.run("a", lambda: lambda: None)
        with pytest.raises(InvalidValue, match="a node of the testbed: a, b"):
            bed.run("nowhere", os.getpid)
        with pytest.raises(InvalidValue, match="a link of the testbed: a->b"):
            bed.interface("a=>b")
        assert str(Path("/proc/self/ns/net").readlink()) == here


OWNER = """
import sys, time
from netctrl.linux.testbed.bed import Testbed
from netctrl.model.network import Link, Network
links = [Link(source="a", target="b", capacity=1e6), Link(source="b", target="a", capacity=1e6, delay=0.01)]
with Testbed(Network(links=links), named=True) as bed:
    job, program = bed.start("a", time.sleep, 60.0), bed.start("b", ["sleep", "60"])
    print(job.pid, program.pid, bed.name("a"), bed.name("b"), flush=True)
    sys.stdin.read()
"""


@kernel
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, None])
def test_nothing_is_left_behind_however_the_owner_ends(end) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path.cwd()
    )
    with owner:
        assert owner.stdout is not None and owner.stdin is not None
        job, program, *names = owner.stdout.readline().split()
        assert all((namespace.NAMES / name).exists() for name in names)
        assert not set(names) & set(namespace.clean_leftovers()), "a living owner's"
        if end is None:
            owner.stdin.close()
        else:
            owner.send_signal(end)
        owner.wait(60.0)
        for pid in map(int, (job, program)):
            eventually(lambda pid=pid: namespace.start_time(pid) is None)
        if end is not None:
            assert set(names) <= set(namespace.leftovers())
            namespace.clean_leftovers()
        assert not any((namespace.NAMES / name).exists() for name in names)


@kernel
def test_a_testbed_that_cannot_be_built_leaves_nothing(monkeypatch) -> None:
    def held() -> set[str]:
        return {place.name for place in Path("/proc/self/fd").iterdir()}

    before = held()
    monkeypatch.setattr(
        "netctrl.linux.testbed.bed.open_tun", lambda name: (_ for _ in ()).throw(NetctrlError("no TUN"))
    )
    with pytest.raises(NetctrlError, match="no TUN"), Testbed(line(delay=0.01)):
        pass
    assert held() <= before


@kernel
def test_names_that_are_not_ours_are_left_alone(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(namespace, "NAMES", tmp_path)
    mine = namespace.namespace_name("a b")
    assert mine.endswith("-a_b")
    ours, other = f"netctrl-{2**22 + 1}-5-a", "netctrl-blue"
    for name in (mine, ours, other, "blue"):
        (tmp_path / name).touch()
    assert namespace.clean_leftovers() == [ours]
    assert sorted(place.name for place in tmp_path.iterdir()) == sorted([mine, other, "blue"])
    with bare_namespace() as descriptor, pytest.raises(NetctrlError, match="--clean"):
        namespace.name_namespace(descriptor, mine)


def pumped(packets: list[bytes], delay_s: float, bunch_s: float) -> list[tuple[float, bytes]]:
    """What comes back from a line, and after how long; a pair of sockets stands for the TUN device."""
    device, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    job = start_function(None, pump, [Line(device.fileno(), delay_s, bunch_s)])
    with device, far:
        device.setblocking(False)
        far.settimeout(20.0)
        found = []
        try:
            begin = time.monotonic()
            for packet in packets:
                far.send(packet)
            for _ in packets:
                content = far.recv(100)
                found.append((time.monotonic() - begin, content))
        finally:
            job.close()
    return found


@pytest.mark.parametrize("bunch", [0.0, 0.02])
def test_a_line_keeps_the_order_and_loses_nothing(bunch) -> None:
    packets = [b"%d" % k for k in range(200)]
    found = pumped(packets, 0.03, bunch)
    assert [content for _, content in found] == packets
    assert found[0][0] >= 0.03


@pytest.mark.parametrize(
    ("bunches", "named"), [({"a->b": 1e-3}, "bunch_s"), ({"x": 1e-3}, "bunch_s"), ({"b->a": 0.0}, "bunch_s.b->a")]
)
def test_bunches_are_of_links_with_a_delay(bunches, named) -> None:
    with pytest.raises(InvalidValue, match="takes") as refusal:
        Testbed(line(delay=0.01), bunch_s=bunches)
    assert refusal.value.argument == named


@pytest.fixture
def network_file(tmp_path):
    place = tmp_path / "network.json"
    place.write_bytes(line(capacity=10e6, buffer=50e3, delay=0.02).to_json())
    return str(place)


def test_the_command_line_shows_a_plan_without_any_right(network_file, capsys) -> None:
    assert main(["testbed", network_file, "--dry-run"]) == 0
    said = capsys.readouterr().out
    assert "2 nodes, 2 links, would be built" in said
    assert "a-b at a: tbf 10 Mbit/s, burst 3653 B, limit 50000 B" in said
    assert "limit 1073741824 B, then 20 ms" in said
    assert main(["testbed", network_file, "--dry-run", "--json", "--burst", "2kB"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["links"]["a->b"]["burst_bytes"] == 2000
    assert told["nodes"]["a"]["address"] == "10.0.1.1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "usage: "),
        (["--dry-run"], "NETWORK: got nothing, takes a network file, or --clean"),
        (["NETWORK", "--for", "5"], "--for: got '5'"),
        (["NETWORK", "--burst", "many"], "--burst: got 'many'"),
        (["NETWORK", "--burst", "100", "--dry-run"], "--burst: got 100.0, takes at least a frame"),
        (["/no/such/file"], "/no/such/file"),
    ],
)
def test_wrong_use_is_one_line(arguments, said, network_file, capsys) -> None:
    arguments = [network_file if each == "NETWORK" else each for each in arguments]
    assert main(["testbed", *(arguments or ["--help"])]) == (2 if arguments else 0)
    told = capsys.readouterr()
    assert said in told.err + told.out


@kernel
@pytest.mark.parametrize("end", [None, signal.SIGINT, signal.SIGTERM])
def test_the_command_line_holds_a_testbed_and_cleans_up(end, network_file) -> None:
    argv = [sys.executable, "-m", "netctrl.linux", "testbed", network_file, "--json"]
    argv += ["--for", "10ms"] if end is None else []
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        text = ""
        while not text.endswith("}\n}\n"):
            text += (row := holder.stdout.readline())
            assert row or end is None
            if not row:
                break
        names = [node["namespace"] for node in json.loads(text)["nodes"].values()]
        if end is not None:
            assert all((namespace.NAMES / name).exists() for name in names)
            holder.send_signal(end)
        assert holder.wait(60.0) == 0
    assert not any((namespace.NAMES / name).exists() for name in names)


@kernel
def test_the_command_line_removes_leftovers(capsys) -> None:
    name = f"{namespace.PREFIX}{2**22 + 7}-1-gone"
    with bare_namespace() as descriptor:
        namespace.name_namespace(descriptor, name)
    assert main(["testbed", "--clean"]) == 0
    assert f"{name}: removed" in capsys.readouterr().out
    assert not (namespace.NAMES / name).exists()


def test_without_privilege_it_says_what_is_missing(monkeypatch) -> None:
    def refuse(*_: object) -> int:
        ctypes.set_errno(errno.EPERM)
        return -1

    monkeypatch.setattr(namespace, "_libc", SimpleNamespace(unshare=refuse))
    with pytest.raises(NetctrlError, match="CAP_SYS_ADMIN is missing: run as root"), Testbed(line()):
        pass
