"""A Design of HFTraC as a scenario: its network under the demands that it was made for."""

from __future__ import annotations

from netctrl.model.design.hftrac import HftracInputs
from netctrl.scenario.network.policy import HftracPolicy
from netctrl.scenario.network.scenario import NetworkScenario

__all__ = ["design_network", "design_policy"]

_STEPS, _WARMUP = 6000, 1000


def design_policy(inputs: HftracInputs) -> HftracPolicy:
    """The policy that asks for the same law."""
    names = ("architecture", "mu", "information_delay", "communication", "horizon", "reach")
    return HftracPolicy(**{name: getattr(inputs, name) for name in names})


def design_network(inputs: HftracInputs) -> NetworkScenario:
    """The network with Gaussian demands of its means and deviations; 6000 intervals, of which 1000 are warm-up."""
    name = f"{inputs.network.name or 'network'} of the design"
    tau = inputs.interval_s
    policy = design_policy(inputs)
    return NetworkScenario(
        name=name, network=inputs.network, interval=tau, duration=_STEPS * tau, warmup=_WARMUP * tau, policy=policy
    )
