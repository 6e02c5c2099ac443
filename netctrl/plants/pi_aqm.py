"""Loop of TCP and a standing queue under a PI law on the queueing delay, for its margins.

It is ARC's loop where a queue stands (`phys` in docs/explanation/arc.md) with free gains: ARC itself is the law with
integral gamma alpha C and proportional gain alpha C.
"""

from __future__ import annotations

from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcSetting
from netctrl.plants.linearize import arc_arrival_rate
from netctrl.plants.tcp_response import TcpResponse

__all__ = ["delay_pi_response"]


def delay_pi_response(setting: ArcSetting, law: DelayPi, late_s: float = 0.0) -> TcpResponse:
    """Frequency response of the loop at gain 1: exact for the law's update and for TCP's window delayed on itself.

    The queue grows over an update by the arrivals less the departures, so the law acts on arrivals and backlog:
    proportional b/C and integral a/C [1/packet].

    Parameters
    ----------
    setting : ArcSetting
        The link's setting; the gains of its law are not used.
    law : DelayPi
    late_s : float
        Age of the delay that the law reads [s].
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
