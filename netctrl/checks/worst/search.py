"""The network that serves a pacing law worst, within bounds of jitter and losses, and its replay on packets.

The link serves its capacity, in order. Behind it a packet of one of the flows, or its acknowledgement, waits anything
up to the jitter, in order: noise, and whatever holds acknowledgements back and lets them go in bunches. Of each flow's
packets any are lost there, up to a share of each round trip's. The search has the laws' decisions as relations
(`netctrl.checks.worst.laws`), and chooses the holds; after CCAC (Arun et al., SIGCOMM 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from operator import itemgetter
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from netctrl.checks.worst.laws import Seen, StepLaw, step_law
from netctrl.checks.worst.relations import Affine, Relations, valued
from netctrl.core.errors import InvalidValue, checked_number, checked_whole
from netctrl.engines.engine import simulate
from netctrl.model.design.design import PacingDesign, PacingInputs
from netctrl.model.law import OwnRatePacer
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

_MOST_JITTER, _MOST_LOSS, _MOST_FLOWS = 0.25, 0.2, 2  # of the RTT; of the packets
_TIGHTENED = 0.6  # of the time, for the bounds of variables
_SETTLED_RTTS, _APART_RTTS, _PERIOD_S, _AFTER_DRAIN_S = 100.0, 15.0, 4.0, 1.0
_LATER = (0.0, 0.25, 0.5)  # of a second: starts of the holds
_MOST_BITS, _MOST_TRIES, _MOST_BITS_TRIED = 1e11, 100, 1e12  # of a replay; holds that are replayed after the search
_WORDS = {True: "bounded", False: "counterexample", None: "not decided"}


class Replayed(NamedTuple):
    """Packets under some holds, the worst of three starts by each figure."""

    utilization: float
    """Least share of the capacity used."""
    share: float
    """Least share of the capacity that one of the flows has."""
    queue_s: float
    """Greatest mean queueing delay [s]."""

    def spent(self, asked: _Asked) -> float:
        """Of what may be lost of the capacity, or of a flow's fair share, the greater part that is; above 1, too
        little is left."""
        spent, fair = (1.0 - self.utilization) / (1.0 - asked.utilization), 1.0 / asked.flows
        return spent if asked.flows == 1 else max(spent, (fair - self.share) / (fair - asked.share))


class _Asked(NamedTuple):
    utilization: float
    share: float
    flows: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorstNetwork:
    """Holds within a bound of jitter under which a pacing law uses least, and what is proved of all such holds.

    Bounds are those of the law's relations on a link without packets, from rest, in round trips; the replay is of the
    law itself on packets, with random losses all the time: what it doesn't tolerate has cut it before the holds begin.
    """

    bounded: bool | None
    """False: the replay has too little; True: it doesn't, and the bounds are enough; None: not decided."""
    hold_s: np.ndarray
    """(T,) time that acknowledgements of the first flow are held, by round trip [s]: the worst on packets of those that
    the search finds, all, none, and what comes of these by one change after another."""
    utilization_found: float | None
    """Least share of the capacity used, by the relations; None: no holds were found in time."""
    utilization_bound: float | None
    """Share that any holds leave, by the relations; None: the law is the paper's, whose estimate is held."""
    share_bound: float | None
    """Share of the capacity that each of two flows has under any holds, by the relations; None likewise."""
    queue_bound_s: float | None
    """Longest queue that any holds leave, by the relations [s]; None likewise."""
    replayed: Replayed
    """On packets under these holds."""
    without: Replayed
    """On packets without holds and losses, at the same times."""
    flows: int
    jitter_s: float
    """Greatest hold [s]."""
    loss: float
    """Greatest share of each round trip's packets that is lost."""
    least_utilization: float
    """Share that was asked for."""
    least_share: float
    """Share of the capacity that each of two flows was to have."""
    seconds: float
    """Time that the search took [s]."""

    def table(self) -> str:
        """Verdict, figures and holds as text."""
        ms, two = 1e3, self.flows > 1

        def said(used: float, share: float | None) -> str:
            return f"{used:.3f} used" + (f", {share:.3f} for the worse of two flows" if two else "")

        asked, held = said(self.least_utilization, self.least_share), " of the first" if two else ""
        bounds = f"jitter{held} up to {ms * self.jitter_s:g} ms, losses up to {100 * self.loss:g} %"
        proved, found, queue = "nothing: an estimate is held", "nothing", "not bounded"
        if self.utilization_bound is not None:
            least = said(self.utilization_bound, self.share_bound)
            proved = f"at least {least}, for the law's relations on a fluid link, from rest"
        if self.queue_bound_s is not None:
            queue = f"{ms * self.queue_bound_s:.4g} ms at most, for the relations"
        if self.utilization_found is not None:
            found = f"{self.utilization_found:.3f} used, by the relations"
        with_these, quiet = self.replayed, self.without
        rows = {
            "worst network": f"{_WORDS[self.bounded]}: {asked}; {bounds}; {len(self.hold_s)} round trips",
            "proved": proved,
            "queue": queue,
            "found": found,
            "on packets": f"{said(*with_these[:2])} with these holds; mean queue {ms * with_these.queue_s:.3g} ms",
            "without": f"{said(*quiet[:2])}, on packets without holds and losses",
            "holds ms": " ".join(f"{ms * hold:.3g}" for hold in self.hold_s),
            "search": f"{self.seconds:.3g} s",
        }
        return "".join(f"  {name:<15}{text}\n" for name, text in rows.items())


