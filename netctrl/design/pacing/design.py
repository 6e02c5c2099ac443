"""MPC pacing: a sender's rate from its round-trip times, by the published law, or to a queue of the own rate.

Source: the pacing paper. docs/explanation/pacing.md describes what its law does, and the guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import isfinite
from typing import Any

import msgspec
import numpy as np

from netctrl.core.errors import InvalidValue, Status, checked_number, checked_whole, checked_word
from netctrl.core.units import BITS_PER_BYTE, RATES, SIZES, checked_quantity
from netctrl.design.pacing.own_rate import own_rate_proof
from netctrl.laws.pacing.best_rate import freeze_deviation
from netctrl.laws.tracking.estimators import sgd_step_limit
from netctrl.model.design.design import PacingDesign
from netctrl.model.design.pacing import PacingCertificate, PacingInputs, PacingMap, StepLimit
from netctrl.model.io.record_file import taken
from netctrl.model.law import ArxPacer, OwnRatePacer, PacingLaw

_MAX_RATES = {"paper": 1e10, "own-rate": 1e11}
"""Modes -> default R [bit/s]."""
_ESTIMATORS = ("nlms", "sgd")
_NLMS_LIMIT = 2.0
_FLOOR = 1e-4  # share of R: 10 Gbit/s give 1 Mbit/s
_MIN_RATE = 1e4  # bit/s: a packet of 1500 bytes every 1.2 s
_FIRST_RATE = 1e6  # bit/s, doubled every round trip
_MIN_BUFFER = 30e3  # byte: a buffer needs room for several packets
_BUFFER_TAKES = "a size above 0 in bytes"
_MAX_FLOWS = 1_000_000
_USUAL = 0.2  # share of the RTT: a sawtooth's deviation, 1.17 of 5.18 ms without control (docs/explanation/pacing.md)


def pacing(
    *,
    mode: str = "paper",
    psi: float = 1.0,
    xi: float = 100.0,
    past_rtts: int = 5,
    past_rates: int = 1,
    period_s: float = 0.01,
    max_rate_bit_per_s: float | None = None,
    step: float = 0.5,
    estimator: str = "nlms",
    smoothing: float = 0.5,
    guarded: bool = True,
    packet_size_bytes: float = 1500.0,
    rtt_s: float = 0.01,
    bottleneck_bit_per_s: float | None = None,
    buffer_bytes: float | None = None,
    flows: int = 1,
    argv: Sequence[str] = (),
) -> PacingDesign:
    """Design the pacing law of one sender: where it freezes and stable step sizes, or its queue, shares and margins.

        r minimises ℓ̂(r)/μ_ℓ + ψ (ℓ̂(r) − μ_ℓ)²/μ_v − ξ r/μ_r within its bounds

    ℓ̂ is the predicted RTT; μ_ℓ, μ_v and μ_r are averages. In the published law ℓ̂ is estimated online and μ_ℓ is a
    moving average, so there is no target RTT and R must be close to the bottleneck's rate. The own-rate law, a window's
    with none of these parameters but R, keeps a + c √x packets waiting at its own rate x: the bottleneck may be
    unknown, flows become equal whatever their round trips, and random loss and jitter don't stop it.

    Parameters
    ----------
    mode : str
        "paper" or "own-rate".
    psi : float
        ψ, above 0.
    xi : float
        ξ, above 0.
    past_rtts, past_rates : int
        p and q, at least 1.
    period_s : float
        T, shortest time between two rates [s].
    max_rate_bit_per_s : float, optional
        R, highest rate [bit/s]; by default 10 Gbit/s, and 100 Gbit/s of the own-rate law.
    step : float
        α, above 0; below 2 with NLMS.
    estimator : str
        "nlms", or "sgd" as printed.
    smoothing : float
        γ, at least 0 and below 1.
    guarded : bool
        False: exactly Algorithm 1, a rate from each sample, without guards.
    packet_size_bytes : float
        Size of a packet [byte].
    rtt_s, bottleneck_bit_per_s : float, optional
        RTT [s] and bottleneck rate [bit/s] of the certificate; the law knows neither. The bottleneck is R by default.
    buffer_bytes : float, optional
        Buffer of the bottleneck [byte] in the certificate; by default one bandwidth-delay product, at least 30 kB.
    flows : int
        Number of flows that share the bottleneck in the certificate, from 1 to a million.
    argv : sequence of str
        Command line, for the provenance.

    Returns
    -------
    PacingDesign
        The status is never `admissible` for the paper's law: with it each rate below the bottleneck's is an
        equilibrium, so no throughput is guaranteed.

    Raises
    ------
    InvalidValue
        An argument out of its bounds.

    Examples
    --------
    >>> import netctrl
    >>> design = netctrl.pacing(mode="own-rate", rtt_s=0.02, bottleneck_bit_per_s=1e8, buffer_bytes=1e5)
    >>> proof = design.certificate
    >>> str(proof.status), round(proof.least_buffer_bytes), proof.most_flows
    ('admissible', 30386, 7)

    References
    ----------
    Pacing paper, Algorithm 1 and eq. (7). docs/explanation/pacing.md describes the law and its guards.
    """
    checked_word("mode", mode, _MAX_RATES)
    rule = checked_word("estimator", estimator, _ESTIMATORS)
    if not isinstance(guarded, bool | np.bool_):
        raise InvalidValue("guarded", guarded, "True or False")
    above, seconds, rates = "a number above 0", "a time from 1 us to 10 s, in seconds", "a rate above 0 in bit/s"
    R = _MAX_RATES[mode] if max_rate_bit_per_s is None else max_rate_bit_per_s
    R = checked_number("max_rate_bit_per_s", R, "a rate of at least 10 kbit/s, in bit/s", at_least=_MIN_RATE)
    bottleneck = R if bottleneck_bit_per_s is None else bottleneck_bit_per_s
    nlms = estimator == "nlms"
    takes = "a number above 0 and below 2: NLMS diverges from 2 on" if nlms else above
    highest = float(np.nextafter(_NLMS_LIMIT, 0.0)) if nlms else 1e300
    requested = PacingInputs(
        mode=mode,  # ty: ignore[invalid-argument-type]
        psi=checked_number("psi", psi, above, above=0.0),
        xi=checked_number("xi", xi, above, above=0.0),
        past_rtts=checked_whole("past_rtts", past_rtts, "a number of samples from 1 to 100", at_least=1, at_most=100),
        past_rates=checked_whole("past_rates", past_rates, "a number of rates from 1 to 100", at_least=1, at_most=100),
        period_s=checked_number("period_s", period_s, seconds, at_least=1e-6, at_most=10.0),
        max_rate_bit_per_s=R,
        step=checked_number("step", step, takes, above=0.0, at_most=highest),
        estimator=rule,
        smoothing=checked_number("smoothing", smoothing, "at least 0, below 1", at_least=0.0, at_most=1.0 - 1e-9),
        guarded=bool(guarded),
        packet_size_bytes=checked_quantity("packet_size_bytes", packet_size_bytes, "a size above 0 in bytes", SIZES),
        rtt_s=checked_number("rtt_s", rtt_s, seconds, at_least=1e-6, at_most=10.0),
        bottleneck_bit_per_s=checked_quantity("bottleneck_bit_per_s", bottleneck, rates, RATES),
        flows=checked_whole("flows", flows, "a number of flows from 1 to 1000000", at_least=1, at_most=_MAX_FLOWS),
    )
    bdp = max(requested.bottleneck_bit_per_s * requested.rtt_s / BITS_PER_BYTE, _MIN_BUFFER)
    held = checked_number("buffer_bytes", bdp if buffer_bytes is None else buffer_bytes, _BUFFER_TAKES, above=0.0)
    requested = msgspec.structs.replace(requested, buffer_bytes=held)
    law, proof = _made(requested, held)
    return PacingDesign.of(requested, law, proof, argv=argv, libraries=("numpy", "numba"))


def pacing_map(
    design: PacingDesign, *, psi: Any = None, xi: Any = None, ratios: Sequence[float] = (0.5, 1.0, 2.0, 4.0)
) -> PacingMap:
    """d* over the RTT, for the design's RTT, period and bottleneck, over ψ (n,), ξ (m,) and R over the bottleneck (k,).

    b_1 is that of a queue, `sampling`/C, and the rate is the smaller of R and the bottleneck's.
    """
    requested = design.inputs
    psi, xi = (np.logspace(-2.0, 3.0, 81) if grid is None else np.array(grid, dtype=float) for grid in (psi, xi))
    sampling = max(requested.period_s, requested.rtt_s) / requested.rtt_s
    thresholds = np.empty((len(ratios), len(xi), len(psi)))
    for place in np.ndindex(*thresholds.shape):
        rate = min(ratios[place[0]], 1.0)
        thresholds[place] = freeze_deviation(psi[place[2]], xi[place[1]], sampling, 1.0, rate)
    return PacingMap(psi, xi, np.array(ratios, dtype=float), thresholds)


def _made(requested: PacingInputs, buffer: float) -> tuple[PacingLaw, PacingCertificate]:
    """The mode's law with its certificate."""
    if requested.mode == "paper":
        paper = _paper_law(requested)
        return paper, _paper_proof(requested, paper)
    R = requested.max_rate_bit_per_s
    own = OwnRatePacer(
        packet_size_bytes=requested.packet_size_bytes, max_rate_bit_per_s=R, start_rate_bit_per_s=min(_FIRST_RATE, R)
    )
    return own, own_rate_proof(requested, own, buffer)


