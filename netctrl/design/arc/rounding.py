"""What is left of an ARC Design's margins when a queue of the operating system carries it with rounded gains."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import msgspec

from netctrl.design.arc.loop import MIN_GAIN_MARGIN_DB, MIN_PHASE_MARGIN_DEG
from netctrl.frequency.sampled_margins import sampled_margins, spectral_radius
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.model.design.arc import ArcInputs
from netctrl.plants.equilibrium import tcp_equilibrium
from netctrl.plants.linearize import arc_arrival_rate
from netctrl.plants.pi_aqm import delay_pi_response

__all__ = ["ImplementationCheck", "ImplementedMargins", "check_implementation"]


class ImplementedMargins(msgspec.Struct, frozen=True, kw_only=True):
    """Margins of one sampled loop, with TCP's window delayed on itself."""

    stable: bool
    gain_margin_db: float
    phase_margin_deg: float
    delay_margin_s: float
    spectral_radius: float
    """Of one update."""

    @property
    def keeps_rule(self) -> bool:
        """At least 6 dB and 30°. A phase margin above 60° is slow, and no reason to refuse."""
        rounding = 1e-9
        return (
            self.stable
            and self.gain_margin_db >= MIN_GAIN_MARGIN_DB - rounding
            and self.phase_margin_deg >= MIN_PHASE_MARGIN_DEG - rounding
        )


class ImplementationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """One operating point: the law that was asked for, and the one that is carried there."""

    flows: float
    rtt_s: float
    marking_probability: float
    """p0 of the equilibrium."""
    requested: ImplementedMargins
    implemented: ImplementedMargins

    @property
    def phase_lost_deg(self) -> float:
        """Below 0 where rounding made the loop slower."""
        return self.requested.phase_margin_deg - self.implemented.phase_margin_deg

    @property
    def gain_lost_db(self) -> float:
        """Below 0 where rounding left more of it."""
        return self.requested.gain_margin_db - self.implemented.gain_margin_db


def check_implementation(
    inputs: ArcInputs, requested: DelayPi, implemented: Callable[[float], DelayPi]
) -> tuple[ImplementationCheck, ...]:
    """Margins at the operating point, or at the corners of the box.

    Both laws are judged in the plant where a queue stands. The carried law reads a delay that is as old as the delay
    itself, since it is that of a packet which leaves.

    Parameters
    ----------
    inputs : ArcInputs
    asked : DelayPi
        The Design's own law, without rounding.
    carried : callable
        The law with its rounded gains around a marking probability: a carrier may change its gains with it.
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
    return ImplementedMargins(
        stable=found.stable,
        gain_margin_db=found.gain_margin_db,
        phase_margin_deg=found.phase_margin_deg,
        delay_margin_s=found.delay_margin_s,
        spectral_radius=spectral_radius(response, flows, rtt, 1.0),
    )
