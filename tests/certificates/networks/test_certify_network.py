"""Certificates of networks from scenarios: one link, links apart, verdicts, files, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import netctrl
from netctrl.certificates.certify import certify
from netctrl.certificates.networks.certify import certify_network
from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.core.errors import FileError, InvalidValue, Status
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.disciplines import KernelQueue
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Stream


def line(number: int, capacity: float, queue: Any, **more: Any) -> Link:
    ends = {"source": f"n{number}", "target": f"n{number + 1}", "delay": "2ms", "buffer": "4MB"}
    return Link(id=f"l{number}", capacity=capacity, queue=queue, **(ends | more))


def flows(name: str, path: tuple[int, ...], count: int, rtt: str, **more: Any) -> Flow:
    return Flow(id=name, path=tuple(f"l{k}" for k in path), count=count, rtt=rtt, **more)


def scenario_of(links: list, groups: list, **more: Any) -> Scenario:
    return Scenario(name="lot", links=tuple(links), flows=tuple(groups), duration="10s", packet_size="1500B", **more)


ESTIMATES = {"implementation": "rfc", "dq_rate_estimator": True}
RED = RedQueue(min_threshold=30e3, max_threshold=90e3, max_probability=0.0625, weight=2.0**-6)
LINE = {"limit_bytes": 400_000, "min_bytes": 30_000, "max_bytes": 90_000, "burst": 55, "gentle": True}
LINE |= {"probability": 0.0625, "weight_log": 6}
SLOW = {"target_s": 0.05, "alpha": 0.0167, "beta": 0.5}
STEPS = KernelQueue(discipline="pie", parameters={"alpha": 4, "target": 0.02})


@pytest.mark.parametrize(
    ("sender", "queue", "law", "parameters", "count", "rtt"),
    [
        ("reno", Pi2Queue(), "pi2", {}, 20, 0.04),
        ("reno", Pi2Queue(alpha=0.05, target="20ms"), "pi2", {"alpha": 0.05, "target_s": 0.02}, 20, 0.04),
        ("reno", PieQueue(), "pie", ESTIMATES, 20, 0.04),
        ("reno", STEPS, "pie", {"alpha": 0.25, "target_s": 0.02}, 20, 0.04),
        ("reno", KernelQueue(discipline="dualpi2", parameters={"alpha": 0.1}), "dualpi2", {"alpha": 0.1}, 20, 0.04),
        ("reno", RED, "red", LINE, 20, 0.04),
        ("cubic", Pi2Queue(), "pi2", {}, 20, 0.04),
        ("cubic", Pi2Queue(), "pi2", {}, 4, 0.1),
        ("cubic", Pi2Queue(target="50ms", alpha=0.0167, beta=0.5), "pi2", SLOW, 8, 0.15),
        ("cubic", PieQueue(), "pie", ESTIMATES, 20, 0.04),
        ("cubic", KernelQueue(discipline="dualpi2"), "dualpi2", {}, 6, 0.12),
        ("cubic", RED, "red", LINE, 20, 0.04),
    ],
)
def test_one_link_has_the_certificate_of_one_queue(
    sender: str, queue: Any, law: str, parameters: dict, count: int, rtt: float
) -> None:
    sampled = law != "red"
    capacity = 50e6 if sampled else 20e6
    groups = [flows("g", (0,), count, f"{1e3 * rtt:g}ms", sender=sender)]
    found = certify_network(scenario_of([line(0, capacity, queue)], groups)).certificate
    where = {"rtt_s": rtt, "flows": float(count), "capacity_bit_per_s": capacity, "parameters": parameters}
    alone = certify(law, **where, senders=sender).certificate
    assert found.method == ("sampled" if sampled else "continuous")
    assert found.margins.stable is alone.sampled.stable
    assert found.margins.gain_margin_db == pytest.approx(alone.sampled.gain_margin_db, rel=1e-9)
    if sender == "reno":
        assert found.margins.stable
    elif sampled:
        creno = certify(law, **where, senders="creno").certificate
        assert abs(alone.sampled.gain_margin_db - creno.sampled.gain_margin_db) > 0.02
    if alone.sampled.stable:
        phase = pytest.approx(alone.sampled.phase_margin_deg, rel=1e-9 if sampled else 1e-7)
        assert found.margins.phase_margin_deg == phase
    if sampled:
        keeps = alone.predicted is None or alone.sampled.keeps()  # beside figures in ms a queue alone needs 3 dB
        assert found.status is (alone.status if keeps else Status.STABLE)
    if sampled and alone.sampled.stable:
        assert found.margins.disk_margin == pytest.approx(alone.sampled.disk_margin, rel=1e-4)
        assert found.margins.gain_margin_db_proved == pytest.approx(found.margins.gain_margin_db, abs=0.01)


def test_links_with_cross_flows_alone_have_the_worst_of_their_certificates() -> None:
    both = certify_network(
        scenario_of(
            [line(0, 50e6, Pi2Queue()), line(1, 50e6, Pi2Queue())],
            [flows("a", (0,), 20, "40ms"), flows("b", (1,), 20, "40ms")],
        )
    )
    one = certify("pi2", rtt_s=0.04, flows=20.0, capacity_bit_per_s=50e6).certificate.sampled
    margins = both.certificate.margins
    # Equal loops: every eigenvalue is there twice.
    assert margins.gain_margin_db == pytest.approx(one.gain_margin_db, rel=1e-9)
    assert [link.gain_margin_db for link in both.links] == pytest.approx([one.gain_margin_db] * 2, rel=1e-9)
    assert margins.gain_margin_db_any_phase == pytest.approx(one.gain_margin_db, abs=0.02)
    assert margins.disk_margin == pytest.approx(one.disk_margin, rel=1e-3)


def test_long_flows_bring_bottlenecks_closer_to_their_limit() -> None:
    links = [line(0, 50e6, Pi2Queue()), line(1, 50e6, Pi2Queue())]
    groups = [flows("long", (0, 1), 10, "40ms"), flows("a", (0,), 10, "40ms"), flows("b", (1,), 10, "40ms")]
    found = certify_network(scenario_of(links, groups))
    margins = found.certificate.margins
    assert found.certificate.status is Status.ADMISSIBLE
    for link in found.links:
        assert link.state == "marks"
        assert link.gain_margin_db > margins.gain_margin_db
    assert found.verdict == "lot with bottlenecks l0, l1: holds"
    assert sum(group.rate_bit_per_s * group.flows for group in found.flows[:2]) == pytest.approx(50e6)


def test_an_unstable_network_says_by_how_much_gains_must_fall() -> None:
    queue = Pi2Queue(alpha=1.0, beta=20.0)
    links = [line(0, 50e6, queue), line(1, 60e6, queue)]
    groups = [flows("long", (0, 1), 6, "80ms"), flows("a", (0,), 6, "80ms"), flows("b", (1,), 6, "80ms")]
    found = certify_network(scenario_of(links, groups)).certificate
    assert found.status is Status.UNSTABLE
    assert found.margins.unstable_poles > 0
    assert found.margins.gain_margin_db < 0.0
    for part, stable in ((0.99, True), (1.01, False)):
        factor = part * 10.0 ** (found.margins.gain_margin_db / 20.0)
        less = Pi2Queue(alpha=factor, beta=20.0 * factor)
        links = [line(0, 50e6, less), line(1, 60e6, less)]
        again = certify_network(scenario_of(links, groups)).certificate.margins
        assert again.stable is stable


def test_intervals_that_differ_are_called_an_approximation() -> None:
    links = [line(0, 50e6, Pi2Queue()), line(1, 50e6, Pi2Queue(update="32ms"))]
    groups = [flows("long", (0, 1), 10, "60ms"), flows("a", (0,), 10, "60ms"), flows("b", (1,), 10, "60ms")]
    found = certify_network(scenario_of(links, groups))
    same = certify_network(scenario_of([links[0], line(1, 50e6, Pi2Queue())], groups)).certificate.margins
    margins = found.certificate.margins
    assert found.certificate.method == "approximate"
    assert "approximately" in found.verdict
    assert margins.gain_margin_db_proved is None
    assert "% of the response" in found.certificate.warnings[0]
    assert margins.gain_margin_db == pytest.approx(same.gain_margin_db, abs=3.0)


def test_small_windows_and_outputs_beyond_a_law_have_no_equilibrium() -> None:
    few = scenario_of([line(0, 5e6, Pi2Queue())], [flows("g", (0,), 6, "10ms")])
    assert "windows of" in certify_network(few).certificate.warnings[0]
    queue = RedQueue(min_threshold=3e3, max_threshold=9e3, max_probability=0.1)
    steep = scenario_of([line(0, 5e6, queue)], [flows("g", (0,), 900, "10ms")])
    found = certify_network(steep)
    assert found.certificate.status is Status.INFEASIBLE
    assert found.certificate.margins is None
    assert found.verdict.endswith("no equilibrium")


def test_a_certificate_is_read_from_its_file(tmp_path: Path) -> None:
    found = certify_network(netctrl.read("parking-lot"))
    found.save(tmp_path / "found.json")
    assert netctrl.read(tmp_path / "found.json", kind=NetworkCertificate) == found
    text = (tmp_path / "found.json").read_text().replace('"load"', '"lod"')
    (tmp_path / "found.json").write_text(text)
    with pytest.raises(FileError, match="lod"):
        netctrl.read(tmp_path / "found.json")


LONG, HERE, THERE = flows("long", (0, 1), 9, "60ms"), flows("a", (0,), 9, "60ms"), flows("b", (1,), 9, "60ms")
TWO = [line(0, 50e6, Pi2Queue()), line(1, 60e6, Pi2Queue())]


@pytest.mark.parametrize(
    ("links", "groups", "more", "named"),
    [
        ([line(0, 50e6, ArcQueue(alpha=1e-5, epoch=0.5))], [HERE], {}, "links.l0.queue"),
        ([line(0, 50e6, DropTailQueue())], [HERE], {}, "flows.a.path"),
        ([TWO[0], line(1, 20e6, DropTailQueue())], [LONG, HERE], {}, "links.l1.queue"),
        ([line(0, 50e6, Pi2Queue(), loss=0.01)], [HERE], {}, "links.l0.loss"),
        ([line(0, 50e6, KernelQueue(discipline="cake"))], [HERE], {}, "links.l0.queue.discipline"),
        ([line(0, 50e6, KernelQueue(discipline="pie", parameters={"x": 1}))], [HERE], {}, "links.l0.queue.parameters"),
        ([line(0, 50e6, PiQueue(alpha=1e-5, beta=1e-5))], [HERE], {}, "links.l0.queue.beta"),
        (TWO, [LONG, HERE, flows("b", (1,), 9, "60ms", sender="vegas")], {}, "flows.b.sender"),
        (TWO, [LONG, HERE, flows("b", (1,), 9, "60ms", offers="1MB")], {}, "flows.b"),
        (TWO, [LONG, HERE, flows("b", (1,), 9, "60ms", stop="5s")], {}, "flows.b.stop"),
        (TWO, [LONG, HERE, Flow(id="u", path=("l0",), count=1, offers=Stream(rate=1e6))], {}, "flows.u"),
        (TWO, [Flow(id="a", path=("l0",), count=9, rtt=("10ms", "20ms"))], {}, "flows.a.rtt"),
        (TWO, [Flow(id="a", path=("l0",), ack_path=("l1",), count=9, rtt="20ms")], {}, "flows.a.ack_path"),
        (TWO, [LONG, HERE, THERE], {"changes": (Change(at="1s", link="l0", capacity=1e7),)}, "changes"),
        ([TWO[0], line(1, 50e6, Pi2Queue())], [LONG], {}, "links"),
    ],
)
def test_what_no_loop_describes_is_named(links: list, groups: list, more: dict, named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        certify_network(scenario_of(links, groups, **more))
    assert refused.value.argument == named


def test_other_networks_are_refused() -> None:
    with pytest.raises(InvalidValue, match="links"):
        certify_network(netctrl.read("mpcc-dumbbell"))


@pytest.mark.parametrize("queue", [DualPi2Queue(), PiQueue(alpha=2e-4, beta=1.9e-4), PieQueue()])
def test_laws_of_a_scenario_have_certificates(queue: Any) -> None:
    links = [line(0, 50e6, queue), line(1, 60e6, queue)]
    found = certify_network(scenario_of(links, [LONG, HERE, THERE]))
    assert found.certificate.margins is not None
    assert [link.law.name for link in found.links if link.law is not None] == [queue.__struct_config__.tag] * 2
