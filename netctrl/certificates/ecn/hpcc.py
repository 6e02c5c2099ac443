"""HPCC for `netctrl certify`: senders of data centres that read telemetry, whatever marks a queue sets.

A window follows the greatest utilization that its links report, so that the link is used by eta and the queue is short
(Li et al., SIGCOMM 2019, Algorithm 1). No loop of it is certified: packets alone tell what users feel.
"""

from __future__ import annotations

from dataclasses import dataclass

from netctrl.certificates.box import Box, points_of
from netctrl.certificates.ecn.in_time import beyond_at
from netctrl.certificates.record import QueueVerdict
from netctrl.core.errors import Status, checked_number
from netctrl.core.units import SIZES, checked_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class HpccSubject:
    """A queue whose flows are HPCC's."""

    eta: float
    """Share of the link that is aimed at."""
    wai_bytes: float
    """W_AI, additive increase [byte]."""
    implementation: str = "HPCC, Algorithm 1 of its paper"
    name: str = "hpcc"
    in_bytes: bool = False
    target_s: float = 0.0
    read: str = "telemetry of each link"
    marked: str = "nowhere"
    notes: tuple[str, ...] = (
        "senders read telemetry: thresholds of ECN change nothing; where packets have no ECN, those of WRED drop them",
        "the link is meant to be used by eta: what is asked of it is taken of that",
    )

    @property
    def parameters(self) -> dict[str, float | int | str | bool]:
        """Arguments of `hpcc`."""
        return {"eta": self.eta, "wai_bytes": self.wai_bytes}

    @property
    def gains(self) -> dict[str, float]:
        """Share of the link that is aimed at."""
        return {"eta": self.eta}


def hpcc(*, eta: float = 0.95, wai_bytes: float = 80.0) -> HpccSubject:
    """HPCC's senders, by default with the values of Li et al. (SIGCOMM 2019), section 5.1.

    Parameters
    ----------
    eta : float
        Share of the link that is aimed at.
    wai_bytes : float
        Additive increase of a window [byte].

    Raises
    ------
    InvalidValue
        A value outside its bounds.
    """
    return HpccSubject(
        eta=checked_number("eta", eta, "a share above 0 and at most 1", above=0.0, at_most=1.0),
        wai_bytes=checked_quantity("wai", wai_bytes, "a size above 0 in bytes", SIZES),
    )


def hpcc_verdict(subject: HpccSubject, box: Box) -> QueueVerdict:
    """No verdict of a loop; packets tell at the smallest and at the largest windows."""
    points = points_of(box, subject.name, (2, 2, 2))
    ends = (key(points, key=lambda at: at.rate * at.rtt_s / at.flows) for key in (min, max))
    size = box.inputs.packet_size_bytes
    beyond = (beyond_at(at, subject.name, size, "no loop of HPCC is certified") for at in dict.fromkeys(ends))
    return QueueVerdict(status=Status.INFEASIBLE, warnings=subject.notes, beyond=tuple(beyond))
