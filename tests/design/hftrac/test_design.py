"""HFTraC from a network to a Design: architectures, certificate, command line, picture."""

from __future__ import annotations

import json
import math
from pathlib import Path

import msgspec
import numpy as np
import pytest
from design_files import comes_back
from link_cases import COSTS, least_cost

import netctrl
from netctrl.cli.design import main
from netctrl.cli.export import main as export
from netctrl.cli.simulate import main as simulate
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.model.datasets import network_path
from netctrl.model.design.design import read_design
from netctrl.model.network import read_network
from netctrl.plants.linearize import network_model, network_state_space
from netctrl.synthesis.check import steady_covariance

INTERVAL = 0.01
WAYS = {
    "god": {"architecture": "god"},
    "centralized": {"architecture": "centralized", "information_delay": 1},
    "out-of-band": {"architecture": "coordinated", "horizon": "exact"},
    "in-band": {"architecture": "coordinated", "horizon": "exact", "communication": "in-band"},
    "myopic": {"architecture": "myopic"},
}
TOLERANCE = {"myopic": 1e-6}


@pytest.fixture
def merge() -> netctrl.Network:
    return read_network(network_path("merge"))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("name", "mu"), COSTS)
def test_reference_costs(name, mu, way) -> None:
    proof = netctrl.hftrac(read_network(network_path(name)), INTERVAL, mu=mu, **WAYS[way]).certificate
    assert proof.cost == pytest.approx(least_cost(name, mu, way), rel=TOLERANCE.get(way, 1e-8))
    assert proof.cost_rate + proof.cost_queue == pytest.approx(proof.cost, rel=1e-12)
    assert 0.0 <= proof.spectral_radius < 1.0


def test_the_gain_rows_of_the_merging_network(merge) -> None:
    design = netctrl.hftrac(merge, INTERVAL, mu=1.0, architecture="god")
    rows = [
        [0.57433716, -0.04369683, -0.018708053],
        [-0.04369683, 0.57433716, -0.018708053],
        [0.056942411, 0.056942411, 0.61513009],
    ]
    np.testing.assert_allclose(design.law.gain[:, -3:], rows, atol=1e-8)


def test_gods_cost_is_that_of_its_gain_by_the_steady_covariance(merge) -> None:
    design = netctrl.hftrac(merge, INTERVAL, mu=1.0, architecture="god")
    model = network_model(merge, INTERVAL)
    system, H = network_state_space(model)
    Q = np.diag([0.0] * model.first_backlog + [1.0] * 3)
    W = (H.toarray() * model.std**2) @ H.toarray().T
    K = design.law.gain
    cost = np.sum((Q + K.T @ K) * steady_covariance(system.A + system.B @ K, W))
    assert cost == pytest.approx(design.certificate.cost, rel=1e-12)


@pytest.mark.parametrize("name", ["tandem", "merge", "testbed"])
def test_a_finite_horizon_keeps_its_tolerance_and_says_how_far_it_is_from_the_exact_cost(name) -> None:
    network = read_network(network_path(name))
    for mu in (0.01, 0.1, 1.0, 10.0):
        proof = netctrl.hftrac(network, INTERVAL, mu=mu).certificate
        exact = netctrl.hftrac(network, INTERVAL, mu=mu, horizon="exact").certificate
        assert proof.excess_over_exact == pytest.approx(proof.cost / exact.cost - 1.0, abs=1e-12)
        assert -1e-12 < proof.excess_over_exact < 1e-6
        assert proof.bound == pytest.approx(exact.cost, rel=1e-12)


def test_the_four_architectures_side_by_side(merge) -> None:
    proof = netctrl.hftrac(merge, INTERVAL, mu=1.0, compare=True).certificate
    cost = {row.architecture: row.cost for row in proof.comparison}
    assert list(cost) == ["god", "centralized", "coordinated", "myopic"]
    assert cost["god"] <= cost["coordinated"] <= min(cost["centralized"], cost["myopic"])
    # d Σ mu sigma² = myopic − GOD, and Σ mu sigma² = 2·4² (Mbit/s)²
    samples = (cost["myopic"] - cost["god"]) / 32e12
    assert proof.break_even_delay_s == pytest.approx(INTERVAL * samples, rel=1e-12)


def test_a_central_controller_stands_where_the_farthest_link_is_nearest(merge) -> None:
    proof = netctrl.hftrac(merge, INTERVAL, mu=1.0, architecture="centralized").certificate
    assert (proof.controller, proof.information_delay) == ("S3", 2)  # one sample to each source and back


