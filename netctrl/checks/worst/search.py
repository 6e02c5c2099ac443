"""The network that serves a pacing law worst, within a bound of jitter, and its replay on packets.

The link serves its capacity, in order. Behind it a packet, or its acknowledgement, waits anything up to the jitter, in
order: noise, and whatever holds acknowledgements back and lets them go in bunches. The search has the law's decisions
as relations (`netctrl.checks.worst.laws`), and chooses the holds; after CCAC (Arun et al., SIGCOMM 2021).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from netctrl.checks.worst.laws import Seen, StepLaw, step_law
from netctrl.checks.worst.relations import Relations, affine, valued
from netctrl.core.errors import InvalidValue, checked_number, checked_whole
from netctrl.engines.engine import simulate
from netctrl.model.design.design import PacingDesign
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

_MOST_JITTER = 0.25  # of the RTT: a step of the target-RTT law
_TIGHTENED = 0.6  # of the time, for the bounds of variables
_BOUNDS_A_STEP = 10
_SETTLED_RTTS, _PERIOD_S, _AFTER_DRAIN_S = 100.0, 4.0, 1.0
_LATER = (0.0, 0.25, 0.5)  # of a second: starts of the holds
_MOST_BITS = 1e11
_FREELY, _SHORT = 0.85, 3  # of the time, for holds that change; round trips of the other search's parts
_WORDS = {True: "bounded", False: "counterexample", None: "not decided"}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorstNetwork:
    """Holds within a bound of jitter under which a pacing law uses least, and what is proved of all such holds.

    Bounds are those of the law's relations on a link without packets, from rest, in steps; the replay is of the law
    itself on packets, from its equilibrium.
    """

    bounded: bool | None
    """False: the replay uses too little; True: it doesn't, and `utilization_bound` is enough; None: not decided."""
    hold_s: np.ndarray
    """(T,) time that acknowledgements are held, by step [s]. Of the two traces found, one of which has one hold for all
    time, it is the one that uses less on packets."""
    step_s: float
    """Length of a step [s]."""
    utilization_found: float | None
    """Share of the capacity used under these holds, by the relations; None: no holds were found in time."""
    utilization_bound: float | None
    """Share that any holds leave, by the relations; None: the horizon was searched in parts or not in time, or the law
    is the paper's, whose estimate is held."""
    queue_bound_s: float | None
    """Longest queue that any holds leave, by the relations [s]; None likewise."""
    utilization_replayed: float
    """Least share used under these holds, on packets, of three starts."""
    queue_replayed_s: float
    """Greatest mean queueing delay of these three [s]."""
    utilization_without: float
    """On packets without holds, at the same times."""
    jitter_s: float
    """Greatest hold [s]."""
    least_utilization: float
    """Share that was asked for."""
    seconds: float
    """Time that the search took [s]."""

    def table(self) -> str:
        """Verdict, figures and holds as text."""
        ms, word = 1e3, _WORDS[self.bounded]
        span = f"{len(self.hold_s)} steps of {ms * self.step_s:g} ms"
        proved, queue, found = (
            "nothing: searched in parts or not in time, or an estimate is held",
            "not bounded",
            "nothing",
        )
        if self.utilization_bound is not None:
            proved = f"at least {self.utilization_bound:.3f} used, for the law's relations on a fluid link, from rest"
        if self.queue_bound_s is not None:
            queue = f"{ms * self.queue_bound_s:.4g} ms at most, for the relations"
        if self.utilization_found is not None:
            found = f"{self.utilization_found:.3f} used, by the relations"
        used, quiet, waits = self.utilization_replayed, self.utilization_without, ms * self.queue_replayed_s
        rows = {
            "worst network": f"{word}: {self.least_utilization:g} used, jitter up to {ms * self.jitter_s:g} ms, {span}",
            "proved": proved,
            "queue": queue,
            "found": found,
            "on packets": f"{used:.3f} used with these holds, {quiet:.3f} without; mean queue {waits:.3g} ms",
            "holds ms": " ".join(f"{ms * hold:.3g}" for hold in self.hold_s),
            "search": f"{self.seconds:.3g} s",
        }
        return "".join(f"  {name:<15}{text}\n" for name, text in rows.items())


