"""Scenarios of data centres, and their results in whole nanoseconds."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from netctrl.laws.window.records import Scheme
from netctrl.scenario.fabric.topology import Topology
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Sizes


def data_centre(network: Topology, sender: Scheme, *flows: Flow, duration: float = 0.01, **fields: Any) -> Scenario:
    """Flows of this sender in a topology; `fields` may be the topology's own too."""
    own = {name: fields.pop(name) for name in network.__struct_fields__ if name in fields}
    network = msgspec.structs.replace(network, **own)
    given = {"name": "data centre"} | fields
    carried = tuple(msgspec.structs.replace(flow, sender=sender) for flow in flows)
    return Scenario(network=network, flows=carried, duration=duration, **given)


def poisson(distribution: Any = "WebSearch", load: float = 0.3) -> Flow:
    """Transfers of these sizes between all hosts."""
    return Flow(id="poisson", offers=Sizes(distribution=distribution, load=load))


def finish_ns(result: Result) -> np.ndarray:
    """When the last byte of each transfer came, shape (F,) [ns]; -1: not completed."""
    found = np.rint(1e9 * (result.transfers["start"] + result.transfers["duration"]))
    return np.where(np.isfinite(found), found, -1).astype(np.int64)


def nanoseconds(result: Result, table: str, column: str) -> np.ndarray:
    """A column of times [ns]."""
    return np.rint(1e9 * result.tables[table][column]).astype(np.int64)


def counted(result: Result) -> dict[str, int]:
    """Packets and bytes of the run."""
    return {name: int(column[0]) for name, column in result.tables["counts"].items()}


def empty_again(result: Result) -> int:
    """When acknowledgements tell for the first time that the queue is over [ns]."""
    time, queue = nanoseconds(result, "acknowledgements", "time"), result.tables["acknowledgements"]["queue"]
    return int(time[(queue == 0) & (time > time[queue > 0][0])][0])


def longest_queue(result: Result) -> float:
    """Of all switch ports [byte]."""
    of_switch = np.array([name.startswith("s") for name in result.links])
    return float(result.totals["backlog_most"][0, of_switch].max())
