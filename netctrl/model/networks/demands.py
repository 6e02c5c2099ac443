"""Demands from measured traffic matrices, and by the gravity model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import log
from typing import Any

import numpy as np

from netctrl.core.errors import InvalidValue, checked_kind, checked_number
from netctrl.model.datasets import network_of
from netctrl.model.io.fields import optional, rate_or_0
from netctrl.model.network import Network, with_demands
from netctrl.model.networks.content import read_matrices

GRAVITY_TAKES = "a table from node id to a weight of at least 0, two of them above 0"


@dataclass(frozen=True, slots=True, eq=False)
class DemandFit:
    """Means, deviations and correlations of D demands over T traffic matrices."""

    network: Network
    """The network with the demands' means and standard deviations."""
    ends: tuple[tuple[str, str], ...]
    """Source and target of each demand."""
    mean: np.ndarray
    """(D,) mean rate [bit/s]."""
    std: np.ndarray
    """(D,) standard deviation [bit/s]; 0 for a single matrix."""
    memory: np.ndarray
    """(D,) correlation of a demand with itself one matrix later; 0 where it doesn't vary."""
    correlation: np.ndarray
    """(D, D) correlation between demands at the same time; the identity where they don't vary."""
    rates: np.ndarray
    """(T, D) the matrices [bit/s]."""

    @property
    def innovation_std(self) -> np.ndarray:
        """(D,) deviation that the matrix before doesn't predict: std √(1 − memory²) [bit/s]."""
        return self.std * np.sqrt(1.0 - np.minimum(self.memory**2, 1.0))

    def correlation_time(self, interval_s: float) -> np.ndarray:
        """(D,) time after which a demand's correlation with itself has fallen to 1/e [s]; 0 where it is none at all.

        Parameters
        ----------
        interval_s : float
            Time between two matrices [s].
        """
        interval = checked_number("interval_s", interval_s, "a time above 0 in s", above=0.0)
        return np.array([-interval / log(each) if 0.0 < each < 1.0 else 0.0 for each in self.memory.tolist()])


def fit_demands(network: Network, matrices: Any, *, demand_unit: float | str | None = None) -> DemandFit:
    """Fit demands to traffic matrices over time.

    Parameters
    ----------
    network : Network
    matrices : path or DataFrame
        A file or folder, as `read_network` takes them as `demands`; evenly spaced in time.
    demand_unit : float or str, optional
        Rate for which 1 stands in matrices without a unit [bit/s].

    Returns
    -------
    DemandFit

    Raises
    ------
    FileError, InvalidValue
        The matrices can't be read.

    Examples
    --------
    >>> import netctrl, pandas as pd
    >>> from netctrl.model.networks.demands import fit_demands
    >>> table = pd.DataFrame({"time_s": [0, 300, 600], "S1->D": [1e6, 3e6, 5e6], "S2->D": [5e6, 3e6, 1e6]})
    >>> fit = fit_demands(netctrl.read("merge"), table, demand_unit="1bit")
    >>> fit.mean.tolist(), fit.std.tolist(), fit.correlation[0].round(6).tolist()
    ([3000000.0, 3000000.0], [2000000.0, 2000000.0], [1.0, -1.0])
    """
    network, unit = network_of(network), optional(rate_or_0)("demand_unit", demand_unit)
    found = read_matrices(matrices, network.nodes, unit)
    rates = found.rates
    away = rates - found.mean
    power = (away**2).sum(axis=0)
    varies = power > 0.0
    size = np.where(varies, power, 1.0)
    correlation = away.T @ away / np.sqrt(np.outer(size, size))
    correlation[np.diag_indices_from(correlation)] = 1.0
    return DemandFit(
        network=with_demands(network, found.ends, found.mean, found.std),
        ends=found.ends,
        mean=found.mean,
        std=found.std,
        memory=(away[1:] * away[:-1]).sum(axis=0) / size,
        correlation=np.clip(correlation, -1.0, 1.0),
        rates=rates,
    )


def gravity(network: Network, total: float, masses: Mapping[str, float] | None = None, *, std: float = 0.0) -> Network:
    """The network with a demand between each two nodes, by the gravity model: total · m_a m_b / Σ m_i m_j over i ≠ j.

    Parameters
    ----------
    network : Network
    total : float
        Sum of all demands [bit/s].
    masses : mapping, optional
        Id of a node -> its weight, such as a population; by default the capacity of the links that leave it.
    std : float
        Standard deviation of each demand as a share of its mean.

    Returns
    -------
    Network

    Raises
    ------
    InvalidValue
        No such masses, or an unknown node.

    Notes
    -----
    Zhang, Roughan, Duffield, Greenberg, "Fast accurate computation of large-scale IP traffic matrices from link loads".

    Examples
    --------
    >>> import netctrl
    >>> from netctrl.model.networks.demands import gravity
    >>> network = gravity(netctrl.read("abilene"), 1e9)
    >>> len(network.demands), round(sum(demand.mean for demand in network.demands))
    (110, 1000000000)
    """
    network = network_of(network)
    total = checked_number("total", total, "a rate above 0, to 1e15, in bit/s", above=0.0, at_most=1e15)
    std = checked_number("std", std, "a share of each mean from 0 to 100", at_least=0.0, at_most=100.0)
    names = [node.id for node in network.nodes]
    if masses is None:
        masses = dict.fromkeys(names, 0.0)
        for link in network.links:
            masses[link.source] += link.capacity
    given = checked_kind("masses", masses, Mapping).items()
    weights = {name: checked_number(f"masses.{name}", each, GRAVITY_TAKES, at_least=0.0) for name, each in given}
    if unknown := [name for name in weights if name not in names]:
        raise InvalidValue("masses", unknown[0], "ids of the network's nodes")
    m = np.array([weights.get(name, 0.0) for name in names])
    products = np.outer(m, m) / max(float(m.max(initial=0.0)) ** 2, 1e-300)
    np.fill_diagonal(products, 0.0)
    if products.sum() <= 0.0:
        raise InvalidValue("masses", f"{np.count_nonzero(m)} above 0", GRAVITY_TAKES)
    means = total * products / products.sum()
    a, b = np.nonzero(means)
    found = means[a, b]
    return with_demands(network, ((names[i], names[j]) for i, j in zip(a, b, strict=True)), found, std * found)
