"""`netctrl export ns3`: a case as a program for ns-3, compiled and run on request."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from netctrl.cli.app import check_files, invocation, picture, progress_bar, report, say, write_all
from netctrl.cli.cases import inputs_of, refused
from netctrl.cli.export.folder import write_folder
from netctrl.cli.options import ENDINGS
from netctrl.cli.simulate import RESULT_SUFFIXES, json_text, result_file
from netctrl.core.errors import InvalidValue

if TYPE_CHECKING:
    from netctrl.engines.case import Case
    from netctrl.engines.engine import Job

OPTIONS = {"scenario": "--scenario", "design": "DESIGN", "output": "-o", "n_jobs": "--n-jobs", "law": "DESIGN"}


def _say_what_is_next(name: str, folder: Path, files: list[str], json: bool, run: str = "") -> int:
    """Report a program that was written but not run; `run` follows the folder on its command line."""
    import msgspec

    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": files}).decode() + "\n")
    then = ("then", f"make -C {_quoted(folder)} && {_quoted(folder / 'scenario')} {_quoted(folder)} {run}".rstrip())
    return say(report(f"{name}: a program for ns-3 in {folder}", [("files", ", ".join(files)), then]))


def _is_earlier(folder: Path) -> bool:
    from netctrl.ns3.tcp_aqm.render import MARKER

    headers = (place for place in folder.glob("*.h") if place.is_file())
    return any(place.read_bytes().startswith(f"{MARKER}\n".encode()) for place in headers)


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))


class Export(NamedTuple):
    """Options of the command line."""

    case: Case
    scenario: str | None
    design: str | None
    output: str
    runs: int = 1
    n_jobs: int = 1
    sampled_delays: bool = False

    def job(self, progress: Callable[[float], None] | None = None) -> Job:
        """The job for the engine."""
        from netctrl.engines.engine import Job

        options: dict[str, Any] = {"sampled_delays": True} if self.sampled_delays else {}
        inputs = tuple(inputs_of(self.scenario, self.design))
        return Job(progress, invocation(), inputs, self.runs, self.n_jobs, options)


def export_ns3(asked: Export, run_it: bool, json: bool, result: str | None, plot: str | None) -> int:
    """Write the program; with --run also compile it, run it and report."""
    from netctrl.engines.ns3 import program
    from netctrl.ns3.program import compile_program, find_ns3

    check_files({"plot": plot, "result": result}, endings=ENDINGS | {"result": RESULT_SUFFIXES})
    ns3 = find_ns3() if run_it else None
    try:
        made = program(asked.case, asked.job())
    except InvalidValue as error:
        if error.argument in (*OPTIONS, "reference", "governor"):
            raise
        raise refused(error, asked.scenario, asked.design) from None
    folder = write_folder(asked.output, made.files, _is_earlier)
    if ns3 is None:
        return _say_what_is_next(asked.case.scenario.name, folder, [*made.files], json, made.argument)
    compile_program(folder, ns3)
    with progress_bar(f"ns-{ns3.version}") as progress:
        found = made.run(folder, ns3, progress)
    write_all({"plot": picture(found.plot, plot), "result": result_file(found, result)})
    return say(_json(asked.case, found) if json else report(*_table(asked.case, found)))


def _targets(case: Case, result: Any) -> list[tuple[str, float, float]]:
    """Link, target utilization of its ARC law and utilization reached, where a Design's law is used."""
    from netctrl.laws.aqm.arc import ArcQueue
    from netctrl.model.design.design import ArcDesign

    if not isinstance(case.design, ArcDesign):
        return []
    return [
        (link.id, link.queue.target_utilization, result["utilization", link.id])
        for link in result.scenario.links
        if isinstance(link.queue, ArcQueue)
    ]


def _table(case: Case, result: Any) -> tuple[str, list[tuple[str, str]]]:
    title, rows = result.table()
    return title, rows + [
        ("target", f"utilization {target:.4f} by the Design; {name} is {(reached - target) * 100.0:+.1f} points off")
        for name, target, reached in _targets(case, result)
    ]


def _json(case: Case, result: Any) -> str:
    more: dict[str, Any] = {}
    targets = _targets(case, result)
    if targets:
        more["target_utilization"] = {name: target for name, target, _ in targets}
    signals = getattr(result, "tables", {}).get("signals", {})
    if "at limit" in signals:
        from netctrl.scenario.network.track import infeasible

        more["infeasible_s"] = infeasible(signals["at limit"], float(signals["time"][0]))
    return json_text(result, **more)
