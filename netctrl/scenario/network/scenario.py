"""A network under fluctuating demands, and how its links' rates are set: what HFTraC's simulations run."""

from __future__ import annotations

import os
from collections.abc import Callable
from math import isclose
from pathlib import Path
from typing import Any, Literal

import msgspec

from netctrl.errors import FileError, InvalidValue, checked_word
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.aqm.red import RedQueue
from netctrl.model.io.fields import (
    Duration,
    Label,
    Span,
    duration,
    flag,
    instant,
    label,
    number,
    optional,
    read_fields,
    record,
    records,
    span,
    whole,
)
from netctrl.model.io.files import beside
from netctrl.model.io.old_names import renewed
from netctrl.model.io.toml import read_toml
from netctrl.model.io.validation_errors import explained, shorten, shown
from netctrl.model.io.written_units import check_units
from netctrl.model.network import Network, read_network
from netctrl.scenario.network.policy import POLICIES, Fifo, Policy
from netctrl.scenario.network.traffic import TRAFFIC, DemandTraffic, GaussianTraffic

__all__ = [
    "Messages",
    "NetworkScenario",
    "TcpDemand",
    "content_error",
    "network_scenario",
    "read_network_scenario",
    "scenario_content",
    "scenario_from_content",
]

_MAX_STEPS = 1e9
_KEYS = "keys of the scenario"


