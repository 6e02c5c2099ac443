"""Linear models around the fluid's equilibrium, in closed form: TCP, ARC's loop, and a network of controlled links.

docs/explanation/arc.md derives the three plants, says when each applies, and corrects the paper's own (eq. 7).
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from netctrl.core.errors import InvalidValue, any_of, checked_kind, checked_number
from netctrl.laws.link_rate.routing import Routing, routing
from netctrl.model.design.arc import PLANTS, ArcSetting, Plant
from netctrl.model.loop import DelayLoop, SampledLoop
from netctrl.model.network import Network
from netctrl.model.network_model import NetworkModel, state_matrices
from netctrl.model.statespace import StateSpace
from netctrl.plants.equilibrium import tcp_equilibrium


class LinearTcp(NamedTuple):
    """N δw(s)/δp(s) = −gain · e^(−s·delay)/(time_constant·s + 1); floats, or arrays of one shape."""

    gain: Any
    """P0 = B³/(4 N²) [packet]."""
    time_constant: Any
    """T1 = tau·B/(2 N) [s]."""
    delay: Any
    """tau [s]."""


def linear_tcp(flows: Any, rtt: Any, rate: Any) -> LinearTcp:
    """Marking probability to aggregate window of N TCP flows, linearised at the equilibrium.

    As in the source, the delayed window in the window equation is replaced by the undelayed one. This changes the gain
    limit of ARC's loops by 1.6 % to 4 %.

    Parameters
    ----------
    flows, rtt, rate : array_like
        N, tau [s] and the arrival rate [packet/s], broadcast.

    Notes
    -----
    Hollot, Misra, Towsley, Gong, "A control theoretic analysis of RED", INFOCOM 2001, eqs. (7)-(9) with C replaced
    by the arrival rate; ARC paper, P(s) in Fig. 1.
    """
    B, w0, _ = tcp_equilibrium(flows, rtt, rate)
    return LinearTcp(gain=B * w0 * w0 / 4.0, time_constant=rtt * w0 / 2.0, delay=rtt)


def applicable_plant(setting: ArcSetting) -> Plant:
    """Name of the plant that describes ARC's equilibrium: "noq" without a standing queue, "phys" with one.

    ARC rests where b = gamma (d C − (q − q0)). A busy link passes d C in an epoch, so a standing queue has
    q = q0 − d C (1 − gamma)/gamma; where that isn't above 0, no queue stands. With gamma < 1 and q0 = 0 a queue never
    stands. The capacity must be a scalar.
    """
    return "noq" if setting.utilization < 1.0 and standing_queue(setting) <= 0.0 else "phys"


def standing_queue(setting: ArcSetting) -> float:
    """Queue at ARC's equilibrium [packet]: q0 − d C (1 − gamma)/gamma where that is above 0, else 0."""
    gamma, per_epoch = setting.utilization, setting.epoch_s * float(setting.capacity_packet_per_s)
    return max(0.0, setting.target_queue_packets - per_epoch * (1.0 - gamma) / gamma)


def arc_arrival_rate(setting: ArcSetting, plant: Plant) -> Any:
    """Arrival rate at ARC's equilibrium [packet/s]: gamma (C + q0/d) without a standing queue, C with one.

    The paper's plant takes gamma C whatever the queue. Raises InvalidValue for a plant that isn't in PLANTS.
    """
    if plant not in PLANTS:
        raise InvalidValue("plant", plant, any_of(PLANTS, plant))
    target = setting.utilization * setting.capacity_packet_per_s
    if plant == "paper":
        return target
    shifted = target + setting.utilization * setting.target_queue_packets / setting.epoch_s
    return np.minimum(setting.capacity_packet_per_s, shifted)


def arc_corners(flows: Any, rtt: Any, setting: ArcSetting, plant: Plant) -> dict[str, Any]:
    """Fields of the open loop at alpha/epoch = 1, as `DelayLoop` names them; floats, or arrays that broadcast."""
    gamma, d = setting.utilization, setting.epoch_s
    P0, T1, tau = linear_tcp(flows, rtt, arc_arrival_rate(setting, plant))
    if plant == "paper":  # eq. (7) with the sign of its exponent corrected
        gain, leads, lags = (1.0 + gamma) * P0, (tau / (1.0 + gamma),), (T1, tau)
    elif plant == "noq":  # alpha P0 e^(−s tau)/(tau s (T1 s + 1)) with alpha = d · alpha/epoch
        gain, leads, lags = d * P0 / tau, (), (T1,)
    else:
        gain, leads, lags = gamma * P0, (d / gamma,), (T1, tau)
    return {"gain": gain, "delay": tau, "integrators": 1, "leads": leads, "lags": lags}


