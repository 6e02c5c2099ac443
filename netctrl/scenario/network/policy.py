"""Policies that set the rates of a network's links, and the messages between controllers: HFTraC and its peers."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.core.register import LINK_LAWS
from netctrl.model.design.hftrac import ARCHITECTURES, Architecture
from netctrl.model.io.fields import (
    Size,
    Span,
    backlog,
    flag,
    number,
    one_of,
    optional,
    read_fields,
    record,
    span,
    texts,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.model.law import LinkRateLaw
from netctrl.model.network import Network

_MAX_SAMPLES = 100_000


class Messages(Record, frozen=True, kw_only=True):
    """Messages between controllers. By default none is late or lost, and all controllers act at once.

    Missing data is estimated: rates as nominal, backlogs as last received. A link that a central controller doesn't
    reach sends at its nominal rate. Source: HFTraC paper, Section V-B.
    """

    loss: float = 0.0
    """Share of the messages that is lost."""
    jitter: Span = (0.0, 0.0)
    """Additional delay of a message beyond what the law allows for [s]; drawn uniformly for each."""
    asynchronous: bool = False
    """Whether each link acts at its own moment within the interval, drawn in each run."""

    def __post_init__(self) -> None:
        read_fields(self, loss=number("a share from 0 to 1", at_least=0.0, at_most=1.0), jitter=span, asynchronous=flag)

    @property
    def ideal(self) -> bool:
        """Whether no message is lost or late and all links act at once."""
        return self.loss == 0.0 and self.jitter[1] == 0.0 and not self.asynchronous


class _Policy(Record, frozen=True, kw_only=True, tag_field="kind"):
    pass


class Fifo(_Policy, frozen=True, kw_only=True, tag="fifo"):
    """Every link sends at its capacity while packets wait."""


class Backpressure(_Policy, frozen=True, kw_only=True, tag="backpressure"):
    """A link sends at its capacity while its backlog exceeds its share of the next links' backlogs.

    On fixed routes: while b_l > Σ_k c_kl b_k, with the backlogs of the next links one propagation delay ago. Source:
    Tassiulas and Ephremides 1992 (reference [57] of the HFTraC paper), without the choice of the next hop.
    """


class _Paced(_Policy, frozen=True, kw_only=True):
    links: tuple[str, ...] = ()
    """Ids of the paced links; the others are FIFO. Empty: all links."""


class StaticPacing(_Paced, frozen=True, kw_only=True, tag="static"):
    """Static smoothing: each link sends at most `factor` times its nominal rate, and never above its capacity."""

    factor: float = 1.0
    """Greatest rate over the nominal rate."""

    def __post_init__(self) -> None:
        read_fields(
            self, links=texts, factor=number("a factor above 0, to 1e6, on nominal rates", above=0.0, at_most=1e6)
        )


def static_rates(scenario: Any) -> dict[str, float]:
    """Rates of the links of flows that send at a fixed factor of their capacities, by id [bit/s]."""
    policy = scenario.control
    if not isinstance(policy, StaticPacing):
        return {}
    return {
        link.id: policy.factor * link.capacity for link in scenario.links if not policy.links or link.id in policy.links
    }


class CreditPolicy(_Paced, frozen=True, kw_only=True, tag="credit"):
    """A link sends until a bit costs more in the next buffers than in its own; nothing to tune, for all loads.

    A buffer's price is its mean fill, as forecast for the time when the bit is there from the last backlog heard and
    what is on its way; see `netctrl.laws.link_rate.credit`.
    """

    messages: Messages = Messages()
    """How links hear of the next ones."""

    def __post_init__(self) -> None:
        read_fields(self, links=texts, messages=record(Messages))


class Controlled(_Paced, frozen=True, kw_only=True):
    """A policy whose controllers set the rates of links, once in each interval, by a law of the scenario's network."""

    rate_scale: float = 1.0
    """Rates are controlled around this multiple of the nominal ones."""
    backlog_setpoint: Size = 0.0
    """Backlog at each link around which backlogs are controlled, and with which they begin [byte]."""
    messages: Messages = Messages()
    """How controllers hear of each other."""

    def __post_init__(self) -> None:
        takes = "a factor above 0, to 1e6, on nominal rates"
        read_fields(self, messages=record(Messages))
        read_fields(self, links=texts, rate_scale=number(takes, above=0.0, at_most=1e6), backlog_setpoint=backlog)


class HftracPolicy(Controlled, frozen=True, kw_only=True, tag="hftrac"):
    """HFTraC designed for the scenario's graph and interval by `netctrl.hftrac`, with these arguments."""

    architecture: Architecture
    """Who knows what, and decides for whom."""
    mu: float | None = None
    """lambda tau²; null: from the links' weights."""
    information_delay: int | None = None
    """Round trip to a central controller [sample]; null: to the node from which it is shortest."""
    communication: Literal["out-of-band", "in-band"] = "out-of-band"
    """Whether messages have a network of their own, or follow the data."""
    horizon: int | str = "auto"
    """Length of the response [sample], "auto" or "exact"."""
    reach: int | None = None
    """Links that learn of a disturbance later than this take no part [sample]; null: all do."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, architecture=one_of(*ARCHITECTURES), communication=one_of("out-of-band", "in-band"))
        read_fields(self, mu=optional(number("a weight above 0 (lambda·interval²)", above=0.0, at_most=1e12)))
        samples = optional(whole(0, _MAX_SAMPLES, "a whole number of samples"))
        read_fields(self, information_delay=samples, reach=samples, horizon=_horizon)


class DesignPolicy(Controlled, frozen=True, kw_only=True, tag="design"):
    """Law of a Design file: of HFTraC, made for the same network and interval, or of MPC, made for one of the links."""

    file: str
    """The Design's file; in a scenario file, beside it."""
    announced: tuple[str, ...] = ()
    """Ids of streams, bursts and demands whose rates an MPC law with preview knows ahead; empty: all over its link."""

    def __post_init__(self) -> None:
        super().__post_init__()
        read_fields(self, announced=texts)
        if not isinstance(self.file, str) or not self.file or "\0" in self.file:
            raise InvalidValue("file", self.file, "the name of a Design file")


class LinkLaw(NamedTuple):
    """A policy of another package: its record in files, and its law for a network."""

    record: type[Controlled]
    law: Callable[[Any, Network, float], LinkRateLaw]
    """Function of (record, network, interval [s]) that returns the law."""

    @property
    def name(self) -> str:
        """As in files."""
        return str(self.record.__struct_config__.tag)


_OTHERS = tuple(LINK_LAWS[name].record for name in LINK_LAWS.usable())
POLICIES = (Fifo, StaticPacing, Backpressure, CreditPolicy, HftracPolicy, DesignPolicy, *_OTHERS)
if TYPE_CHECKING:
    Policy = Fifo | StaticPacing | Backpressure | CreditPolicy | Controlled
else:
    Policy = reduce(or_, POLICIES)
"""Every kind of policy; in a file, `kind` selects it."""


def messages_of(policy: Policy | None) -> Messages:
    """Messages between a policy's controllers; ideal for policies without controllers."""
    return getattr(policy, "messages", Messages())


def _horizon(field: str, value: Any) -> int | str:
    if value in ("auto", "exact"):
        return value
    return whole(1, _MAX_SAMPLES, "auto, exact, or a whole number of samples")(field, value)
