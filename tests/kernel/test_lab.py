"""The kernel in virtual time: exact delays, repeatable to the byte, without privilege, and what a failure says."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.kernel.plan import TRANSFER, Answer, PlanWriter, read_results
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.disciplines import FqCodelQueue, KernelQueue
from netctrl.laws.rate.records import KernelTcp
from netctrl.scenario.links import Change, Link
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream, Web

pytestmark = pytest.mark.needs("lab")

NOBODY = 65534
WEB = Flow(id="web", path=("line",), rtt="20ms", count=20, offers=Web(think_time="500ms"))
UDP = Flow(id="udp", path=("line",), count=2, offers=Stream(rate="1Mbit"))


def kinds(scenario_of, seed: int) -> dict:
    return {
        "cubic": scenario_of(seed=seed, start=("0s", "500ms")),
        "pie": scenario_of(PieQueue(), seed=seed, ecn=False),
        "fq_codel": scenario_of(FqCodelQueue(), UDP, seed=seed, sender="bbr"),
        "cake": scenario_of(KernelQueue(discipline="cake"), WEB, seed=seed, sender="reno"),
        "lossy": scenario_of(CodelQueue(), seed=seed, loss=0.01, sender="htcp"),
    }


@contextmanager
def two_busy_processes() -> Iterator[None]:
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


@pytest.mark.parametrize("kind", ["cubic", "pie", "fq_codel", "cake", "lossy"])
def test_a_seed_gives_the_same_bytes_whatever_the_load(scenario_of, results_of, kind: str) -> None:
    scenario = kinds(scenario_of, 1)[kind]
    first = results_of(scenario)
    with two_busy_processes():
        assert results_of(scenario) == first
    assert results_of(kinds(scenario_of, 2)[kind]) != first


def test_two_runs_side_by_side_are_those_of_each_alone(scenario_of, results_of) -> None:
    scenarios = [scenario_of(seed=seed) for seed in (1, 2)]
    alone = [results_of(each) for each in scenarios]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(results_of, scenarios)) == alone


@pytest.mark.parametrize(
    ("capacity", "delays_ms", "rtt_ms"),
    [
        ("1Mbit", (3.0,), 17.0),
        ("10Mbit", (10.0, 7.5), 40.0),
        ("1Gbit", (0.05, 0.1, 0.3), 2.0),
        ("33.3Mbit", (80.0,), 200.0),
    ],
)
def test_the_least_round_trip_is_what_the_links_say(results_of, capacity, delays_ms, rtt_ms) -> None:
    """Delays, and the 74 bytes of a SYN on each link; acknowledgements return over links without a rate."""
    names = [f"link{k}" for k in range(len(delays_ms))]
    links = tuple(
        Link(id=name, source=f"n{k}", target=f"n{k + 1}", capacity=capacity, delay=f"{delay}ms")
        for k, (name, delay) in enumerate(zip(names, delays_ms, strict=True))
    )
    flow = Flow(id="flow", path=tuple(names), rtt=f"{rtt_ms}ms", count=1, sender="cubic")
    scenario = netctrl.Scenario(name="rtt", links=links, flows=(flow,), duration="2s", packet_size=1000)
    rows = [
        np.frombuffer(body, TRANSFER) for kind, body in read_results(results_of(scenario)) if kind == Answer.TRANSFER
    ]
    least = np.concatenate(rows)["min_rtt_us"].min()
    expected = rtt_ms * 1e3 + sum(74 * 8 / link.capacity * 1e6 for link in links)
    # The kernel's clock has steps of 256 ns, its timers run at the next one, and TCP counts microseconds.
    assert least == pytest.approx(expected, abs=1.0 if len(links) == 1 else 1.0 + 0.5 * len(links))


def test_acknowledgements_cross_their_links() -> None:
    """A way back over a slow link adds the transmission of the SYN's acknowledgement there."""
    there = Link(id="there", source="a", target="b", capacity="10Mbit", delay="5ms")
    back = Link(id="back", source="b", target="a", capacity="1Mbit", delay="8ms")
    flow = Flow(id="flow", path=("there",), ack_path=("back",), rtt="13ms", count=1, sender="cubic")
    scenario = netctrl.Scenario(name="back", links=(there, back), flows=(flow,), duration="5s", packet_size=1514)
    result = netctrl.simulate(scenario, "kernel")
    # An acknowledgement of 66 bytes for two packets of 1514, but for the first second, in which there is one for each.
    assert result.between(3.0)["utilization", result.links[1]] == pytest.approx(66 / 2 / 1514 * 10, rel=0.05)
    assert result.series["rtt"][0][0] > 13e-3 + 66 * 8 / 1e6


