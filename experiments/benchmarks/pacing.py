"""Pacing laws at work: a step against plain Python, many flows against NumPy over all flows at once; processor time."""

from collections.abc import Iterator
from time import process_time

import numpy as np
from rows import Agreement, Row, Turns, against, alternate, relative

import netctrl
from netctrl.laws.pacing.arx import arx_settings, arx_step
from netctrl.laws.pacing.arx_batch import arx_many
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import own_rate_settings
from netctrl.laws.pacing.pacing import PacingSample, pace, pacer, start_pacing
from netctrl.model.law import ArxPacer, PacingLaw

STEP, SPEED = 2e-6, 5e7
FLOWS, TIMES, STEPS = 4096, 200, 2000


def rows() -> Iterator[Row]:
    paper, own = netctrl.pacing().law, netctrl.pacing(mode="own-rate").law
    yield against_python(paper)
    yield one_step("own-rate, one step from Python", lambda: own_rate_steps(own), paper)
    yield one_step("paper's law, one step with records (pace)", lambda: records(paper), paper)
    yield against_numpy(paper)


def rtts(count: int) -> np.ndarray:
    """Around 4 ms, up by less than would have the law run to R."""
    return 4e-3 * (1.0 + 0.01 * np.random.default_rng(1).random(count))


def against_python(law: ArxPacer) -> Row:
    seen = rtts(STEPS)

    def ours() -> float:
        state, settings = start_pacing(law).values.copy(), arx_settings(law)
        for n, rtt in enumerate(seen.tolist()):
            rate = arx_step(state, settings, 0.02 * n, rtt)
        return rate

    turns = alternate(ours, lambda: plain(law, seen.tolist()), 7, clock=process_time)
    same = relative([turns.answers[0]], [turns.answers[1]], 1e-9, "rates")
    return single("paper's law, one step from Python", "plain Python", turns, same)


def one_step(what: str, ours, law: ArxPacer) -> Row:
    seen = rtts(STEPS).tolist()
    turns = alternate(ours, lambda: plain(law, seen), 7, clock=process_time)
    return single(what, "paper's law in plain Python", turns, "another law, or the same with records")


def single(what: str, peer: str, turns: Turns, same: Agreement | str) -> Row:
    """Seconds for one step."""
    scaled = turns._replace(ours=[t / STEPS for t in turns.ours], theirs=[t / STEPS for t in turns.theirs])
    return against(what, peer, scaled, f"<= {1e6 * STEP:g} us", same)


def own_rate_steps(law: PacingLaw) -> float:
    state, settings = start_pacing(law).values.copy(), own_rate_settings(law)
    for n in range(STEPS):
        rate = own_rate_step(state, settings, 1e-3 * n, 4e-3, 1e4 * n, 4e4, 0.0)
    return rate


def records(law: PacingLaw) -> float:
    ready, state = pacer(law), start_pacing(law)
    for n, rtt in enumerate(rtts(STEPS).tolist()):
        rate, state = pace(ready, state, PacingSample(0.02 * n, rtt))
    return rate


def plain(law: ArxPacer, seen: list[float]) -> float:
    """The law in floats and lists, with the guards that usual samples need."""
    p, unit, R = law.past_rtts, law.rate_unit_bit_per_s, law.max_rate_bit_per_s
    rate, base = law.start_rate_bit_per_s / unit, seen[0]
    b = law.first_slope
    theta = [(1.0 - b * rate) / p] * p + [b]
    history, mean, variance, mean_rate = [1.0] * p + [rate], 1.0, law.deviation_floor**2, rate
    for n, sample in enumerate(seen[1:], start=2):
        rtt = sample / base
        guess = sum(a * x for a, x in zip(theta, history, strict=True))
        gain = law.step / sum(x * x for x in history) * (rtt - guess)
        theta = [a + gain * x for a, x in zip(theta, history, strict=True)]
        off = guess - mean
        mean = law.smoothing * mean + (1.0 - law.smoothing) * rtt
        variance = law.smoothing * variance + (1.0 - law.smoothing) * off * off
        variance = max(variance, (law.deviation_floor * mean) ** 2)
        history = [rtt, *history[: p - 1], history[p]]
        if n <= p:
            continue
        b = theta[p]
        if b >= law.slope_floor:
            at_zero = sum(a * x for a, x in zip(theta[:p], history[:p], strict=True))
            free = ((law.xi / mean_rate - b / mean) * variance / (2.0 * law.psi * b) + mean - at_zero) / b
            rate = min(max(free, law.least_rate_bit_per_s / unit), R / unit)
        history[p] = rate
        mean_rate = law.smoothing * mean_rate + (1.0 - law.smoothing) * rate
    return rate * unit


def against_numpy(law: ArxPacer) -> Row:
    """Seconds for one step of one flow, of many flows that are known for long."""
    times, seen = 0.02 * np.arange(TIMES), rtts(FLOWS * TIMES).reshape(FLOWS, TIMES)
    start, settings = np.repeat(start_pacing(law).values[None], FLOWS, axis=0), arx_settings(law)

    def ours() -> np.ndarray:
        states, rates = start.copy(), np.empty(seen.shape)
        arx_many(states, settings, times, seen, rates)
        return rates[:, -1]

    from numba import set_num_threads

    set_num_threads(1)
    turns = alternate(ours, lambda: by_numpy(law, seen), 5, clock=process_time)
    steps = FLOWS * TIMES
    scaled = turns._replace(ours=[t / steps for t in turns.ours], theirs=[t / steps for t in turns.theirs])
    return against(
        f"paper's law, {FLOWS} flows, each step of a flow",
        "NumPy over all flows",
        scaled,
        f"<= {1e9 / SPEED:g} ns ({SPEED:g}/s)",
        relative(*turns.answers, 1e-9, "rates"),
    )


def by_numpy(law: ArxPacer, seen: np.ndarray) -> np.ndarray:
    """Rates after the last sample [bit/s]: `plain`, with a row for each place and a column for each flow."""
    p, unit, n = law.past_rtts, law.rate_unit_bit_per_s, len(seen)
    least, most = law.least_rate_bit_per_s / unit, law.max_rate_bit_per_s / unit
    base, rate = seen[:, 0], np.full(n, law.start_rate_bit_per_s / unit)
    theta = np.vstack([np.repeat((1.0 - law.first_slope * rate)[None] / p, p, axis=0), np.full(n, law.first_slope)])
    history = np.vstack([np.ones((p, n)), rate])
    mean, variance, mean_rate = np.ones(n), np.full(n, law.deviation_floor**2), rate.copy()
    for t in range(1, seen.shape[1]):
        rtt = seen[:, t] / base
        guess = (theta * history).sum(axis=0)
        theta += law.step / (history * history).sum(axis=0) * (rtt - guess) * history
        off = guess - mean
        mean = law.smoothing * mean + (1.0 - law.smoothing) * rtt
        variance = law.smoothing * variance + (1.0 - law.smoothing) * off * off
        variance = np.maximum(variance, (law.deviation_floor * mean) ** 2)
        history[1:p] = history[: p - 1]
        history[0] = rtt
        if t + 1 <= p:
            continue
        b = theta[p]
        at_zero = (theta[:p] * history[:p]).sum(axis=0)
        free = ((law.xi / mean_rate - b / mean) * variance / (2.0 * law.psi * b) + mean - at_zero) / b
        rate = np.where(b >= law.slope_floor, np.clip(free, least, most), rate)
        history[p] = rate
        mean_rate = law.smoothing * mean_rate + (1.0 - law.smoothing) * rate
    return rate * unit