def worst_network(
    design: PacingDesign,
    *,
    jitter_s: float,
    loss: float = 0.0,
    round_trips: int = 10,
    least_utilization: float = 0.9,
    least_share: float = 0.4,
    limit_s: float = 60.0,
) -> WorstNetwork:
    """Search the network, within bounds of jitter and losses, on which a pacing law uses its bottleneck least.

    Parameters
    ----------
    design : PacingDesign
        Of `netctrl.pacing`, the paper's or the own-rate law; its RTT, bottleneck, buffer and flows (one, or two of the
        own-rate law) are those of the link.
    jitter_s : float
        Greatest time that a packet of the first flow or its acknowledgement is held behind the link, at most a quarter
        of the RTT [s].
    loss : float
        Greatest share of each round trip's packets of each flow that is lost behind the link, from 0 to 0.2.
    round_trips : int
        Horizon, from 1 to 20 round trips.
    least_utilization, least_share : float
        Share of the capacity that is to be used over the horizon, and by each of two flows.
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
    asked = _checked(design)
    rtt, flows = asked.rtt_s, asked.flows
    most = _MOST_JITTER * rtt
    takes = f"a time from 0 to a quarter of the RTT, {most:g} s"
    jitter_s = checked_number("jitter_s", jitter_s, takes, at_least=0.0, at_most=most)
    loss = checked_number("loss", loss, f"a share from 0 to {_MOST_LOSS:g}", at_least=0.0, at_most=_MOST_LOSS)
    round_trips = checked_whole("round_trips", round_trips, "a number from 1 to 20", at_least=1, at_most=20)
    takes = "a share above 0 and at most 0.999"
    used = checked_number("least_utilization", least_utilization, takes, above=0.0, at_most=0.999)
    takes = "a share above 0 and at most 0.499"
    each = checked_number("least_share", least_share, takes, above=0.0, at_most=0.499)
    limit_s = checked_number("limit_s", limit_s, "a time from 1 s to a day, in seconds", at_least=1.0, at_most=86400.0)
    began = perf_counter()
    found = _search(step_law(design, jitter_s / rtt, loss), flows, jitter_s / rtt, round_trips, limit_s)
    seconds, wanted = perf_counter() - began, _Asked(used, each, flows)
    still = np.zeros(round_trips)
    starts = [*(rtt * holds for holds in found.holds), still + jitter_s, still]
    replayed, hold = _worst_on_packets(design, starts, jitter_s, loss, wanted)
    bounds = Replayed(found.used_bound or 0.0, found.share_bound or 0.0, 0.0)
    bounded = False if replayed.spent(wanted) > 1.0 else True if bounds.spent(wanted) <= 1.0 else None
    hold.setflags(write=False)
    return WorstNetwork(
        bounded=bounded,
        hold_s=hold,
        utilization_found=found.used,
        utilization_bound=found.used_bound,
        share_bound=found.share_bound,
        queue_bound_s=None if found.queue_bound is None else rtt * found.queue_bound,
        replayed=replayed,
        without=_replay(design, still, 0.0),
        flows=flows,
        jitter_s=jitter_s,
        loss=loss,
        least_utilization=used,
        least_share=each,
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
    if _end(asked.rtt_s, 20 * asked.rtt_s) * asked.bottleneck_bit_per_s > _MOST_BITS:
        takes = "a lower rate, or a shorter RTT: a replay on packets has at most 1e11 bits"
        raise InvalidValue("bottleneck_bit_per_s", asked.bottleneck_bit_per_s, takes)
    return asked


class _Flow(NamedTuple):
    """A flow after a round trip; data since the beginning, the newest last."""

    sent: list[Affine]
    served: list[Affine]
    heard: list[Affine]
    state: dict[str, Any]
    hold: Affine


class _Course(NamedTuple):
    """Data that each flow is served in all round trips [BDP], queues after each [BDP], and holds [RTT]."""

    served: list[Affine]
    queues: list[Affine]
    holds: list[Affine]


class _Found(NamedTuple):
    """Outcome of the searches; bounds are None where the relations aren't sound."""

    holds: list[np.ndarray]
    """Of each search that found some in time [RTT]."""
    used: float | None
    """Under the first of these."""
    used_bound: float | None
    share_bound: float | None
    queue_bound: float | None
    """[BDP]."""


