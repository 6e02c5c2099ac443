"""Reproduction of a result: its command, the same in Python, and its provenance."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

import netctrl
from netctrl.core.errors import FileError, InvalidValue, Status
from netctrl.model.datasets import bundled_path, data_path
from netctrl.model.design.base import Design
from netctrl.model.io.provenance import Provenance
from netctrl.model.io.record_file import taken
from netctrl.plotting.pages.html import Html, code, notes, rows_table, section
from netctrl.plotting.pages.page import MOODS, Page

_READ = {"hftrac": "network", "connet": "model"}
"""Method -> first argument of its function, which is read from a file."""
_OF_FILES = (
    "--capacity",
    "--capacity-unit",
    "--delay",
    "--delay-unit",
    "--demands",
    "--demand-unit",
    "--gravity",
    "--std",
)
"""Options that change what was read, and that `netctrl.read` lacks."""

_REFUSED = ("except netctrl.NoAdmissibleDesign as error:", "    design = error.design")


def origin(
    made: Provenance, lines: list[str], *, imports: Sequence[str] = (), more: Mapping[str, str] | None = None
) -> list[Html]:
    """Two sections: how to reproduce a result, and its provenance with `more` rows."""
    command = [] if not made.argv else [code(shlex.join(made.argv), "Command line")]
    needed = [*imports, *(["from netctrl.model.datasets import data_path"] if "data_path(" in " ".join(lines) else [])]
    python = [code("\n".join(["import netctrl", *needed, "", *lines]), "Python")] if lines else []
    rows = [("netctrl", made.netctrl)]
    if made.git_revision is not None:
        rows.append(("commit", made.git_revision))
    if made.seed is not None:
        rows.append(("seed", str(made.seed)))
    rows += [(f"SHA-256 of {Path(path).name}", digest) for path, digest in made.input_hashes.items()]
    rows += [("Python", made.python), *((name, version) for name, version in made.libraries.items())]
    rows += list((more or {}).items())
    return [
        section("How to reproduce it", *command, *python),
        section("Provenance", rows_table("What it was made with", rows, ("What", "Version or value"))),
    ]


def judged(
    kind: str,
    title: str,
    found: Any,
    rows: Sequence[tuple[str, str]],
    *sections: Html,
    lines: Sequence[str] = (),
    warnings: str = "Notes",
) -> Page:
    """Page of a record with a certificate: verdict, warnings under their heading, summary, its sections, origin."""
    proof = found.certificate
    head = [section(warnings, notes(proof.warnings)), section("Summary", rows_table(f"Status: {proof.status}", rows))]
    made = origin(found.provenance, list(lines))
    return Page(kind, title, found.verdict, MOODS[proof.status], [*head, *sections, *made])


def read_lines(made: Provenance) -> dict[str, str]:
    """Suffix of each file that was read -> the Python that reads it."""
    return {Path(path).suffix: f"netctrl.read({_named(Path(path))})" for path in made.input_hashes}


def given(made: Provenance, option: str) -> str | None:
    """Value of an option on the command line, in a word of its own or behind =."""
    words = [part for each in made.argv for part in (each.split("=", 1) if each.startswith(f"{option}=") else [each])]
    return next((words[place + 1] for place, each in enumerate(words[:-1]) if each == option), None)


def changed(made: Provenance) -> bool:
    """Whether options of the command line changed what was read."""
    return any(given(made, option) is not None for option in _OF_FILES)


def _named(path: Path) -> str:
    """A file as a Python argument of `netctrl.read`: bundled files by name, which works on any machine."""
    bundled = f"{path.parent.name}/{path.name}"
    with suppress(FileError, InvalidValue):
        if data_path(bundled) == path:
            return repr(path.stem) if bundled_path(path.stem) == path else f"data_path({bundled!r})"
    return repr(str(path))


def design_lines(design: Design[Any, Any, Any]) -> list[str]:
    """The call that makes a Design; empty where it isn't known, as for another package's method."""
    made, name = design.provenance, design.method
    if name not in _ARGUMENTS:
        return []
    first = _READ.get(name)
    file = next(iter(read_lines(made).values()), None)
    if first is not None and (file is None or changed(made)):
        return []
    function = _FUNCTIONS.get(name, name)
    defaults = {key: each.default for key, each in inspect.signature(getattr(netctrl, function)).parameters.items()}
    asked = {key: value for key, value in _ARGUMENTS[name](design).items() if value != defaults.get(key)}
    arguments = [f"{key}={value!r}" for key, value in asked.items()]
    before = [] if first is None else [f"{first} = {file}"]
    inside = ", ".join(arguments if first is None else [first, *arguments])
    call = f"design = netctrl.{function}({inside})"
    calls = [call] if design.certificate.status is Status.ADMISSIBLE else ["try:", f"    {call}", *_REFUSED]
    return [*before, *calls, 'design.report("report.html")']


def _arc(design: Any) -> dict[str, Any]:
    found = _inputs(design)
    for key in ("flows", "rtt_s"):
        low, high = found[key]
        found[key] = low if low == high else (low, high)
    if design.certificate.simulated is None:
        found["simulation"] = False
    return found


def _hftrac(design: Any) -> dict[str, Any]:
    found = _inputs(design) | {"compare": bool(design.certificate.comparison)}
    del found["network"]
    return found


def _connet(design: Any) -> dict[str, Any]:
    asked = design.inputs
    same = taken(asked, "limits", "input_weight", "references")
    return {"method": asked.law, "track": asked.tracked, **same}


def _queue(design: Any) -> dict[str, Any]:
    asked = design.inputs
    box = {name: value for name, value in msgspec.structs.asdict(asked.box).items() if value is not None}
    names = ("parameters", "objective", "p99_s", "utilization", "step_s")
    return {"law": asked.law, **box, **taken(asked, *names), "disk_margin": asked.least_disk_margin}


def _ecn(design: Any) -> dict[str, Any]:
    box = taken(design.inputs.box, "rtt_s", "flows", "capacity_bit_per_s", "packet_size_bytes")
    return box | taken(design.inputs, "gain", "unit", "p99_s")


def _inputs(design: Any) -> dict[str, Any]:
    """Arguments of a function whose arguments are the inputs."""
    return msgspec.structs.asdict(design.inputs)


_ARGUMENTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    "arc": _arc,
    "hftrac": _hftrac,
    "connet": _connet,
    "mpcc": _inputs,
    "pacing": _inputs,
    "queue": _queue,
    "ecn": _ecn,
}
_FUNCTIONS = {"queue": "queue_design", "ecn": "ecn_design"}
"""Method -> public function, where the names differ."""
