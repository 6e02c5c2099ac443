"""Groups of flows whose rates change each interval: drawn, measured, or given as an array."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from netctrl.errors import InvalidValue
from netctrl.model.io.fields import Duration, Rate, duration, optional, rate, rate_or_0, read_fields, record
from netctrl.model.trace import rate_trace
from netctrl.scenario.network.traffic import SPREADS, GaussianTraffic, Spread
from netctrl.scenario.tcp_aqm.group import Datagrams

__all__ = ["DemandFlows"]


class DemandFlows(Datagrams, frozen=True, kw_only=True, tag="demand"):
    """Senders of whole packets at rates that change each interval, like a network's demands.

    Packets of an interval are evenly spaced; a remainder below one packet waits for the next one. Packet engine only.
    """

    interval: Duration | None = None
    """Duration of each rate [s]; null: the interval of `rates`, if they have one."""
    mean: Rate | None = None
    """Mean rate of each flow, with headers."""
    std: Rate = 0.0
    """Standard deviation of the rate, averaged over an interval."""
    spread: Spread = GaussianTraffic()
    """How rates are drawn; each flow draws its own."""
    rates: Annotated[Any, msgspec.Meta(extra={"quantity": "rate"})] = None
    """Rates to use instead of `mean`, from the flow's start on, repeated: (T,) for each flow, or (T, count) with a
    column per flow [bit/s]. An array, a pandas Series or DataFrame, or a `RateTrace`, to which all are converted; in a
    file the name of a table (`netctrl.read`) or a list of rates."""

    def __post_init__(self) -> None:
        self.read("count")
        read_fields(self, interval=optional(duration), mean=optional(rate), std=rate_or_0, spread=record(*SPREADS))
        if (self.mean is None) == (self.rates is None):
            got = "neither" if self.rates is None else "both"
            raise InvalidValue("mean", got, "either mean, around which rates are drawn, or rates")
        if self.rates is None:
            if self.interval is None:
                raise InvalidValue("interval", None, "the duration of each rate, as in 100ms")
            return
        if self.std > 0.0 or self.spread != GaussianTraffic():
            raise InvalidValue(
                "std" if self.std > 0.0 else "spread", "a value beside rates", "no value with rates, which aren't drawn"
            )
        rates = self.rates
        if isinstance(rates, list | tuple) and any(isinstance(each, str) for each in rates):
            rates = [rate_or_0(f"rates[{k}]", each) for k, each in enumerate(rates)]
        trace = rate_trace("rates", rates, self.interval, self.count)
        read_fields(self, rates=lambda *_: trace, interval=lambda *_: trace.interval_s)

    @property
    def interval_s(self) -> float:
        """Duration of each rate [s], from `interval` or `rates`."""
        return self.interval or 0.0
