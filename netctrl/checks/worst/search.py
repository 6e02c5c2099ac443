"""The network that serves a pacing law worst, within bounds of jitter, bursts and losses, and its replay on packets.

The link serves its capacity, in order: the flows, and bursts of others that come at any time, up to so much in each
round trip. Behind it a packet, or its acknowledgement, waits anything up to the jitter, in order: noise, and whatever
holds acknowledgements back and lets them go in bunches. Of each flow's packets any are lost there, up to a share of
each round trip's. The search has the laws' decisions as relations (`netctrl.checks.worst.laws`), and chooses holds and
bursts; after CCAC (Arun et al., SIGCOMM 2021).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from netctrl.checks.worst.course import Course, course
from netctrl.checks.worst.laws import StepLaw, step_law
from netctrl.checks.worst.packets import Figures, Network, replay, replay_end, worst_on_packets
from netctrl.checks.worst.relations import Affine, Relations, valued
from netctrl.core.errors import InvalidValue, checked_number, checked_whole
from netctrl.core.units import BITS_PER_BYTE
from netctrl.model.design.design import PacingDesign, PacingInputs
from netctrl.model.law import OwnRatePacer

_MOST_JITTER, _MOST_BURST, _MOST_LOSS, _MOST_FLOWS = 0.25, 0.75, 0.2, 2  # of the RTT; of the BDP; of the packets
_TIGHTENED = 0.6  # of the time, for the bounds of variables
_MOST_BITS = 1e11  # of a replay
_NOTHING = Figures(0.0, 0.0, inf)
_WORDS = {True: "bounded", False: "counterexample", None: "not decided"}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorstNetwork:
    """Holds and bursts within bounds under which a pacing law uses least, and what is proved of all such networks.

    Bounds are those of the law's relations on a link without packets, from rest, in round trips; the replay is of the
    law itself on packets, with random losses all the time: what it doesn't tolerate has cut it before the holds begin.
    Shares are of what bursts leave of the capacity.
    """

    bounded: bool | None
    """False: the replay has too little, or waits too long; True: it doesn't, and the bounds are enough; None: not
    decided."""
    hold_s: np.ndarray
    """(N, T) time that acknowledgements of each flow are held, by round trip [s]: the worst on packets of what the
    search finds, all, none, and what comes of these by one change after another."""
    burst_bytes: np.ndarray
    """(T,) data of others that comes at once where a round trip begins [byte]; likewise."""
    utilization_found: float | None
    """Least share used, by the relations; None: no network was found in time."""
    proved: Figures | None
    """What any network leaves, by the relations; None: the law is the paper's, whose estimate is held."""
    replayed: Figures
    """On packets in this network."""
    without: Figures
    """On packets without holds, bursts and losses, at the same times."""
    asked: Figures
    """Shares that are to be used, and by each of two flows, and the longest queue."""
    flows: int
    jitter_s: float
    """Greatest hold [s]."""
    burst: float
    """Greatest burst of a round trip [byte]."""
    loss: float
    """Greatest share of each round trip's packets that is lost."""
    seconds: float
    """Time that the search took [s]."""

    def table(self) -> str:
        """Verdicts, figures and the network as text."""
        ms, kB = 1e3, 1e-3

        def said(figures: Figures) -> str:
            share = f", {figures.share:.3f} for the worse of two flows" if self.flows > 1 else ""
            return f"{figures.utilization:.3f} used{share}, queue up to {ms * figures.queue_s:.4g} ms"

        rows = [
            ("worst network", f"{_WORDS[self.bounded]}: {said(self.asked)}"),
            (
                "within",
                f"jitter up to {ms * self.jitter_s:g} ms, bursts up to {kB * self.burst:g} kB a round trip, "
                f"losses up to {100 * self.loss:g} %; {len(self.burst_bytes)} round trips",
            ),
            ("proved", "nothing: an estimate is held"),
            ("found", "nothing"),
            ("on packets", f"{said(self.replayed)}, in this network"),
            ("without", f"{said(self.without)}, on packets without holds, bursts and losses"),
            *(("holds ms", " ".join(f"{ms * hold:.3g}" for hold in holds)) for holds in self.hold_s),
            ("search", f"{self.seconds:.3g} s"),
        ]
        if self.proved is not None:
            rows[2] = ("proved", f"{said(self.proved)}, for the law's relations on a fluid link, from rest")
        if self.utilization_found is not None:
            rows[3] = ("found", f"{self.utilization_found:.3f} used, by the relations")
        if self.burst > 0.0:
            rows.insert(-1, ("bursts kB", " ".join(f"{kB * burst:.3g}" for burst in self.burst_bytes)))
        return "".join(f"  {name:<15}{text}\n" for name, text in rows)