def test_a_queue_without_feedback_is_that_of_m_d_1(scenario_of) -> None:
    """Pollaczek and Khinchine: the mean wait of Poisson arrivals at load r is r/(2 (1 - r)) transmissions."""
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate="7Mbit"))
    line = Link(id="line", source="a", target="b", capacity="10Mbit", delay="10ms")
    scenario = netctrl.Scenario(
        name="m/d/1", links=(line,), flows=(udp,), duration="300s", warmup="1s", interval="1s", packet_size=1000
    )
    taken = netctrl.simulate(scenario, "kernel")["delay", "udp"]
    service = 1000 * 8 / 10e6
    wait = 0.7 / (2 * 0.3) * service
    assert taken == pytest.approx(0.01 + service + wait, rel=0.01)


def test_an_empty_way_takes_its_transmissions_and_delays(results_of) -> None:
    """To the steps of the kernel's clock, for packets evenly spaced over two links."""
    links = (
        Link(id="one", source="a", target="b", capacity="10Mbit", delay="3ms"),
        Link(id="two", source="b", target="c", capacity="4Mbit", delay="2ms"),
    )
    udp = Flow(id="udp", path=("one", "two"), count=1, offers=Stream(rate="1Mbit", spacing="constant"))
    scenario = netctrl.Scenario(name="empty", links=links, flows=(udp,), duration="10s", packet_size=1000)
    found = netctrl.simulate(scenario, "kernel").of("udp")
    assert found["delay"] == pytest.approx(3e-3 + 2e-3 + 8e-3 / 10 + 8e-3 / 4, abs=1.5e-6)
    assert found["jitter"] == pytest.approx(0.0, abs=1.5e-6)


def test_normal_jitter_has_its_deviation() -> None:
    """Delays of two packets differ by 2/√π of it on average; of 1,250 packets to 2 %."""
    line = Link(
        id="line", source="a", target="b", capacity="10Mbit", delay="20ms", jitter="2ms", spread="normal", reorder=True
    )
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate="100kbit", spacing="constant"))
    scenario = netctrl.Scenario(name="late", links=(line,), flows=(udp,), duration="100s", packet_size=1000)
    found = netctrl.simulate(scenario, "kernel").of("udp")
    assert found["delay"] == pytest.approx(20e-3 + 8e-3 / 10, abs=2e-4)
    assert found["jitter"] == pytest.approx(2.0 / np.sqrt(np.pi) * 2e-3, rel=0.06)


def test_the_link_carries_its_capacity_and_changes(scenario_of) -> None:
    scenario = scenario_of(duration="20s", count=10)
    changed = scenario.replace(changes=(Change(at=10.0, link="line", capacity="5Mbit", delay="20ms"),))
    result = netctrl.simulate(changed, "kernel")
    rate = result.series["departed"][0] * 8 / 0.1
    assert rate[20:100].mean() == pytest.approx(10e6, rel=1e-3)
    assert rate[120:].mean() == pytest.approx(5e6, rel=1e-3)
    assert result.series["rtt"][0][150:].min() >= 30e-3


@pytest.mark.parametrize("capacity", [10e6, 100e6, 1e9])
def test_an_overloaded_link_sends_at_its_rate(capacity: float) -> None:
    """To a packet in 50,000: a timer that is late by up to a microsecond takes nothing from the rate."""
    line = Link(id="line", source="left", target="right", capacity=capacity, delay=1e-3, buffer=100e3)
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate=1.5 * capacity, spacing="poisson"))
    duration = 400e6 / capacity
    scenario = netctrl.Scenario(
        name="full", links=(line,), flows=(udp,), duration=duration, interval=duration / 10, packet_size=1000
    )
    sent = netctrl.simulate(scenario, "kernel").series["departed"][0, 1:-1].sum()
    assert sent == pytest.approx(0.8 * duration * capacity / 8.0, abs=2000.0)


