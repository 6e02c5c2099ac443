"""Designs of queues for what users feel: gains and lines with a guard of margins, and CoDel's times, on packets.

A margin doesn't tell delays: noise of marks, slow start and a law's caps do, and the packet engine has them. Candidates
are in the target's steps, and their disk margin is enough (`netctrl.design.queue.design.candidates`). All run with one
seed, the best of these with others, and the best of all, proved over the box, once more beside the shipped gains, with
seeds that chose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Unpack

import msgspec

from netctrl.certificates.box import Where
from netctrl.certificates.codel import CodelSubject, cycle_felt
from netctrl.certificates.verdict import absent
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign, Status, checked_number, checked_word
from netctrl.core.units import TIMES, checked_quantity, format_quantity
from netctrl.design.queue.design import Problem, candidates, law_of, problem_of, searched, shipped_of
from netctrl.design.queue.record import Asked, Objective, QueueDesign
from netctrl.design.queue.samples import prove_disk_margin
from netctrl.design.queue.search import CODELS
from netctrl.model.design.queue_checks import Felt, GainsFigures

if TYPE_CHECKING:
    from netctrl.core.names import DesignedName

_BY_CYCLE = 10
"""Times of CoDel that are left by their cycles."""
_ROUNDS = (((1,), 4), ((2, 3), 1))
"""Seeds of a round, and how many gains it leaves."""
_FRESH = tuple(range(11, 19))
"""Seeds of the comparison."""
_SHARE = "a share above 0 and at most 1, as in 0.98"
_NOISE, _GAIN = 0.5, 1.5
"""Differences that count by which a figure may be worse by chance, and by which one has to be better."""


def queue_design(
    law: DesignedName,
    *,
    parameters: Mapping[str, Any] | None = None,
    objective: Objective | None = None,
    disk_margin: float | None = None,
    p99_s: float | None = None,
    utilization: float | None = None,
    step_s: float | None = None,
    argv: Iterable[str] = (),
    **where: Unpack[Where],
) -> QueueDesign:
    """Law of a queue for a box of flows, round-trip times, rates and senders, as its target runs it.

    With the objective "figures" it is the law that users feel least, on packets: of gains with a disk margin 2/‖S − T‖∞
    of at least `disk_margin` everywhere in the box, those that are better than the shipped ones in the 99th percentile
    of the delay, the utilization or the time above two targets after a step of the load, and no worse in the others; or
    the shipped ones where there are none. Of CoDel, which has no margins, it is target and interval, which its cycle
    proposes. With "speed" it is the law with the greatest integral gain, of RED and WRED
    with the steepest line, that has this disk margin. With "margin" it is the beta with which the least disk margin of
    the box is greatest, at the alpha that is given. The law is in whole steps of its target, and the certificate is
    proved for it.

    Parameters
    ----------
    law : str
        "pie", "docsis-pie", "pi2", "dualpi2", "red" or "wred"; "codel", "fq_codel" or "cake".
    parameters : mapping, optional
        Other parameters of the law, in SI units, as in {"target_s": 0.01}; for "red" and "wred" with `min_bytes`.
    objective : {"figures", "speed", "margin"}, optional
        By default "figures" where `p99_s`, `utilization` or `step_s` is given, else "speed"; "margin" only for laws
        with gains; for CoDel "figures" only.
    disk_margin : float, optional
        Above 0 and at most 1.8; not with "margin". By default 2/3, which implies 6 dB and 36.9 degrees, and with
        "figures" .353: 3 dB and 20 degrees; none for CoDel.
    p99_s, utilization, step_s : float, optional
        Of the objective "figures": longest 99th percentile of the delay [s], least share of the link's rate, longest
        time above two targets, of lines four lower thresholds, after all flows begin or double [s], at every corner of
        the box. What isn't given is made as good as can be.
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box: `rtt_s`, `flows`, `capacity_bit_per_s`, `window_packets`, `packet_size_bytes`, `senders` and
        `stretches` of `netctrl.certify`.

    Returns
    -------
    QueueDesign
        Where figures miss what is asked for, the nearest ones: it isn't admissible.

    Raises
    ------
    InvalidValue
        A value outside its bounds, a parameter that the design finds, or a law that packets don't have.
    NoAdmissibleDesign
        There is no equilibrium somewhere in the box, or no law of the target has this disk margin.

    Notes
    -----
    The problem "speed" is that of Åström, Panagopoulos and Hägglund ("Design of PI controllers based on non-convex
    optimization", Automatica 34, 1998), over a box and with the disk margin as its constraint: a change Δx of the load,
    in the law's output, leaves ∫(D − target) dt = Δx T/alpha at every point of the box.

    Examples
    --------
    >>> import netctrl
    >>> found = netctrl.queue_design("pie", rtt_s=0.02, flows=4.0, capacity_bit_per_s=20e6)
    >>> found.law.parameters["alpha"], found.law.parameters["beta"], found.certificate.disk_margin_proved > 2 / 3
    (0.1875, 2.0, True)
    """
    asked = Asked(
        None if p99_s is None else checked_quantity("p99", p99_s, "a delay above 0 in seconds", TIMES),
        None if utilization is None else checked_number("utilization", utilization, _SHARE, above=0.0, at_most=1.0),
        None if step_s is None else checked_quantity("step", step_s, "a time above 0 in seconds", TIMES),
    )
    wanted = next((name for name, value in zip(("p99", "utilization", "step"), asked, strict=True) if value), None)
    usual: Objective = "speed" if wanted is None and law not in CODELS else "figures"
    objective = usual if objective is None else checked_word("objective", objective, ("figures", "speed", "margin"))
    if wanted is not None and objective != "figures":
        raise InvalidValue(wanted, asked._asdict(), f"no value with the objective {objective}")
    problem = problem_of(law, parameters, objective, asked, disk_margin, where)
    if objective == "figures":
        return _by_figures(problem, tuple(argv))
    return problem.design(*searched(problem), argv)


def _by_figures(problem: Problem, argv: tuple[str, ...]) -> QueueDesign:
    """Gains that are better on packets than the shipped ones, or these; where all miss what is asked, the nearest."""
    law, asked, box = problem.law, problem.inputs.asked, problem.box
    if box.inputs.flows is None:
        takes = "flows and a capacity: how much marks move a queue depends on the number of flows"
        raise InvalidValue("window", box.inputs.window_packets, takes)
    shipped, left = shipped_of(problem), candidates(problem)
    if law in CODELS:
        left = _by_cycle(problem, shipped, left)
    for seeds, most in _ROUNDS:
        theirs = Felt.worst(_figures(problem, shipped, seeds))
        left = sorted(left, key=lambda each: _rank(Felt.worst(_figures(problem, each, seeds)), theirs, asked))[:most]
    beside = figures = _figures(problem, shipped, _FRESH)
    if not left and not beside:
        raise NoAdmissibleDesign(f"no {law} has this disk margin over this box; narrow it, or ask for a smaller one")
    made = shipped
    for each in left:
        found = _figures(problem, each, _FRESH)
        if _better(Felt.worst(found), Felt.worst(beside), asked):
            made, figures = each, found
    proof = None if law in CODELS else prove_disk_margin(law_of(law, made), box)
    if proof is not None and made is not shipped and proof.proved < (problem.least or 0.0):
        made, figures, proof = shipped, beside, prove_disk_margin(law_of(law, shipped), box)
    design = problem.design(made, proof, argv, _remedy(problem, Felt.worst(figures)))
    certificate = msgspec.structs.replace(design.certificate, figures=figures, shipped=beside, keep=made is shipped)
    if asked.missing(Felt.worst(figures)) and certificate.status is Status.ADMISSIBLE:
        certificate = msgspec.structs.replace(certificate, status=Status.STABLE)
    return msgspec.structs.replace(design, certificate=certificate)


def _figures(problem: Problem, parameters: Mapping[str, Any], seeds: tuple[int, ...]) -> tuple[GainsFigures, ...]:
    from netctrl.checks.gains import gains_figures  # compiled engines, which other objectives don't need

    subject = law_of(problem.law, parameters)
    if not isinstance(subject, CodelSubject) and absent(subject, problem.box) is not None:
        return ()  # of the shipped line, whose upper threshold is too near
    return gains_figures(subject, problem.box.inputs, "packet", seeds)


def _by_cycle(problem: Problem, shipped: dict[str, Any], tried: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The best times of CoDel by their cycles; where these have no figures, some of all."""
    found = [cycle_felt(law_of(problem.law, each), problem.box) for each in (shipped, *tried)]
    if found[0] is None:
        return tried[:: max(len(tried) // _BY_CYCLE, 1)]
    theirs, *others = (Felt.worst(()) if each is None else Felt(*each, 0.0) for each in found)
    ranks = [_rank(each, theirs, problem.inputs.asked) for each in others]
    return [tried[k] for k in sorted(range(len(tried)), key=ranks.__getitem__)[:_BY_CYCLE]]


def _rank(felt: Felt, shipped: Felt, asked: Asked) -> tuple[float, float, float]:
    """Less is better: how far what is asked for is missed; what is lost over shipped gains that have it; and figures
    for which nothing is asked, all of them where something is asked for each."""
    over = felt.worse_than(shipped)
    lost = 0.0 if asked.missing(shipped) else sum(max(by - _NOISE, 0.0) for by in over)
    free = [by for by, wanted in zip(over, asked, strict=True) if wanted is None]
    return asked.miss(felt), lost, sum(free or over)


def _better(felt: Felt, shipped: Felt, asked: Asked) -> bool:
    """Whether figures have what is asked for and shipped gains haven't, or both have or lack it and these lose nothing
    and gain something."""
    ours, theirs = asked.miss(felt), asked.miss(shipped)
    over = felt.worse_than(shipped)
    return ours < theirs or (ours == theirs == 0.0 and max(over) <= _NOISE and min(over) < -_GAIN)


def _remedy(problem: Problem, felt: Felt) -> list[str]:
    """What would help against a delay that is too long."""
    asked = problem.inputs.asked
    if asked.p99_s is None or not asked.excess(felt)[0] or felt.delay_99_s is None:
        return []
    target = law_of(problem.law, problem.given).target_s * asked.p99_s / felt.delay_99_s
    return [f"a target of {format_quantity(float(f'{target:.1g}'), 's')} or so may meet the delay that is asked for"]