def worst_network(
    design: PacingDesign,
    *,
    jitter_s: float,
    burst_bytes: float = 0.0,
    loss: float = 0.0,
    round_trips: int = 10,
    least_utilization: float = 0.9,
    least_share: float = 0.4,
    most_queue_s: float | None = None,
    limit_s: float = 60.0,
) -> WorstNetwork:
    """Search the network, within bounds of jitter, bursts and losses, on which a pacing law uses its bottleneck least.

    Parameters
    ----------
    design : PacingDesign
        Of `netctrl.pacing`, the paper's or the own-rate law; its RTT, bottleneck, buffer and flows (one, or two of the
        own-rate law) are those of the link.
    jitter_s : float
        Greatest time that a packet or its acknowledgement is held behind the link, at most a quarter of the RTT [s].
    burst_bytes : float
        Most data of others, which answers nothing, that comes in each round trip, at once, at most three quarters of
        the bandwidth-delay product [byte].
    loss : float
        Greatest share of each round trip's packets of each flow that is lost behind the link, from 0 to 0.2.
    round_trips : int
        Horizon, from 1 to 20 round trips.
    least_utilization, least_share : float
        Share of what bursts leave of the capacity that is to be used over the horizon, and by each of two flows.
    most_queue_s : float or None
        Longest queue that is to come [s]; None: the buffer, beyond which the relations say nothing.
    limit_s : float
        Time for the search [s]: the bounds are those that are known by then, then come replays on packets.

    Returns
    -------
    WorstNetwork

    Raises
    ------
    InvalidValue
        An argument out of its bounds, or a design of other laws, of more flows or of a longer period than its round
        trip.

    Examples
    --------
    The paper's law freezes where it starts, at half its R, without any jitter:

    >>> import netctrl
    >>> from netctrl.checks.worst.search import worst_network
    >>> design = netctrl.pacing(max_rate_bit_per_s=1e7, rtt_s=0.02)
    >>> found = worst_network(design, jitter_s=0.0, round_trips=3)
    >>> found.bounded, round(found.replayed.utilization, 1)
    (False, 0.5)

    References
    ----------
    Arun, Arashloo, Saeed, Alizadeh, Balakrishnan: Toward formally verifying congestion control behavior, SIGCOMM 2021.
    """
    inputs = _checked(design)
    rtt, flows = inputs.rtt_s, inputs.flows
    most = _MOST_JITTER * rtt
    takes = f"a time from 0 to a quarter of the RTT, {most:g} s"
    jitter_s = checked_number("jitter_s", jitter_s, takes, at_least=0.0, at_most=most)
    pipe = inputs.bottleneck_bit_per_s * rtt / BITS_PER_BYTE
    takes = f"a size from 0 to three quarters of the bandwidth-delay product, {_MOST_BURST * pipe:g} byte"
    burst = checked_number("burst_bytes", burst_bytes, takes, at_least=0.0, at_most=_MOST_BURST * pipe)
    loss = checked_number("loss", loss, f"a share from 0 to {_MOST_LOSS:g}", at_least=0.0, at_most=_MOST_LOSS)
    round_trips = checked_whole("round_trips", round_trips, "a number from 1 to 20", at_least=1, at_most=20)
    takes = "a share above 0 and at most 0.999"
    used = checked_number("least_utilization", least_utilization, takes, above=0.0, at_most=0.999)
    takes = "a share above 0 and at most 0.499"
    each = checked_number("least_share", least_share, takes, above=0.0, at_most=0.499)
    held = rtt * (inputs.buffer_bytes or pipe) / pipe
    takes = f"a time above 0, at most the buffer's, {held:g} s"
    queue = held if most_queue_s is None else most_queue_s
    queue = checked_number("most_queue_s", queue, takes, above=0.0, at_most=held)
    limit_s = checked_number("limit_s", limit_s, "a time from 1 s to a day, in seconds", at_least=1.0, at_most=86400.0)
    asked, began = Figures(used, each, queue), perf_counter()
    law = step_law(design, jitter_s / rtt + burst / pipe, loss)
    found = _search(law, asked, flows, jitter_s / rtt, burst / pipe, round_trips, limit_s)
    seconds = perf_counter() - began
    none = Network(np.zeros((flows, round_trips)), np.zeros(round_trips))
    full = Network(none.holds + jitter_s, none.bursts + burst)
    starts = [*(Network(rtt * holds, pipe * bursts) for holds, bursts in found.networks), full, none]
    replayed, network = worst_on_packets(design, starts, full, loss, asked)
    proved = found.proved and found.proved._replace(queue_s=rtt * found.proved.queue_s)
    bounded = None
    if max(replayed.spent(asked, flows)) > 1.0:
        bounded = False
    elif max((proved or _NOTHING).spent(asked, flows)) <= 1.0:
        bounded = True
    for part in network:
        part.setflags(write=False)
    return WorstNetwork(
        bounded=bounded,
        hold_s=network.holds,
        burst_bytes=network.bursts,
        utilization_found=found.used,
        proved=proved,
        replayed=replayed,
        without=replay(design, none, 0.0),
        asked=asked,
        flows=flows,
        jitter_s=jitter_s,
        burst=burst,
        loss=loss,
        seconds=seconds,
    )


