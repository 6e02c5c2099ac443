"""`netctrl export tc`: a Design or a scenario's link rates for Linux, with what rounding costs in margins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from netctrl.cli.app import as_json, invocation, report, say
from netctrl.cli.export.folder import write_folder
from netctrl.cli.options import option
from netctrl.core.errors import FileError, InvalidValue, NoAdmissibleDesign, any_of
from netctrl.core.units import parse_count, parse_rate, parse_size
from netctrl.model.io.fields import one_of

if TYPE_CHECKING:
    from netctrl.design.arc.rounding import ImplementationCheck
    from netctrl.design.queue.ecn_record import EcnDesign
    from netctrl.linux.export.agents import InterfaceMap
    from netctrl.linux.export.aqm import Dualpi2, Pie
    from netctrl.linux.export.shaper import TcExport, TcSettings
    from netctrl.model.design.design import AnyDesign, ArcDesign, ConnetDesign
    from netctrl.scenario.scenario import Scenario

IMPLEMENTATIONS = ("auto", "pie", "dualpi2", "ebpf")
SHAPERS = ("htb", "tbf")
SUMMARY = "export.json"
"""File of figures, margins, notes and provenance; its presence marks the folder as an earlier export."""
_SCHEMA = "netctrl.tc/1"
_ROUNDING = 1e-12
_SCENARIO = "link rates"
_BY_AGENTS = ("hftrac", "connet", "mpc", _SCENARIO)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class TcJob:
    """Options of the command line as text; None where not given."""

    output: Annotated[
        str, option("DIR", "folder for the files: new, empty or an earlier export, as in my-files", "--output", "-o")
    ]
    interfaces: Annotated[
        str | None,
        option(
            "WHERE",
            "LINK=INTERFACE,... of one machine; for ARC one interface; or a .toml file with [[agents]], each with "
            "name, address, port and links",
        ),
    ] = None
    implementation: Annotated[
        str | None,
        option(
            "WHAT",
            f"for ARC: {', '.join(IMPLEMENTATIONS)}; auto asks the running kernel (ebpf); for ecn in time: codel "
            "(default) or dualpi2",
            "--implementation",
            "--carrier",
        ),
    ] = None
    shaper: Annotated[
        str | None, option("WHAT", f"for HFTraC and CONNET: rate shaper, {' or '.join(SHAPERS)} (htb)")
    ] = None
    packet_size: Annotated[
        str | None, option("BYTES", "for HFTraC and CONNET: packet size as the Design counts it (1500)")
    ] = None
    frames: Annotated[bool, option("", "the Design's rates already include Ethernet headers")] = False
    burst: Annotated[str | None, option("SIZE", "size of each token bucket (two frames, or 0.1 ms of the rate)")] = None
    limit: Annotated[str | None, option("SIZE", "limit of each queue (the Design's buffer)")] = None
    reference: Annotated[
        str | None,
        option("VALUES", "for CONNET as in delay=1.5,jitter=0.5; for HFTraC the factor of the nominal rates (1)"),
    ] = None
    measured_at: Annotated[
        str | None, option("WHERE", "for CONNET: INTERFACE@RATE of the bottleneck whose queue the agent reads")
    ] = None
    drop: Annotated[bool, option("", "for ebpf: drop packets without ECN where those with ECN are marked")] = False


def export_tc(path: str, job: TcJob, json: bool) -> int:
    """Read the Design, render it, check rounding, write the files and report."""
    from netctrl.model.design.design import provenance, read_design
    from netctrl.scenario.scenario import Scenario

    design = _scenario(path) if path.endswith(".toml") else read_design(path)
    method = _SCENARIO if isinstance(design, Scenario) else design.method
    origin = provenance(argv=invocation(), inputs=[Path(path)])
    made, checks = _attempted(path, job, design, method)
    content = {
        "schema": _SCHEMA,
        "method": method,
        "files": [*made.files, SUMMARY],
        "figures": [msgspec.to_builtins(each) | {"relative_difference": each.difference} for each in made.figures],
        "margins": checks,
        "notes": made.notes,
        "provenance": origin,
    }
    text = as_json(content)
    folder = write_folder(job.output, {**made.files, SUMMARY: text}, _is_earlier)
    if json:
        return say(text)
    return say(report(f"{method} for Linux in {folder}", _rows(made, checks, folder), made.notes))


def _scenario(path: str) -> Scenario:
    from netctrl.cli.cases import read_case
    from netctrl.scenario.scenario import checked_demands

    return checked_demands(read_case(path, None).scenario)


def _attempted(
    path: str, job: TcJob, design: AnyDesign | Scenario, method: str
) -> tuple[TcExport, tuple[ImplementationCheck, ...]]:
    """The export; its errors name the option or the file at fault."""
    try:
        _refuse_strangers(job, method)
        return _made(path, job, design)
    except InvalidValue as error:
        name = error.argument.partition(" of ")[0]
        given = getattr(job, name, None)
        if name == error.argument and (name == "design" or hasattr(job, name)):
            raise
        if given is not None:
            raise InvalidValue(name, given, error.takes) from None
        of_file = name.partition(".")[0] in ("law", "control")
        raise FileError(path if of_file else job.interfaces or path, str(error)) from None


def _made(path: str, job: TcJob, design: AnyDesign | Scenario) -> tuple[TcExport, tuple[ImplementationCheck, ...]]:
    from netctrl.design.queue.ecn_record import EcnDesign
    from netctrl.design.queue.record import QueueDesign
    from netctrl.linux.export.agents import connet_on_linux, hftrac_on_linux, mpc_on_linux
    from netctrl.linux.export.queue_law import queue_on_linux
    from netctrl.linux.export.tc import arc_on_linux, mpcc_on_linux, pacing_on_linux
    from netctrl.model.design.design import ArcDesign, ConnetDesign, HftracDesign, MpccDesign, MpcDesign, PacingDesign
    from netctrl.scenario.scenario import Scenario

    match design:
        case Scenario():
            return _ruled(job, design), ()
        case MpccDesign():
            mpcc_on_linux(design)
        case PacingDesign():
            return pacing_on_linux(design), ()
        case ArcDesign():
            aqm, checks = _aqm(job, design)
            return arc_on_linux(design, _interface(job), aqm, _settings(job), drop=job.drop), checks
        case QueueDesign():
            rates = design.inputs.box.capacity_bit_per_s
            return queue_on_linux(design.law, _interface(job), None if rates is None else rates[0]), ()
        case EcnDesign():
            return _step(job, design), ()
        case HftracDesign():
            from netctrl.plants.linearize import network_model

            model = network_model(design.inputs.network, design.law.interval_s)
            reference = 1.0 if job.reference is None else _factor(job.reference)
            return hftrac_on_linux(design, model, _places(job), _settings(job), reference=reference), ()
        case MpcDesign():
            return mpc_on_linux(design, _places(job), _settings(job)), ()
        case ConnetDesign():
            return connet_on_linux(design, _places(job), _settings(job), **_tracked(job, design)), ()
    raise InvalidValue("design", path, "a Design of arc, hftrac, connet, mpc, mpcc, pacing or a queue")


def _ruled(job: TcJob, scenario: Scenario) -> TcExport:
    """A scenario's link rates, by agents."""
    import numpy as np

    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.linux.export.agent_law import scenario_table
    from netctrl.linux.export.agents import rates_on_linux
    from netctrl.sim.network.plan import link_plan

    plan = link_plan(scenario, scenario_law(scenario), messages=True)
    kind = "fifo" if scenario.control is None else str(scenario.control.__struct_config__.tag)
    if not plan.paced.any():
        raise InvalidValue("control", kind, "a control that sets the rates of links, as static, credit or hftrac")
    capacity = {link.id: link.capacity for link in plan.network.links}
    table = scenario_table(plan.law, plan.links, np.array([capacity[name] for name in plan.links]), plan.paced)
    return rates_on_linux(table, plan.network, scenario.interval, _places(job), _settings(job), title=kind)


