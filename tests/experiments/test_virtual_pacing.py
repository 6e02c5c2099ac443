"""The pacing study in virtual time: what is made of a run, and a short form of it."""

from __future__ import annotations

import importlib

import numpy as np
import pandas as pd
import pytest
from places import EXPERIMENTS

from netctrl.linux.pacing.tcp import TcpInfo, TcpRun


@pytest.fixture
def study(monkeypatch):
    monkeypatch.syspath_prepend(EXPERIMENTS)
    return importlib.import_module("linux.virtual_pacing")


def transfer(seconds: float, rates: np.ndarray) -> TcpRun:
    """A look each 10 ms; RTTs of 20 and 30 ms in turns."""
    times = 100.0 + np.arange(0.0, seconds, 0.01)
    arrived = np.concatenate([[0.0], np.cumsum(rates[: len(times) - 1] * 0.01 / 8)])
    usual = dict.fromkeys(TcpInfo._fields, 0)
    infos = [
        TcpInfo(**(usual | {"bytes_acked": round(b), "rtt": 20_000 + 10_000 * (k % 2), "min_rtt": 19_000}))
        for k, b in enumerate(arrived)
    ]
    return TcpRun(times, tuple(infos), 0)


def test_what_is_measured_of_a_transfer(study) -> None:
    rates = np.where(np.arange(2000) % 20 < 10, 60e6, 40e6)  # 100 ms each
    found = study.of_transfer(transfer(10.0, rates), 2.0)
    assert found["mbit"] == pytest.approx(50.0, rel=5e-3)
    assert found["mbit_std"] == pytest.approx(10.0, rel=5e-2)
    assert found["rtt_ms"] == pytest.approx(25.0, rel=1e-3)
    assert (found["rtt_p99_ms"], found["rtt_least_ms"]) == (30.0, 19.0)


def test_what_probes_tell_of_the_queue(study) -> None:
    sent = 100.0 + np.arange(0.0, 12.0, 0.005)
    delay = 0.001 + np.where(sent < 102.0, 0.05, 0.004 * (sent >= 105.0))
    found = study.of_probes(transfer(10.0, np.full(1000, 50e6)), sent, delay, 2.0)
    assert found["queue_ms"] == pytest.approx(4.0 * 5 / 8, rel=5e-3)
    assert found["queue_p99_ms"] == pytest.approx(4.0)


def test_ours_is_compared_with_the_peer_repeat_by_repeat(study) -> None:
    rows = [
        {"path": path, "sender": name, "repeat": repeat, "rtt_ms": rtt * repeat, "mbit": 90.0, "queue_ms": rtt}
        for repeat in (1, 2)
        for path in study.PATHS
        for name, rtt in ((study.OURS, 21.0), (study.PEER, 42.0))
    ]
    found = study.ratios(pd.DataFrame(rows), study.ALONE)
    assert found == {"rtt_ms": (0.5, 0.0), "mbit": (1.0, 0.0), "queue_ms": (0.5, 0.0)}


@pytest.mark.needs("lab")
@pytest.mark.parametrize("name", ["BBR", "own rate, R = 200"])
def test_a_short_form_runs(study, name) -> None:
    found = study.called("linux.virtual_pacing:inside", "fifo", study.BUNCHES, name, 1.5, 0.5, seed=1)
    assert 0.0 < found["mbit"] < 100.0
    assert found["rtt_least_ms"] >= 1e3 * study.DELAY
    assert found["queue_ms"] >= 0.0
    assert set(found) >= {"mbit_std", "rtt_p99_ms", "queue_p99_ms", "dropped"}
