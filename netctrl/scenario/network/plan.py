"""What runs a network outside of the fluid: its routes, and its law as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.fir import FirLaw
from netctrl.model.network import Network

__all__ = ["Feeds", "Hearing", "LinkPlan"]


class Feeds(NamedTuple):
    """How N links feed one another, as rows of the links that feed."""

    start: np.ndarray
    """(N + 1,)"""
    link: np.ndarray
    delay: np.ndarray
    """[sample] n_k of the link that feeds."""
    share: np.ndarray
    """c_lk"""


class Hearing(NamedTuple):
    """Who hears whom, and when, where messages may be late, lost or out of step."""

    predicted: FirLaw
    """Each link's own backlog, from news (`netctrl.laws.link_rate.distributed`)."""
    ticks: int
    """An interval."""
    line: np.ndarray
    """(N, N) number of the messages by which link l hears of link k; −1 where it needs none."""
    least: np.ndarray
    """(N, N) age from which on link l may use what link k measured [sample]."""
    messages: int
    """An interval."""
    central: bool


class LinkPlan(NamedTuple):
    """N controlled links and I demands; links that carry nothing are left out."""

    network: Network
    """With the means that were asked for."""
    links: tuple[str, ...]
    """(N,) ids."""
    delay: np.ndarray
    """(N,) n_l [sample]"""
    split: tuple[tuple[int, int, float], ...]
    """Demand, link (of N), share of what reaches the link's source of the demand that takes it."""
    feeds: Feeds
    nominal: np.ndarray
    """(N,) f* [bit/s]"""
    around: np.ndarray
    """(N,) rates around which links are controlled, and with which they begin [bit/s]."""
    backlog_setpoint: float
    """Backlog around which they are, over the interval [bit/s]."""
    weight: np.ndarray | None
    """(N,) mu_l of the cost."""
    control: FirLaw
    hearing: Hearing | None
    """None: all is heard in time."""