def arc_loop(flows: float, rtt_s: float, setting: ArcSetting, plant: Plant) -> DelayLoop:
    """Open loop of one operating point at alpha/epoch = 1 per packet, under one of the three plants.

    Parameters
    ----------
    flows, rtt_s : float
        N and tau [s].
    setting : ArcSetting
    plant : {"paper", "noq", "phys"}
    """
    corners = arc_corners(flows, rtt_s, setting, plant)
    return DelayLoop(
        gain=float(corners["gain"]),
        delay=float(corners["delay"]),
        integrators=corners["integrators"],
        leads=tuple(map(float, corners["leads"])),
        lags=tuple(map(float, corners["lags"])),
    )


def arc_sampled_loop(flows: float, rtt_s: float, setting: ArcSetting, plant: Plant) -> SampledLoop:
    """Exact sampled-data loop, whose gain is alpha per packet.

    States: deviations of the aggregate window and of the queue, and the arrivals of the epoch, which the law resets
    after reading them. "paper" is eq. (2) with arrivals counted over the epoch, as Algorithm 2 does.
    """
    P0, T1, tau = linear_tcp(flows, rtt_s, float(arc_arrival_rate(setting, plant)))
    sent = 1.0 / tau  # window/tau
    if plant == "noq":
        A, B, read, keep = [[-1.0 / T1, 0.0], [sent, 0.0]], [-P0 / T1, 0.0], [0.0, 1.0], [True, False]
    else:
        felt = sent if plant == "phys" else 0.0  # a longer queue slows the senders, which the arrival counter sees
        A, B = [[-1.0 / T1, 0.0, 0.0], [sent, -sent, 0.0], [sent, -felt, 0.0]], [-P0 / T1, 0.0, 0.0]
        read, keep = [0.0, setting.utilization, 1.0], [True, True, False]
    return SampledLoop(*map(np.array, (A, B, read, keep)), delay=tau, epoch=setting.epoch_s)


def network_model(network: Network, interval_s: float, routes: Routing | None = None) -> NetworkModel:
    """Linear model of a network's backlogs and rates around its nominal rates, sampled.

    Links without traffic are left out.

    Parameters
    ----------
    network : Network
        With demands, which set the nominal rates.
    interval_s : float
        Sampling interval tau [s]. Delays are rounded to whole multiples of it, with a warning that says by how much.
    routes : Routing, optional
        Routing of this network, where it has been computed already.

    Returns
    -------
    NetworkModel

    Raises
    ------
    InvalidValue
        An interval that isn't above 0, or a network that can't be routed (`netctrl.laws.link_rate.routing.routing`).

    Examples
    --------
    >>> import netctrl
    >>> model = netctrl.network_model(netctrl.read("merge"), interval_s=0.01)
    >>> model.links, model.delay.tolist()
    (('L1', 'L2', 'L3'), [1, 1, 1])

    References
    ----------
    HFTraC paper, eqs. (5) to (7).
    """
    checked_kind("network", network, Network)
    interval_s = checked_number("interval_s", interval_s, "a sampling interval above 0 in seconds", above=0.0)
    routes = routing(network) if routes is None else checked_kind("routes", routes, Routing)
    kept = np.flatnonzero(routes.load > 0.0)
    links = [network.links[row] for row in kept]
    takes = "an interval of at least a billionth of the longest delay"
    checked_number("interval_s", interval_s, takes, at_least=1e-9 * max((link.delay for link in links), default=0.0))
    exact = np.array([link.delay for link in links]) / interval_s
    delay = np.rint(exact)
    error = (delay - exact) * interval_s
    off = np.flatnonzero(np.abs(error) > 1e-9 * interval_s)
    if off.size:
        worst = int(off[np.argmax(np.abs(error[off]))])
        warnings.warn(
            f"the delays of {off.size} of {len(links)} links were rounded to multiples of {interval_s:g} s; "
            f"largest change: {links[worst].id} from {links[worst].delay:g} s to {delay[worst] * interval_s:g} s",
            stacklevel=2,
        )
    return NetworkModel(
        interval_s=interval_s,
        delay=delay.astype(np.int64),
        coupling=routes.coupling[kept][:, kept],
        injection=routes.injection[kept],
        std=np.array([demand.std for demand in network.demands]),
        links=tuple(str(link.id) for link in links),
    )


def network_state_space(model: NetworkModel) -> tuple[StateSpace, sp.csr_array]:
    """Sparse (A, B, I) and H of x(n+1) = A x(n) + B u(n) + H w(n), whose output is the state.

    The state holds each link's rates, newest first, and then the backlogs, all in bit/s (`NetworkModel`).

    Source: HFTraC paper, eq. (13) and its blocks; H has the injected shares in its backlog rows.
    """
    A, B = state_matrices(model.delay, model.coupling)
    H = sp.vstack([sp.csr_array((model.first_backlog, len(model.std))), model.injection], format="csr")
    return StateSpace(A, B, sp.eye_array(model.n_states, format="csr"), dt=model.interval_s), H
