"""CONNET's links in the lab: a link's trace by changes of its sources' rates is the one by given rates."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest
from places import EXPERIMENTS


@pytest.fixture
def lab(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(EXPERIMENTS / "connet")
    return importlib.import_module("kernel")


@pytest.fixture
def short(lab: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A link of 11 Mbit/s with a thirtieth of a trace, and its levels."""
    monkeypatch.setattr(importlib.import_module("curve"), "SAMPLES", 20)
    return lab.link(np.random.default_rng([1, 3]), lab.GREATEST, lab.PERIOD_MBIT)


def test_changes_of_rates_give_the_trace_of_given_rates(lab: Any, short: Any) -> None:
    by_changes, by_rates = lab.recorded("packet", *short), importlib.import_module("curve").recorded(*short)
    np.testing.assert_allclose(by_changes.input_values, by_rates.input_values, rtol=1e-12)
    np.testing.assert_allclose(by_changes.output_values, by_rates.output_values, rtol=1e-9)


@pytest.mark.needs("lab")
def test_the_lab_records_the_packet_engines_trace(lab: Any, short: Any) -> None:
    packets, kernel = (lab.recorded(engine, *short) for engine in ("packet", "kernel"))
    np.testing.assert_allclose(kernel.output_values, packets.output_values, rtol=0.01)