def test_objects_take_a_round_trip_for_each_window(scenario_of) -> None:
    """Slow start from ten segments of 1448 bytes: connecting takes a round trip, 100 kB then four windows."""
    flow = {"count": 1, "offers": "100kB", "rtt": "100ms"}
    result = netctrl.simulate(scenario_of(capacity="1Gbit", buffer="10MB", duration="3s", **flow), "kernel")
    assert result.transfers["size"].tolist() == [100_000.0]
    # 10, 20, 40 segments leave after 1, 2 and 3 round trips: all 70 are on their way; the last byte takes half of one.
    assert result.transfers["duration"][0] == pytest.approx(0.1 * 3.5, abs=0.01)


@pytest.mark.parametrize(
    ("sender", "size", "interval"),
    [("cubic", "12.5kB", "40ms"), ("cubic", "1MB", "1s"), ("reno", "1MB", "1s"), ("bbr", "500kB", "1s")],
)
def test_what_a_program_writes_comes_as_on_packets(scenario_of, sender: str, size: str, interval: str) -> None:
    """Frames, and chunks with pauses in which windows are halved, or BBR's rate is kept: 21, 156, 148 and 62 ms."""
    flow = {
        "count": 1,
        "sender": sender,
        "rtt": "40ms",
        "offers": {"kind": "writes", "size": size, "interval": interval},
    }
    scenario = scenario_of(capacity="100Mbit", buffer="500kB", duration="12s", **flow).replace(warmup=4.0)
    found = {engine: netctrl.simulate(scenario, engine) for engine in ("kernel", "packet")}
    of = found["packet"].flows[0]
    assert len(found["kernel"].transfers["size"]) == pytest.approx(len(found["packet"].transfers["size"]), abs=1)
    for quantity in ("response", "response 95 %"):
        assert found["kernel"][quantity, of] == pytest.approx(found["packet"][quantity, of], rel=0.05)


def test_a_receive_window_bounds_what_a_round_trip_carries(scenario_of) -> None:
    flow = {"count": 1, "rtt": "40ms", "receive_window": "200kB"}
    scenario = scenario_of(capacity="100Mbit", buffer="500kB", duration="12s", **flow)
    result = netctrl.simulate(scenario.replace(warmup=2.0), "kernel")
    assert result["goodput", result.flows[0]] == pytest.approx(8.0 * 200e3 / 0.0402, rel=0.04)


def test_cubic_s_slow_start_loses_as_on_packets_with_hystart_and_without(scenario_of) -> None:
    """Over 100 Mbit/s, 30 ms and a buffer of one product: 26 packets, and 707."""
    lost = {}
    for start in ("hystart", "standard"):
        flow = {"count": 1, "rtt": "30ms", "slow_start": start, "delayed_acks": True, "ecn": False}
        scenario = scenario_of(capacity="100Mbit", buffer="375kB", duration="4s", **flow)
        found = [netctrl.simulate(scenario, engine) for engine in ("kernel", "packet")]
        lost[start] = [float(each.series["lost"].sum()) for each in found]
        assert lost[start][0] == pytest.approx(lost[start][1], rel=0.03)
    assert lost["standard"][0] > 10.0 * lost["hystart"][0]


def test_web_sessions_go_on_until_the_end(scenario_of) -> None:
    result = netctrl.simulate(scenario_of(None, WEB, count=1, capacity="100Mbit", duration="30s"), "kernel")
    # 20 sessions with pages of two objects each half second and a little.
    assert len(result.transfers["duration"]) == pytest.approx(20 * 2 * 30 / 0.56, rel=0.1)
    assert result.transfers["duration"].min() >= 0.03 - 1e-6


def test_sampled_marks_are_those_of_the_discipline(scenario_of) -> None:
    marking = netctrl.simulate(scenario_of(CodelQueue(), duration="20s", buffer="1MB"), "kernel").of("line")
    dropping = netctrl.simulate(scenario_of(CodelQueue(), duration="20s", buffer="1MB", ecn=False), "kernel").of("line")
    assert marking["marks"] > 1e-3
    assert marking["loss"] < 1e-4
    assert dropping["marks"] == 0.0
    assert dropping["loss"] > 1e-3


