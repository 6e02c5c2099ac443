"""Plan of a network for packet engines: its routes, and its law as arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.model.network import Network

__all__ = ["LinkPlan"]


class LinkPlan(NamedTuple):
    """N controlled links and I demands; links without traffic are left out."""

    network: Network
    """The network with the requested means."""
    links: tuple[str, ...]
    """(N,) ids of the links."""
    delay: np.ndarray
    """(N,) delay n_l [sample]"""
    split: tuple[tuple[int, int, float], ...]
    """(demand, link, share): the link takes this share of the demand's traffic at the link's source."""
    nominal: np.ndarray
    """(N,) nominal rate f* [bit/s]"""
    weight: np.ndarray | None
    """(N,) weight mu_l of the cost."""
    paced: np.ndarray
    """(N,) whether a link sends at its law's rate; otherwise at its capacity."""
    law: LinkRates
    """The law, with the rates around which links are controlled and the initial rates."""
