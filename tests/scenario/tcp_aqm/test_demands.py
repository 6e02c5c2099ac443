"""Groups of demands as files and Python have them: arrays, tables, traces, and what is refused."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.engines.engine import supports
from netctrl.model.trace import RateTrace
from netctrl.scenario.files import scenario_from
from netctrl.scenario.network.traffic import LongRangeTraffic, TraceTraffic
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Demand

RATES = np.array([1e6, 0.0, 4e6, 8e6])
FILE = """schema = "netctrl.scenario/3"
name = "demands"
duration = "2s"

[[links]]
id = "link"
source = "a"
target = "b"
capacity = "10Mbit"

[[flows]]
id = "d"
path = ["link"]
[flows.offers]
kind = "demand"
"""


def demand(**given) -> Flow:
    own = {name: given.pop(name) for name in Flow.__struct_fields__ if name in given}
    return Flow(**{"id": "d", "path": ("link",)} | own, offers=Demand(**given))


def read(tmp_path, more: str) -> Scenario:
    path = tmp_path / "scenario.toml"
    path.write_text(FILE + more)
    return read_scenario_file(path)


DATES = pd.date_range("2026-01-01", periods=4, freq="100ms")


@pytest.mark.parametrize(
    ("rates", "interval"),
    [
        (RATES, "100ms"),
        (RATES[:, None], 0.1),
        (RATES.tolist(), 0.1),
        (["1Mbit", "0", "4Mbit", "8Mbit"], 0.1),
        (pd.Series(RATES), 0.1),
        (pd.Series(RATES, index=DATES), None),
        (pd.Series(RATES, index=DATES - DATES[0]), None),
        (pd.DataFrame({"x": RATES}), 0.1),
        (pd.DataFrame({"time_s": np.arange(4) / 10, "x_bit_per_s": RATES}), None),
        (pd.DataFrame({"x": RATES}, index=pd.Index(np.arange(4) / 10, name="time_s")), None),
        (RateTrace(0.1, ("x",), RATES[:, None]), None),
        (RateTrace(0.05, ("x",), np.repeat(RATES, 2)[:, None]), 0.1),
    ],
)
def test_whatever_has_rates_is_traffic(rates, interval):
    group = demand(rates=rates, interval=interval).offers
    assert isinstance(group.rates, RateTrace)
    assert group.interval == group.lasts(9.0) == group.rates.interval_s == pytest.approx(0.1)
    assert group.rates.rate_bit_per_s.tolist() == RATES[:, None].tolist()


def test_each_flow_may_have_a_column():
    table = pd.DataFrame({"a": RATES, "b": 2 * RATES})
    assert demand(rates=table, interval=0.1, count=2).offers.rates.names == ("a", "b")
    assert demand(rates=table["b"], interval=0.1, count=2).offers.rates.rate_bit_per_s.shape == (4, 1)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "mean: got 'neither', takes either mean"),
        ({"mean": 1e6, "interval": 0.1, "rates": RATES}, "mean: got 'both', takes either mean"),
        ({"rates": RATES}, "interval: got None, takes the duration of each rate, as in 100ms: these"),
        ({"rates": RATES[None], "interval": 0.1}, "rates: got (1, 4), takes rates of shape (T,): a row per interval"),
        ({"rates": np.ones((2, 9)), "interval": 0.1, "count": 2}, "for 2 flows: a row per interval; transpose it"),
        ({"rates": np.ones((9, 3)), "interval": 0.1, "count": 2}, "rates: got (9, 3), takes rates of shape (T,), or"),
        ({"rates": np.ones((2, 3, 4)), "interval": 0.1}, "rates: got (2, 3, 4), takes an array of shape (T,)"),
        ({"rates": [], "interval": 0.1}, "T at least 1"),
        ({"rates": [1e6, -1.0], "interval": 0.1}, "rates, row 2, column '0': got -1.0, takes a number from 0"),
        ({"rates": [1e6, np.nan], "interval": 0.1}, "rates, row 2, column '0': got nan"),
        ({"rates": pd.DataFrame({"x": ["1", "u"]}), "interval": 0.1}, "rates, row 2, column 'x': got 'u', takes a"),
        ({"rates": ["1Mbit", "x"], "interval": 0.1}, "rates[1]: got 'x', takes 0, or a rate"),
        ({"rates": "trace.csv", "interval": 0.1}, "rates: got 'trace.csv', takes an array of rates"),
        ({"rates": pd.Series(RATES, index=DATES), "interval": 0.07}, "interval: got 0.07, takes a whole multiple"),
        ({"rates": RATES, "interval": 0.1, "std": 1e6}, "std: got 'a value beside rates', takes no value"),
        ({"rates": RATES, "interval": 0.1, "spread": LongRangeTraffic()}, "spread: got 'a value beside rates', takes"),
        ({"mean": 1e6, "interval": 0.1, "count": 0}, "count: got 0"),
        ({"mean": 1e6, "interval": -0.1}, "interval: got -0.1, takes a time above 0"),
    ],
)  # fmt: skip
def test_what_is_refused(given, said):
    with pytest.raises(InvalidValue, match=re.escape(said)):
        demand(**given)


def test_files_name_tables_and_traces_beside_them(tmp_path):
    (tmp_path / "rates.csv").write_text("time_s,x\n0,1e6\n0.05,3e6\n0.1,0\n0.15,0\n")
    group = read(tmp_path, 'rates = "rates.csv"\n').flows[0].offers
    assert (group.interval, group.rates.rate_bit_per_s[:, 0].tolist()) == (0.05, [1e6, 3e6, 0.0, 0.0])
    assert read(tmp_path, 'rates = "rates.csv"\ninterval = "100ms"\n').flows[0].offers.rates.rate_bit_per_s[0, 0] == 2e6
    spread = 'mean = "2Mbit"\ninterval = "50ms"\nspread = {kind = "trace", file = "rates.csv"}\n'
    assert read(tmp_path, spread).flows[0].offers.spread == TraceTraffic(file=str(tmp_path / "rates.csv"))
    listed = read(tmp_path, 'rates = ["1Mbit", "0bit"]\ninterval = "1s"\n').flows[0].offers
    assert listed.rates.rate_bit_per_s[:, 0].tolist() == [1e6, 0.0]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('rates = "none.csv"\n', "none.csv"),
        ('rates = "rates.csv"\ninterval = "70ms"\n', "whole multiple of the trace's interval"),
        ('rates = [1, 2]\ninterval = "1s"\n', "flows[0].offers.rates[0]: got 1, takes a rate with its unit"),
        ('mean = "1Mbit"\nspread = "gaussian"\ninterval = "1s"\n', "flows[0].offers.spread"),
        ('mean = "1Mbit"\ninterval = "3s"\n', "flows.d.offers.interval: got 3.0, takes 2e-07 s to the duration (2 s)"),
    ],
)
def test_files_that_are_refused(more, said, tmp_path):
    (tmp_path / "rates.csv").write_text("time_s,x\n0,1e6\n0.05,3e6\n")
    with pytest.raises(FileError, match=re.escape(said)):
        read(tmp_path, more)


def test_a_scenario_comes_back_from_what_a_result_keeps(tmp_path):
    found = netctrl.simulate(read(tmp_path, 'rates = ["1Mbit", "0bit"]\ninterval = "1s"\n'))
    assert found.simulator == "packet"
    found.save(tmp_path / "result.npz")
    again = netctrl.read(tmp_path / "result.npz").scenario
    assert again.flows[0].offers.rates.rate_bit_per_s.tolist() == [[1e6], [0.0]]
    assert (again.flows[0].offers.interval, again.flows[0].offers.rates.names) == (1.0, ("0",))


@pytest.mark.parametrize("kind", ["stream", "bursts", "demand"])
def test_other_engines_name_what_they_lack(kind):
    offers = {"kind": kind} | ({"mean": 1e6, "interval": 0.1} if kind == "demand" else {"rate": 1e6})
    group = {"id": "x", "path": ["link"], "offers": offers, "count": 2}
    link = {"id": "link", "source": "a", "target": "b", "capacity": 1e7}
    scenario = scenario_from({"name": "x", "links": [link], "flows": [group], "duration": 1.0})
    found = supports(scenario)
    lack = f"{kind} flows (flows.x)"
    assert [found[name] for name in ("fluid", "packet", "ns3")] == [lack, None, lack if kind == "demand" else None]
    with pytest.raises(InvalidValue, match=re.escape(f"fluid, which has no {lack}', takes packet")):
        netctrl.simulate(scenario, "fluid")
