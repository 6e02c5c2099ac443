"""What flows offer: pages of the web, what programs write, transfers between hosts, streams of packets, demands."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from netctrl.core.errors import InvalidValue, checked_word
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    number,
    optional,
    payload,
    rate,
    rate_or_0,
    read_fields,
    record,
    size,
    whole,
)
from netctrl.model.io.record_file import Record
from netctrl.model.trace import rate_trace
from netctrl.scenario.fabric.flow_sizes import checked_sizes
from netctrl.scenario.network.traffic import SPREADS, GaussianTraffic, Spread

__all__ = [
    "BETWEEN_HOSTS", "DATAGRAMS", "MAX_HOSTS", "OFFERS", "Bursts", "Demand", "Incast", "Offers", "Sizes", "Stream",
    "Web", "Writes", "read_offers",
]  # fmt: skip

MAX_HOSTS = 16_384
SHORTEST_WRITE = 1e-6
"""Least time between two writes of a program [s]."""


class Web(Record, frozen=True, kw_only=True, tag_field="kind", tag="web"):
    """Sessions that load a page of a few objects, think, and load the next; each flow is a session.

    Source: ARC paper, Section IV (Pareto sizes of shape 1.2 and mean 5 kB, exponential think time of 7 s).

    Raises
    ------
    InvalidValue
        A value out of bounds, or a largest size below the mean.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Web
    >>> netctrl.Flow(offers=Web(think_time="2s"), rtt="50ms", count=20).offers.think_time
    2.0
    """

    objects_per_page: int = 2
    """Objects of a page, each with a size of its own."""
    mean_object: Size = 5e3
    """Mean size of an object [byte]."""
    pareto_shape: float = 1.2
    """Shape of the Pareto distribution of sizes, above 1."""
    max_object: Size = 10e6
    """Largest size of an object [byte]; sizes are truncated to it."""
    think_time: Duration = 7.0
    """Mean of an exponential distribution, from the end of a page to the next [s]."""

    def __post_init__(self) -> None:
        read_fields(self, mean_object=size, max_object=size, think_time=duration)
        shape = number("a shape above 1 (the mean must exist), to 100", above=1.0, at_most=100.0)
        read_fields(self, objects_per_page=whole(1, 1000), pareto_shape=shape)
        if self.max_object <= self.mean_object:
            raise InvalidValue("max_object", self.max_object, "a size above mean_object")

    @property
    def least_object(self) -> float:
        """Smallest size of an object [byte]: the scale of the Pareto distribution with this mean and shape."""
        return self.mean_object * (self.pareto_shape - 1.0) / self.pareto_shape


class Writes(Record, frozen=True, kw_only=True, tag_field="kind", tag="writes"):
    """What a program writes into a connection that stays open: so much, at once, each interval.

    Frames of a call, chunks of a film with pauses between them, or, with small ones, a constant rate. What the
    connection can't carry waits at the sender. Results have the time from a write to its last byte at the receiver.

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Writes
    >>> call = netctrl.Flow(offers=Writes(size="12.5kB", interval="33.3ms"), sender="cubic", rtt="40ms")
    >>> round(call.offers.rate)
    3003003
    """

    size: Size
    """Data of a write [byte]."""
    interval: Duration
    """Time from one to the next [s]; the first is at the flow's start."""

    def __post_init__(self) -> None:
        read_fields(self, size=payload, interval=duration)
        if self.interval < SHORTEST_WRITE:
            raise InvalidValue("interval", f"{self.interval:g} s", f"at least {SHORTEST_WRITE:g} s")

    @property
    def rate(self) -> float:
        """Mean rate, without headers [bit/s]."""
        return BITS_PER_BYTE * self.size / self.interval


