"""Registries: tables from a name to netctrl's or another package's implementation.

An entry of netctrl is the text "module:attribute". It is imported on first use, so this module imports none of them.
Another package declares its entries as entry points of the registry's group:

    [project.entry-points."netctrl.laws"]
    blue = "netctrl_blue:BLUE"
"""

from __future__ import annotations

import importlib
import os
import sys
from contextlib import suppress
from functools import cache
from importlib.machinery import PathFinder

TYPE_CHECKING = False  # as in typing, which `netctrl --help` does without
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path
    from typing import Any


class Registry:
    """Names of one kind of object: netctrl's own, and those of entry points.

    Parameters
    ----------
    what, group, ours
        What an entry is, the group of entry points, and netctrl's own entries.
    law : str
        "module:class" of the laws that are the entries, which `netctrl.laws.codegen.check_law` checks when another
        package's is loaded; "": entries aren't laws.
    """

    def __init__(self, what: str, group: str, ours: Mapping[str, str], law: str = "") -> None:
        self.what = what
        self.group = group
        self._ours = dict(ours)
        self._law = law
        self._others: dict[str, Any] | None = None
        self._lacks: dict[str, str | None] = {}

    def __iter__(self) -> Iterator[str]:
        yield from {**self._ours, **self._points()}

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:
        return name in self._ours or name in self._points()

    def __getitem__(self, name: str) -> Any:
        """Entry of this name.

        Raises
        ------
        InvalidValue
            There is none; the message has the known names and the closest one.
        Unusable
            The entry's package is broken; the message names it, with file and line.
        """
        if name in self._ours:
            return _imported(self._ours[name])
        point = self._point(name)
        lack = self.lack(name)
        if lack is not None:
            from netctrl.core.errors import Unusable

            raise Unusable(lack)
        return point.load()

    def usable(self) -> tuple[str, ...]:
        """Names without those of broken packages."""
        return tuple(name for name in self if self.lack(name) is None)

    def lack(self, name: str) -> str | None:
        """Why another package's entry can't be used; None: it can."""
        if name in self._ours:
            return None
        if name not in self._lacks:
            self._lacks[name] = self._found(self._points()[name])
        return self._lacks[name]

    def _found(self, point: Any) -> str | None:
        from netctrl.core.errors import NetctrlError, raised_in

        try:
            entry = point.load()
            if self._law:
                _imported("netctrl.laws.codegen:check_law")(point.name, entry, _imported(self._law))
        except NetctrlError as error:
            why = str(error)
        except (Exception, SystemExit) as error:  # whatever a package raises when it is imported
            said = error.msg if isinstance(error, SyntaxError) else error
            why = f"{raised_in(point.module, error) or point.value}: {type(error).__name__}: {said}"
        else:
            return None
        package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
        return f"{self.what} {point.name}{package} can't be used: {' '.join(why.split())}"

    def our_modules(self) -> set[str]:
        """Names of the netctrl modules that define entries."""
        return {entry.partition(":")[0] for entry in self._ours.values()}

    def module_of(self, name: str) -> str:
        """Name of the module that defines an entry, without importing it; InvalidValue where there is no entry."""
        if name in self._ours:
            return self._ours[name].partition(":")[0]
        return self._point(name).module

    def outside_files(self) -> list[Path]:
        """Python files of the packages whose entry points are listed, sorted; nothing is imported."""
        return sorted({file for point in self._points().values() for file in _files_of(point)})

    def outside_in(self, file: Path) -> list[str]:
        """Names of the entry points of the package that has this file."""
        return [name for name, point in self._points().items() if file in _files_of(point)]

    def _points(self) -> dict[str, Any]:
        """Entry points of other packages; they cannot replace netctrl's own names."""
        if self._others is None:
            self._others, declared = {}, _declared_groups()
            if declared is None or self.group in declared:
                from importlib.metadata import entry_points  # which loads slowly

                points = entry_points(group=self.group)
                self._others = {point.name: point for point in points if point.name not in self._ours}
        return self._others

    def _point(self, name: str) -> Any:
        if name not in self._points():
            from netctrl.core.errors import InvalidValue, did_you_mean

            raise InvalidValue(self.what, name, f"one of {', '.join(sorted(self))}{did_you_mean(name, self)}")
        return self._points()[name]


def _imported(entry: str) -> Any:
    module, _, attribute = entry.partition(":")
    return getattr(importlib.import_module(module), attribute)


