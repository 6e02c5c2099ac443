"""Arrays of a network scenario for the kernel, with its policy as FIR taps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.core.units import BITS_PER_BYTE
from netctrl.laws.link_rate.credit import Prices, credit_prices, lossless_fill, no_prices
from netctrl.laws.link_rate.fir import BACKLOG, RATE, WORK_CONSERVING, FirLaw, backpressure_fir, fir_law, static_fir
from netctrl.laws.link_rate.routing import Routing, routing
from netctrl.model.law import LinkRateLaw
from netctrl.model.network import Link, Network
from netctrl.model.network_model import NetworkModel
from netctrl.plants.linearize import network_model
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Backpressure, Controlled, CreditPolicy, Fifo, HftracPolicy, StaticPacing
from netctrl.scenario.scenario import Scenario, checked_demands
from netctrl.sim.network.blocked_fir import WIDE, BlockedFir, blocked_fir
from netctrl.sim.network.kernel import LANES, LinkPlant, LinkState

_MAX_HISTORY = 2**31  # bytes
_LINE = 64  # bytes


class LinkProblem(NamedTuple):
    """Data common to all runs."""

    network: Network
    """Network with the requested means."""
    routes: Routing
    model: NetworkModel
    plant: LinkPlant
    taps: FirLaw
    prices: Prices
    """None of them without the credit law."""
    tiles: tuple[BlockedFir, BlockedFir]
    """The taps for the kernel: of several links together, and of one."""
    weight: np.ndarray | None
    """(N,) mu_l of the cost; None where links have none."""
    initial_rate: np.ndarray
    """(N,) [bit/s]"""


class LinkRuns(NamedTuple):
    """Sums of R runs over the counted steps; rows as in `netctrl.sim.network.kernel`."""

    sums: np.ndarray
    """(6, N, R)"""
    growth: np.ndarray
    """(N, R) of the backlog over the interval."""
    offered: np.ndarray
    """(R,) sum of the rates that entered the network."""
    watched: np.ndarray
    """(3, N, T) of the first run, from its very beginning."""
    demands: np.ndarray | None
    """(5, R, I) of each demand: sums as in `netctrl.sim.network.demand_kernel`, ages in intervals, and growth of what
    is in the network; None where demands are not kept apart."""


def link_problem(scenario: Scenario, law: LinkRateLaw | None = None) -> LinkProblem:
    """Make the arrays for a scenario.

    Raises
    ------
    InvalidValue
        A network that can't be routed, a policy without its law, a law for a policy without one, a law for another
        network, or a backlog setpoint above a buffer.
    """
    network = graph_of(checked_demands(scenario))
    routes = routing(network)
    model = network_model(network, scenario.interval, routes)
    by_name = {link.id: link for link in network.links}
    links = [by_name[name] for name in model.links]
    buffer = [np.inf if link.buffer is None else link.buffer * BITS_PER_BYTE / scenario.interval for link in links]
    nominal = routes.load[routes.load > 0.0]
    coupling, injection = model.coupling, model.injection
    plant = LinkPlant(
        capacity=np.array([link.capacity for link in links]),
        buffer=np.array(buffer),
        nominal=nominal,
        backlog_setpoint=getattr(scenario.control, "backlog_setpoint", 0.0) * BITS_PER_BYTE / scenario.interval,
        coupled_start=coupling.indptr.astype(np.int64),
        coupled_link=coupling.indices.astype(np.int64),
        coupled_delay=model.delay[coupling.indices],
        coupled_share=coupling.data,
        injected_start=injection.indptr.astype(np.int64),
        injected_demand=injection.indices.astype(np.int64),
        injected_share=injection.data,
    )
    initial = nominal * getattr(scenario.control, "rate_scale", 1.0)
    _check_standing(scenario, links)
    entering = injection @ np.array([demand.mean for demand in network.demands])
    taps = _taps(scenario, law, model, plant, entering - routes.lost[routes.load > 0.0])
    prices = no_prices(len(nominal))
    if isinstance(scenario.control, CreditPolicy):
        prices = network_prices(network, routes, model, plant.capacity, plant.buffer, taps.mode != WORK_CONSERVING)
    weight = _weight(scenario, network, model)
    return LinkProblem(network, routes, model, plant, taps, prices, blocked_fir(taps), weight, initial)


def network_prices(
    network: Network, routes: Routing, model: NetworkModel, capacity: np.ndarray, buffer: np.ndarray, paced: np.ndarray
) -> Prices:
    """Prices of the credit law for the links with traffic, from what the demands offer."""
    used, mean = routes.load > 0.0, np.array([demand.mean for demand in network.demands])
    shares = routes.rate[used].multiply(1.0 / np.where(mean > 0.0, mean, np.inf)).tocsr()
    demands = shares, mean, model.std, routes.offered[used]
    return credit_prices(model.coupling, model.injection, model.delay, *demands, capacity, buffer, paced)


def lossless_fills(scenario: Scenario, *, peaks: Mapping[str, float] | None = None, late: int = 0) -> dict[str, float]:
    """Fill of the buffers that feed each link up to which the credit law loses nothing at the link, whatever comes.

    Parameters
    ----------
    scenario : Scenario
        Under demands, of control `credit`.
    peaks : mapping, optional
        Highest rates of demands by id [bit/s]; those of others have no bound.
    late : int
        Samples by which the newest message may be late, lost ones included.

    Returns
    -------
    dict
        Share of their buffers, by id of the link; inf where the link cannot fill, below 0 where nothing is certain.
        A feeder without a bound on its buffer counts as empty.

    Raises
    ------
    InvalidValue
        Another control, or as in `link_problem`.

    Examples
    --------
    Two sources share a line; its buffer holds 40 ms of what may be on the way beyond the mean.

    >>> from netctrl.model.network import Demand, Link, Network
    >>> from netctrl.scenario.builders import routed
    >>> from netctrl.scenario.network.policy import CreditPolicy
    >>> links = [Link(id=x, source=x, target="S", capacity=20e6, delay=0.01) for x in "AB"]
    >>> links += [Link(id="out", source="S", target="D", capacity=30e6, buffer=400e3)]
    >>> demands = [Demand(id=x, source=x, target="D", mean=10e6) for x in "AB"]
    >>> network = Network(links=tuple(links), demands=tuple(demands))
    >>> scenario = routed(network, duration=20.0, interval=0.01, control=CreditPolicy())
    >>> round(lossless_fills(scenario)["out"], 3), round(lossless_fills(scenario, late=10)["out"], 3)
    (0.875, 0.562)
    """
    if not isinstance(scenario.control, CreditPolicy):
        got = None if scenario.control is None else scenario.control.__struct_config__.tag
        raise InvalidValue("control", got, "credit")
    checked_whole("late", late, "a whole number of samples of at least 0")
    ready = link_problem(scenario)
    peak = np.array([(peaks or {}).get(demand.id, np.inf) for demand in ready.network.demands])
    enters = np.zeros(ready.model.n_links)
    rows = ready.model.injection.tocoo()
    np.add.at(enters, rows.row, rows.data * peak[rows.col])
    plant = ready.plant
    found = lossless_fill(ready.prices, ready.model.coupling, plant.nominal, plant.capacity, enters, late)
    return dict(zip(ready.model.links, found.tolist(), strict=True))


def link_state(ready: LinkProblem, runs: int) -> LinkState:
    """All links at the rates around which they are controlled, with the backlog setpoint.

    Raises
    ------
    InvalidValue
        More than LANES runs, or too many runs with a long memory.
    """
    if runs > LANES:
        raise InvalidValue("runs", runs, f"at most {LANES} side by side")
    N = ready.model.n_links
    slots = power_of_2(max(ready.taps.memory, int(ready.model.delay.max(initial=0))) + 2)
    kinds = 4 if ready.taps.innovations else 2
    size = kinds * N * slots * runs * 8
    if size > _MAX_HISTORY:
        takes = f"fewer at a time: their history would take {size / 2**30:.1f} GiB"
        raise InvalidValue("runs", runs, takes)
    history = _zeros(kinds * N, slots, runs)
    history[RATE * N : (RATE + 1) * N] = ready.initial_rate[:, None, None]
    history[BACKLOG * N : (BACKLOG + 1) * N] = ready.plant.backlog_setpoint
    present = np.zeros((kinds * N, slots), dtype=np.uint8)
    present[: 2 * N] = 1
    return LinkState(
        history,
        present,
        sums=_zeros(N, 6, LANES),
        command=_zeros(N + WIDE - 1, LANES),
        scratch=_zeros(3 * LANES),
        offered=_zeros(runs),
    )


def _zeros(*shape: int) -> np.ndarray:
    """Zeros that begin where a line of the cache does: a vector instruction then needs one line, and not two."""
    count = int(np.prod(shape))
    room = np.zeros(count + _LINE // 8)
    first = -room.ctypes.data % _LINE // 8
    return room[first : first + count].reshape(shape)


def power_of_2(least: int) -> int:
    """The least power of 2 that is at least this."""
    return 1 << (least - 1).bit_length()


def _taps(
    scenario: Scenario, law: LinkRateLaw | None, model: NetworkModel, plant: LinkPlant, expected: np.ndarray
) -> FirLaw:
    policy, nominal = scenario.control or Fifo(), plant.nominal
    chosen = getattr(policy, "links", ())
    if law is not None and not isinstance(policy, Controlled):
        takes = f"no law, as the control {policy.__struct_config__.tag} is a law by itself"
        raise InvalidValue("law", type(law).__name__, takes)
    paced = np.array([not chosen or name in chosen for name in model.links])
    match policy:
        case Fifo():
            return static_fir(nominal, np.zeros(len(nominal), dtype=bool))
        case StaticPacing():
            return static_fir(policy.factor * nominal, paced)
        case CreditPolicy():
            return static_fir(plant.capacity, paced)
        case Backpressure():
            return backpressure_fir(model.delay, model.coupling)
    if law is None:
        takes = "the law of a Design, such as that of netctrl.hftrac" if isinstance(policy, HftracPolicy) else "its law"
        raise InvalidValue("law", None, f"{takes}, for a control of kind {policy.__struct_config__.tag}")
    _check_law(law, model)
    around = policy.rate_scale * nominal
    return fir_law(law, model.coupling, around, policy.rate_scale * expected, paced, plant.backlog_setpoint)


def _check_standing(scenario: Scenario, links: list[Link]) -> None:
    backlog_setpoint = getattr(scenario.control, "backlog_setpoint", 0.0)
    for link in links:
        if link.buffer is not None and link.buffer < backlog_setpoint:
            takes = f"at most the buffers; that of {link.id} is {link.buffer:g} bytes"
            raise InvalidValue("control.backlog_setpoint", backlog_setpoint, takes)


def _check_law(law: LinkRateLaw, model: NetworkModel) -> None:
    """Check that a law fits the links, delays and interval; a law doesn't show the rest of a network."""
    for what, got, takes in (
        ("links", law.links, model.links),
        ("delay", tuple(law.delay.tolist()), tuple(model.delay.tolist())),
        ("interval_s", law.interval_s, model.interval_s),
    ):
        if got != takes:
            raise InvalidValue(f"law.{what}", got, f"{takes} of this scenario's network: the law is for another one")


def _weight(scenario: Scenario, network: Network, model: NetworkModel) -> np.ndarray | None:
    if isinstance(scenario.control, HftracPolicy) and scenario.control.mu is not None:
        return np.full(model.n_links, scenario.control.mu)
    by_name = {link.id: link.weight for link in network.links}
    weights = [by_name[name] for name in model.links]
    if any(weight is None for weight in weights):
        return None
    return np.array(weights, dtype=float) * scenario.interval**2