class Stream(Record, frozen=True, kw_only=True, tag_field="kind", tag="stream"):
    """Whole packets at a constant rate, without acknowledgements; each flow has its own phase.

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Stream
    >>> Stream(rate="64kbit", spacing="constant").rate
    64000.0
    """

    rate: Rate
    """Rate of each flow, with headers [bit/s]."""
    spacing: Literal["constant", "poisson"] = "poisson"
    """Time between packets: constant, or exponential."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate)
        checked_word("spacing", self.spacing, ("constant", "poisson"))


class Bursts(Record, frozen=True, kw_only=True, tag_field="kind", tag="bursts"):
    """Regulators that release a burst of consecutive packets and then pause, without acknowledgements.

    Each begins at a random point of a pause. A control of kind track sets their rates. Source: CONNET paper.

    Raises
    ------
    InvalidValue
        A value out of bounds, or a mean rate above `access_rate`.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Bursts
    >>> Bursts(rate="1Mbit", burst=20).access_rate
    100000000.0
    """

    rate: Rate
    """Mean rate of each flow, with headers [bit/s]."""
    burst: int = 10
    """Packets of a burst."""
    pause_variation: float = 1.0
    """Standard deviation over mean of the pauses between bursts; 1: exponential pauses, 0: evenly spaced bursts."""
    access_rate: Rate = 1e8
    """Rate at which the packets of a burst follow each other [bit/s]."""

    def __post_init__(self) -> None:
        read_fields(self, rate=rate, access_rate=rate, burst=whole(1, 10_000, "a whole number of packets"))
        read_fields(self, pause_variation=number("a number from 0 to 1", at_least=0.0, at_most=1.0))
        if self.rate > self.access_rate:
            takes = f"at least rate, {format_quantity(self.rate, 'bit/s')}"
            raise InvalidValue("access_rate", format_quantity(self.access_rate, "bit/s"), takes)


class Demand(Record, frozen=True, kw_only=True, tag_field="kind", tag="demand"):
    """Whole packets at rates that change each interval, like a network's demands, without acknowledgements.

    Packets of an interval are evenly spaced; a remainder below one packet waits for the next one. Where all flows of a
    scenario are demands of its interval, the fluid and ns-3 run them too, and laws of link rates know of them.

    Raises
    ------
    InvalidValue
        A value out of bounds; neither `mean` nor `rates`, or both; rates that aren't numbers of at least 0.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Demand
    >>> Demand(rates=["1Mbit", "3Mbit"], interval="500ms").rates.rate_bit_per_s.tolist()
    [[1000000.0], [3000000.0]]
    """

    interval: Duration | None = None
    """Duration of each rate [s]; null: the interval of `rates`, if they have one, else the scenario's."""
    mean: Rate | None = None
    """Mean rate of each flow, with headers [bit/s]."""
    std: Rate = 0.0
    """Standard deviation of the rate, averaged over an interval [bit/s]."""
    spread: Spread = GaussianTraffic()
    """How rates are drawn; each flow draws its own."""
    rates: Annotated[Any, msgspec.Meta(extra={"quantity": "rate"})] = None
    """Rates to use instead of `mean`, from the flow's start on, repeated: (T,) for each flow, or (T, count) with a
    column per flow [bit/s]. An array, a pandas Series or DataFrame, or a `RateTrace`, to which all are converted; in a
    file the name of a table (`netctrl.read`) or a list of rates."""

    def __post_init__(self) -> None:
        read_fields(self, interval=optional(duration), mean=optional(rate), std=rate_or_0, spread=record(*SPREADS))
        if (self.mean is None) == (self.rates is None):
            got = "neither" if self.rates is None else "both"
            raise InvalidValue("mean", got, "either mean, around which rates are drawn, or rates")
        if self.rates is None:
            return
        if self.std > 0.0 or self.spread != GaussianTraffic():
            raise InvalidValue(
                "std" if self.std > 0.0 else "spread", "a value beside rates", "no value with rates, which aren't drawn"
            )
        rates = self.rates
        if isinstance(rates, list | tuple) and any(isinstance(each, str) for each in rates):
            rates = [rate_or_0(f"rates[{k}]", each) for k, each in enumerate(rates)]
        trace = rate_trace("rates", rates, self.interval, None)
        read_fields(self, rates=lambda *_: trace, interval=lambda *_: trace.interval_s)

    def lasts(self, interval_s: float) -> float:
        """Duration of each rate [s].

        Parameters
        ----------
        interval_s : float
            The scenario's interval, which counts where the demand has none.
        """
        return self.interval or interval_s


class Sizes(Record, frozen=True, kw_only=True, tag_field="kind", tag="sizes"):
    """Transfers of random sizes that every host of a data centre starts, each to another drawn uniformly.

    Intervals are exponential, with a mean of 8 (mean size)/(load · host rate), where load counts payload only (section
    5.4 of the MPCC thesis).

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Sizes
    >>> netctrl.Flow(offers=Sizes(distribution="FB_Hadoop", load=0.5), sender="hpcc").offers.load
    0.5
    """

    distribution: Any = "WebSearch"
    """Distribution of sizes: WebSearch, FB_Hadoop, or points [size in bytes, cumulative %]."""
    load: float = 0.3
    """Load as a share of each host's link."""

    def __post_init__(self) -> None:
        read_fields(self, distribution=checked_sizes)
        read_fields(self, load=number("a share above 0, below 1", above=0.0, at_most=1.0 - 1e-9))


class Incast(Record, frozen=True, kw_only=True, tag_field="kind", tag="incast"):
    """Repeated incasts: several hosts of a data centre send to one host at once; all are drawn uniformly.

    Raises
    ------
    InvalidValue
        A value out of bounds.

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.scenario.tcp_aqm.offers import Incast
    >>> netctrl.Flow(offers=Incast(senders=32, size="100kB"), sender="hpcc").offers.size
    100000.0
    """

    senders: int = 8
    """Hosts that send at once."""
    size: Size = 300e3
    """Payload of each transfer [byte]."""
    interval: Duration = 1e-3
    """Time between two incasts [s]; the first is at the flow's start."""

    def __post_init__(self) -> None:
        read_fields(self, senders=whole(1, MAX_HOSTS - 1), size=payload, interval=duration)


DATAGRAMS = (Stream, Bursts, Demand)
"""Offers of whole packets that nothing acknowledges."""
BETWEEN_HOSTS = (Sizes, Incast)
"""Offers of transfers between hosts of a data centre, which are drawn."""
OFFERS = (Web, Writes, *BETWEEN_HOSTS, *DATAGRAMS)
_WORDS = [str(kind.__struct_config__.tag) for kind in OFFERS]
if TYPE_CHECKING:
    Offers = Any
else:  # an amount of data in a file has its unit; one from Python or from a result is a number
    Offers = reduce(or_, OFFERS) | str | Annotated[float, msgspec.Meta(extra={"quantity": "size"})] | None


def read_offers(field: str, value: Any) -> Any:
    """None for endless data, a size [byte], or one of OFFERS, which may be a dict or "web"."""
    if value is None:
        return None
    if isinstance(value, dict | msgspec.Struct) or (isinstance(value, str) and value in _WORDS):
        return record(*OFFERS)(field, value)
    try:
        return payload(field, value)
    except InvalidValue as error:
        takes = f"{error.takes}, or a table whose `kind` is one of {', '.join(_WORDS)}"
        raise InvalidValue(field, value, takes) from None