def _search(law: StepLaw, flows: int, jitter: float, round_trips: int, limit: float) -> _Found:
    relations = Relations(_TIGHTENED * limit)
    course = _course(relations, law, flows, jitter, round_trips)
    every = sum(course.served[1:], course.served[0])
    aims = [relations.settle(aim) for aim in (every, *(course.served if flows > 1 else ()))]
    seconds = (1.0 - _TIGHTENED) * limit / (len(aims) + 1)
    solved = [relations.least(aim, seconds) for aim in aims]
    holds = [np.clip(valued(course.holds, found.values), 0.0, jitter) for found in solved if found.values is not None]
    used = None if solved[0].values is None else valued(aims[:1], solved[0].values)[0] / round_trips
    if not law.sound:
        return _Found(holds, used, None, None, None)
    bounds = [min(max(found.bound, aim.low) / round_trips, 1.0) for found, aim in zip(solved, aims, strict=True)]
    waiting = relations.greatest(course.queues)
    queue = min(-relations.least(-waiting, seconds).bound, waiting.high)
    return _Found(holds, used, max(bounds[0], sum(bounds[1:])), min(bounds[1:], default=None), queue)


def _course(relations: Relations, law: StepLaw, flows: int, jitter: float, round_trips: int) -> _Course:
    """The network's and the laws' round trips, from rest."""
    state, waits = law.rest(relations)
    rate = relations.constant(min(state["rate"].high, 1.0 / flows))
    nothing = relations.constant(0.0)
    each = [_Flow([waits - rate, waits], [-rate, nothing], [rate * -2.0, -rate], state, nothing)] * flows
    through, queues, holds = nothing, [waits * flows], []
    for step in range(1, round_trips + 1):
        relations.part(round_trips + 1 - step)
        holds.append(relations.variable(0.0, jitter))
        sent = [_sent(relations, flow, holds[-1] if k == 0 else nothing) for k, flow in enumerate(each)]
        total = sum((flow.sent[-1] for flow in sent), nothing)
        through = through + relations.settle(relations.minimum(total - through, relations.constant(1.0)), 0.0, 1.0)
        queue = relations.settle(total - through, 0.0)
        served = [through]
        if flows > 1:
            left = _left(relations, sent, queues[-1], queue)
            served = [flow.sent[-1] - waits for flow, waits in zip(sent, left, strict=True)]
        each = []
        for flow, so_far in zip(sent, served, strict=True):
            delivered = relations.settle(flow.heard[-1] - flow.heard[-2])
            seen = Seen(step, queues[-1] + flow.hold + 1.0, delivered)
            state = law.decide(relations, flow.state, seen)
            each.append(flow._replace(served=[flow.served[-1], so_far], state=state))
        queues.append(queue)
    return _Course([flow.served[-1] for flow in each], queues[1:], holds)


def _sent(relations: Relations, flow: _Flow, hold: Affine) -> _Flow:
    """What acknowledgements that are held tell a flow, and what it sends on them.

    Holds change once a round trip: a search finds more with holds that are timed to a part of it, but packets don't
    keep such times.
    """
    before, served = flow.served
    heard = served - relations.product(hold, served - before)  # held back: hold times the rate
    relations.at_most(flow.heard[-1], heard)
    more = flow.state["rate"]
    if "window" in flow.state:
        room = relations.maximum(heard + flow.state["window"] - flow.sent[-1], relations.constant(0.0))
        more = relations.minimum(more, room)
    sent = flow.sent[-1] + relations.settle(more)
    return flow._replace(sent=[flow.sent[-1], sent], heard=[flow.heard[-1], heard], hold=hold)


