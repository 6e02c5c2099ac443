"""Localized synthesis on a Dask cluster: two worker processes on this machine, over loopback."""

from __future__ import annotations

import importlib
import json
import socket
from pathlib import Path

import joblib
import numpy as np
import pytest
from distributed import Client, LocalCluster

from netctrl.cli.design import main
from netctrl.model.network import Demand, Link, Network
from netctrl.plants.information import information_pattern
from netctrl.plants.linearize import network_model
from netctrl.synthesis.localized.localized import LocalizedSynthesis, localized

TAU = 0.01
LOCAL = {"n_workers": 2, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
ROUTES = 70  # more regions that differ, and more sources, than one block takes


def routes() -> Network:
    """Routes of two links each, which share a third with the next one; no two links have one weight."""
    random = np.random.default_rng(0)
    pairs = [pair for i in range(ROUTES) for pair in ((f"a{i}", f"b{i}"), (f"b{i}", f"c{i // 2}"))]
    pairs += [(f"c{i}", f"d{i}") for i in range(ROUTES // 2)]
    links = tuple(
        Link(source=a, target=b, capacity="1Gbit", delay=TAU * (1 + i % 3), weight=random.uniform(0.5, 2.0) / TAU**2)
        for i, (a, b) in enumerate(pairs)
    )
    demands = tuple(
        Demand(id=str(i), source=f"a{i}", target=f"d{i // 2}", mean="1Mbit", std=1e5) for i in range(ROUTES)
    )
    return Network(links=links, demands=demands)


def synthesis(n_jobs: int) -> LocalizedSynthesis:
    network = routes()
    model = network_model(network, TAU)
    weight = np.array([link.weight for link in network.links]) * TAU**2
    information = information_pattern(network, TAU, model.links, "out-of-band")
    return localized(model, weight, information, horizon=16, n_jobs=n_jobs)


@pytest.mark.slow
def test_one_worker_two_and_a_cluster_find_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    alone, two = synthesis(1), synthesis(2)
    assert alone.distinct == len(alone.law.columns) > 2 * 64
    # This process can't solve anything now: what comes back was solved by the workers, which have modules of their own.
    monkeypatch.setattr(importlib.import_module("netctrl.synthesis.localized.localized"), "_solve", None)
    path = tmp_path / "routes.json"
    path.write_bytes(routes().to_json())
    command = ["hftrac", "--network", str(path), "--horizon", "16", "--json", "--dask"]
    with LocalCluster(**LOCAL, local_directory=str(tmp_path)) as cluster:
        with Client(cluster), joblib.parallel_config(backend="dask"):
            far = synthesis(2)
        assert main([*command, cluster.scheduler_address]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"]["cost"] == pytest.approx(alone.cost, rel=1e-10)
    for other in (two, far):
        assert (other.cost, other.bound) == pytest.approx((alone.cost, alone.bound), rel=1e-10)
        for mine, theirs in zip(alone.law.columns, other.law.columns, strict=True):
            np.testing.assert_array_equal(theirs.links, mine.links)
            np.testing.assert_allclose(theirs.u, mine.u, rtol=0.0, atol=1e-10)
            np.testing.assert_allclose(theirs.b, mine.b, rtol=0.0, atol=1e-10)


def test_a_scheduler_that_does_not_answer_is_named(capsys) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{closed.getsockname()[1]}"
    assert main(["hftrac", "--network", "tandem", "--mu", "1", "--dask", address]) == 2
    error = capsys.readouterr().err
    assert f"--dask: got '{address}', takes the address of a running Dask scheduler" in error
    assert error.count("\n") == 1