def _paper_law(requested: PacingInputs) -> ArxPacer:
    R = requested.max_rate_bit_per_s
    return ArxPacer(
        **taken(requested, "psi", "xi", "period_s", "past_rtts", "past_rates", "step", "smoothing", "guarded"),
        least_rate_bit_per_s=max(_FLOOR * R, min(_MIN_RATE, R)) if requested.guarded else 0.0,
        max_rate_bit_per_s=R,
        start_rate_bit_per_s=0.5 * R,
        normalised=requested.estimator == "nlms",
        rtt_unit_s=None,
        rate_unit_bit_per_s=R,
        first_slope=0.1,
        slope_floor=1e-3,
        deviation_floor=1e-4,
        theta_limit=100.0,
    )


def _paper_proof(requested: PacingInputs, law: ArxPacer) -> PacingCertificate:
    C, R = requested.bottleneck_bit_per_s, law.max_rate_bit_per_s
    sampling = max(law.period_s, requested.rtt_s)
    d = freeze_deviation(law.psi, law.xi, sampling / C, requested.rtt_s, min(R, C))
    limits = tuple(_sgd_limits(requested))
    limit = _NLMS_LIMIT if law.normalised else limits[0].limit
    warnings = tuple(_warnings(requested, law, d, limit))
    status = Status.UNSTABLE if law.step >= limit else Status.STABLE
    return PacingCertificate(
        status=status,
        sampling_s=sampling,
        freeze_below_s=d if isfinite(d) else None,
        step_limit=limit,
        sgd_limits=limits,
        warnings=warnings,
    )


