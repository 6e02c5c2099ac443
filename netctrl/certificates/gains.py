"""Gains that hold over a box: the fastest PI law within the design rule, in the steps that its target takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import floor, radians
from typing import Any, NamedTuple, Unpack

import msgspec
import numpy as np

from netctrl.certificates.box import Box, Ends, Where, box_of
from netctrl.certificates.certify import MIN_GAIN_DB, MIN_PHASE_DEG, certify, check_parameters, holds
from netctrl.certificates.loops import box_loops
from netctrl.certificates.record import GainsThatHold, QueueCertificate
from netctrl.certificates.subject import SUBJECTS, PiSubject
from netctrl.errors import InvalidValue, NoAdmissibleDesign, Status, did_you_mean
from netctrl.frequency.branch_bound import Sector
from netctrl.frequency.sampled_gain import gains_at
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.targets.dualpi2 import DUALPI2_STEP
from netctrl.laws.targets.pie_law import PIE_MAX, PIE_STEP

__all__ = ["QueueGains", "queue_gains"]

_RULE = Sector(gain=10.0 ** (-(MIN_GAIN_DB + 0.2) / 20.0), phase=radians(MIN_PHASE_DEG + 1.0))
"""The design rule with a little more, so that it can be proved between the points of a first look."""
_RATIOS = np.geomspace(0.2, 200.0, 19)
"""Time constants of the law's zero over the longest round trip, among which the fastest law is sought."""
_SAMPLES = 5
"""Flows and round-trip times of a first look at a box, each."""
_SLOWER = (1, 2, 4, 8, 16, 32)
"""Multiples of the update interval to be tried where the smallest gains of a target are too large."""
_STEPS_BACK = 40
_BACK = 0.96
"""Factor by which gains are lowered until a proof over the whole box succeeds."""


class QueueGains(NamedTuple):
    """Gains with their certificate, and how a target is given them."""

    certificate: QueueCertificate
    parameters: Mapping[str, Any]
    """Arguments of the law, as in `netctrl.certify(..., parameters=...)`."""
    tc: str | None
    """Arguments of tc(8) after `tc qdisc add dev DEV root`; None for a law without a qdisc."""
    ns3: Mapping[str, str] | None
    """Attributes of ns-3's queue disc of this law; None for a law without one."""

    def beside(self, found: QueueCertificate) -> QueueCertificate:
        """Another certificate with these gains beside it."""
        proof = self.certificate.certificate.sampled
        if proof is None or proof.gain_margin_db_proved is None:
            raise InvalidValue("gains", self.parameters, "gains that are proved to hold")
        held = GainsThatHold(
            parameters=dict(self.parameters),
            tc=self.tc,
            ns3=None if self.ns3 is None else dict(self.ns3),
            gain_margin_db_proved=proof.gain_margin_db_proved,
            phase_margin_deg=proof.phase_margin_deg,
        )
        return msgspec.structs.replace(found, gains_that_hold=held)


class _Steps(NamedTuple):
    """Steps in which a target takes gains."""

    step: float
    """[1/s]; 0: any."""
    most: float
    """[1/s]"""


_TARGETS = {
    "pie": _Steps(PIE_STEP, PIE_MAX * PIE_STEP),
    "dualpi2": _Steps(DUALPI2_STEP, 1e4),
    "pi2": _Steps(0.0, 1e4),
}


def queue_gains(
    law: str,
    *,
    parameters: Mapping[str, Any] | None = None,
    argv: Iterable[str] = (),
    **where: Unpack[Where],
) -> QueueGains:
    """Gains of a queue's PI law that meet the design rule at every point of a box, as the target runs them.

    Among the laws that keep 6 dB and 30 degrees, it is the one with the greatest integral gain, which removes a
    standing deviation of the queue fastest. Gains are rounded to the target's steps, and the result is certified.

    Parameters
    ----------
    law : str
        "pie", "pi2" or "dualpi2".
    parameters : mapping, optional
        Other parameters of the law, as in {"target_s": 0.01}; its gains are found.
    argv : iterable of str
        Command line, for the provenance.
    **where
        The box: `rtt_s`, `flows`, `capacity_bit_per_s`, `window_packets`, `packet_size_bytes`, `senders` and
        `stretches` of `netctrl.certify`.

    Raises
    ------
    InvalidValue
        As `netctrl.certify`.
    NoAdmissibleDesign
        There is no equilibrium somewhere in the box, or the smallest gains of the target are too large for it.

    Examples
    --------
    >>> from netctrl.certificates.gains import queue_gains
    >>> found = queue_gains("dualpi2", rtt_s=(0.02, 0.1), flows=(10.0, 40.0), capacity_bit_per_s=100e6)
    >>> found.certificate.certificate.status.value, found.tc.split()[:3]
    ('admissible', ['dualpi2', 'target', '15ms'])
    """
    given, command = dict(parameters or {}), tuple(argv)
    subject = _pi_subject(law, given)
    for name in ("alpha", "beta"):
        if name in given:
            raise InvalidValue("parameters", name, f"parameters of {law} other than its gains")
    box = box_of(subject, **where)

    def certified(made: Mapping[str, Any]) -> QueueCertificate:
        return certify(law, parameters=made, argv=command, **msgspec.structs.asdict(box.inputs))

    for slower in _SLOWER:
        made = _proved(law, {**given, "tupdate_s": subject.nominal.update_s * slower}, box)
        if made is not None:
            return QueueGains(certified(made), made, _tc(law, made), _ns3(law, made))
    certificate = certified(given).certificate
    infeasible = certificate.status is Status.INFEASIBLE
    raise NoAdmissibleDesign(
        certificate.warnings[0] if infeasible else f"the smallest gains of {law} are too large for this box"
    )


