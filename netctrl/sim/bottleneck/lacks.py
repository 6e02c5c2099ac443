"""Which scenarios the fluid of pacing laws runs, and which drop-tail buffers that of windows has."""

from __future__ import annotations

from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.scenario.bottleneck import single_line
from netctrl.scenario.scenario import Scenario

FEWEST_PACKETS = 16
"""Smallest buffer of a drop-tail link at which the fluid of windows agrees with packets [packet]."""


def has_pacers(scenario: Scenario) -> bool:
    """Whether the fluid of pacing laws runs a scenario: single flows over one drop-tail or CoDel queue, of which one is
    paced, capped or BBR, or cross traffic, or the queue is CoDel.

    Parameters
    ----------
    scenario : Scenario
    """
    if not single_line(scenario) or not isinstance(scenario.links[0].queue, DropTailQueue | CodelQueue):
        return False
    laws = PacedSender | CapSender
    paced = any(isinstance(each.sender, laws) or each.sender == "bbr" or not each.answered for each in scenario.flows)
    return paced or isinstance(scenario.links[0].queue, CodelQueue)


def small_buffer(packets: float) -> str | None:
    """What the fluid lacks for windows over a drop-tail buffer of so many packets; None: nothing."""
    if packets < FEWEST_PACKETS:
        return f"windows over a drop-tail buffer below {FEWEST_PACKETS} packets, where the packet engine is as fast"
    return None