def _sgd_limits(requested: PacingInputs) -> Iterator[StepLimit]:
    """Limits in several units; the law's own units, the first RTT and R, come first."""
    rtt, rate = requested.rtt_s, requested.max_rate_bit_per_s
    for units, size, flow in (
        ("RTTs and R", 1.0, 1.0),
        ("s and Gbit/s", rtt, rate / 1e9),
        ("ms and Gbit/s", 1e3 * rtt, rate / 1e9),
        ("s and bit/s", rtt, rate),
    ):
        yield StepLimit(units=units, limit=sgd_step_limit([size] * requested.past_rtts + [flow] * requested.past_rates))


def _warnings(requested: PacingInputs, law: ArxPacer, d: float, limit: float) -> Iterator[str]:
    C, R = requested.bottleneck_bit_per_s, law.max_rate_bit_per_s
    if law.step >= limit:
        yield (
            f"SGD with a step of {law.step:g} diverges at R: it is stable below {limit:.4g} in this law's units;"
            " take the estimator nlms"
        )
    if not law.guarded:
        yield "without guards a rate of 0 is a deadlock: no packet, no acknowledgement, no new rate"
    if R > C:
        yield (
            f"R is {R / C:.3g} times the bottleneck: the law freezes, or runs to R without effect; set --max-rate to"
            f" the bottleneck, where a fixed cap does as well, or take --mode own-rate"
        )
    if not isfinite(d):
        yield "the rate freezes at any value: psi and xi weigh the RTT above the rate; a larger --xi avoids this"
    elif d > _USUAL * requested.rtt_s:
        yield (
            f"d* is {100.0 * d / requested.rtt_s:.3g} % of the RTT: a smaller sawtooth freezes the rate where it is;"
            " a larger --xi avoids this"
        )
    yield (
        "the law has no target RTT: every rate below the bottleneck's is an equilibrium, so it is never admissible;"
        " --mode own-rate has a target"
    )