def _step(job: TcJob, design: EcnDesign) -> TcExport:
    from netctrl.linux.export.queue_law import StepQueue, step_on_linux

    box = design.inputs.box
    rate = (box.capacity_bit_per_s or (0.0, 0.0))[1]
    return step_on_linux(design.law, _interface(job), StepQueue(box.packet_size_bytes, rate, job.implementation))


def _refuse_strangers(job: TcJob, method: str) -> None:
    """Refuse options that apply only to other methods."""
    belongs = {
        "implementation": ("arc", "ecn"),
        "drop": ("arc",),
        "shaper": _BY_AGENTS,
        "packet_size": _BY_AGENTS,
        "reference": ("hftrac", "connet"),
        "measured_at": ("connet",),
        "burst": ("arc", *_BY_AGENTS),
        "limit": ("arc", *_BY_AGENTS),
        "frames": ("arc", *_BY_AGENTS),
        "interfaces": ("arc", *_BY_AGENTS, "mpcc", "queue", "ecn"),
    }
    for name, methods in belongs.items():
        value = getattr(job, name)
        if value and method not in methods:
            raise InvalidValue(
                name, value, f"no value with a Design of {method}: it applies to {' and '.join(methods)}"
            )


def _aqm(job: TcJob, design: ArcDesign) -> tuple[Pie | Dualpi2 | None, tuple[ImplementationCheck, ...]]:
    """The rounded gains and the margins with them; NoAdmissibleDesign where the margins break the rule."""
    from netctrl.design.arc.loop import MIN_GAIN_MARGIN_DB, MIN_PHASE_MARGIN_DEG
    from netctrl.design.arc.rounding import check_implementation
    from netctrl.linux.export.aqm import arc_on_delay, nearest_dualpi2, nearest_pie

    name = job.implementation or "ebpf"
    if name not in IMPLEMENTATIONS:
        raise InvalidValue("implementation", name, any_of(IMPLEMENTATIONS, name))
    if name == "auto":
        name = _first_here(design)
    if name == "ebpf":
        return None, ()
    if job.drop:
        raise InvalidValue("drop", True, f"no value with --implementation {name}, which drops what it can't mark")
    requested = arc_on_delay(design.law)
    probability = design.certificate.operating_point.marking_probability
    aqm = nearest_pie(requested, probability) if name == "pie" else nearest_dualpi2(requested, probability)
    checks = check_implementation(design.inputs, requested, aqm.law)
    for each in checks:
        if not each.implemented.keeps_rule:
            found = each.implemented
            raise NoAdmissibleDesign(
                f"rounded to the steps of {name}, the loop of {each.flows:g} flows at {each.rtt_s:g} s keeps "
                f"{found.phase_margin_deg:.1f}° and {found.gain_margin_db:.1f} dB, of "
                f"{each.requested.phase_margin_deg:.1f}° and {each.requested.gain_margin_db:.1f} dB before; "
                f"{MIN_PHASE_MARGIN_DEG:g}° and "
                f"{MIN_GAIN_MARGIN_DB:g} dB are required: use --implementation ebpf, or another Design",
                design,
            )
    return aqm, checks