def _files_of(point: Any) -> list[Path]:
    """Python files of the package of an entry point."""
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec(point.module.partition(".")[0])
    if spec is not None and spec.submodule_search_locations:
        return [file for folder in spec.submodule_search_locations for file in Path(folder).rglob("*.py")]
    return [] if spec is None or spec.origin is None else [Path(spec.origin)]


@cache
def _declared_groups() -> frozenset[str] | None:
    """netctrl's groups in the entry points of installed packages; None if a package is not in a folder of files."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return None
    found: set[str] = set()
    for folder in sys.path:
        try:
            with os.scandir(folder or ".") as places:
                names = [
                    f"{place.path}/entry_points.txt"
                    for place in places
                    if place.name.endswith((".dist-info", ".egg-info"))
                ]
        except NotADirectoryError:  # an archive
            return None
        except OSError:
            continue
        for name in names:
            # pathlib would make up a fifth of the time of --help
            with suppress(OSError), open(name, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
                found.update(line.strip("[] \t\n") for line in file if line.lstrip().startswith("[netctrl."))
    return frozenset(found)


_ADAPTERS = "daqp", "qpoases", "osqp"
QP_SOLVERS = Registry(
    "solver",
    "netctrl.solvers",
    {name: f"netctrl.mpc.solvers.{name}_:{name.capitalize()}Workspace" for name in _ADAPTERS}
    | {"clarabel": "netctrl.mpc.solvers.cvxpy_:CvxpyWorkspace"},
)
"""Name of a solver of quadratic programs -> its adapter, a `netctrl.mpc.qp.program.Workspace`."""

QUEUE_LAWS = Registry(
    "queue",
    "netctrl.laws",
    {
        "arc": "netctrl.laws.aqm.arc:ARC",
        "fast-arc": "netctrl.laws.aqm.fast_arc:FAST_ARC",
        "pi": "netctrl.laws.aqm.pi:PI",
        "avq": "netctrl.laws.aqm.avq:AVQ",
        "sfc": "netctrl.laws.aqm.sfc:SFC",
        "red": "netctrl.laws.aqm.red:RED",
        "pie": "netctrl.laws.aqm.pie:PIE",
        "codel": "netctrl.laws.aqm.codel:CODEL",
        "threshold": "netctrl.laws.aqm.threshold:THRESHOLD",
        "pi2": "netctrl.laws.l4s.pi2:PI2",
        "docsis-pie": "netctrl.laws.targets.docsis_pie:DOCSIS_PIE",
    },
    "netctrl.laws.aqm.law:QueueLaw",
)
"""Kind of a queue in a file -> its law, a `netctrl.laws.aqm.law.QueueLaw`. Read when scenarios are imported."""

WINDOW_LAWS = Registry(
    "scheme",
    "netctrl.window_laws",
    {
        "fixed": "netctrl.laws.window.fixed:FIXED",
        "mpcc": "netctrl.laws.window.mpcc:MPCC",
        "hpcc": "netctrl.laws.window.hpcc:HPCC",
        "dctcp": "netctrl.laws.window.dctcp:DCTCP",
        "timely": "netctrl.laws.window.timely:TIMELY",
        "dcqcn": "netctrl.laws.window.dcqcn:DCQCN",
    },
    "netctrl.laws.window.law:WindowLaw",
)
"""Kind of a scheme in a file -> its law, a `netctrl.laws.window.law.WindowLaw`. Read when scenarios are imported."""

_TCP = {name: name for name in ("reno", "cubic", "htcp", "dctcp", "vegas", "prague")} | {"ledbat++": "ledbat"}
TCP_SENDERS = Registry(
    "window",
    "netctrl.tcp_senders",
    {name: f"netctrl.laws.tcp.{place}:{place.upper()}" for name, place in _TCP.items()},
    "netctrl.laws.tcp.sender:TcpSender",
)
"""Name of a TCP sender's window -> its law, a `netctrl.laws.tcp.sender.TcpSender`."""

LINK_LAWS = Registry("control", "netctrl.link_laws", {}, "netctrl.scenario.network.policy:LinkLaw")
"""Kind of a control of another package -> its `netctrl.scenario.network.policy.LinkLaw`, read with scenarios."""

