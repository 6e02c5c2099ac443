"""qlog of a result: what QUIC's and TCP's viewers of traces read, one trace for each group of flows."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue
from netctrl.scenario.result import Result

_METRICS = {"window": "congestion_window", "in_flight": "bytes_in_flight", "rtt": "smoothed_rtt"}
_MS = 1e3


def qlog(result: Result) -> bytes:
    """The first run's windows and data in flight [byte] and round trips [ms] as events `recovery:metrics_updated`, at
    each interval; means over the open connections of a group. Source: draft-ietf-quic-qlog-main-schema-07.

    Raises
    ------
    InvalidValue
        The result has no windows: only packets and the kernel lab have them.
    """
    if "window" not in result.series.values:
        raise InvalidValue("output", f"a {result.simulator} run as .qlog", "a run of packets, or of the kernel lab")
    traces = []
    for flow in result.flows:
        events: list[dict[str, Any]] = []
        columns = {
            metric: (_MS if name == "rtt" else 1.0) * np.atleast_2d(result.series[name, flow])[0]
            for name, metric in _METRICS.items()
            if name in result.series.values
        }
        for time, *row in zip(result.time_s, *columns.values(), strict=True):
            data = {metric: round(float(value), 3) for metric, value in zip(columns, row, strict=True) if value > 0.0}
            if data:
                events.append({"time": round(_MS * float(time), 6), "name": "recovery:metrics_updated", "data": data})
        fields = {"time_format": "relative", "reference_time": 0}
        traces.append({"title": flow, "vantage_point": {"type": "client"}, "common_fields": fields, "events": events})
    head = {"qlog_version": "0.3", "qlog_format": "JSON", "title": result.scenario.name, "traces": traces}
    return json.dumps(head, allow_nan=False).encode() + b"\n"