def _first_here(design: ArcDesign) -> str:
    """The first implementation that this kernel has and that can represent the law."""
    from netctrl.linux.export.aqm import arc_on_delay
    from netctrl.linux.kernel.objects import has_qdisc

    try:
        arc_on_delay(design.law)
    except NoAdmissibleDesign:
        return "ebpf"
    return next((kind for kind in ("dualpi2", "pie") if has_qdisc(kind)), "ebpf")


def _tracked(job: TcJob, design: ConnetDesign) -> dict[str, Any]:
    from netctrl.linux.export.agents import Watch

    found: dict[str, Any] = {}
    if job.reference is not None:
        found["reference"] = _outputs(job.reference, design.law.outputs)
    if job.measured_at is not None:
        interface, _, rate = job.measured_at.partition("@")
        try:
            found["watch"] = Watch(interface, parse_rate(rate))
        except ValueError:
            raise InvalidValue("measured_at", job.measured_at, "INTERFACE@RATE, as in eth0@20Mbit") from None
    return found


def _outputs(text: str, names: tuple[str, ...]) -> tuple[float, ...]:
    takes = f"all outputs, as in {','.join(f'{name}=1.0' for name in names)}, in the Design's units"
    try:
        named = {name.strip(): float(value) for name, value in (part.split("=") for part in text.split(","))}
    except ValueError:
        raise InvalidValue("reference", text, takes) from None
    if named.keys() != set(names):
        raise InvalidValue("reference", text, takes)
    return tuple(named[name] for name in names)