def test_weights_of_links_replace_mu(merge) -> None:
    links = tuple(msgspec.structs.replace(link, weight=1.0 / INTERVAL**2) for link in merge.links)
    weighted = msgspec.structs.replace(merge, links=links)
    assert netctrl.hftrac(weighted, INTERVAL).certificate.cost == pytest.approx(
        netctrl.hftrac(merge, INTERVAL, mu=1.0).certificate.cost, rel=1e-12
    )
    lacking = msgspec.structs.replace(merge, links=(*links[:2], merge.links[2]))
    with pytest.raises(InvalidValue, match=r"mu.*weight.*L3"):
        netctrl.hftrac(lacking, INTERVAL)


def test_rounded_delays_are_warned_of() -> None:
    proof = netctrl.hftrac(read_network(network_path("tandem")), 0.004, mu=1.0).certificate
    [warning] = proof.warnings
    assert "L1 from 0.01 s to 0.008 s" in warning


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"mu": 0.0}, "mu"),
        ({"mu": -1.0}, "mu"),
        ({"mu": math.nan}, "mu"),
        ({}, "mu"),
        ({"mu": 1.0, "architecture": "goad"}, "architecture"),
        ({"mu": 1.0, "communication": "telepathy"}, "communication"),
        ({"mu": 1.0, "information_delay": 1}, "information_delay"),
        ({"mu": 1.0, "architecture": "centralized", "information_delay": 0.5}, "information_delay"),
        ({"mu": 1.0, "horizon": "long"}, "horizon"),
        ({"mu": 1.0, "horizon": 0}, "horizon"),
        ({"mu": 1.0, "architecture": "myopic", "horizon": "exact"}, "horizon"),
        ({"mu": 1.0, "architecture": "myopic", "horizon": "truncated"}, "horizon"),
        ({"mu": 1.0, "reach": -1}, "reach"),
    ],
    ids=str,
)
def test_what_is_refused_is_named(arguments, named, merge) -> None:
    with pytest.raises(InvalidValue) as refusal:
        netctrl.hftrac(merge, INTERVAL, **arguments)
    assert refusal.value.argument == named


def test_a_horizon_that_is_too_short_is_no_design(merge) -> None:
    with pytest.raises(NoAdmissibleDesign, match="too short"):
        netctrl.hftrac(merge, INTERVAL, mu=1.0, horizon=3)


# --- Design files and the command line -------------------------------------------------------------------------------


@pytest.mark.parametrize("way", [*WAYS.values(), {}], ids=[*WAYS, "finite"])
def test_a_design_comes_back_from_its_file_whole(way, merge, tmp_path) -> None:
    design = netctrl.hftrac(merge, INTERVAL, mu=1.0, compare=True, **way)
    again = comes_back(design, tmp_path)
    assert (again.inputs, again.certificate) == (design.inputs, design.certificate)


def test_a_queue_does_not_take_it(merge, tmp_path, capsys) -> None:
    """A scenario of flows takes a Design for its own links, on packets and in ns-3."""
    path = tmp_path / "design.json"
    netctrl.hftrac(merge, INTERVAL, mu=1.0, architecture="god").save(path)
    assert simulate(["arc-staircase-bulk", "--design", str(path)]) == 2
    assert "a Design with a link L1" in capsys.readouterr().err
    assert export(["ns3", str(path), "--scenario", "arc-staircase-bulk", "-o", str(tmp_path / "p")]) == 2
    assert "a Design with a link L1" in capsys.readouterr().err


def test_json_is_one_object_with_the_certificate(capsys) -> None:
    assert main(["hftrac", "--network", "merge", "--mu", "1", "--compare", "--json"]) == 0
    said, told = capsys.readouterr()
    answer = json.loads(said)
    assert told == ""
    proof = answer["certificate"]
    assert proof["cost"] == pytest.approx(60.12308051e12, rel=1e-6)
    assert set(proof) >= {"cost_rate", "cost_queue", "spectral_radius", "horizon", "excess_over_exact", "gap_to_bound"}
    assert [row["architecture"] for row in proof["comparison"]] == ["god", "centralized", "coordinated", "myopic"]


@pytest.mark.parametrize("suffix", ["png", "svg"])
@pytest.mark.parametrize("way", [[], ["--horizon", "exact"], ["--architecture", "god"], ["--architecture", "myopic"]])
def test_design_and_picture_are_written(way, suffix, tmp_path, capsys) -> None:
    saved, picture = tmp_path / "design.json", tmp_path / f"network.{suffix}"
    requested = ["--network", "testbed", "--mu", "1", *way, "-o", str(saved), "--plot", str(picture)]
    assert main(["hftrac", *requested]) == 0
    said, told = capsys.readouterr()
    assert told == ""
    verdict, title = said.splitlines()[:2]
    assert verdict.startswith("Safe for the 5 links of testbed: yes")
    assert title.startswith("HFTraC, ")
    assert read_design(saved).method == "hftrac"
    assert picture.stat().st_size > 3000


