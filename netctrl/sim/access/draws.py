"""Random draws of an access link as a table for exported programs: the same draws as in the FIFO simulator."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.plants.access import pause_mean
from netctrl.scenario.access.plan import AccessLinkPlan
from netctrl.scenario.access.scenario import AccessLinkParts, access_parts, flow_rates, source_of
from netctrl.scenario.scenario import Scenario
from netctrl.sim.access.problem import access_link_plant, access_link_traffic, flow_streams
from netctrl.units import BITS_PER_BYTE

_PIECE = 512
_MAX_PAUSES = 2**25  # 256 MiB


def run_table(scenario: Scenario, plan: AccessLinkPlan) -> bytes:
    """Content of the file run-SEED.bin of an exported program, little-endian.

    It contains the phase of premium traffic [s]; then for each flow, regulated ones first, the number of its pauses
    (64 bits) and the pauses over their means.

    Raises
    ------
    InvalidValue
        More draws than such a table may have.
    """
    parts = [np.array([access_link_plant(scenario).premium_phase], dtype="<f8").tobytes()]
    for pauses in flow_pauses(scenario, plan):
        parts += [np.array([len(pauses)], dtype="<u8").tobytes(), pauses.astype("<f8").tobytes()]
    return b"".join(parts)


def flow_pauses(scenario: Scenario, plan: AccessLinkPlan | None) -> list[np.ndarray]:
    """Pauses of each flow over their means, as many as it can use at the greatest rates and smallest bursts.

    Without a plan regulators are open, and bursts are the groups' own.

    The first is the remainder of the pause in which a flow starts. At a lower rate, or with longer bursts, a flow uses
    them later, never sooner.
    """
    streams, parts = flow_streams(scenario), access_parts(scenario)
    plant = access_link_plant(scenario)
    gates = access_link_traffic(parts, plant, streams).gates
    found, total = [], 0
    for flow, (rate, burst) in enumerate(_fastest(parts, plan)):
        mean = pause_mean(rate, burst, parts.packet_size * BITS_PER_BYTE, plant.spacing)
        length, v = (burst - 1) * plant.spacing, plant.variation[flow]
        draws = [gates.held[flow : flow + 1], 1.0 - v + v * gates.draws[flow]]
        end = sum(_passed(each, mean, length) for each in draws)
        # Sums are rounded differently from the simulator's times; two bursts allow for that.
        while (missing := scenario.duration - (end - 2.0 * length)) >= 0.0:
            more = int(min(missing / (mean + length), _MAX_PAUSES)) + _PIECE
            total += more
            if total > _MAX_PAUSES:
                takes = f"a run in which flows pause at most {_MAX_PAUSES} times, the size of its table"
                raise InvalidValue("duration", scenario.duration, takes)
            draws.append(1.0 - v + v * streams[flow].standard_exponential(more))
            end += _passed(draws[-1], mean, length)
        found.append(np.concatenate(draws))
    return found


def _passed(pauses: np.ndarray, mean: float, length: float) -> float:
    """Duration of these pauses, each with a burst after it [s]; inf at rate 0."""
    return inf if mean == inf else float(pauses.sum()) * mean + len(pauses) * length


def _fastest(parts: AccessLinkParts, plan: AccessLinkPlan | None) -> list[tuple[float, int]]:
    """Greatest rate [bit/s] and smallest burst of each flow, regulated ones first."""
    most = inf if plan is None or plan.start else max(float(plan.law.high[0]) * plan.rate_unit, 0.0)
    moments = [0.0, *parts.turns]
    rates = np.max([flow_rates(parts, most, moment) for moment in moments], axis=0)
    own = [parts.regulated[place].burst for place in source_of(parts)]
    least = max(own)
    if plan is not None and len(plan.law.low) > 1:
        least = max(1, round(float(plan.law.low[1])))
    found = [(rate, min(burst, least)) for rate, burst in zip(rates.tolist(), own, strict=True)]
    return found + [(flow.rate, flow.burst) for flow in parts.cross]