def test_what_a_wire_loses_is_lost() -> None:
    """A share of the packets, each by itself, that were sent and didn't depart; the queue loses none."""
    line = Link(id="line", source="a", target="b", capacity="10Mbit", delay="10ms", buffer="100kB", loss=0.02)
    udp = Flow(id="udp", path=("line",), count=1, offers=Stream(rate="5Mbit", spacing="constant"))
    scenario = netctrl.Scenario(name="lossy", links=(line,), flows=(udp,), duration="60s", packet_size=1000)
    result = netctrl.simulate(scenario, "kernel")
    link, packets = result.of("line"), 5e6 / 8e3 * 60
    assert link["loss"] == pytest.approx(0.02, abs=4.0 * (0.02 * 0.98 / packets) ** 0.5)
    assert result.series["lost"].sum() + result.series["departed"].sum() == pytest.approx(1000 * packets, abs=2000.0)
    assert result.series["payload"].sum() == pytest.approx(
        (1000 - 42) / 1000 * result.series["departed"].sum(), abs=30e3
    )


def test_dctcp_marks_and_echoes_each_packet(scenario_of) -> None:
    """A step threshold of 2 ms: the standing queue stays near it, as only DCTCP's exact echo allows."""
    queue = KernelQueue(discipline="codel", parameters={"ce_threshold": 2e-3, "ecn": 1, "target": 1.0, "interval": 1.0})
    options = {"capacity": "100Mbit", "buffer": "5MB", "rtt": "20ms", "duration": "10s"}
    dctcp = netctrl.simulate(scenario_of(queue, sender="dctcp", count=2, **options), "kernel").between(3.0).of("line")
    assert dctcp["utilization"] > 0.98
    assert 10e3 < dctcp["backlog"] < 60e3


def test_any_control_of_the_kernel_is_a_sender_by_its_name(scenario_of, results_of) -> None:
    others = ("bic", "cdg", "highspeed", "hybla", "illinois", "lp", "nv", "scalable", "veno", "westwood", "yeah")
    named = [KernelTcp(name=name) for name in others]
    flows = [Flow(id=each.name, path=("line",), rtt="20ms", count=1, sender=each) for each in named]
    result = netctrl.simulate(scenario_of(None, *flows), "kernel")
    assert all(result["goodput", each.name] > 0.0 for each in named)
    assert results_of(scenario_of(sender=KernelTcp(name="bbr"))) == results_of(scenario_of(sender="bbr"))
    with pytest.raises(NetctrlError, match=r"take the congestion control mine \(there are reno .*cubic.*\): No such"):
        netctrl.simulate(scenario_of(sender=KernelTcp(name="mine")), "kernel")


def read_pcap(content: bytes) -> np.ndarray:
    """Time [s], and length of each packet [byte], of a pcap file with nanoseconds; one with other headers fails."""
    magic, major, minor, _, _, snap, link = struct.unpack_from("=IHHiIII", content)
    assert (magic, major, minor, snap, link) == (0xA1B23C4D, 2, 4, 128, 1)
    rows, at = [], 24
    while at < len(content):
        seconds, rest, kept, length = struct.unpack_from("=IIII", content, at)
        assert kept == min(length, snap)
        assert content[at + 28 : at + 30] == b"\x08\x00"  # IPv4
        assert struct.unpack_from(">H", content, at + 32) == (length - 14,)
        rows.append((seconds + rest * 1e-9, length))
        at += 16 + kept
    assert at == len(content)
    return np.array(rows)


def test_what_a_link_transmits_is_captured(scenario_of, tmp_path) -> None:
    """All bytes of it, each packet's transmission after the one before."""
    scenario, folder = scenario_of(count=2), tmp_path / "new" / "folder"
    result = netctrl.simulate(scenario, "kernel", pcap=folder)
    assert [path.name for path in folder.iterdir()] == ["line.pcap"]
    time_s, length = read_pcap((folder / "line.pcap").read_bytes()).T
    assert length.sum() == pytest.approx(result.series["departed"][0].sum(), abs=2 * 1514)
    assert 0.0 < time_s[0] < time_s[-1] < 5.0
    gaps, taken = np.diff(time_s), length[:-1] * 8 / 10e6
    assert np.all(gaps > taken - 2e-6)
    assert np.median(gaps[length[:-1] == 1514]) == pytest.approx(1514 * 8 / 10e6, rel=1e-3)
    plain = netctrl.simulate(scenario, "kernel")
    assert plain["throughput", "line"] == pytest.approx(result["throughput", "line"], rel=1e-3)
    with pytest.raises(InvalidValue, match="only the kernel's links"):
        netctrl.simulate(scenario, "packet", pcap=folder)


