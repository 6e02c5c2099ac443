"""Links and flows as a testbed: what is planned, what it lacks, and a short run in this machine's kernel."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linux_support import eventually, kernel
from msgspec.structs import replace

from netctrl.errors import InvalidValue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.linux.testbed import lacks
from netctrl.linux.testbed.lacks import machine_lacks, scenario_lacks
from netctrl.linux.testbed.namespace import start_time
from netctrl.linux.testbed.plan import plan_testbed
from netctrl.linux.testbed.run_scenario import run_scenario
from netctrl.linux.testbed.scenario import ScenarioPlan, plan_scenario, plan_text
from netctrl.model.io.provenance import provenance
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import BulkFlows, UdpFlows, WebFlows
from netctrl.sim.tcp_aqm.traffic import draw_flows

LINE = Link(id="line", source="a", target="b", capacity="10Mbit", delay="5ms", buffer="50kB")
BULK = BulkFlows(id="bulk", path=("line",), rtt="40ms", count=2)


@pytest.fixture(autouse=True)
def senders(monkeypatch, tmp_path) -> None:
    """Those of every kernel; plans don't depend on this machine's."""
    (tmp_path / "senders").write_text("reno cubic\n")
    monkeypatch.setattr(lacks, "_SENDERS", tmp_path / "senders")


def scenario(*flows, links=(LINE,), **fields) -> Scenario:
    return Scenario.of(**({"name": "s", "links": links, "flows": flows or (BULK,), "duration": "4s"} | fields))


def planned(of: Scenario) -> ScenarioPlan:
    return plan_scenario(of, draw_flows(of, merged=False))


@given(
    delays=st.lists(st.floats(0.0, 0.05), min_size=1, max_size=4),
    back=st.lists(st.floats(0.0, 0.05), max_size=3),
    more=st.floats(1e-6, 0.1),
    apart=st.booleans(),
)
def test_what_a_flow_crosses_takes_its_round_trip(delays, back, more, apart) -> None:
    """Its links', and home: without a way of acknowledgements they come back as late as the data came."""
    first = "z" if apart else f"n{len(delays)}"
    ends = [first, *(f"m{k}" for k in range(len(back)))]
    links = [
        Link(id=f"l{k}", source=f"n{k}", target=f"n{k + 1}", capacity=1e6, delay=d) for k, d in enumerate(delays)
    ] + [Link(id=f"r{k}", source=ends[k], target=ends[k + 1], capacity=1e6, delay=d) for k, d in enumerate(back)]
    path, acks = tuple(f"l{k}" for k in range(len(delays))), tuple(f"r{k}" for k in range(len(back)))
    trip = sum(delays) + (sum(back) if back else sum(delays))
    group = BulkFlows(id="g", path=path, ack_path=acks, rtt=trip + more, count=1, start="1s", stop="3s")
    plan = planned(scenario(group, links=tuple(links)))
    (flow,) = plan.tcp
    found = {each.id: each for each in plan.network.links}
    assert (flow.path[1:], [name for name in flow.back if name in acks]) == (path, list(acks))
    assert sum(found[name].delay for name in (*flow.path, *flow.back)) == pytest.approx(trip + more, abs=1e-12)
    assert (flow.start_s, flow.stop_s) == pytest.approx((1.0 + more / 2.0, 3.0 + more / 2.0))
    chain = [found[name] for name in (*flow.path, *flow.back)]
    assert all(one.target == other.source for one, other in zip(chain, [*chain[1:], chain[0]], strict=True))
    assert all(each.capacity > 1e9 and each.buffer is None for each in chain if each.id not in (*path, *acks))
    assert len(plan_testbed(plan.network, routed=False).routes) == 0


def test_flows_are_those_that_all_engines_draw() -> None:
    group = BulkFlows(id="g", path=("line",), rtt=("20ms", "80ms"), start=("0s", "6s"), count=20, sender="cubic")
    of = scenario(group)
    (draw,) = draw_flows(of, merged=False)
    plan = planned(of)
    access = (draw.rtt_s - 0.01) / 2
    starts = draw.start_s + access
    assert 0 < len(plan.tcp) < 20  # the others would start after the end, and have no host
    np.testing.assert_allclose([flow.start_s for flow in plan.tcp], starts[starts < 4.0])
    assert {(flow.congestion, flow.stop_s) for flow in plan.tcp} == {("cubic", 4.0)}
    assert len(plan.network.nodes) == 2 + len(plan.tcp)
    homes = {each.id: each.delay for each in plan.network.links}
    np.testing.assert_allclose([homes[flow.back[-1]] for flow in plan.tcp], draw.rtt_s[starts < 4.0] - 0.005)