RUNNING_LAWS = Registry("law", "netctrl.running_laws", {"mpc": "netctrl.mpc.law:RunningMpc"})
"""Kind of a law that is more than a table of numbers -> class that runs it, from the law and what was applied."""

CERTIFIED = Registry(
    "law",
    "netctrl.certified",
    {
        "pie": "netctrl.certificates.pi_laws:pie",
        "dualpi2": "netctrl.certificates.pi_laws:dualpi2",
        "pi2": "netctrl.certificates.pi_laws:pi2",
        "fq_pie": "netctrl.certificates.pi_laws:fq_pie",
        "docsis-pie": "netctrl.certificates.pi_laws:docsis_pie",
        "red": "netctrl.certificates.red:red",
        "wred": "netctrl.certificates.red:wred",
        "codel": "netctrl.certificates.codel:codel",
        "fq_codel": "netctrl.certificates.codel:fq_codel",
        "cake": "netctrl.certificates.codel:cake",
        **{name: f"netctrl.certificates.ecn.{name}:{name}" for name in ("dctcp", "dcqcn", "hpcc")},
    },
)
"""Name of a law certified with an implementation's numbers -> its subject's function; others go by their steps."""

_RATE = {name: name.replace("-", "_") for name in ("bbr", "bbr3", "copa", "cap", "own-rate", "paced")}
RATE_SENDERS = Registry(
    "sender",
    "netctrl.rate_senders",
    {name: f"netctrl.laws.rate.{place}:{place.upper()}" for name, place in _RATE.items()},
    "netctrl.laws.rate.law:RateSender",
)
"""Kind of a sender in a file -> its `netctrl.laws.rate.law.RateSender`. Read when scenarios are imported."""

KERNEL_LAWS = {
    "QUEUE_LAWS": QUEUE_LAWS,
    "RATE_SENDERS": RATE_SENDERS,
    "TCP_SENDERS": TCP_SENDERS,
    "WINDOW_LAWS": WINDOW_LAWS,
}
"""Registries whose laws are compiled into kernels, by the name under which a file imports the registry."""


def lack_of(name: object) -> str | None:
    """Why a law of this name, of another package, can't be used; None: there is none, or it can be."""
    lacks = (each.lack(name) for each in KERNEL_LAWS.values() if isinstance(name, str) and name in each)
    return next((lack for lack in lacks if lack is not None), None)


def refuse_unusable(name: object) -> None:
    """Unusable for the name of a law of another package that can't be used, before a list of what is known."""
    lack = lack_of(name)
    if lack is not None:
        from netctrl.core.errors import Unusable

        raise Unusable(lack)


DESIGNS = Registry(
    "method",
    "netctrl.designs",
    {
        "arc": "netctrl.model.design.design:ArcDesign",
        "hftrac": "netctrl.model.design.design:HftracDesign",
        "connet": "netctrl.model.design.design:ConnetDesign",
        "mpc": "netctrl.model.design.design:MpcDesign",
        "mpcc": "netctrl.model.design.design:MpccDesign",
        "pacing": "netctrl.model.design.design:PacingDesign",
        "queue": "netctrl.design.queue.record:QueueDesign",
        "ecn": "netctrl.design.queue.ecn_record:EcnDesign",
    },
)
"""Method in a Design file -> its record, a `netctrl.model.design.base.Design`. Read when a file is read."""

VERB_HELPS = {
    "design": "gains and a certificate, from a network's parameters",
    "certify": "laws of queues as people run them: are they stable, and for whom",
    "evaluate": "an AQM by RFC 7928, a congestion control by RFC 9743: one report",
    "excite": "an input that excites a link, to record a trace with",
    "identify": "a state-space model from measured inputs and outputs",
    "simulate": "a scenario or a Design: fluid, packets, ns-3 or the Linux kernel",
    "what-if": "a network whose links or nodes fail, or whose demands grow",
    "sweep": "grids of network scenarios, with confidence intervals",
    "export": "a Design as files for Linux or ns-3",
    "kernel": "the Linux kernel in virtual time: build, run programs inside it",
    "linux": "queues of this machine: plan, apply, restore",
    "list": "names of queues, senders, engines, scenarios, networks and files",
    "doctor": "checks of this machine: libraries, compilers, ns-3, kernel",
    "completion": "a script with which a shell completes verbs and options",
}
"""netctrl's own verbs, in the order of the help, and what it says of them."""

