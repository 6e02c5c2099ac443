"""A scenario with the Design that controls it: of a Design its own plant, or a scenario under its law."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import msgspec
import numpy as np

from netctrl.design.hftrac.scenario_law import design_law, scenario_law
from netctrl.errors import InvalidValue
from netctrl.laws.aqm.arc import arc_queue
from netctrl.laws.tracking.reference_governor import reference_governor
from netctrl.laws.window.records import mpcc_scheme
from netctrl.model.design.design import (
    ArcDesign,
    ConnetDesign,
    Design,
    HftracDesign,
    MpccDesign,
    PacingDesign,
)
from netctrl.model.law import LinkRateLaw
from netctrl.scenario.access.plan import AccessLinkPlan, access_link_plan
from netctrl.scenario.access.scenario import AccessLinkScenario, access_link
from netctrl.scenario.bottleneck.scenario import BottleneckScenario, design_bottleneck
from netctrl.scenario.fabric.design import design_dumbbell
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.scenario.network.design import design_network, design_policy
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.tcp_aqm.scenario import Scenario, design_scenario

__all__ = ["Case", "Tracking", "case_of", "in_turn", "kind_of", "link_rate_law", "tracking_plan"]


class Tracking(NamedTuple):
    """What a tracking law on an access link is asked for."""

    reference: Any = None
    """(p,) or (T, p) in the law's units; None: the Design's references one after the other, or what
    the model gives in the middle of its inputs' limits."""
    measured: Literal["average", "period"] | None = None
    """What is measured; None: as the law's method has it."""
    governor: bool = False
    """References are cut to what can be had."""


class Case(NamedTuple):
    """What an engine runs."""

    scenario: Any
    design: Any = None
    """Whose law is in force."""
    tracking: Tracking = Tracking()

    @property
    def law(self) -> Any:
        """Of the Design; None without one."""
        return None if self.design is None else self.design.law


class _Method(NamedTuple):
    """How a method's Designs are tried."""

    plant: Callable[[Any], Any]
    """The scenario that a Design was made for."""
    scenario: type | tuple[type, ...]
    """Kinds that its law can control."""
    put: Callable[[Any, Any], Any]
    """(scenario, Design) -> the scenario under the law."""


def _of_pacing(design: PacingDesign) -> BottleneckScenario:
    requested = design.inputs
    return design_bottleneck(requested.bottleneck_bit_per_s, requested.rtt_s, requested.packet_size_bytes)


def _with_queue(scenario: Scenario, design: ArcDesign) -> Scenario:
    return scenario.with_queue(arc_queue(design.law, scenario.packet_size), design.law.capacity_bit_per_s)


def _with_scheme(scenario: FabricScenario, design: MpccDesign) -> FabricScenario:
    return msgspec.structs.replace(scenario, scheme=mpcc_scheme(design.law))


def _with_policy(scenario: NetworkScenario | Scenario, design: HftracDesign) -> NetworkScenario | Scenario:
    if isinstance(scenario, Scenario):
        return scenario
    design_law(scenario, design, "design", design.method)
    return msgspec.structs.replace(scenario, policy=design_policy(design.inputs))


def _same(scenario: Any, _: Any) -> Any:
    return scenario


_METHODS: dict[Any, _Method] = {
    ArcDesign: _Method(lambda design: design_scenario(design.inputs, design.law), Scenario, _with_queue),
    MpccDesign: _Method(lambda design: design_dumbbell(design.law), FabricScenario, _with_scheme),
    HftracDesign: _Method(lambda design: design_network(design.inputs), (NetworkScenario, Scenario), _with_policy),
    ConnetDesign: _Method(lambda design: access_link(None, design.law.interval_s, None), AccessLinkScenario, _same),
    PacingDesign: _Method(_of_pacing, BottleneckScenario, _same),
}


_WORDS = {
    Scenario: "links and flows",
    NetworkScenario: "a network under demands",
    FabricScenario: "a data centre",
    AccessLinkScenario: "an access link",
    BottleneckScenario: "a bottleneck",
}


def kind_of(scenario: Any) -> str:
    """What a scenario is of, in words."""
    return _WORDS.get(type(scenario), type(scenario).__name__)


def case_of(x: Any, design: Any = None, *, tracking: Tracking | None = None) -> Case:
    """A scenario under a Design's law, if one is given; of a Design alone, the plant that it was made for.

    Raises
    ------
    InvalidValue
        A Design that doesn't control such a scenario; what its plant can't be.
    """
    if isinstance(x, Case):
        return x
    if isinstance(x, Design):
        x, design = None, x
    if design is None:
        return Case(x, None, tracking or Tracking())
    method = _METHODS.get(type(design))
    if method is None:
        known = ", ".join(kind.__struct_config__.tag for kind in _METHODS)
        got = design.method if isinstance(design, Design) else type(design).__name__
        raise InvalidValue("design", got, f"a Design of {known}")
    if x is None:
        x = method.plant(design)
    elif not isinstance(x, method.scenario):
        of = [kind.__struct_config__.tag for kind, each in _METHODS.items() if isinstance(x, each.scenario)]
        takes = f"one of {' or '.join(of)}, for {kind_of(x)}" if of else f"a scenario, not {type(x).__name__}"
        raise InvalidValue("design", design.method, takes)
    else:
        x = method.put(x, design)
    return Case(x, design, tracking or Tracking())


def tracking_plan(case: Case) -> AccessLinkPlan:
    """The law of a Design of connet with its references, ready to run.

    Raises
    ------
    InvalidValue
        As `netctrl.track_access_link`.
    """
    law, asked, requested = case.design.law, case.tracking, case.design.inputs
    given = asked.reference
    if given is None:
        given = in_turn(requested.references or (_middle(case.design),), case.scenario.periods)
    measured = asked.measured or ("period" if requested.law == "lqi" else "average")
    governor = reference_governor(law) if asked.governor else None
    return access_link_plan(case.scenario, law, given, measured=measured, governor=governor)


def in_turn(references: Any, periods: int) -> np.ndarray:
    """(T, p) references one after the other, as long each; of more than periods the first."""
    held = np.array(references)[:periods]
    return held[np.arange(periods) * len(held) // periods]


def link_rate_law(case: Case) -> LinkRateLaw | None:
    """The law of link rates of a network: the Design's, or the one that the scenario's policy asks for."""
    return scenario_law(case.scenario) if case.design is None else case.law


def _middle(design: ConnetDesign) -> np.ndarray:
    """(p,) steady outputs of the model in the middle of its inputs' limits."""
    law = design.law
    offset = 0.5 * (law.low + law.high) - law.input_offset
    return law.output_offset + np.array(design.certificate.plant_dc_gain) @ offset