def test_udp_flows_send_at_their_rate_in_their_time() -> None:
    even = UdpFlows(id="even", path=("line",), count=3, rate="1Mbit", spacing="constant", start="1s", stop="2s")
    random = UdpFlows(id="random", path=("line",), count=2, rate="1Mbit")
    plan = planned(scenario(even, random, duration="40s"))
    assert plan.tcp == ()
    first, second = plan.udp
    assert [len(times) for times in first.times_s] == [125, 125, 125]
    phases = [times[0] - 1.0 for times in first.times_s]
    assert len({round(phase, 6) for phase in phases}) == 3 and 0.0 <= min(phases) <= max(phases) < 8e-3
    assert all(np.allclose(np.diff(times), 8e-3) and times[-1] < 2.0 for times in first.times_s)
    assert sum(map(len, second.times_s)) == pytest.approx(10_000, abs=5 * 10_000**0.5)  # five standard deviations


def test_a_plan_as_text() -> None:
    udp = UdpFlows(id="udp", path=("line",), count=2, rate="1Mbit", spacing="constant", stop="1s")
    text = plan_text(planned(scenario(BULK, udp)))
    assert text.splitlines() == [
        "s: 5 namespaces, 4 s",
        "  line: a to b, tbf 10 Mbit/s, burst 3653 B, limit 50000 B, then 5 ms",
        "  host bulk 0: reno, 0.015 to 4.000 s, over line, back 35 ms",
        "  host bulk 1: reno, 0.015 to 4.000 s, over line, back 35 ms",
        "  host udp: 250 UDP packets of 2 flows over line",
    ]


UDP = UdpFlows(id="udp", path=("line",), count=1, rate="10kbit")
LOOP = (LINE, Link(id="on", source="b", target="a", capacity="10Mbit"))


@pytest.mark.parametrize(
    ("of", "said"),
    [
        (scenario(WebFlows(id="web", path=("line",), rtt="40ms", sessions=1)), "web flows (flows.web)"),
        (scenario(BulkFlows(id="h", path=("line",), rtt="40ms", count=1, sender="htcp")), "cubic, reno (flows.h are h"),
        (scenario(BulkFlows(id="loop", path=("line", "on"), rtt="40ms", count=1), links=LOOP), "visit a node twice"),
        (scenario(links=(replace(LINE, queue=CodelQueue()),)), "(links.line.queue is codel)"),
        (scenario(links=(replace(LINE, loss=0.1),)), "random loss (links.line.loss)"),
        (scenario(changes=(Change(at="1s", link="line", delay="1ms"),)), "changes of a delay"),
        (scenario(duration="700s"), "time for 700 s"),
        (scenario(interval="1ms"), "samples every 0.001 s"),
        (scenario(packet_size="9kB"), "packets of 9000 bytes"),
        (scenario(packet_size=1000.5), "packets of 1000.5 bytes"),
        (scenario(initial_window=2), "initial windows"),
        (scenario(BulkFlows(id="many", path=("line",), rtt="40ms", count=49)), "room for 49 TCP flows"),
        (scenario(replace(UDP, rate="5Mbit"), duration="600s", packet_size="200B"), "room for 1875000 UDP packets"),
        (scenario(links=(replace(LINE, capacity="1Gbit"),), packet_size="1500B"), "way to pass 83333 packets/s"),
        (scenario(UDP, links=(replace(LINE, capacity="1Gbit"),), duration="600s"), None),
        (scenario(changes=(Change(at="1s", link="line", capacity="1Mbit"),)), None),
        (scenario(links=(replace(LINE, buffer=None),), packet_size="1514B"), None),
    ],
)
def test_what_it_lacks_is_said(of, said) -> None:
    found = scenario_lacks(of)
    assert found is None if said is None else said in (found or "")


def test_what_this_machine_lacks_is_said_with_the_remedy(monkeypatch, tmp_path) -> None:
    status = tmp_path / "status"
    monkeypatch.setattr(lacks, "_STATUS", status)
    monkeypatch.setattr(lacks, "_TUN", tmp_path / "tun")
    assert machine_lacks() == "Linux here"
    status.write_text("Name:\tpython\nCapEff:\t0000000000001000\n")
    assert machine_lacks() == "CAP_SYS_ADMIN here, which network namespaces need: run as root"
    status.write_text("CapEff:\t000001ffffffffff\n")
    assert "CONFIG_TUN" in (machine_lacks() or "")
    (tmp_path / "tun").touch()
    monkeypatch.setattr(lacks, "find_spec", lambda _: None)
    assert "netctrl[linux]" in (machine_lacks() or "")
    monkeypatch.setattr(lacks, "find_spec", lambda name: name)
    assert machine_lacks() is None


MADE = provenance(seed=1)
WIDE = {"buffer": "1MB", "source": "a", "target": "b"}
RUN = scenario(
    replace(BULK, path=("tcp",), stop="5s"),
    UdpFlows(id="half", path=("half",), count=1, rate="2Mbit", spacing="constant", stop="4s"),
    UdpFlows(id="over", path=("over",), count=2, rate="1Mbit", stop="4s"),
    UdpFlows(id="step", path=("step",), count=1, rate="4Mbit", spacing="constant", stop="4s"),
    BulkFlows(id="back", path=("there",), ack_path=("back",), rtt="20ms", count=1, sender="cubic"),
    links=(
        replace(LINE, id="tcp"),
        Link(id="half", capacity="4Mbit", **WIDE),
        Link(id="over", source="a", target="b", capacity="1Mbit", buffer="10kB", delay="5ms"),
        Link(id="step", capacity="8Mbit", **WIDE),
        Link(id="there", source="c", target="d", capacity="2Mbit", buffer="20kB"),
        Link(id="back", source="e", target="c", capacity="1Mbit", delay="5ms"),
    ),
    changes=(Change(at="2s", link="step", capacity="2Mbit"),),
    duration="6s",
    warmup="1s",
    packet_size="1250B",
)
"""Of all that the engine has; UDP stops early, so that even a late source is done at the end."""