def worst_network(
    design: PacingDesign,
    *,
    jitter_s: float,
    round_trips: int = 10,
    least_utilization: float = 0.9,
    limit_s: float = 120.0,
) -> WorstNetwork:
    """Search the network, within a bound of jitter, on which one flow of a pacing law uses least of its bottleneck.

    Parameters
    ----------
    design : PacingDesign
        Of `netctrl.pacing`; its RTT, bottleneck and buffer are those of the link.
    jitter_s : float
        Greatest time that a packet or its acknowledgement is held behind the link, at most a quarter of the RTT [s].
    round_trips : int
        Horizon, from 1 to 20 round trips.
    least_utilization : float
        Share of the capacity that is to be used over the horizon.
    limit_s : float
        Time for the search [s]; a bound that isn't found in time isn't reported as one.

    Returns
    -------
    WorstNetwork

    Raises
    ------
    InvalidValue
        An argument out of its bounds, or a design of several flows or of a longer period than its round trip.

    Examples
    --------
    The paper's law freezes where it starts, at half its R, without any jitter:

    >>> import netctrl
    >>> from netctrl.checks.worst.search import worst_network
    >>> design = netctrl.pacing(max_rate_bit_per_s=1e7, rtt_s=0.02)
    >>> found = worst_network(design, jitter_s=0.0, round_trips=3)
    >>> found.bounded, round(found.utilization_replayed, 1)
    (False, 0.5)

    References
    ----------
    Arun, Arashloo, Saeed, Alizadeh, Balakrishnan: Toward formally verifying congestion control behavior, SIGCOMM 2021.
    """
    asked = _checked(design)
    rtt = asked.rtt_s
    most = _MOST_JITTER * rtt
    takes = f"a time from 0 to a quarter of the RTT, {most:g} s"
    jitter_s = checked_number("jitter_s", jitter_s, takes, at_least=0.0, at_most=most)
    round_trips = checked_whole("round_trips", round_trips, "a number from 1 to 20", at_least=1, at_most=20)
    takes = "a share above 0 and at most 1"
    share = checked_number("least_utilization", least_utilization, takes, above=0.0, at_most=1.0)
    limit_s = checked_number("limit_s", limit_s, "a time from 1 s to a day, in seconds", at_least=1.0, at_most=86400.0)
    began, law = perf_counter(), step_law(design, jitter_s / rtt)
    step = rtt / law.steps
    free = _holds(law, jitter_s / rtt, round_trips, _FREELY * limit_s, steady=False)
    short = law._replace(window=min(law.window, _SHORT))
    steady = _holds(short, jitter_s / rtt, round_trips, (1.0 - _FREELY) * limit_s, steady=True)
    seconds = perf_counter() - began
    still = np.zeros(round_trips * law.steps)
    quiet, _ = _replay(design, still, step)
    found = [(trace.holds, trace.served) for trace in (free, steady) if trace.holds is not None] or [(still, None)]
    (used, waits), k = min((_replay(design, rtt * holds, step), k) for k, (holds, _) in enumerate(found))
    holds, served = found[k]
    bounded = False if used < share else True if free.bound is not None and free.bound >= share else None
    hold = rtt * holds
    hold.setflags(write=False)
    return WorstNetwork(
        bounded=bounded,
        hold_s=hold,
        step_s=step,
        utilization_found=None if served is None else served / round_trips,
        utilization_bound=free.bound,
        queue_bound_s=None if free.queue is None else rtt * free.queue,
        utilization_replayed=used,
        queue_replayed_s=waits,
        utilization_without=quiet,
        jitter_s=jitter_s,
        least_utilization=share,
        seconds=seconds,
    )


def _checked(design: PacingDesign) -> Any:
    """A design's inputs."""
    if not isinstance(design, PacingDesign):
        raise InvalidValue("design", design, "a design of netctrl.pacing")
    asked = design.inputs
    if asked.flows != 1:
        raise InvalidValue("flows", asked.flows, "1: the search is for one flow")
    share = 0.25 if asked.mode == "target-rtt" else 1.0
    if asked.period_s > share * asked.rtt_s:
        raise InvalidValue("period_s", asked.period_s, f"at most {share:g} of the RTT, {share * asked.rtt_s:g} s")
    if _end(asked.rtt_s, 20 * asked.rtt_s) * asked.bottleneck_bit_per_s > _MOST_BITS:
        takes = "a lower rate, or a shorter RTT: a replay on packets has at most 1e11 bits"
        raise InvalidValue("bottleneck_bit_per_s", asked.bottleneck_bit_per_s, takes)
    return asked


class _Point(NamedTuple):
    """The network and the law after a step."""

    net: dict[str, list[Any]]
    """Sent, served and heard so far, the queue, and the hold; the newest last."""
    state: dict[str, Any]


class _Found(NamedTuple):
    """Outcome of the search."""

    holds: np.ndarray | None
    """[RTT]; None: nothing was found in time."""
    served: float | None
    """[BDP]; likewise."""
    bound: float | None
    """Of the utilization; None where the horizon has several parts."""
    queue: float | None
    """Bound of the queue [BDP]; None likewise."""