@pytest.mark.parametrize(
    ("requested", "status", "said"),
    [
        (["--mu", "0"], 2, "--mu"),
        (["--mu", "-1"], 2, "--mu"),
        ([], 2, "--mu"),
        (["--mu", "1", "--interval", "10"], 2, "--interval"),
        (["--mu", "1", "--horizon", "soon"], 2, "--horizon"),
        (["--mu", "1", "--horizon", "3"], 3, "too short"),
        (["--mu", "1", "--information-delay", "1.5"], 2, "--information-delay"),
        (["--mu", "1", "--architecture", "goad"], 2, "--architecture: unknown 'goad'; did you mean 'god'?"),
        (["--mu", "1", "--capacity", "fast"], 2, "--capacity"),
        *[(["--mu", "1", "--jobs", jobs], 2, "--jobs: got") for jobs in ("0", "-2", "1.5", "many")],
    ],
    ids=str,
)
def test_wrong_use_is_one_line_and_nothing_is_written(requested, status, said, tmp_path, capsys) -> None:
    saved = tmp_path / "design.json"
    assert main(["hftrac", "--network", "merge", *requested, "-o", str(saved)]) == status
    out, told = capsys.readouterr()
    assert out == ""
    assert said in told
    assert told.count("\n") == 1
    assert not saved.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda file: file["demands"][0].update(split={"L1": 0.5, "L3": 1.0}), "sum to 1"),
        (lambda file: file["demands"][0].update(source="D", target="S1", split=None), "path"),
        (lambda file: file["edges"][0].update(colour="red"), "colour"),
        (lambda file: file.update(demands=[]), "demands"),
    ],
    ids=["split", "path", "key", "demands"],
)
def test_a_network_that_cannot_be_is_named(change, said, tmp_path, capsys) -> None:
    content = json.loads(Path(network_path("merge")).read_text())
    change(content)
    path = tmp_path / "network.json"
    path.write_text(json.dumps(content))
    assert main(["hftrac", "--network", str(path), "--mu", "1"]) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert said in told
    assert told.count("\n") == 1


# --- no verdict on nothing, and overload ------------------------------------------------------------------------------


def still(merge: netctrl.Network, std: float = 0.0) -> netctrl.Network:
    demands = tuple(msgspec.structs.replace(each, std=std) for each in merge.demands)
    return msgspec.structs.replace(merge, demands=demands)


def test_where_nothing_varies_a_deviation_is_asked_for(merge, tmp_path, capsys) -> None:
    """The option gives what the file could have given: 10 % of each mean, or the same rate to all."""
    (tmp_path / "still.json").write_bytes(still(merge).to_json())
    asked = ["hftrac", "--network", str(tmp_path / "still.json"), "--mu", "1"]
    assert main(asked) == 2
    out, said = capsys.readouterr()
    assert out == ""
    assert said.startswith("error: --std is missing: a share of each demand's mean, as in --std 10%")
    assert "Safe" not in said
    assert main([*asked, "--std", "2Mbit", "--json"]) == 0
    cost = json.loads(capsys.readouterr().out)["certificate"]["cost"]
    assert cost == pytest.approx(netctrl.hftrac(still(merge, 2e6), INTERVAL, mu=1.0).certificate.cost, rel=1e-12)
    shares = netctrl.hftrac(still(merge), INTERVAL, mu=1.0, std="10%").inputs.network.demands
    assert [each.std for each in shares] == pytest.approx([0.1 * each.mean for each in merge.demands], rel=1e-12)
    mixed = msgspec.structs.replace(still(merge), demands=(merge.demands[0], *still(merge).demands[1:]))
    assert netctrl.hftrac(mixed, INTERVAL, mu=1.0, std=1.0).inputs.network.demands[0] == merge.demands[0]
    for wrong in ("0%", "ten%", "-5%", "1e9%", 0.0, -1.0, "5"):
        with pytest.raises(InvalidValue, match="std: got"):
            netctrl.hftrac(merge, INTERVAL, mu=1.0, std=wrong)


