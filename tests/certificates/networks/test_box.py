"""Boxes of networks: worst points, proofs, what isn't proved, files, pictures and reports."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.certificates.networks.box import looked_at, ranges_of
from netctrl.certificates.networks.certify import certify_network
from netctrl.certificates.networks.margins import eigenloci
from netctrl.certificates.networks.record import NetworkCertificate
from netctrl.certificates.networks.scenario import network_of
from netctrl.cli.certify import main
from netctrl.core.errors import InvalidValue, Status
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.plants.queue_networks.bounded import NetworkLoop
from netctrl.plants.queue_networks.equilibrium import network_equilibrium
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow


def lot(queue: object, sender: str = "reno", count: int = 10, links: int = 2) -> Scenario:
    names = [f"l{k}" for k in range(links)]
    more = {"delay": "2ms", "buffer": "4MB", "queue": queue}
    lines = [
        Link(id=name, source=f"n{k}", target=f"n{k + 1}", capacity=50e6 + 10e6 * k, **more)
        for k, name in enumerate(names)
    ]
    every = {"count": count, "sender": sender}
    groups = [Flow(id="long", path=tuple(names), rtt="50ms", **every)]
    groups += [Flow(id=f"c{k}", path=(name,), rtt="40ms", **every) for k, name in enumerate(names)]
    return Scenario(name="lot", links=tuple(lines), flows=tuple(groups), duration="10s", packet_size="1500B")


def gain(found: NetworkCertificate) -> float:
    assert found.certificate.margins.gain_margin_db is not None
    return found.certificate.margins.gain_margin_db


@pytest.mark.slow
@pytest.mark.parametrize("sender", ["reno", "cubic"])
def test_a_box_is_proved_and_its_points_keep_what_is_proved(sender: str) -> None:
    scenario = lot(Pi2Queue(), sender)
    found = certify_network(scenario, rtt_s={"long": (0.04, 0.06)})
    assert found.certificate.status is Status.ADMISSIBLE
    assert found.box.proved
    assert found.box.why_not == ""
    proved = found.box.gain_margin_db_proved
    assert 6.0 < proved <= gain(found) < proved + 0.6
    assert found.verdict.endswith("holds, proved at every point of the box")
    rng = np.random.default_rng(2)
    for _ in range(2):
        rtt = float(rng.uniform(0.04, 0.06))
        point = certify_network(scenario, rtt_s={"long": rtt})
        assert point.box is None
        assert gain(point) >= proved
        assert point.certificate.margins.phase_margin_deg >= found.box.phase_margin_deg - 0.1


@pytest.mark.slow
def test_the_worst_point_is_that_of_a_finer_grid() -> None:
    scenario = lot(Pi2Queue())
    found = certify_network(scenario, capacity_bit_per_s={"l1": (45e6, 70e6)})

    def loop_at(at: Mapping) -> tuple[str, NetworkLoop | None]:
        return "", NetworkLoop(network_equilibrium(network_of(scenario, at).network))

    every = [looked_at({("capacity", "l1"): float(C)}, loop_at).factor for C in np.geomspace(45e6, 70e6, 25)]
    assert gain(found) <= 20.0 * np.log10(min(every)) + 1e-3
    assert 45e6 < found.box.ranges[0].worst < 70e6
    assert found.links[1].capacity_bit_per_s == found.box.ranges[0].worst


@pytest.mark.slow
def test_one_link_s_box_is_that_of_one_queue() -> None:
    single = lot(Pi2Queue(), links=1).replace(flows=lot(Pi2Queue(), links=1).flows[:1])
    both = certify_network(single, rtt_s={"long": (0.03, 0.05)}, flows={"long": (8.0, 12.0)})
    queue = netctrl.certify("pi2", rtt_s=(0.03, 0.05), flows=(8.0, 12.0), capacity_bit_per_s=50e6).certificate.sampled
    assert both.box.proved
    assert gain(both) == pytest.approx(queue.gain_margin_db, abs=1e-3)
    assert 6.0 < both.box.gain_margin_db_proved <= queue.gain_margin_db


@pytest.mark.slow
def test_unstable_points_and_points_without_an_equilibrium_are_found() -> None:
    fast = lot(Pi2Queue(alpha=0.6, beta=12.0))
    found = certify_network(fast, rtt_s={"long": (0.03, 0.3)})
    assert found.certificate.status is Status.UNSTABLE
    assert not found.box.proved
    assert found.box.gain_margin_db_proved is None
    assert found.box.why_not == "it has unstable points"
    few = certify_network(lot(Pi2Queue()), flows={"c0": (10.0, 400.0)})
    assert few.certificate.status is Status.INFEASIBLE
    assert few.box.ranges[0].worst > 100.0
    assert "output would be above 1" in few.certificate.warnings[0]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("queue", "ranges", "said"),
    [
        (
            RedQueue(min_threshold=30e3, max_threshold=1e6, max_probability=0.1, weight=0.5),
            {"rtt_s": {"long": (0.04, 0.06)}},
            "share one interval",
        ),
        (PiQueue(alpha=2e-5, beta=1.9e-5), {"capacity_bit_per_s": {"l0": (45e6, 50e6)}}, "depend on its link's rate"),
    ],
)
def test_what_has_no_bounds_is_looked_at_and_said(queue: object, ranges: dict, said: str) -> None:
    found = certify_network(lot(queue), **ranges)
    assert not found.box.proved
    assert said in found.box.why_not
    assert "not proved between them" in found.verdict
    assert said in found.certificate.warnings[-1]


@pytest.mark.parametrize(
    ("ranges", "named"),
    [
        ({"rtt_s": {"lng": 0.1}}, "rtt_s"),
        ({"capacity_bit_per_s": {"long": 1e6}}, "capacity_bit_per_s"),
        ({"flows": {"long": (5.0, 3.0)}}, "flows.long"),
        ({"flows": {"long": (5.0, 6.0, 7.0)}}, "flows.long"),
        ({"rtt_s": {"long": 1e-3}}, "flows.long.rtt"),
    ],
)
def test_ranges_that_aren_t_any_are_named(ranges: dict, named: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        certify_network(lot(Pi2Queue()), **ranges)
    assert refused.value.argument == named


def test_more_than_six_ranges_are_refused() -> None:
    scenario = lot(Pi2Queue(), links=3)
    with pytest.raises(InvalidValue, match="at most 6"):
        ranges_of(
            scenario,
            {
                "rtt": dict.fromkeys(("long", "c0", "c1", "c2"), (0.05, 0.06)),
                "flows": dict.fromkeys(("long", "c0", "c1", "c2"), (9.0, 10.0)),
            },
        )


@pytest.mark.slow
def test_eigenvalues_of_a_certificate_cross_where_its_margin_says() -> None:
    scenario = lot(Pi2Queue())
    found = certify_network(scenario, rtt_s={"long": (0.04, 0.06)})
    loci = eigenloci(scenario, found)
    assert loci.curves.shape == (len(loci.rad_per_s), 2)
    assert -1.0 / min(each.real for each in loci.crossings) == pytest.approx(10.0 ** (gain(found) / 20.0), rel=1e-9)
    with pytest.raises(InvalidValue, match="equilibrium"):
        eigenloci(scenario, certify_network(scenario, flows={"long": 900.0}))


@pytest.mark.slow
def test_the_command_line_reads_ranges_and_writes_file_picture_and_report(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    given = ["network", "parking-lot", "--rtt", "long=35ms:45ms,cross-first=20ms", "--N", "cross-second=12"]
    files = ["-o", "found.json", "--plot", "found.png", "--report", "found.html"]
    assert main([*given, *files]) == 0
    text = capsys.readouterr().out
    assert "rtt of long: 35 ms to 45 ms" in text
    assert "flows of cross-second: 12, " not in text
    assert "rtt of cross-first: 20 ms" in text
    found = netctrl.read("found.json", kind=NetworkCertificate)
    assert found.box.ranges[0].high == 0.045
    assert Path("found.png").read_bytes().startswith(b"\x89PNG")
    page = Path("found.html").read_text()
    assert "proved at every point" in page
    assert "<svg" in page or "<img" in page


@pytest.mark.slow
def test_six_decibels_end_where_the_reach_says() -> None:
    scenario = lot(Pi2Queue(alpha=0.2, beta=4.0))
    found = certify_network(scenario, reach=True)
    longer, fewer = found.reach.rtt_factor, found.reach.flows_divisor
    for factor, kept in ((0.99, True), (1.02, False)):
        rtt = {group.id: group.rtt[0] * longer * factor for group in scenario.flows}
        flows = {group.id: group.count / (fewer * factor) for group in scenario.flows}
        assert (gain(certify_network(scenario, rtt_s=rtt)) >= 6.0) is kept
        assert (gain(certify_network(scenario, flows=flows)) >= 6.0) is kept
    assert "times as long" in dict(found.rows)["keeps 6 dB"]
    fast = certify_network(lot(Pi2Queue(alpha=0.6, beta=12.0)), rtt_s={"long": 0.3}, reach=True)
    assert fast.reach.rtt_factor is None


@pytest.mark.parametrize("text", ["long", "lng=5ms", "long=5ms:4ms", "long=5ms,long=6ms", "long=x"])
def test_the_command_line_names_the_option_it_refuses(text: str, capsys) -> None:
    assert main(["network", "parking-lot", "--rtt", text]) == 2
    near = "error: --rtt: unknown 'lng'; did you mean 'long'?"
    assert capsys.readouterr().err.startswith(near if text == "lng=5ms" else "error: --rtt: got")