def _left(relations: Relations, flows: list[_Flow], before: Affine, queue: Affine) -> list[Affine]:
    """What is queued of each flow, in order: of this round trip, in which each sends evenly, one share of what all
    send, once what was queued before it is through."""
    more = [flow.sent[-1] - flow.sent[-2] for flow in flows]
    if before.high > 1.0:
        left = [relations.variable(0.0, queue.high) for _ in more]
        for flow, each in zip(flows, left, strict=True):
            relations.at_most(flow.served[-1] + each, flow.sent[-1])
    else:
        share = relations.variable(0.0, 1.0)
        left = [relations.settle(relations.product(share, each), 0.0) for each in more]
    relations.equal(sum(left[1:], left[0]), queue)
    return left


def _end(rtt: float, span: float) -> float:
    """When a replay ends [s]: after the law has come to rest, between two drains on the clock."""
    return _PERIOD_S * ceil(_SETTLED_RTTS * rtt / _PERIOD_S) + _AFTER_DRAIN_S + _LATER[-1] + span


def _worst_on_packets(
    design: PacingDesign, found: list[np.ndarray], jitter: float, loss: float, asked: _Asked
) -> tuple[Replayed, np.ndarray]:
    """The worst on packets of some holds, and of those that differ from the worst in one round trip, again and again:
    let go there, or held in full."""

    def tried(holds: np.ndarray) -> tuple[float, Replayed, np.ndarray]:
        replayed = _replay(design, holds, loss)
        return replayed.spent(asked), replayed, holds

    worst = max(map(tried, found), key=itemgetter(0))
    bits = len(_LATER) * _end(design.inputs.rtt_s, 0.0) * design.inputs.bottleneck_bit_per_s
    left, since, T = min(_MOST_TRIES, int(_MOST_BITS_TRIED / bits)), 0, len(worst[2])
    while jitter > 0.0 and left > 0 and since < T:
        holds = worst[2].copy()
        k = left % T
        holds[k] = 0.0 if holds[k] > 0.5 * jitter else jitter
        other = tried(holds)
        since = 0 if other[0] > worst[0] else since + 1
        worst, left = max(worst, other, key=itemgetter(0)), left - 1
    return worst[1:]


def _replay(design: PacingDesign, holds: np.ndarray, loss: float) -> Replayed:
    """The law on packets; the acknowledgements of the first flow are held."""
    used, shares, queues = zip(*(_once(design, holds, loss, later) for later in _LATER), strict=True)
    return Replayed(min(used), min(shares), max(queues))


def _once(design: PacingDesign, holds: np.ndarray, loss: float, later: float) -> tuple[float, float, float]:
    asked, step = design.inputs, design.inputs.rtt_s
    start, span = _end(step, 0.0) - _LATER[-1] + later, step * len(holds)
    names = [f"flow {k + 1}" for k in range(asked.flows)]
    capacity, sender = asked.bottleneck_bit_per_s, {"kind": "paced", "law": design.law}
    line = Link(id="line", source="a", target="b", capacity=capacity, buffer=asked.buffer_bytes, loss=loss)
    scenario = Scenario(
        links=(line, *(Link(id=f"back {name}", source="b", target="a", capacity=capacity) for name in names)),
        flows=tuple(  # started at once they would overflow the buffer, and take 10 s to forget it
            Flow(id=name, path=("line",), ack_path=(f"back {name}",), rtt=step, sender=sender, ecn=False, start=begins)
            for name, begins in zip(names, (0.0, _APART_RTTS * step), strict=False)
        ),
        changes=tuple(
            Change(link=f"back {names[0]}", at=start + step * k, delay=hold) for k, hold in enumerate(holds.tolist())
        ),
        packet_size=asked.packet_size_bytes,
        duration=start + span,
        warmup=start,
        interval=step,
    )
    found = dict(simulate(scenario, "packet").measures())
    share = min(found["throughput", name] for name in names) / capacity
    return found["utilization", "line"], share, found["delay", "line"]