def test_what_the_kernel_refuses_is_said_with_its_own_words(scenario_of) -> None:
    from netctrl.kernel.build import chosen_kernel

    if "NET_SCH_DUALPI2" not in chosen_kernel().absent:
        pytest.skip("this kernel has dualpi2")
    with pytest.raises(NetctrlError, match=r"the kernel refused to put dualpi2 on line: .*qdisc"):
        netctrl.simulate(scenario_of(KernelQueue(discipline="dualpi2")), "kernel")


def test_a_run_that_takes_too_long_is_ended(scenario_of, tmp_path) -> None:
    from netctrl.kernel.command import run_command

    with pytest.raises(NetctrlError, match=r"not done after 2 s of wall time: .*sleeps instead of polling"):
        run_command([sys.executable, "-c", "while True: pass"], tmp_path, wall_limit_s=2.0)


def test_memory_that_runs_out_is_said(tmp_path) -> None:
    from netctrl.kernel.command import run_command

    hog = "x = bytearray(300 << 20)"
    try:
        ended = run_command([sys.executable, "-c", hog], tmp_path, memory_bytes=128 << 20)
    except NetctrlError as error:
        assert "ran out of memory: a larger memory_bytes" in str(error)
    else:
        assert ended.status != 0


def test_a_program_sleeps_without_waiting_and_may_do_what_root_may(tmp_path) -> None:
    from netctrl.kernel.command import run_command

    code = "import os, socket, time; time.sleep(1e4); socket.if_nameindex(); print(os.geteuid()); raise SystemExit(7)"
    ended = run_command([sys.executable, "-c", code], tmp_path)
    assert ended.status == 7
    assert ended.stdout == "0\n"
    assert 1e4 < ended.virtual_s < 1e4 + 60.0


def test_nothing_is_written_but_the_folder_of_results(scenario_of, results_of, tmp_path) -> None:
    """As a user who may write nothing else; of the folders that anybody may write to, nothing has changed.

    The bytes are those of another user's run from another place.
    """
    from netctrl.kernel.boot import MEMORY_BYTES, boot_command, prepared
    from netctrl.kernel.build import Guest, build_guest, chosen_kernel

    if os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    kernel, guest = chosen_kernel(), build_guest()
    programs, folder = tmp_path / "programs", tmp_path / "results"
    programs.mkdir()
    folder.mkdir()
    for name, each in (("linux", kernel.program), *guest._asdict().items()):
        shutil.copy(each, programs / name)
    for place in (tmp_path, *list(tmp_path.parents)[:-1]):
        if place.stat().st_uid == 0 and not place.stat().st_mode & 1:
            place.chmod(place.stat().st_mode | 0o011)
    os.chown(folder, NOBODY, NOBODY)
    shared = [Path("/dev/shm"), Path("/tmp"), Path("/var/tmp")]
    inside = Guest(*(programs / name for name in Guest._fields))
    command, settings = boot_command(programs / "linux", inside, MEMORY_BYTES, seed=1, confined=True)
    with prepared(folder, _plan(scenario_of()), inside):
        made = subprocess.run(
            command,
            cwd=folder,
            user=NOBODY,
            group=NOBODY,
            extra_groups=[],
            env=settings | {"TMPDIR": "/dev/shm"},
            capture_output=True,
            timeout=60,
        )
    assert made.returncode == 0, made.stdout[-2000:]
    written = (folder / "results").read_bytes()
    assert written == results_of(scenario_of())
    kinds = [kind for kind, _ in read_results(written)]
    assert kinds[-1] == Answer.ENDED
    assert kinds.count(Answer.READING) == 50
    assert [path for each in shared for path in each.iterdir() if _owner(path) == NOBODY] == []


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:  # another program's, gone meanwhile
        return None


def _plan(scenario) -> PlanWriter:
    from netctrl.kernel.scenarios.planner import plan_scenario
    from netctrl.sim.fluid.traffic import draw_flows

    return plan_scenario(scenario, draw_flows(scenario, merged=False)).writer


def test_a_second_build_finds_the_first() -> None:
    from netctrl.kernel.build import build_guest, chosen_kernel

    assert build_guest() == build_guest()
    kernel = chosen_kernel()
    assert struct.unpack_from("4s", kernel.program.read_bytes()) == (b"\x7fELF",)