def _checked(design: PacingDesign) -> PacingInputs:
    """A design's inputs."""
    if not isinstance(design, PacingDesign):
        raise InvalidValue("design", design, "a design of netctrl.pacing")
    asked, most = design.inputs, _MOST_FLOWS if isinstance(design.law, OwnRatePacer) else 1
    if asked.flows > most:
        raise InvalidValue("flows", asked.flows, f"at most {most}: more take the search too long")
    if asked.mode == "paper" and asked.period_s > asked.rtt_s:
        raise InvalidValue("period_s", asked.period_s, f"at most the RTT, {asked.rtt_s:g} s")
    if replay_end(asked.rtt_s, 20 * asked.rtt_s) * asked.bottleneck_bit_per_s > _MOST_BITS:
        takes = "a lower rate, or a shorter RTT: a replay on packets has at most 1e11 bits"
        raise InvalidValue("bottleneck_bit_per_s", asked.bottleneck_bit_per_s, takes)
    return asked


class _Found(NamedTuple):
    """Outcome of the searches; time in RTTs, data in BDPs."""

    networks: list[Network]
    """Of each search that found one in time."""
    used: float | None
    """In the one that was to use least."""
    proved: Figures | None
    """None where the relations aren't sound."""


def _search(
    law: StepLaw, asked: Figures, flows: int, jitter: float, burst: float, round_trips: int, limit: float
) -> _Found:
    end, relations = perf_counter() + limit, Relations(_TIGHTENED * limit)
    run = course(relations, law, flows, jitter, burst, round_trips)
    every = sum(run.served[1:], run.served[0])
    aims = [(every, asked.utilization), *([(run.served[0], asked.share)] if flows > 1 else [])]
    steps = 1 if burst == 0.0 else 2
    left, networks = steps * len(aims) + 1, []

    def least(aim: Affine) -> tuple[np.ndarray | None, float]:
        nonlocal left
        found = relations.least(aim, (end - perf_counter()) / left)
        left -= 1
        if found.values is not None:
            holds, bursts = valued([run.holds, run.bursts], found.values)
            networks.append(Network(np.maximum(holds, 0.0).T, np.maximum(bursts, 0.0)))
        return found.values, max(found.bound, aim.low)

    _, queue = least(-relations.greatest(run.queues))
    shares, bounds = zip(*(_least_share(relations, run, *aim, steps, least) for aim in aims), strict=True)
    if not law.sound:
        return _Found(networks, shares[0], None)
    # Flows are alike: what is proved of the first holds for both.
    return _Found(networks, shares[0], Figures(min(max(bounds[0], flows * bounds[-1]), 1.0), bounds[-1], -queue))


def _least_share(
    relations: Relations, run: Course, part: Affine, share: float, steps: int, least: Callable[[Affine], Any]
) -> tuple[float | None, float]:
    """The least share of a part in what bursts leave: found, and a bound. A search has the least of
    part - share · left, which is 0 where the share is the least one (Dinkelbach): so it goes on from the share found.
    """
    found, bound = None, 0.0
    for _ in range(steps):
        values, less = least(relations.settle(part - run.left * share))
        bound = max(bound, share + less / (run.left.high if less > 0.0 else run.left.low))
        if values is None:
            break
        of_part, left = valued([part, run.left], values)
        found = share = min(of_part / left, found or inf)
    return found, bound
