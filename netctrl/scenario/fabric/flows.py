"""Groups of flows between hosts of a data centre: messages, Poisson arrivals, incasts."""

from __future__ import annotations

from typing import Any

from netctrl.errors import InvalidValue
from netctrl.laws.window.records import SCHEMES, Scheme
from netctrl.model.io.fields import (
    Duration,
    Size,
    duration,
    identifier,
    instant,
    number,
    optional,
    payload,
    read_fields,
    record,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.scenario.fabric.flow_sizes import checked_sizes

MAX_HOSTS = 16_384


def _hosts(field: str, value: Any) -> tuple[int, ...]:
    reader = whole(0, MAX_HOSTS - 1, "a host's number, or a list of them,")
    hosts = tuple(reader(field, each) for each in (value if isinstance(value, list | tuple | range) else (value,)))
    if not hosts:
        raise InvalidValue(field, value, "at least one host")
    return hosts


class _HostFlows(Record, frozen=True, kw_only=True, tag_field="kind"):
    """Fields of all groups."""

    id: str
    """Unique among the groups of flows."""
    sender: Scheme | None = None
    """Window law; null: the traffic's common law."""

    def __post_init__(self) -> None:
        read_fields(self, id=identifier, sender=optional(record(*SCHEMES)))


class MessageFlows(_HostFlows, frozen=True, kw_only=True, tag="message"):
    """One flow from each source to its target.

    Examples
    --------
    >>> MessageFlows(id="four", source=range(4), target=4, size="1MB").ends
    ((0, 4), (1, 4), (2, 4), (3, 4))
    """

    source: Any
    """Index of a host, or a list of them."""
    target: Any
    """Host that receives all flows, or a list with one host for each flow."""
    size: Size
    """Payload of each flow [byte]."""
    start: Duration = 0.0
    """When they start [s]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, source=_hosts, target=_hosts, size=payload, start=instant)
        sources, targets = len(self.source), len(self.target)
        if sources != targets and 1 not in (sources, targets):
            raise InvalidValue("target", self.target, f"one host, or {sources}, as many as sources")
        if any(source == target for source, target in self.ends):
            raise InvalidValue("target", self.target, "a host other than source")

    @property
    def ends(self) -> tuple[tuple[int, int], ...]:
        """(source, target) of each flow."""
        count = max(len(self.source), len(self.target))
        source, target = (each * count if len(each) == 1 else each for each in (self.source, self.target))
        return tuple(zip(source, target, strict=True))


class PoissonFlows(_HostFlows, frozen=True, kw_only=True, tag="poisson"):
    """Flows that every host starts at exponential intervals, to another host drawn uniformly.

    The mean interval is 8 (mean size)/(load · host rate) (section 5.4 of the MPCC thesis); load counts payload only.
    """

    sizes: Any = "WebSearch"
    """Distribution of sizes: WebSearch, FB_Hadoop, or points [size in bytes, cumulative %]."""
    load: float = 0.3
    """Load as a share of each host's link."""
    stop: Duration | None = None
    """Time of the last possible start [s]; null: the scenario's end."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, sizes=checked_sizes, stop=optional(duration))
        read_fields(self, load=number("a share above 0, below 1", above=0.0, at_most=1.0 - 1e-9))


class IncastFlows(_HostFlows, frozen=True, kw_only=True, tag="incast"):
    """Repeated incasts: several hosts send to one host at once; all are drawn uniformly."""

    senders: int = 8
    """Hosts that send at once."""
    size: Size = 300e3
    """Payload of each flow [byte]."""
    interval: Duration = 1e-3
    """Time between two incasts [s]."""
    start: Duration = 0.0
    """Time of the first incast [s]."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, senders=whole(1, MAX_HOSTS - 1), size=payload, interval=duration, start=instant)


HOST_GROUPS = (MessageFlows, PoissonFlows, IncastFlows)
HostGroup = MessageFlows | PoissonFlows | IncastFlows
"""Every kind of flows between hosts; in a file, `kind` selects it."""


def common_sender(scenario: Any) -> Any:
    """The window law that all groups share, their own or the scenario's.

    Raises
    ------
    InvalidValue
        A group without a law, or groups with different laws.
    """
    laws = {group.id: group.sender or scenario.sender for group in scenario.flows}
    first = next(iter(laws.values()))
    for name, law in laws.items():
        if law is None:
            raise InvalidValue("sender", None, f"a window law for all traffic, or one for flows.{name}")
        if law != first:
            raise InvalidValue(f"flows.{name}.sender", law, f"the law of the other flows, {first}")
    return first