def _settings(job: TcJob) -> TcSettings:
    from netctrl.linux.export.shaper import TcSettings, checked_framing

    packet = _size("packet_size", job.packet_size)
    framing = checked_framing(1500.0 if packet is None else packet, *((0.0,) if job.frames else ()))
    shaper = one_of(*SHAPERS)("shaper", job.shaper or SHAPERS[0])
    return TcSettings(framing=framing, burst=_size("burst", job.burst), limit=_size("limit", job.limit), shaper=shaper)


def _places(job: TcJob) -> InterfaceMap:
    from netctrl.linux.export.agents import INTERFACES_TAKES, read_interface_map

    if job.interfaces is None:
        raise InvalidValue("interfaces", None, INTERFACES_TAKES)
    return read_interface_map(job.interfaces)


def _interface(job: TcJob) -> str:
    """The interface of ARC's one link, with or without a link's name before it."""
    if job.interfaces is None or "," in job.interfaces or job.interfaces.endswith(".toml"):
        raise InvalidValue("interfaces", job.interfaces, "the interface of the bottleneck, as in eth0")
    return job.interfaces.rpartition("=")[2].strip()


def _factor(text: str) -> float:
    try:
        return parse_count(text)
    except ValueError:
        raise InvalidValue("reference", text, "a number above 0, as in 1.1") from None


def _size(argument: str, text: str | None) -> float | None:
    try:
        return None if text is None else parse_size(text)
    except ValueError as error:
        raise InvalidValue(argument, text, str(error).rpartition("takes ")[2]) from None


def _rows(made: TcExport, checks: tuple[ImplementationCheck, ...], folder: Path) -> list[tuple[str, str]]:
    rows = []
    for each in made.figures:
        off = f"{100.0 * each.difference:+.3g} %" if abs(each.difference) > _ROUNDING else "exact"
        rows.append((each.what, f"{each.implemented:.7g} {each.unit}, requested {each.requested:.7g} ({off})"))
    for each in checks:
        rows.append(
            (
                f"margins, {each.flows:g} flows, {each.rtt_s:g} s",
                f"PM {each.implemented.phase_margin_deg:.2f}°, lost {each.phase_lost_deg:.2f}°; GM "
                f"{each.implemented.gain_margin_db:.2f} dB, lost {each.gain_lost_db:.2f} dB",
            )
        )
    rows.append(("files", ", ".join([*made.files, SUMMARY])))
    planned = {name.removesuffix(".plan.json") + ".tc" for name in made.files if name.endswith(".plan.json")}
    in_turn = sorted(made.files, key=lambda name: not name.endswith(".plan.json"))  # plans before agents
    return rows + [("then", _next(name, folder)) for name in in_turn if name not in planned]


def _next(name: str, folder: Path) -> str:
    import shlex

    path = shlex.quote(str(folder / name))
    commands = {
        ".plan.json": f"python -m netctrl linux apply {path}",
        ".agent.json": f"python -m netctrl linux agent {path}",
        ".marking.json": f"python -m netctrl linux mark {path}",
        ".design.json": f"python -m netctrl linux pace --design {path} -- PROGRAM",
        ".tc": f"tc -batch {path}",
    }
    return next(command for ending, command in commands.items() if name.endswith(ending))


def _is_earlier(folder: Path) -> bool:
    mark = folder / SUMMARY
    return mark.is_file() and f'"schema": "{_SCHEMA}"' in mark.read_text()[:200]
