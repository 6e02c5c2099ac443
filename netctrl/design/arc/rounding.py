"""Margins of an ARC Design when a queue of the operating system implements it with rounded gains."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import msgspec

from netctrl.design.arc.loop import MIN_GAIN_MARGIN_DB, MIN_PHASE_MARGIN_DEG
from netctrl.frequency.sampled_margins import sampled_margins, spectral_radius
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcInputs
from netctrl.model.io.record_file import taken
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import arc_arrival_rate
from netctrl.plants.tcp_response import delay_pi_response


class ImplementedMargins(msgspec.Struct, frozen=True, kw_only=True):
    """Margins of one sampled loop, with TCP's window delayed on itself."""

    stable: bool
    gain_margin_db: float
    phase_margin_deg: float
    delay_margin_s: float
    spectral_radius: float
    """Spectral radius over one update."""

    @property
    def keeps_rule(self) -> bool:
        """Whether margins are at least 6 dB and 30°. A phase margin above 60° is slow, but no reason to refuse."""
        rounding = 1e-9
        return (
            self.stable
            and self.gain_margin_db >= MIN_GAIN_MARGIN_DB - rounding
            and self.phase_margin_deg >= MIN_PHASE_MARGIN_DEG - rounding
        )


class ImplementationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One operating point: the requested law, and the one implemented there."""

    flows: float
    rtt_s: float
    marking_probability: float
    """Marking probability p0 of the equilibrium."""
    requested: ImplementedMargins
    implemented: ImplementedMargins

    @property
    def phase_lost_deg(self) -> float:
        """Phase margin lost [degree]; negative where rounding made the loop slower."""
        return self.requested.phase_margin_deg - self.implemented.phase_margin_deg

    @property
    def gain_lost_db(self) -> float:
        """Gain margin lost [dB]; negative where rounding increased it."""
        return self.requested.gain_margin_db - self.implemented.gain_margin_db


def check_implementation(
    inputs: ArcInputs, requested: DelayPi, implemented: Callable[[float], DelayPi]
) -> tuple[ImplementationCheck, ...]:
    """Margins of the requested and implemented laws at the operating point, or at the corners of the box.

    Both laws are evaluated on the plant with a standing queue. The implemented law reads a delay that is as old as the
    delay itself, since it is the delay of a departing packet.

    Parameters
    ----------
    inputs : ArcInputs
    asked : DelayPi
        The Design's own law, without rounding.
    carried : callable
        The law with its rounded gains around a marking probability; an implementation may change its gains with it.
    """
    setting = inputs.setting
    rate = float(arc_arrival_rate(setting, "phys"))
    checks = []
    for flows, rtt in dict.fromkeys(product(inputs.flows, inputs.rtt_s)):
        marking = float(tcp_equilibrium(flows, rtt, rate).marking)
        law = implemented(marking)
        checks.append(
            ImplementationCheck(
                flows=flows,
                rtt_s=rtt,
                marking_probability=marking,
                requested=_margins(flows, rtt, inputs, requested, 0.0),
                implemented=_margins(flows, rtt, inputs, law, law.target_s),
            )
        )
    return tuple(checks)


def _margins(flows: float, rtt: float, inputs: ArcInputs, law: DelayPi, late: float) -> ImplementedMargins:
    response = delay_pi_response(inputs.setting, law, late)
    found = sampled_margins(response, flows, rtt, 1.0)
    radius = spectral_radius(response, flows, rtt, 1.0)
    margins = taken(found, "stable", "gain_margin_db", "phase_margin_deg", "delay_margin_s")
    return ImplementedMargins(**margins, spectral_radius=radius)
