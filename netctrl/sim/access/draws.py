"""What an access link draws, as a table for simulators that others wrote: the draws that the FIFO simulator takes."""

from __future__ import annotations

from math import inf

import numpy as np

from netctrl.errors import InvalidValue
from netctrl.plants.access import pause_mean
from netctrl.scenario.access.plan import AccessLinkPlan
from netctrl.scenario.access.scenario import AccessLinkScenario
from netctrl.sim.access.problem import access_link_plant, access_link_traffic, flow_rates, flow_streams, source_of
from netctrl.units import BITS_PER_BYTE

__all__ = ["flow_pauses", "run_table"]

_PIECE = 512
_MAX_PAUSES = 2**25  # 256 MiB


def run_table(scenario: AccessLinkScenario, plan: AccessLinkPlan) -> bytes:
    """The file run-SEED.bin of an exported program, little-endian.

    Phase of premium traffic [s]; then for each flow, regulated ones first, the number of its pauses (64 bits) and these
    over their means.

    Raises
    ------
    InvalidValue
        More draws than such a table may have.
    """
    parts = [np.array([access_link_plant(scenario).premium_phase], dtype="<f8").tobytes()]
    for pauses in flow_pauses(scenario, plan):
        parts += [np.array([len(pauses)], dtype="<u8").tobytes(), pauses.astype("<f8").tobytes()]
    return b"".join(parts)


def flow_pauses(scenario: AccessLinkScenario, plan: AccessLinkPlan) -> list[np.ndarray]:
    """The pauses of each flow over their means, as many as it can take at the greatest rates and the least bursts.

    The first is what is left of the pause in which a flow starts. At a lower rate, or with longer bursts, a flow takes
    them later, never sooner.
    """
    streams = flow_streams(scenario)
    plant = access_link_plant(scenario)
    gates = access_link_traffic(scenario, plant, streams).gates
    found, total = [], 0
    for flow, (rate, burst) in enumerate(_fastest(scenario, plan)):
        mean = pause_mean(rate, burst, scenario.size * BITS_PER_BYTE, plant.spacing)
        length = (burst - 1) * plant.spacing
        draws = [gates.held[flow : flow + 1], 1.0 - plant.variation + plant.variation * gates.draws[flow]]
        end = sum(_passed(each, mean, length) for each in draws)
        # Sums are rounded otherwise than the simulator's times: two bursts are room enough.
        while (missing := scenario.duration - (end - 2.0 * length)) >= 0.0:
            more = int(min(missing / (mean + length), _MAX_PAUSES)) + _PIECE
            total += more
            if total > _MAX_PAUSES:
                takes = f"one in which flows pause at most {_MAX_PAUSES} times: the table of a run holds no more"
                raise InvalidValue("duration", scenario.duration, takes)
            draws.append(1.0 - plant.variation + plant.variation * streams[flow].standard_exponential(more))
            end += _passed(draws[-1], mean, length)
        found.append(np.concatenate(draws))
    return found


def _passed(pauses: np.ndarray, mean: float, length: float) -> float:
    """How long these pauses and a burst after each take [s]; inf at rate 0."""
    return inf if mean == inf else float(pauses.sum()) * mean + len(pauses) * length


def _fastest(scenario: AccessLinkScenario, plan: AccessLinkPlan) -> list[tuple[float, int]]:
    """The greatest rate [bit/s] and least burst of each flow, regulated ones first."""
    most = inf if plan.start else max(float(plan.law.high[0]) * plan.rate_unit, 0.0)
    moments = [0.0, *(turn for each in scenario.failures for turn in (each.start, each.stop))]
    rates = np.max([flow_rates(scenario, most, moment) for moment in moments], axis=0)
    own = [scenario.sources[place].burst for place in source_of(scenario)]
    least = max(1, round(float(plan.law.low[1]))) if len(plan.law.low) > 1 else max(own)
    found = [(rate, min(burst, least)) for rate, burst in zip(rates.tolist(), own, strict=True)]
    return found + [(flow.rate, flow.burst) for flow in sorted(scenario.cross, key=lambda flow: flow.hop)]
