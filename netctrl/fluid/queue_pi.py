"""TCP and a standing queue under a PI law on its delay: the loops whose margins say what a law is worth.

They are ARC's loops where a queue stands (`phys` in docs/arc.md) with free gains: ARC itself is the law with
integral gamma alpha C and proportional gain alpha C.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from netctrl.fluid.linearize import arc_arrival_rate, arc_sampled_loop, linear_tcp
from netctrl.model.arc import ArcSetting
from netctrl.model.delay_pi import DelayPi
from netctrl.model.loop import DelayLoop, SampledLoop

__all__ = ["delay_pi_loop", "delay_pi_sampled_loop"]


def delay_pi_loop(flows: float, rtt_s: float, setting: ArcSetting, law: DelayPi, late_s: float = 0.0) -> DelayLoop:
    """Open loop L = (a/T)(P0/C) (b T/a s + 1) e^(−s (tau + late)) / (s (T1 s + 1)(tau s + 1)) of the gains a and b.

    Parameters
    ----------
    flows, rtt_s : float
        N and tau [s].
    setting : ArcSetting
        Of the link; its law's own gains have no part in this.
    law : DelayPi
        With a = integral, b = proportional and T = update_s.
    late_s : float
        How old the delay is that the law reads [s]: a packet that leaves tells of the queue that it met.
    """
    a, b, T = law.integral, law.proportional, law.update_s
    P0, T1, tau = linear_tcp(flows, rtt_s, arc_arrival_rate(setting, "phys"))
    return DelayLoop(
        gain=float(a / T * P0 / setting.capacity_packet_per_s),
        delay=float(tau + late_s),
        integrators=1,
        leads=(float(b * T / a),) if b > 0.0 else (),
        lags=(float(T1), float(tau)),
    )


def delay_pi_sampled_loop(
    flows: float, rtt_s: float, setting: ArcSetting, law: DelayPi, late_s: float = 0.0
) -> SampledLoop:
    """The same loop, exact for the law's update; it has the law's gains at gain 1.

    States: deviations of the aggregate window and of the queue, and what the queue grew since the last update. A delay
    of what is read is as good as one of what is done: both stand between p and the reading.
    """
    plant = arc_sampled_loop(flows, rtt_s, setting, "phys")
    read = np.array([0.0, law.integral, law.proportional]) / setting.capacity_packet_per_s
    return dataclasses.replace(plant, read=read, delay=plant.delay + late_s, epoch=law.update_s)
