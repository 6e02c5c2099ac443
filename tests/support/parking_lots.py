"""Networks of queues that tests share: parking lots by hand and at random."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from netctrl.certificates.pi_laws import dualpi2, pi2, pie
from netctrl.certificates.red import RedSubject, red
from netctrl.certificates.subject import PiSubject
from netctrl.plants.queue_networks.network import LawRange, PathFlows, QueueLink, QueueNetwork
from netctrl.plants.queues.window_response import CRENO, CUBIC, DCTCP, RENO, Sender

Law = PiSubject | RedSubject
Group = tuple[float, float, Sequence[int], Sender]
"""Flows, round-trip time without queues [s], path, sender."""


def link_of(law: Law, name: str, rate_bit_per_s: float, delay_s: float = 0.0) -> QueueLink:
    """A link with packets of 1500 bytes."""
    rate = rate_bit_per_s / 12000.0
    loops = law.loops((law.seen_by(RENO),), rate, 1500.0)
    return QueueLink(
        name=name,
        rate=rate,
        delay_s=delay_s,
        ranges=tuple(LawRange(*loop.within, loop.law) for loop in loops),
        greatest=law.greatest,
        age_s=loops[0].age_s,
        age_queues=loops[0].age_queues,
        marked_leaving=loops[0].marked_leaving,
    )


def network_of(
    laws: Sequence[Law], rates: Sequence[float], groups: Sequence[Group], delay_s: float = 0.0
) -> QueueNetwork:
    """A network of links l0, l1, ... [bit/s] and groups g0, g1, ..."""
    links = tuple(link_of(law, f"l{k}", rate, delay_s) for k, (law, rate) in enumerate(zip(laws, rates, strict=True)))
    flows = tuple(
        PathFlows(
            name=f"g{i}",
            flows=float(count),
            rtt_s=rtt,
            path=tuple(path),
            seen=tuple(laws[k].seen_by(sender) for k in path),
        )
        for i, (count, rtt, path, sender) in enumerate(groups)
    )
    return QueueNetwork(links, flows)


def random_parking_lot(seed: int, *, curved: bool = False) -> QueueNetwork:
    """Two to four links of one kind of law with gains of their own, long flows, cross flows, and flows over a part.

    With `curved` Cubic is that with its own curve, and links are faster.
    """
    rng = np.random.default_rng(seed)
    size, kind = int(rng.integers(2, 5)), seed % 4
    target, update = round(10.0 ** rng.uniform(-2.3, -1.6), 6), (0.008, 0.016, 0.032)[int(rng.integers(3))]

    def law() -> Law:
        if kind == 3:
            low = int(rng.integers(20, 60)) * 1000
            burst = low // 1000 + 40
            return red(
                limit_bytes=20 * low, min_bytes=low, max_bytes=6 * low, burst=burst, probability=0.2, gentle=True
            )
        if kind == 2:
            steps = rng.integers(1, 6) / 16.0, rng.integers(8, 32) / 16.0
            return pie(target_s=target, tupdate_s=update, alpha=steps[0], beta=steps[1], hz=1000)
        alpha = 10.0 ** rng.uniform(-2.0, -0.8)
        make = (pi2, dualpi2)[kind]
        return make(target_s=target, tupdate_s=update, alpha=alpha, beta=alpha * 10.0 ** rng.uniform(0.8, 1.5))

    laws = [law() for _ in range(size)]
    faster = 4.0 if curved and kind != 3 else 1.0
    rates = 10.0 ** (rng.uniform(7.2, 7.5, size) if kind == 3 else rng.uniform(7.4, 8.0, size))

    def group(flows: int, path: Sequence[int]) -> Group:
        sender = (RENO, CUBIC if curved else CRENO, DCTCP)[int(rng.integers(3 if kind == 1 and len(path) == 1 else 2))]
        return flows, 0.02 + 10.0 ** rng.uniform(-2.0, -1.0), path, sender

    groups = [group(int(rng.integers(3, 12)), range(size))]
    # Some classic flows wait in each queue, beside those of its own path.
    groups += [(int(rng.integers(2, 6)), 0.02 + 10.0 ** rng.uniform(-2.0, -1.0), [k], RENO) for k in range(size)]
    groups += [group(int(rng.integers(3, 12)), [k]) for k in range(size)]
    if size > 2:
        groups.append(group(int(rng.integers(2, 8)), range(1, size)))
    return network_of(laws, list(faster * rates), groups, float(rng.uniform(0.0005, 0.005)))
