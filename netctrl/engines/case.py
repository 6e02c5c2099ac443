"""Cases for engines: a scenario under the law of a Design, or a Design on its own plant."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

from netctrl.core.errors import InvalidValue
from netctrl.design.hftrac.scenario_law import design_law, scenario_law
from netctrl.engines.reader import read
from netctrl.laws.aqm.arc import arc_queue
from netctrl.laws.window.records import mpcc_scheme
from netctrl.model.datasets import scenario_path
from netctrl.model.design.design import (
    ArcDesign,
    ConnetDesign,
    Design,
    HftracDesign,
    MpccDesign,
    MpcDesign,
    PacingDesign,
    read_design,
)
from netctrl.model.law import LinkRateLaw
from netctrl.scenario.builders import access_link
from netctrl.scenario.design import (
    design_bottleneck,
    design_link,
    design_network,
    design_policy,
    design_scenario,
    with_pacer,
    with_queue,
)
from netctrl.scenario.fabric.design import design_dumbbell
from netctrl.scenario.fabric.flows import with_sender
from netctrl.scenario.fabric.topology import TOPOLOGIES
from netctrl.scenario.links import Links
from netctrl.scenario.network.policy import messages_of
from netctrl.scenario.network.sweep import SweepSpec
from netctrl.scenario.network.track import Track
from netctrl.scenario.network.tracking import TRACKED_SIGNALS
from netctrl.scenario.scenario import Scenario


class Case(NamedTuple):
    """Input of an engine."""

    scenario: Any
    design: Any = None
    """Design whose law controls the scenario."""

    @property
    def law(self) -> Any:
        """Law of the Design; None without one."""
        return None if self.design is None else self.design.law


class _Method(NamedTuple):
    """How the Designs of one method are simulated."""

    plant: Callable[[Any], Any]
    """Function that returns the scenario for which a Design was made."""
    kinds: tuple[type, ...]
    """Kinds of network that the law can control."""
    put: Callable[[Any, Any], Any]
    """Function of (scenario, Design) that returns the scenario under the law."""


def _of_pacing(design: PacingDesign) -> Scenario:
    requested = design.inputs
    plant = design_bottleneck(requested.bottleneck_bit_per_s, requested.rtt_s, requested.packet_size_bytes)
    return with_pacer(plant, design.law)


def _of_connet(design: ConnetDesign | MpcDesign) -> Scenario:
    interval = design.law.interval_s
    return access_link(interval=interval, duration=100.0 * interval, control=Track())


def _of_mpc(design: MpcDesign) -> Scenario:
    tracks = {name for name, _ in TRACKED_SIGNALS}
    return _of_connet(design) if tracks.issuperset(design.law.outputs) else design_link(design)


def _with_mpc(scenario: Scenario, design: MpcDesign) -> Scenario:
    if design.law.link is None and isinstance(scenario.control, Track):
        return scenario
    if scenario.under_demands or isinstance(scenario.control, Track):
        got = "demands alone" if scenario.under_demands else "a control of kind track"
        takes = "links with streams, bursts or data of senders, without a control or with one of kind design"
        raise InvalidValue("scenario", got, takes)
    return scenario


def _with_queue(scenario: Scenario, design: ArcDesign) -> Scenario:
    queue = arc_queue(design.law, scenario.packet_size)
    return with_queue(scenario, queue, design.law.capacity_bit_per_s)


def _with_policy(scenario: Scenario, design: HftracDesign) -> Scenario:
    if not scenario.under_demands:
        return scenario
    design_law(scenario, design, "design", design.method)
    return scenario.replace(control=design_policy(design.inputs, messages_of(scenario.control)))


def _with_track(scenario: Scenario, design: ConnetDesign) -> Scenario:
    if scenario.control is None:
        return scenario.replace(control=Track())
    if scenario.control is not None and not isinstance(scenario.control, Track):
        takes = f"one of hftrac, for a control of kind {scenario.control.__struct_config__.tag}"
        raise InvalidValue("design", design.method, takes)
    return scenario


_METHODS: dict[Any, _Method] = {
    ArcDesign: _Method(lambda design: design_scenario(design.inputs, design.law), (Links,), _with_queue),
    MpccDesign: _Method(
        lambda design: design_dumbbell(design.law),
        TOPOLOGIES,
        lambda scenario, design: with_sender(scenario, mpcc_scheme(design.law)),
    ),
    HftracDesign: _Method(lambda design: design_network(design.inputs), (Links,), _with_policy),
    MpcDesign: _Method(_of_mpc, (Links,), _with_mpc),
    ConnetDesign: _Method(_of_connet, (Links,), _with_track),
    PacingDesign: _Method(_of_pacing, (Links,), lambda scenario, design: with_pacer(scenario, design.law)),
}


_WORDS: dict[type, str] = {Links: "links and flows", **dict.fromkeys(TOPOLOGIES, "a data centre")}


def kind_of(scenario: Any) -> type:
    """Kind of a scenario, by which engines select a kernel or a program."""
    return scenario.kind if isinstance(scenario, Scenario) else type(scenario)


def has_runs(scenario: Any) -> bool:
    """Whether engines run it several times side by side, with random numbers of each run's own."""
    return isinstance(scenario, Scenario) and scenario.under_demands


def with_seed(scenario: Scenario, seed: int) -> Scenario:
    """The scenario with another seed."""
    return scenario.replace(seed=seed)


def words_of(scenario: Any) -> str:
    """Description of a scenario's kind of network."""
    kind = kind_of(scenario)
    return _WORDS.get(kind, kind.__name__)


def case_of(x: Any, design: Any = None) -> Case:
    """A scenario, under a Design's law if one is given; for a Design alone, its own plant.

    Both may be files, and the scenario may be the name of one that comes with netctrl.

    Raises
    ------
    InvalidValue
        A Design that doesn't control such a scenario, a plant that can't be simulated, or an unknown name.
    FileError
        A file can't be read.
    """
    if isinstance(x, Case):
        return x
    x = read(scenario_path(os.fspath(x))) if isinstance(x, str | os.PathLike) else x
    design = read_design(design) if isinstance(design, str | os.PathLike) else design
    if isinstance(x, SweepSpec):
        raise InvalidValue("scenario", "a sweep", "one scenario, or a Design; netctrl.sweep runs a sweep")
    if isinstance(x, Design):
        x, design = None, x
    if design is None:
        return Case(x)
    method = _METHODS.get(type(design))
    if method is None:
        known = ", ".join(kind.__struct_config__.tag for kind in _METHODS)
        got = design.method if isinstance(design, Design) else type(design).__name__
        raise InvalidValue("design", got, f"a Design of {known}")
    if x is None:
        x = method.plant(design)
    elif kind_of(x) not in method.kinds:
        of = [kind.__struct_config__.tag for kind, each in _METHODS.items() if kind_of(x) in each.kinds]
        takes = f"one of {' or '.join(of)}, for {words_of(x)}" if of else f"a scenario, not {type(x).__name__}"
        raise InvalidValue("design", design.method, takes)
    else:
        x = method.put(x, design)
    return Case(x, design)


def link_rate_law(case: Case) -> LinkRateLaw | None:
    """Law of a network's link rates: the Design's, or the one that the scenario's control specifies."""
    return scenario_law(case.scenario) if case.design is None else case.law