class Messages(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How controllers hear of each other. By default on time, all of it, and all act at once.

    What isn't heard is assumed: rates are nominal, backlogs as they last were, and a link that a central controller
    doesn't reach sends at its nominal rate. Source: HFTraC paper, Section V-B.
    """

    loss: float = 0.0
    """Share of the messages that is lost."""
    jitter: Span = (0.0, 0.0)
    """How much longer a message takes than the law allows for [s]; drawn uniformly for each."""
    asynchronous: bool = False
    """Each link acts at a moment of its own within the interval, which each run draws."""

    def __post_init__(self) -> None:
        read_fields(self, loss=number("a share from 0 to 1", at_least=0.0, at_most=1.0), jitter=span, asynchronous=flag)

    @property
    def ideal(self) -> bool:
        """Whether nothing is lost, late or out of step."""
        return self.loss == 0.0 and self.jitter[1] == 0.0 and not self.asynchronous


class TcpDemand(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """TCP in place of what a demand sends: flows that always have data, over the demand's ways.

    The demand's mean is then what controllers believe; `std` and `traffic` don't count. UDP beside it is a demand of
    its own. Segments fill the packets of ns-3's run.
    """

    demand: Label
    """Id of a demand of the network."""
    flows: int = 1
    variant: Literal["cubic", "newreno", "vegas"] = "cubic"
    start: Span = (0.0, 0.0)
    """Of each flow, drawn uniformly."""
    ecn: bool = False

    def __post_init__(self) -> None:
        read_fields(self, demand=label, flows=whole(1, 10_000, "a whole number of flows"), start=span, ecn=flag)
        checked_word("variant", self.variant, TCP_VARIANTS)


TCP_VARIANTS = ("cubic", "newreno", "vegas")
LINK_QUEUES = (DropTailQueue, RedQueue, PiQueue, PieQueue, CodelQueue)
LinkQueue = DropTailQueue | RedQueue | PiQueue | PieQueue | CodelQueue


class NetworkScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is simulated. Times in seconds, rates in bit/s, sizes in bytes; text with a unit is read when it is built.

    Raises
    ------
    InvalidValue
        A value out of bounds, a network without demands, a paced link that isn't there.
    """

    name: str
    network: Network
    interval: Duration
    """tau [s]: demands change and rates are set so often; delays are rounded to it."""
    duration: Duration
    policy: Policy = Fifo()
    traffic: DemandTraffic = GaussianTraffic()
    warmup: Duration = 0.0
    """Left out of all figures [s]."""
    utilization: float | None = None
    """Of the busiest link: all demands' means are scaled to it, their deviations stay; null: the network's own."""
    seed: int = 1
    messages: Messages = Messages()
    tcp: tuple[TcpDemand, ...] = ()
    """Demands that are TCP, one record each; they run on packets, here or in ns-3."""
    queue: LinkQueue = DropTailQueue()
    """What manages the buffer of every link; others than `droptail` run on packets."""

    def __post_init__(self) -> None:
        read_fields(self, messages=record(Messages))
        read_fields(self, network=record(Network), interval=duration, duration=duration, warmup=instant)
        read_fields(self, policy=record(*POLICIES), traffic=record(*TRAFFIC), seed=whole(0, 2**32 - 1))
        read_fields(self, utilization=optional(number("a share above 0, to 1", above=0.0, at_most=1.0)))
        if not isinstance(self.name, str) or not 0 < len(self.name) <= 200 or not self.name.isprintable():
            raise InvalidValue("name", self.name, "printable text of 1 to 200 characters")
        if not self.network.demands:
            raise InvalidValue("network", "no demands", 'one demand or more: "demands": [{"source", "target", "mean"}]')
        steps = self.duration / self.interval
        if not 1.0 <= round(steps) <= _MAX_STEPS or not isclose(steps, round(steps), rel_tol=1e-6):
            takes = f"a whole number of intervals of {self.interval:g} s, from 1 to {_MAX_STEPS:g}"
            raise InvalidValue("duration", self.duration, takes)
        if round(self.warmup / self.interval) >= self.steps:
            raise InvalidValue(
                "warmup", self.warmup, f"a time shorter than duration ({self.duration:g} s) by an interval or more"
            )
        read_fields(self, tcp=records(TcpDemand), queue=record(*LINK_QUEUES))
        demands = [demand.id for demand in self.network.demands]
        carried = [each.demand for each in self.tcp]
        for each in self.tcp:
            if each.demand not in demands or carried.count(each.demand) > 1:
                takes = f"ids of demands, each once; there are {shorten(', '.join(demands), 200)}"
                raise InvalidValue("tcp.demand", each.demand, takes)
        known = [link.id for link in self.network.links]
        for name in getattr(self.policy, "links", ()):
            if name not in known:
                raise InvalidValue("policy.links", name, f"ids of links; there are {shorten(', '.join(known), 200)}")

    @property
    def steps(self) -> int:
        """Sampling intervals in the whole run."""
        return round(self.duration / self.interval)

    @property
    def warmup_steps(self) -> int:
        """Sampling intervals that are left out of all figures."""
        return round(self.warmup / self.interval)


def read_network_scenario(path: str | os.PathLike[str], network_path: Callable[[str], Path] = Path) -> NetworkScenario:
    """Read a network scenario from a TOML file, strictly.

    Parameters
    ----------
    path : path
        Its `network` is a table, a file beside it, or a name.
    network_path : callable
        Where the network of a name is (`netctrl.datasets.network_path`).

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown, missing or unusable key, which the message names.
    """
    return network_scenario(path, read_toml(path), network_path)


def network_scenario(
    path: str | os.PathLike[str], content: dict[str, Any], network_path: Callable[[str], Path]
) -> NetworkScenario:
    """The scenario that a TOML file holds; FileError as `read_network_scenario`."""
    try:
        content = renewed(content, NetworkScenario)
        check_units(content, NetworkScenario)  # before a network is read: JSON fixes its units
        return scenario_from_content(scenario_content(content, path, network_path))
    except InvalidValue as error:
        raise content_error(path, error) from None


def content_error(path: str | os.PathLike[str], error: InvalidValue) -> FileError:
    """What `scenario_from_content` finds wrong, of a file."""
    before, found, _ = error.argument.partition(_KEYS)
    if found:  # a whole sentence about a key
        return FileError(path, f"{before}{error.got}")
    return FileError(path, f"{error.argument}: got {shown(error.got)}, takes {error.takes}")


def scenario_content(
    content: dict[str, Any], path: str | os.PathLike[str], network_path: Callable[[str], Path]
) -> dict[str, Any]:
    """A scenario's fields, or places in it, with networks read, and with the files that they name beside `path`.

    Raises
    ------
    FileError, InvalidValue
        As `read_network_scenario`.
    """
    return {place: _read_place(place, value, path, network_path) for place, value in content.items()}


def _read_place(place: str, value: Any, path: str | os.PathLike[str], network_path: Callable[[str], Path]) -> Any:
    if place == "network" and isinstance(value, str):
        network = beside(path, value)
        try:
            return msgspec.to_builtins(read_network(network if network.is_file() else network_path(value)))
        except InvalidValue as error:
            raise InvalidValue(place, value, error.takes) from None
    if place in ("policy.file", "traffic.file") and isinstance(value, str) and value:
        return str(beside(path, value))
    if place in ("policy", "traffic") and isinstance(value, dict):
        return {key: _read_place(f"{place}.{key}", each, path, network_path) for key, each in value.items()}
    return value


def scenario_from_content(content: dict[str, Any]) -> NetworkScenario:
    """The scenario in plain dicts and lists; InvalidValue names the key."""
    try:
        return msgspec.convert(content, NetworkScenario)
    except msgspec.ValidationError as error:
        if isinstance(error.__cause__, InvalidValue):
            cause = error.__cause__
            place, _, _ = explained(error, content, NetworkScenario).partition(": got ")
            raise InvalidValue(place, cause.got, cause.takes) from None
        raise InvalidValue(_KEYS, explained(error, content, NetworkScenario), "those of NetworkScenario") from None
