"""qlog of results: the events of other people's schema, with the result's own numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.scenario.result_file import qlog


def run(engine: str, **fields) -> netctrl.Result:
    link = netctrl.Link(id="line", source="a", target="b", capacity=1e7, delay=0.01, buffer=5e4)
    flows = [netctrl.Flow(id=name, path=("line",), rtt=0.02, sender=name) for name in ("cubic", "bbr")]
    return netctrl.simulate(netctrl.Scenario(links=[link], flows=flows, duration=3.0, warmup=1.0, **fields), engine)


def test_each_group_is_a_trace_with_its_windows_in_bytes_and_round_trips_in_milliseconds():
    result = run("packet")
    written = json.loads(qlog(result))
    assert written["qlog_version"] == "0.3"
    assert [trace["title"] for trace in written["traces"]] == ["cubic", "bbr"]
    for trace in written["traces"]:
        events = trace["events"]
        assert {event["name"] for event in events} == {"recovery:metrics_updated"}
        rows = {round(event["time"] / 1e3, 9): event["data"] for event in events}
        for name, metric, unit in (("window", "congestion_window", 1.0), ("rtt", "smoothed_rtt", 1e3)):
            series = result.series[name, trace["title"]]
            seen = np.isfinite(series) & (series > 0.0)
            said = [rows[round(float(time), 9)][metric] for time in result.time_s[seen]]
            np.testing.assert_allclose(said, unit * series[seen], atol=1e-3)


def test_a_fluid_has_no_windows():
    link = netctrl.Link(id="line", source="a", target="b", capacity=1e7)
    flow = netctrl.Flow(id="many", path=("line",), rtt=0.02, count=9, sender="reno")
    fluid = netctrl.simulate(netctrl.Scenario(links=[link], flows=[flow], duration=2.0, warmup=0.5), "fluid")
    with pytest.raises(InvalidValue, match="a run of packets"):
        qlog(fluid)
