"""What runs a network outside of the fluid: its routes, and its law as numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.distributed_step import LinkRates
from netctrl.model.network import Network

__all__ = ["LinkPlan"]


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
    nominal: np.ndarray
    """(N,) f* [bit/s]"""
    weight: np.ndarray | None
    """(N,) mu_l of the cost."""
    paced: np.ndarray
    """(N,) whether a link sends at its law's rate; else at its capacity."""
    law: LinkRates
    """With the rates around which links are controlled, and with which they begin."""
