"""An access link with premium and regulated traffic, packet by packet: what CONNET's simulations run."""

from __future__ import annotations

import os
from math import isclose
from typing import Any, Literal

import msgspec

from netctrl.errors import InvalidValue, checked_word
from netctrl.model.io.fields import (
    Duration,
    Rate,
    Size,
    duration,
    instant,
    label,
    number,
    rate,
    read_fields,
    record,
    records,
    size,
    whole,
)
from netctrl.model.io.toml import read_toml, read_toml_record, toml_record
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "DISCIPLINES",
    "AccessLinkScenario",
    "CrossTraffic",
    "RegulatedSource",
    "RegulatorFailure",
    "TcpSenders",
    "access_link",
    "read_access_link_scenario",
]

DISCIPLINES = ("fifo", "wfq", "cbq")
_MAX_PERIODS = 1e7
_MAX_FLOWS = 1000
_SHARE = "a share above 0, to 1"
_PART = "a share above 0, below 1"


def _discipline(field: str, value: object) -> str:
    return checked_word(field, value, DISCIPLINES)


class RegulatedSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A host with non-premium traffic behind a regulator."""

    flows: int = 2
    """They have equal parts of the source's rate, and bursts of their own."""
    burst: int = 10
    """Packets that a flow releases at once, unless the controller says otherwise."""
    share: float = 1.0 / 3.0
    """Of the regulated rate."""
    offered: Rate = 1e8
    """What the source would send [bit/s]; the regulator lets no more through."""

    def __post_init__(self) -> None:
        read_fields(self, flows=whole(1, _MAX_FLOWS), burst=whole(1, 10_000), offered=rate)
        read_fields(self, share=number(_SHARE, above=0.0, at_most=1.0))