def _holds(law: StepLaw, jitter: float, round_trips: int, limit: float, steady: bool) -> _Found:
    """Part by part; all but the last round trip of a part is kept."""
    n, done, bound, queue = law.steps, 0, None, None
    point, holds = _rest(law), []
    first = point.net["served"][-1]
    parts = 1 + ceil(max(round_trips - law.window, 0) / max(law.window - 1, 1))
    steps = n * min(law.window, round_trips)
    tightening = _TIGHTENED * limit / (parts * steps * _BOUNDS_A_STEP) if law.exact and not steady else 0.0
    while done < round_trips:
        ahead = min(law.window, round_trips - done)
        last = done + ahead == round_trips
        relations = Relations(tightening)
        course = _course(relations, law, point, jitter, range(done * n + 1, (done + ahead) * n + 1), steady)
        end = course[-1]
        # What comes after a part counts as its last round trip does.
        sent = end.net["sent"]
        aim = end.net["served"][-1] + (sent[-1] - sent[-1 - n]) * float(round_trips - done - ahead)
        seconds = limit * (1.0 - _TIGHTENED) / (parts + (parts == 1))
        solved = relations.least(aim, seconds)
        if law.sound and ahead == round_trips:
            bound = min((max(solved.bound, aim.low) - first) / round_trips, 1.0)
            waiting = relations.greatest([later.net["queue"][-1] for later in course])
            queue = min(-relations.least(-waiting, seconds).bound, waiting.high)
        if solved.values is None:
            return _Found(None, None, bound, queue)
        kept = n * (ahead if last else max(ahead - 1, 1))
        net, state = valued(list(course[kept - 1]), solved.values)
        point, done = _Point(net, state), done + kept // n
        holds += net["hold"][-kept:]
    return _Found(np.clip(holds, 0.0, jitter), point.net["served"][-1] - first, bound, queue)


def _rest(law: StepLaw) -> _Point:
    """The link and the law in equilibrium, for as long as the law looks back."""
    at = np.arange(-2 * law.steps - 1, 1) / law.steps
    rate = min(law.rest["rate"], 1.0)
    net = {"sent": rate * at + law.queue, "served": rate * at, "heard": rate * (at - 1.0)}
    held = {"queue": np.full(len(at), law.queue), "hold": np.zeros(len(at))}
    return _Point({name: values.tolist() for name, values in (net | held).items()}, law.rest)


def _course(
    relations: Relations, law: StepLaw, point: _Point, jitter: float, steps: range, steady: bool
) -> list[_Point]:
    """The network's and the law's steps from a point on; steady: with one hold for all of them."""
    n, course = law.steps, []
    net, state = affine(relations, list(point))
    for step in steps:
        served, sent, before = net["served"], net["sent"][-1], net["heard"][-1]
        # Once a round trip: a search finds more with holds that are timed to a step, but packets don't keep such times.
        new = step == 1 if steady else (step - 1) % n == 0
        hold = relations.variable(0.0, jitter) if new else net["hold"][-1]
        # Held back: hold times the rate n steps ago, at most 1.
        held = relations.product(hold, (served[-n] - served[-n - 1]) * n)
        heard = served[-n] - held
        relations.at_most(before, heard)
        more = state["rate"] * (1.0 / n)
        if "window" in state:
            room = relations.maximum(heard + state["window"] - sent, relations.constant(0.0))
            more = relations.minimum(more, room)
        sent = sent + relations.settle(more)
        through = relations.minimum(sent - served[-1], relations.constant(1.0 / n))
        through = served[-1] + relations.settle(through, 0.0, 1.0 / n)
        queue = relations.settle(sent - through, 0.0)
        news = {"sent": sent, "served": through, "heard": heard, "queue": queue, "hold": hold}
        net = {name: [*net[name], value] for name, value in news.items()}
        delivered = relations.settle(heard - net["heard"][-1 - n])
        rtt = net["queue"][-1 - n] + hold + 1.0
        state = law.decide(relations, state, Seen(step, rtt, delivered, sent - heard))
        course.append(_Point(net, state))
    return course


def _end(rtt: float, span: float) -> float:
    """When a replay ends [s]: after the law has come to rest, between two drains on the clock."""
    return _PERIOD_S * ceil(_SETTLED_RTTS * rtt / _PERIOD_S) + _AFTER_DRAIN_S + _LATER[-1] + span


def _replay(design: PacingDesign, holds: np.ndarray, step: float) -> tuple[float, float]:
    """The law on packets whose acknowledgements are held: least share used, greatest mean queue [s] of the starts."""
    runs = [_once(design, holds, step, later) for later in _LATER]
    return min(used for used, _ in runs), max(queue for _, queue in runs)


def _once(design: PacingDesign, holds: np.ndarray, step: float, later: float) -> tuple[float, float]:
    asked, span = design.inputs, step * len(holds)
    start = _end(asked.rtt_s, 0.0) - _LATER[-1] + later
    line = Link(id="line", source="a", target="b", capacity=asked.bottleneck_bit_per_s, buffer=asked.buffer_bytes)
    back = Link(id="back", source="b", target="a", capacity=asked.bottleneck_bit_per_s)
    flow = Flow(
        id="flow",
        path=("line",),
        ack_path=("back",),
        rtt=asked.rtt_s,
        sender={"kind": "paced", "law": design.law},
        ecn=False,
    )
    scenario = Scenario(
        links=(line, back),
        flows=(flow,),
        changes=tuple(Change(link="back", at=start + step * k, delay=hold) for k, hold in enumerate(holds.tolist())),
        packet_size=asked.packet_size_bytes,
        duration=start + span,
        warmup=start,
        interval=step,
    )
    found = dict(simulate(scenario, "packet").measures())
    return found["utilization", "line"], found["delay", "line"]
