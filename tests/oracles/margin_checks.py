"""What a loop's margins say, held against root finding: a list of what is wrong, empty where nothing is."""

from __future__ import annotations

import math

import numpy as np
from quasi_roots import encircled, rightmost, unstable_count

from netctrl.frequency.margins import margins
from netctrl.frequency.records import Margins, factor
from netctrl.model.open_loop import OpenLoop

NEAR = 1e-3  # how close to the boundary the poles are looked at
_GAINS = 10.0 ** np.linspace(-2.7, 2.7, 10)


def complaints(loop: OpenLoop, thorough: bool = True) -> list[str]:
    """Verdict, count and crossovers of `margins(loop)`, and where thorough both gain margins and the delay margin, each
    against the poles."""
    found = margins(loop)
    x = rightmost(loop)
    if found.verdict == "marginal":
        return [] if abs(x) < 1e-6 else [f"marginal, the poles say {x:.3g}"]
    if found.stable != (x < 0.0):
        return [f"{found.verdict}, the poles say {x:.3g}"]
    said = []
    if found.unstable_poles < 15 and (count := unstable_count(loop)) != found.unstable_poles != encircled(loop):
        said.append(f"{found.unstable_poles} unstable poles, root finding {count}")
    said += _crossovers(loop, found)
    return said + _gains(loop, found) + _delays(loop, found) if thorough else said


def _gains(loop: OpenLoop, found: Margins) -> list[str]:
    low, high = factor(found.gain_reduction_db), factor(found.gain_margin_db)
    if high == 0.0:
        good = [k for k in _GAINS if rightmost(loop, k) < 0.0 and not encircled(loop, k)]
        return [f"no stable gain, the poles find {good}"] if good else []
    if found.stable != (low < 1.0 < high):
        return [f"stable gains {low} to {high}"]
    middle = max(2.0 * low, 1.0) if high == math.inf else 0.5 * high if low == 0.0 else math.sqrt(low * high)
    inside = [middle, *([low * (1.0 + NEAR)] if low else []), *([high * (1.0 - NEAR)] if high < math.inf else [])]
    if high / max(low, 1e-300) < 1.0 + 3.0 * NEAR:
        inside = [middle]
    outside = [low * (1.0 - NEAR)] if low else []
    said = []
    if found.phase_crossover_rad_s == math.inf and len(loop.denominator) == 1:
        # The poles that grow are beyond all that root finding sees, or gone again at once: the highest powers decide.
        ends = abs(loop.denominator[0][1][0] / loop.numerator[0][1][0])
        said = [] if math.isclose(high, ends, rel_tol=1e-9) else [f"gain margin {high}, at infinity {ends}"]
    elif high < math.inf:
        # Of the poles far up those that grow do by ln(gain) over the delay only.
        outside.append(high * (1.05 if found.phase_crossover_rad_s == math.inf else 1.0 + NEAR))
    return (
        said
        + [f"gain {k:.9g} not stable" for k in inside if rightmost(loop, k) >= 0.0]
        + [f"gain {k:.9g} stable" for k in outside if rightmost(loop, k) <= 0.0 and not encircled(loop, k)]
    )


def _delays(loop: OpenLoop, found: Margins) -> list[str]:
    margin, dt = found.delay_margin_s, loop.dt
    if dt:
        whole = range(min(12, 1 + (0 if math.isnan(margin) else int(min(margin / dt, 99) - 1e-9))))
        return [f"{d} samples more not stable" for d in whole if found.stable and rightmost(loop, 1.0, d * dt) >= 0.0]
    if found.stable and margin == math.inf:
        return [f"delay {d} not stable" for d in (0.1, 1.0, 7.0) if rightmost(loop, 1.0, d) >= 0.0]
    if found.stable:
        near = [0.5 * margin, margin * (1.0 - NEAR)] if margin else []
        far = margin * (1.0 + NEAR) if margin else 0.1
        return [f"delay {d:.9g} not stable" for d in near if rightmost(loop, 1.0, d) >= 0.0] + (
            [f"delay {far:.9g} stable"] if rightmost(loop, 1.0, far) <= 0.0 else []
        )
    own = min((d for d, _ in loop.numerator), default=0.0)
    if margin == -math.inf:
        good = [part for part in (0.0, 0.05, 0.3, 0.6, 0.9) if own and rightmost(_late(loop, part * own)) < 0.0]
        return [f"no shorter delay is stable, the poles find {good} of {own}"] if good else []
    kept, fast = own + margin, found.crossovers_rad_s
    kept = kept if kept > 1e-12 * own else 0.0  # to rounding, all of the delay has to go
    # At it no pole is beyond the axis, and below it none on it: the stable delays may be a narrow window.
    below = rightmost(_late(loop, kept), tried=fast) < 1e-9 and any(
        rightmost(_late(loop, max(0.0, kept - near * own)), tried=fast) < 0.0 for near in (NEAR, 1e-6, 1e-9)
    )
    above = rightmost(_late(loop, kept + NEAR * own), tried=fast) > 0.0
    return [f"delay {kept:.9g} not stable"] * (not below) + [f"delay {kept:.9g} + stable"] * (not above)


def _late(loop: OpenLoop, delay: float) -> OpenLoop:
    """The loop with this delay at its output instead of its own."""
    own = min(d for d, _ in loop.numerator)
    return OpenLoop(numerator=[(d - own + delay, p) for d, p in loop.numerator], denominator=loop.denominator)


def response(loop: OpenLoop, w: np.ndarray) -> np.ndarray:
    s = 1j * w
    z = np.exp(s * loop.dt) if loop.dt else s
    above, below = (
        sum(np.polyval(p, z) * np.exp(-s * t) for t, p in part) for part in (loop.numerator, loop.denominator)
    )
    return above / below


def _crossovers(loop: OpenLoop, found: Margins) -> list[str]:
    at = np.array(found.crossovers_rad_s)
    L = response(loop, at)
    said = [f"|L| is {abs(x)} at {w}" for w, x in zip(at, L, strict=True) if abs(abs(x) - 1.0) > 1e-6]
    if at.size and found.verdict != "marginal":
        phases = np.degrees(np.angle(-L))
        if abs(found.phase_margin_deg - phases[np.argmin(np.abs(phases))]) > 1e-5:
            said.append(f"phase margin {found.phase_margin_deg}, the response says {phases}")
    if not -180.0 < found.phase_margin_deg <= 180.0 and at.size:
        said.append(f"phase margin {found.phase_margin_deg}")
    w = np.linspace(1e-4, math.pi - 1e-4, 4001) / loop.dt if loop.dt else np.geomspace(1e-4, 1e3, 4001)
    above = np.abs(response(loop, w)) > 1.0
    for i in np.flatnonzero(above[1:] != above[:-1]):
        if not ((at >= w[i] * (1.0 - 1e-9)) & (at <= w[i + 1] * (1.0 + 1e-9))).any():
            said.append(f"a gain crossover near {w[i]} is missing")
    return said