VERBS = Registry("verb", "netctrl.verbs", {name: f"netctrl.cli.{name.replace('-', '_')}:main" for name in VERB_HELPS})
"""Verb -> `main(argv)`, which returns an exit status; the docstring of an outside verb's module is its help."""

DESIGNED_QUEUES = ("pie", "docsis-pie", "pi2", "dualpi2", "red", "wred", "codel", "fq_codel", "cake", "ecn")
"""Design commands of queues that people run; the others are of research laws."""

DESIGN_COMMANDS = Registry(
    "method",
    "netctrl.design_commands",
    {
        **{name: f"netctrl.cli.design.{name}:{name}" for name in ("arc", "hftrac", "connet", "mpc")},
        **{name: f"netctrl.cli.design.senders:{name}" for name in ("mpcc", "pacing")},
        **{name: f"netctrl.cli.design.queues:{name.replace('-', '_')}" for name in DESIGNED_QUEUES},
    },
)
"""Name of `netctrl design NAME` -> its function: arguments are text, its docstring is the help."""

ENGINES = Registry(
    "engine",
    "netctrl.engines",
    {name: f"netctrl.engines.{name}:{name.upper()}" for name in ("fluid", "packet", "ns3", "kernel")},
)
"""Name of an engine -> a `netctrl.engines.engine.Engine`, in the order in which "auto" tries them."""

_ASKED = "simulate", "predict", "compare", "residuals", "bode", "step"
ANSWERS = Registry("question", "netctrl.answers", {name: f"netctrl.ident.answers:{name}" for name in _ASKED})
"""Question to an identified model -> the function of `netctrl.ident.answers` that answers it."""

_ANSWERS = ("Bode", "FitComparison", "Residuals", "StepResponse")
FIGURES = Registry(
    "record",
    "netctrl.figures",
    {
        **{kind: f"netctrl.plotting.answers:{kind.lower()}_figure" for kind in _ANSWERS},
        "ArcDesign": "netctrl.plotting.loops:arc_bode",
        "Comparison": "netctrl.plotting.simulations:comparison_figure",
        "ConnetDesign": "netctrl.plotting.tracking:tracking_figure",
        "DelayLoop": "netctrl.plotting.loops:bode",
        "EcnDesign": "netctrl.plotting.certificates:step_figure",
        "Evaluation": "netctrl.plotting.pages.evaluations:evaluation_figure",
        "HftracDesign": "netctrl.plotting.networks:network_figure",
        "IdentificationResult": "netctrl.plotting.tracking:identification_figure",
        "IdentifiedModel": "netctrl.plotting.tracking:model_figure",
        "InstalledCertificates": "netctrl.plotting.certificates:installed_figure",
        "MpcDesign": "netctrl.plotting.predictive:mpc_figure",
        "MpccDesign": "netctrl.plotting.senders:window_figure",
        "PacingDesign": "netctrl.plotting.senders:pacing_figure",
        "QueueCertificate": "netctrl.plotting.certificates:certificate_figure",
        "QueueDesign": "netctrl.plotting.certificates:queue_figure",
        "Result": "netctrl.plotting.simulations:result_figure",
        "StabilityMap": "netctrl.plotting.loops:stability_map",
        "WhatIf": "netctrl.plotting.maps:what_if_figure",
    },
)
"""Name of a record's class -> `figure(record, **options)`, which draws it with matplotlib."""

EXPLORERS = Registry("record", "netctrl.explorers", {"Explored": "netctrl.plotting.explore:explorer"})
"""Name of a record's class -> `explorer(record)`, a widget of Jupyter."""

REPORTS = Registry(
    "record",
    "netctrl.reports",
    {
        "ArcDesign": "netctrl.plotting.pages.designs:arc_page",
        "Comparison": "netctrl.plotting.pages.runs:comparison_page",
        "Design": "netctrl.plotting.pages.designs:design_page",
        "Evaluation": "netctrl.plotting.pages.evaluations:evaluation_page",
        "NetworkCertificate": "netctrl.plotting.pages.certificates:network_page",
        "QueueCertificate": "netctrl.plotting.pages.certificates:certificate_page",
        "Result": "netctrl.plotting.pages.runs:result_page",
        "WhatIf": "netctrl.plotting.pages.runs:what_if_page",
    },
)
"""Name of a record's class -> `page(record)`, which returns its report as a `netctrl.plotting.pages.page.Page`."""