def _pi_subject(law: str, parameters: Mapping[str, Any]) -> PiSubject:
    if law not in SUBJECTS:
        raise InvalidValue("law", law, f"a law with gains: {', '.join(SUBJECTS)}{did_you_mean(law, SUBJECTS)}")
    check_parameters(law, SUBJECTS[law], parameters)
    return SUBJECTS[law](**parameters)


def _proved(law: str, given: Mapping[str, Any], box: Box) -> dict[str, Any] | None:
    """Parameters with the greatest gains that are proved to hold."""
    alpha, beta = _fastest(law, given, box)
    tried = None
    for _ in range(_STEPS_BACK):
        made = {**given, **_rounded(law, alpha, beta)}
        if made["alpha"] <= 0.0 or made["beta"] > _TARGETS[law].most:
            return None
        subject = _pi_subject(law, made)
        # A first look without proof saves most of the proofs that would fail.
        if made != tried and _greatest(subject, box, *_grid(box)) >= 1.0 and holds(subject, box):
            return made
        tried = made
        alpha, beta = _BACK * alpha, _BACK * beta
    return None


def _grid(box: Box) -> tuple[np.ndarray, np.ndarray]:
    flows, rtt = np.meshgrid(*(_spread(ends) for ends in (box.flows, box.rtt)))
    return flows.ravel(), rtt.ravel()


def _fastest(law: str, given: Mapping[str, Any], box: Box) -> tuple[float, float]:
    """Greatest integral gain, with its proportional one, that keeps the rule on a grid over the box."""
    flows, rtt = _grid(box)
    subject = _pi_subject(law, given)
    longest = max(box.rtt[1] * stretch for stretch in box.inputs.stretches) + subject.nominal.target_s
    found = []
    for ratio in _RATIOS:
        # alpha/(beta T) is the zero of the law alpha/(T s) + beta
        beta_over_alpha = ratio * longest / subject.nominal.update_s
        limit = _greatest(_with_gains(subject, 1e-6, 1e-6 * beta_over_alpha), box, flows, rtt)
        alpha = min(1e-6 * limit, _TARGETS[law].most / max(beta_over_alpha, 1.0))
        found.append((alpha, alpha * beta_over_alpha))
    alpha, beta = max(found)
    return float(alpha), float(beta)


def _greatest(subject: PiSubject, box: Box, flows: np.ndarray, rtt: np.ndarray) -> float:
    least = np.inf
    for _, loop in box_loops(subject, box):
        x = loop.output(flows, rtt)
        at = (x >= loop.within[0]) & (x <= loop.within[1])
        edges = np.array(loop.starts(box.flows, box.rtt)).reshape(-1, 2)  # where gains jump they are worst
        n, tau = np.concatenate([flows[at], edges[:, 0]]), np.concatenate([rtt[at], edges[:, 1]])
        if n.size:
            least = min(least, float(gains_at(loop, n, tau, [_RULE])[0].min()))
    return least


def _with_gains(subject: PiSubject, alpha: float, beta: float) -> PiSubject:
    """The law with other gains, in real numbers: each range keeps its factor."""
    whole = subject.sampled

    def scaled(gains: DelayPi) -> DelayPi:
        factor = gains.integral / whole.integral
        return replace(gains, integral=alpha * factor, proportional=beta * factor)

    return replace(subject, rungs=tuple((low, high, scaled(gains)) for low, high, gains in subject.rungs))


def _spread(ends: Ends) -> np.ndarray:
    return np.geomspace(*ends, _SAMPLES) if ends[0] < ends[1] else np.array([ends[0]])


def _rounded(law: str, alpha: float, beta: float) -> dict[str, float]:
    """Gains in the target's steps: the integral one rounded down, the proportional one to the nearest."""
    step = _TARGETS[law].step
    if not step:
        return {"alpha": alpha, "beta": beta}
    return {"alpha": floor(alpha / step * (1.0 + 1e-12)) * step, "beta": max(round(beta / step), 1) * step}


def _tc(law: str, made: Mapping[str, Any]) -> str | None:
    if law == "pi2":
        return None
    times = f"target {_time(made.get('target_s', 0.015))} tupdate {_time(made['tupdate_s'])}"
    if law == "pie":
        return f"pie {times} alpha {round(made['alpha'] / PIE_STEP)} beta {round(made['beta'] / PIE_STEP)} ecn"
    return f"dualpi2 {times} alpha {made['alpha']:.8g} beta {made['beta']:.8g}"


def _ns3(law: str, made: Mapping[str, Any]) -> dict[str, str] | None:
    if law != "pie":
        return None
    return {
        "TypeId": "ns3::PieQueueDisc",
        "A": f"{made['alpha']:.8g}",
        "B": f"{made['beta']:.8g}",
        "Tupdate": _time(made["tupdate_s"]),
        "QueueDelayReference": _time(made.get("target_s", 0.015)),
    }


def _time(seconds: float) -> str:
    micro = seconds * 1e6
    return f"{micro / 1000.0:g}ms" if micro % 1000.0 == 0.0 else f"{micro:.0f}us"