@kernel
def test_a_run_in_the_kernel() -> None:
    plan, told = planned(RUN), []
    found = run_scenario(plan, MADE, told.append)
    links, groups = ({each.id: row for row, each in enumerate(rows)} for rows in (RUN.links, RUN.flows))
    arrived, departed, lost = (
        each.sum(axis=1) for each in (found.arrived_bytes, found.departed_bytes, found.lost_bytes)
    )
    carried = found.carried_bytes.sum(axis=1)
    assert told == sorted(told) and told[-1] == 1.0
    assert found.simulator.startswith("linux-")
    np.testing.assert_allclose(arrived, departed + lost + found.backlog_bytes[:, -1], rtol=1e-9)
    assert found.backlog_bytes[links["tcp"]].max() <= 50e3

    for host in plan.udp:  # what was sent, by the plan, against the kernel's queue and the sink
        name = RUN.flows[host.group].id
        row, offered = links[name], sum(map(len, host.times_s))
        assert arrived[row] == pytest.approx(1250 * offered)
        assert lost[row] / 1250 == pytest.approx(offered - carried[groups[name]] / (1250 - 42))
    assert lost[links["half"]] == 0.0
    # At twice its capacity, with some buffer: half, and more where the machine is late; at half its rate it were 3/4.
    assert 0.2 < lost[links["over"]] / arrived[links["over"]] < 0.7

    capacity = found.capacity_bit_per_s() / 8 * RUN.interval
    room = 1.1 * capacity.cumsum(axis=1) + 20e3  # a sample is late by as much as the machine is
    assert (found.departed_bytes.cumsum(axis=1) <= room).all()
    late = (found.time_s > 2.5) & (found.time_s <= 4.5)  # the queue is never empty
    assert found.departed_bytes[links["step"], late].sum() == pytest.approx(2e6 / 8 * 2.0, rel=0.2)

    utilization = {each.id: each.utilization for each in found.summary(1.0, 5.0).links}
    assert utilization["tcp"] > 0.6 and utilization["there"] > 0.6
    for name, line, least in (("bulk", "tcp", 0.04), ("back", "there", 0.02)):
        rtt = found.rtt_s[groups[name]]
        assert least <= rtt[rtt > 0.0].min()
        assert 0.8 < carried[groups[name]] / (departed[links[line]] * (1250 - 66) / 1250) <= 1.001
    assert departed[links["back"]] > 66 / 2 * carried[groups["back"]] / (1250 - 66) * 0.5  # of two segments each
    assert not found.rtt_s[groups["half"]].any()


def descriptors() -> int:
    """Of this process, that hold a network namespace or a TUN device."""
    held = [Path(each).readlink().as_posix() for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return sum(name.startswith("net:[") or name == "/dev/net/tun" for name in held)


@kernel
def test_a_run_that_fails_leaves_nothing() -> None:
    others = set(multiprocessing.active_children())  # of tests before
    plan = planned(scenario(duration="60s"))
    bad = plan._replace(tcp=tuple(flow._replace(congestion="none such") for flow in plan.tcp))
    with pytest.raises(InvalidValue, match="congestion: got 'none such'"):
        run_scenario(bad, MADE)
    assert set(multiprocessing.active_children()) <= others
    assert descriptors() == 0


FILE = """
schema = "netctrl.scenario/2"
name = "long"
time = { duration = "500s" }
network = { kind = "links", links = [{ id = "line", source = "a", target = "b", capacity = "1Mbit", delay = "1ms" }] }
traffic = { flows = [{ kind = "bulk", id = "g", path = ["line"], rtt = "9ms", count = 1, sender = "cubic" }] }
"""


@kernel
def test_ctrl_c_ends_it_and_its_children(tmp_path) -> None:
    (tmp_path / "long.toml").write_text(FILE)
    heard = "signal.signal(signal.SIGINT, signal.default_int_handler)"  # a shell's background jobs ignore it
    program = f"import signal, sys; {heard}; from netctrl.__main__ import main; sys.exit(main())"
    argv = [sys.executable, "-c", program, "simulate", str(tmp_path / "long.toml"), "--engine", "linux"]
    with subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as owner:

        def children() -> list[int]:
            rows = Path(f"/proc/{owner.pid}/task").glob("*/children")
            return [int(pid) for row in rows for pid in row.read_text().split()]

        eventually(lambda: len(children()) >= 4)  # delay lines, a sink, the links, a flow
        started = children()
        owner.send_signal(signal.SIGINT)
        assert owner.wait(60.0) == 130
    for pid in started:
        eventually(lambda pid=pid: start_time(pid) is None)