class RegulatorFailure(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """From `start` to `stop` a source sends at `rate`, whatever the controller says."""

    source: int
    """Its place in `sources`, from 0."""
    start: Duration
    stop: Duration
    rate: Rate

    def __post_init__(self) -> None:
        read_fields(self, source=whole(0, _MAX_FLOWS), start=instant, stop=instant, rate=rate)
        if self.stop <= self.start:
            raise InvalidValue("stop", self.stop, f"a time after start ({self.start:g} s)")


class CrossTraffic(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A flow that nobody regulates: it enters at one hop and leaves after it."""

    hop: int
    """From 0."""
    rate: Rate
    burst: int = 10

    def __post_init__(self) -> None:
        read_fields(self, hop=whole(0, 99), rate=rate, burst=whole(1, 10_000))


class TcpSenders(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Flows with congestion windows, behind token buckets with a queue."""

    rtt: Duration = 2e-3
    """Without any queue and transmission [s]."""
    regulator_limit: int = 50
    """Packets that may wait in a regulator."""
    timeout: Duration = 0.2
    """Without an acknowledgement [s]."""

    def __post_init__(self) -> None:
        read_fields(self, rtt=duration, regulator_limit=whole(1, 100_000), timeout=duration)
        if self.timeout <= self.rtt:
            raise InvalidValue("timeout", self.timeout, f"a time above rtt ({self.rtt:g} s)")


_THREE = (RegulatedSource(), RegulatedSource(), RegulatedSource())


class AccessLinkScenario(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What is simulated. Times in seconds, rates in bit/s, sizes in bytes; text with a unit is read when it is built.

    Raises
    ------
    InvalidValue
        A value out of bounds, shares that aren't 1 together, a source or a hop that isn't there.
    """

    name: str = "access link"
    capacity: Rate = 1e8
    """Of each hop."""
    hops: int = 1
    limit: int = 100
    """Packets in a node, the one being sent included; with wfq and cbq in each queue."""
    discipline: Literal["fifo", "wfq", "cbq"] = "fifo"
    """wfq: a queue for each flow, equal weights. cbq: one for premium traffic, one for all other, by `premium_share`.
    Both are self-clocked fair queueing."""
    premium_share: float = 0.02
    """Premium traffic's part of the link with cbq."""
    premium_rate: Rate = 1e6
    """Evenly spaced, from a phase that the seed draws."""
    premium_size: Size = 1000.0
    size: Size = 1000.0
    """Of all other packets."""
    sources: tuple[RegulatedSource, ...] = _THREE
    senders: TcpSenders | None = None
    """null: UDP, which sends what its regulator lets through."""
    pause_variation: float = 1.0
    """Of the pauses between bursts: deviation over mean; 1: exponential pauses, 0: evenly spaced bursts."""
    access_rate: Rate = 1e8
    """At which a burst's packets follow each other."""
    base_delay: Duration = 3.6e-4
    """Added to each premium packet's delay [s]: propagation, hosts. 0.36 ms is fitted to the CONNET paper's figures."""
    cross: tuple[CrossTraffic, ...] = ()
    failures: tuple[RegulatorFailure, ...] = ()
    interval: Duration = 1.0
    """Ts [s]: measurements are sampled and the rate is set so often."""
    duration: Duration = 100.0
    seed: int = 1

    def __post_init__(self) -> None:
        read_fields(self, name=label, capacity=rate, hops=whole(1, 100), limit=whole(1, 1_000_000), base_delay=instant)
        read_fields(self, discipline=_discipline, premium_share=number(_PART, above=0.0, at_most=1.0 - 1e-9))
        read_fields(
            self, premium_rate=rate, premium_size=size, size=size, sources=records(RegulatedSource), access_rate=rate
        )
        read_fields(self, pause_variation=number("a number from 0 to 1", at_least=0.0, at_most=1.0))
        read_fields(self, cross=records(CrossTraffic), failures=records(RegulatorFailure), seed=whole(0, 2**32 - 1))
        read_fields(self, interval=duration, duration=duration)
        if self.senders is not None:
            read_fields(self, senders=record(TcpSenders))
        self._check_traffic()
        self._check_places()
        periods = self.duration / self.interval
        if not 1.0 <= round(periods) <= _MAX_PERIODS or not isclose(periods, round(periods), rel_tol=1e-6):
            takes = f"a whole number of intervals of {self.interval:g} s, from 1 to {_MAX_PERIODS:g}"
            raise InvalidValue("duration", self.duration, takes)

    def _check_traffic(self) -> None:
        if not self.sources or sum(source.flows for source in self.sources) > _MAX_FLOWS:
            raise InvalidValue(
                "sources", len(self.sources), f"one source or more, of at most {_MAX_FLOWS} flows in all"
            )
        total = sum(source.share for source in self.sources)
        if not isclose(total, 1.0, rel_tol=1e-6):
            raise InvalidValue("sources", f"shares of {total:g} together", "shares that add up to 1")
        for place, source in enumerate(self.sources):
            self._check_rate(f"sources[{place}].offered", source.offered, source.flows)
        for place, flow in enumerate(self.cross):
            self._check_rate(f"cross[{place}].rate", flow.rate, 1)
        if self.premium_rate > self.capacity:
            raise InvalidValue("premium_rate", self.premium_rate, f"at most the capacity, {self.capacity:g} bit/s")

    def _check_rate(self, name: str, value: float, flows: int) -> None:
        most = flows * self.access_rate
        if value > most:
            takes = (
                f"at most what {flows} flows with an access_rate of {self.access_rate:g} bit/s carry, {most:g} bit/s"
            )
            raise InvalidValue(name, value, takes)

    def _check_places(self) -> None:
        for place, flow in enumerate(self.cross):
            if flow.hop >= self.hops:
                raise InvalidValue(f"cross[{place}].hop", flow.hop, f"a hop from 0 to {self.hops - 1}")
        until: dict[int, float] = {}
        for place, failure in sorted(enumerate(self.failures), key=lambda each: each[1].start):
            if failure.source >= len(self.sources):
                takes = f"a source from 0 to {len(self.sources) - 1}"
                raise InvalidValue(f"failures[{place}].source", failure.source, takes)
            self._check_rate(f"failures[{place}].rate", failure.rate, self.sources[failure.source].flows)
            if failure.start < until.get(failure.source, 0.0):
                raise InvalidValue(f"failures[{place}].start", failure.start, "one failure of a source at a time")
            until[failure.source] = failure.stop
        if self.senders is not None and (self.cross or self.failures or self.discipline != "fifo"):
            raise InvalidValue("senders", "TcpSenders", "discipline fifo, no cross traffic and no failures")

    @property
    def periods(self) -> int:
        """Sampling intervals in the whole run."""
        return round(self.duration / self.interval)

    @property
    def flows(self) -> int:
        """Regulated flows of all sources."""
        return sum(source.flows for source in self.sources)

    @property
    def service_s(self) -> float:
        """Time on the wire of a packet that isn't premium [s]."""
        return self.size * BITS_PER_BYTE / self.capacity


def read_access_link_scenario(path: str | os.PathLike[str]) -> AccessLinkScenario:
    """Read an access link from a TOML file, strictly; its keys are the fields of `AccessLinkScenario`.

    Raises
    ------
    FileError
        It can't be read, isn't TOML, or has an unknown or unusable key, which the message names.
    """
    return read_toml_record(path, AccessLinkScenario)


def access_link(path: str | os.PathLike[str] | None, interval_s: float, seed: int | None) -> AccessLinkScenario:
    """What a law of this interval is tried on: a file's link, or the default one for 100 intervals; another seed."""
    changed: dict[str, Any] = {} if seed is None else {"seed": seed}
    if path is None:
        return AccessLinkScenario(interval=interval_s, duration=100.0 * interval_s, **changed)
    return toml_record(path, read_toml(path) | changed, AccessLinkScenario)