def test_where_all_delays_round_to_zero_a_shorter_interval_is_asked_for(merge, capsys) -> None:
    assert {each.delay for each in merge.links} == {0.01}
    with pytest.raises(InvalidValue, match=r"interval: got .* below 20 ms: the longest delay is 10 ms"):
        netctrl.hftrac(merge, 0.02, mu=1.0)
    assert netctrl.hftrac(merge, 0.0199, mu=1.0).certificate.status == "admissible"
    assert main(["hftrac", "--network", "merge", "--mu", "1", "--interval", "1s"]) == 2
    assert capsys.readouterr().out == ""


def test_an_overload_is_designed_around_and_the_demands_are_named(tmp_path, capsys) -> None:
    """By hand: of 30 Mbit/s 20 come through; the first link still sends 30 of its 40."""
    link = {"buffer": "25kB", "delay": "10ms"}
    content = {
        "edges": [
            {"id": "L1", "source": "A", "target": "B", "capacity": "40Mbit", **link},
            {"id": "L2", "source": "B", "target": "C", "capacity": "20Mbit", **link},
        ],
        "demands": [{"source": "A", "target": "C", "mean": "30Mbit", "std": "2Mbit"}],
    }
    path, saved = tmp_path / "over.json", tmp_path / "design.json"
    path.write_text(json.dumps(content))
    asked = ["hftrac", "--network", str(path), "--mu", "1", "-o", str(saved)]
    assert main(asked) == 3
    out, said = capsys.readouterr()
    assert out.startswith("Safe for the 2 links of the network: no, they carry 0 of 1 demands in full")
    assert "demand A=>C can't be met: 20 Mbit/s of its 30 Mbit/s arrive, as L2 is overloaded" in said
    assert not saved.exists()
    assert main([*asked, "--accept", "stable"]) == 0
    capsys.readouterr()
    proof = read_design(saved).certificate
    assert proof.nominal_rate == {"L1": 30e6, "L2": 20e6}
    assert [(each.demand, each.delivered_bit_per_s, each.links) for each in proof.unmet] == [("A=>C", 20e6, ("L2",))]
    assert simulate(["--design", str(saved), "--runs", "1", "--json"]) == 0
    summary = {(each["quantity"], each["of"]): each for each in json.loads(capsys.readouterr().out)["summary"]}
    assert summary["loss", "network"]["mean"] == pytest.approx(1.0 - 20.0 / 30.0, rel=0.01)
    assert summary["utilization", "L2"]["mean"] == pytest.approx(1.0, rel=1e-9)


# --- truncated columns ------------------------------------------------------------------------------------------------


def test_above_the_size_of_the_exact_controller_columns_are_truncated(monkeypatch, tmp_path, capsys) -> None:
    """Cost and bound enclose the exact one; the law comes back from its file and runs."""
    exact = netctrl.hftrac("testbed", INTERVAL, mu=1.0).certificate
    assert exact.excess_over_exact == 0.0
    monkeypatch.setattr("netctrl.design.hftrac.architectures.EXACT_STATES", 0)
    for tolerance in (1e-2, 1e-5):
        design = netctrl.hftrac("testbed", INTERVAL, mu=1.0, tolerance=tolerance)
        proof = design.certificate
        assert proof.bound <= exact.cost <= proof.cost <= proof.bound * (1.0 + tolerance)
        assert proof.excess_over_exact == pytest.approx(proof.cost / proof.bound - 1.0, rel=1e-9)
        assert 0.0 < proof.spectral_radius < 1.0
        assert proof.messages > 0
        assert comes_back(design, tmp_path).certificate == proof
    path = tmp_path / "loose.json"
    design = ["hftrac", "--network", "testbed", "--mu", "1", "--tolerance", "1e-2", "-o", str(path)]
    assert main(design) == 0
    assert "above the least cost" not in capsys.readouterr().err
    assert simulate(["--design", str(path), "--runs", "1", "--json"]) == 0


@pytest.mark.parametrize("tolerance", ["0", "1", "-1", "nan", "much"])
def test_a_tolerance_that_is_none_is_refused(tolerance, capsys) -> None:
    assert main(["hftrac", "--network", "merge", "--mu", "1", "--tolerance", tolerance]) == 2
    assert "--tolerance: got" in capsys.readouterr().err


def test_an_excess_above_the_tolerance_is_told(monkeypatch) -> None:
    monkeypatch.setattr("netctrl.synthesis.localized.truncated._ROUNDS", 1)
    proof = netctrl.hftrac("testbed", INTERVAL, mu=1e-3, tolerance=1e-9, horizon="truncated").certificate
    [warning] = proof.warnings
    assert "above the least cost is what could be proved, not 1e-09 as asked" in warning
