"""Thresholds of a switch that hold where those of a certificate don't, for DCTCP's and DCQCN's senders."""

from __future__ import annotations

from itertools import product
from math import ceil
from typing import TYPE_CHECKING, Any

import msgspec

from netctrl.certificates.certify import certify as by_loop
from netctrl.checks.by_packets import certify
from netctrl.design.queue.ecn import ecn_design
from netctrl.laws.targets.step import step_law
from netctrl.model.law import QueueLaw

if TYPE_CHECKING:
    from netctrl.certificates.record import QueueCertificate

_LOWER, _LONGER, _PERCENTS = (1.0, 4.0, 16.0), (1.0, 4.0, 16.0), (0.01, 0.1, 1.0)
"""Factors of DCQCN's lower threshold and of the rise above it, and probabilities at the upper one, that are tried."""
_LOST, _TRIES = 0.02, 6
"""Share of the link that DCQCN's fluid may lose where packets try, and how often they do."""


def profile_that_holds(found: QueueCertificate) -> tuple[QueueLaw, QueueCertificate] | None:
    """WRED of a switch that holds over the box of a certificate, with its own certificate; None: none is known.

    Of DCTCP it is the smallest step with which the link stays busy (`netctrl.ecn_design`). Of DCQCN the
    lower threshold, the rise and the probability grow, until packets tell that the queue is as asked.

    Parameters
    ----------
    found : QueueCertificate
        Of "dctcp", "dcqcn", or "wred" with DCTCP's senders.

    Examples
    --------
    >>> import netctrl
    >>> where = {"rtt_s": 80e-6, "flows": (8.0, 16.0), "capacity_bit_per_s": 100e9}
    >>> low = netctrl.certify("dctcp", parameters={"k_bytes": 20e3}, **where)
    >>> law, better = profile_that_holds(low)
    >>> low.holds, better.holds, law.parameters["min_bytes"] > 100_000
    (False, True, True)
    """
    box: dict[str, Any] = msgspec.structs.asdict(found.inputs)
    if found.law.name == "dcqcn":
        return _other_ramp(found, box)
    if found.inputs.senders != ("dctcp",) or found.law.name not in ("wred", "dctcp"):
        return None
    where = {name: box[name] for name in ("rtt_s", "flows", "capacity_bit_per_s", "packet_size_bytes", "p99_s")}
    step = ecn_design(**where).law
    certificate = certify("dctcp", parameters=step.parameters, **box)
    at = step_law(step.parameters, "bytes").marked_from
    return (_wred(at, at, 1.0), certificate) if certificate.holds else None


def _other_ramp(found: QueueCertificate, box: dict[str, Any]) -> tuple[QueueLaw, QueueCertificate] | None:
    """The ramp with the smallest upper threshold that holds, of those whose fluid leaves little unused."""
    given: dict[str, Any] = dict(found.law.parameters)
    low, rise = max(given["kmin_bytes"], found.inputs.packet_size_bytes), given["kmax_bytes"] - given["kmin_bytes"]
    own = max(round(100.0 * given["pmax"]), 1) / 100.0  # switches take whole percent
    marks = {own, *(p for p in _PERCENTS if p > own)}
    ramps = {(ceil(low * a), ceil(low * a + rise * b), p) for a, b, p in product(_LOWER, _LONGER, marks)}
    tries = 0
    for least, most, p in sorted(ramps, key=lambda ramp: (ramp[1], ramp[0], -ramp[2])):
        parameters = given | {"kmin_bytes": float(least), "kmax_bytes": float(most), "pmax": p}
        cycle = by_loop("dcqcn", parameters=parameters, **box).certificate.cycle
        if cycle is not None and cycle.lost_share > _LOST:
            continue
        certificate = certify("dcqcn", parameters=parameters, **box)
        if certificate.holds and certificate.certificate.predicted is not None:
            return _wred(least, most, p), certificate
        tries += 1
        if tries == _TRIES:
            break
    return None


def _wred(low: int, high: int, most: float) -> QueueLaw:
    parameters = {"min_bytes": low, "max_bytes": high, "max_percent": round(100.0 * most), "ecn": True}
    return QueueLaw(name="wred", implementation="WRED of a switch", parameters=parameters, gains={})
