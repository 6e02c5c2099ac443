"""TCP and a standing queue under a PI law on its delay: the loop whose margins say what a law is worth.

It is ARC's loop where a queue stands (`phys` in docs/arc.md) with free gains: ARC itself is the law with
integral gamma alpha C and proportional gain alpha C.
"""

from __future__ import annotations

from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_arrival_rate
from netctrl.plants.tcp_response import TcpResponse

__all__ = ["delay_pi_response"]


def delay_pi_response(setting: ArcSetting, law: DelayPi, late_s: float = 0.0) -> TcpResponse:
    """Response of the loop that runs, at gain 1: exact for the law's update, TCP's window delayed on itself.

    The queue's growth over an update is what arrived beyond what was served, so the law is one on arrivals and backlog:
    proportional b/C and integral a/C [1/packet].

    Parameters
    ----------
    setting : ArcSetting
        Of the link; its law's own gains have no part in this.
    law : DelayPi
    late_s : float
        How old the delay is that the law reads [s].
    """
    capacity = float(setting.capacity_packet_per_s)
    return TcpResponse(
        queue=True,
        rate=float(arc_arrival_rate(setting, "phys")),
        epoch=law.update_s,
        proportional=law.proportional / capacity,
        integral=law.integral / capacity,
        late=late_s,
    )
