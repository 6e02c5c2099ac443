"""How the rates of a network's links are set: HFTraC and its peers, as data."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from netctrl.errors import InvalidValue
from netctrl.model.design.hftrac import ARCHITECTURES, Architecture
from netctrl.model.io.fields import Size, backlog, number, one_of, optional, read_fields, texts, whole

__all__ = ["POLICIES", "Backpressure", "DesignPolicy", "Fifo", "HftracPolicy", "Policy", "StaticPacing"]

_MAX_SAMPLES = 100_000


class _Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="kind"):
    pass


class Fifo(_Policy, frozen=True, kw_only=True, tag="fifo"):
    """Every link sends at its capacity while something waits."""


class Backpressure(_Policy, frozen=True, kw_only=True, tag="backpressure"):
    """A link sends, at its capacity, while more waits at it than its share of what waits next downstream.

    On fixed routes: while b_l > Σ_k c_kl b_k, with the backlogs of the next links as they were one propagation delay
    ago. Source: Tassiulas and Ephremides 1992 (reference [57] of the HFTraC paper), without the choice of the next hop.
    """


class _Paced(_Policy, frozen=True, kw_only=True):
    links: tuple[str, ...] = ()
    """Ids of the links that are paced, the others being FIFO; empty: all."""


class StaticPacing(_Paced, frozen=True, kw_only=True, tag="static"):
    """Static smoothing: each link sends at most `factor` times its nominal rate, and never above its capacity."""

    factor: float = 1.0

    def __post_init__(self) -> None:
        read_fields(
            self, links=texts, factor=number("a factor above 0, to 1e6, on nominal rates", above=0.0, at_most=1e6)
        )


class _Controlled(_Paced, frozen=True, kw_only=True):
    rate_scale: float = 1.0
    """Rates are controlled around this many times the nominal ones."""
    backlog_setpoint: Size = 0.0
    """Backlogs are controlled around this, at each link, and begin with it [byte]."""

    def _read(self) -> None:
        takes = "a factor above 0, to 1e6, on nominal rates"
        read_fields(self, links=texts, rate_scale=number(takes, above=0.0, at_most=1e6), backlog_setpoint=backlog)


class HftracPolicy(_Controlled, frozen=True, kw_only=True, tag="hftrac"):
    """HFTraC, designed for the scenario's network and interval by `netctrl.hftrac`, whose arguments these are."""

    architecture: Architecture
    mu: float | None = None
    """lambda tau²; null: from the links' weights."""
    information_delay: int | None = None
    """[sample]"""
    communication: Literal["out-of-band", "in-band"] = "out-of-band"
    horizon: int | str = "auto"
    reach: int | None = None

    def __post_init__(self) -> None:
        self._read()
        read_fields(self, architecture=one_of(*ARCHITECTURES), communication=one_of("out-of-band", "in-band"))
        read_fields(self, mu=optional(number("a weight above 0 (lambda·interval²)", above=0.0, at_most=1e12)))
        samples = optional(whole(0, _MAX_SAMPLES, "a whole number of samples"))
        read_fields(self, information_delay=samples, reach=samples, horizon=_horizon)


class DesignPolicy(_Controlled, frozen=True, kw_only=True, tag="design"):
    """The law of an HFTraC Design file, made for the same network and interval."""

    file: str

    def __post_init__(self) -> None:
        self._read()
        if not isinstance(self.file, str) or not self.file or "\0" in self.file:
            raise InvalidValue("file", self.file, "the name of a Design file")


POLICIES = (Fifo, StaticPacing, Backpressure, HftracPolicy, DesignPolicy)
Policy = Fifo | StaticPacing | Backpressure | HftracPolicy | DesignPolicy
"""Every kind; in a file, `kind` tells which."""


def _horizon(field: str, value: Any) -> int | str:
    if value in ("auto", "exact"):
        return value
    return whole(1, _MAX_SAMPLES, "auto, exact, or a whole number of samples")(field, value)
