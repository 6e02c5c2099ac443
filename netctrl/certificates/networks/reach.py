"""Reach of a network's gain margin from an operating point: longer round trips and fewer flows, without proof."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from netctrl.certificates.networks.box import Searched, looked_at
from netctrl.certificates.networks.record import NetworkReach
from netctrl.certificates.networks.scenario import Changed
from netctrl.errors import NetctrlError
from netctrl.scenario.scenario import Scenario

__all__ = ["network_reach"]

_STEP, _FAR, _HALVINGS = 1.2, 100.0, 8
"""Factor from one point of the search to the next, its end, and the halvings of the last step."""


def network_reach(
    scenario: Scenario, changed: Mapping[Changed, float], loop_at: Searched, factor: float
) -> NetworkReach:
    """From an operating point outwards, how far all points that are looked at keep a gain margin.

    Parameters
    ----------
    scenario : Scenario
    changed : mapping
        What differs from the scenario at the point.
    loop_at : callable
        The loop at values of quantities.
    factor : float
        Gain margin to keep.
    """
    rtt = {group.id: changed.get(("rtt", group.id), group.rtt[0]) for group in scenario.flows}
    flows = {group.id: changed.get(("flows", group.id), float(group.count)) for group in scenario.flows}

    def kept(moved: Mapping[Changed, float]) -> bool:
        try:
            found = looked_at({**changed, **moved}, loop_at)
        except NetctrlError:  # so far out that no equilibrium is found
            return False
        return not found.absent and found.factor >= factor

    return NetworkReach(
        rtt_factor=_outwards(lambda by: kept({("rtt", name): value * by for name, value in rtt.items()})),
        flows_divisor=_outwards(lambda by: kept({("flows", name): value / by for name, value in flows.items()})),
    )


def _outwards(kept: Callable[[float], bool]) -> float | None:
    """Greatest factor from 1 on up to which all points that are looked at are kept; None: not even 1."""
    if not kept(1.0):
        return None
    low = 1.0
    while kept(high := low * _STEP):
        low = high
        if low >= _FAR:
            return low
    for _ in range(_HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low
