"""Scenario of an HFTraC Design: its network under the demands of the design."""

from __future__ import annotations

from netctrl.model.design.hftrac import HftracInputs
from netctrl.scenario.network.policy import HftracPolicy, Messages
from netctrl.scenario.network.routed import Routed
from netctrl.scenario.scenario import Scenario

__all__ = ["design_network", "design_policy"]

_STEPS, _WARMUP = 6000, 1000


def design_policy(inputs: HftracInputs, messages: Messages | None = None) -> HftracPolicy:
    """The policy that designs the same law, with messages between controllers as given."""
    names = ("architecture", "mu", "information_delay", "communication", "horizon", "reach")
    return HftracPolicy(**{name: getattr(inputs, name) for name in names}, messages=messages or Messages())


def design_network(inputs: HftracInputs) -> Scenario:
    """The network with Gaussian demands of its means and deviations; 6000 intervals, of which 1000 are warm-up."""
    name = f"{inputs.network.name or 'network'} of the design"
    tau = inputs.interval_s
    return Scenario(
        name=name,
        network=Routed(graph=inputs.network),
        control=design_policy(inputs),
        duration=_STEPS * tau,
        warmup=_WARMUP * tau,
        interval=tau,
    )
