"""`netctrl kernel build|run|list`: the Linux kernel as a program in virtual time."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec

from netctrl.cli.app import as_json, new_app, progress_bar, report, run, say
from netctrl.cli.options import JOBS, Kind, kind, option, positional, whole
from netctrl.core.errors import InvalidValue, checked_jobs
from netctrl.core.files import made_folder
from netctrl.core.units import DURATION_TAKES, SIZE_TAKES, format_quantity, parse_duration, parse_size

_MIN_MEMORY, _MAX_MEMORY = 64 * 2**20, 64 * 2**30
_MAX_WALL_S = 7 * 86400.0
_SHOWN_HASH = 16


def _within(metavar: str, parse: Callable[[str], float], takes: str, least: float, most: float) -> Kind:
    """Kind of options that take a quantity between two bounds."""
    quantity = kind(metavar, parse, takes)

    def read(text: str) -> float:
        value = quantity.read(text)
        if not least <= value <= most:
            raise InvalidValue("", text, f"{takes}, from {least:g} to {most:g}")
        return value

    return Kind(metavar, read)


_SEED = whole("N", "a whole number from 0 to 18446744073709551615", most=2**64 - 1)
_MEMORY = _within("SIZE", parse_size, SIZE_TAKES, _MIN_MEMORY, _MAX_MEMORY)
_LIMIT = _within("TIME", parse_duration, DURATION_TAKES, 1.0, _MAX_WALL_S)

app = new_app(
    "netctrl kernel",
    "Builds the Linux kernel as a program, and runs programs inside it in virtual time.",
    "netctrl kernel list",
    "netctrl kernel build --dry-run",
)


def build(
    *,
    source: Annotated[
        str | None, option("PATH", "tree or tarball of a kernel; by default Debian's linux-source package")
    ] = None,
    add: Annotated[
        tuple[str, ...], option("FILE", "own C file to build in, such as tcp_mine.c, or its header; may be repeated")
    ] = (),
    n_jobs: Annotated[int, JOBS("number of processes, -1: one for each core", default="1")] = 1,
    dry_run: Annotated[bool, option("", "say what would be built, or what is missing; build nothing")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Builds a kernel into the user's cache, about five minutes of one core; a second call finds it.

    Objects of an own tree, or with own files, are kept: the next build compiles what has changed.

    Examples
    --------
    netctrl kernel build --dry-run
    netctrl kernel build --dry-run --json
    """
    from netctrl.kernel.build import build_kernel

    jobs = checked_jobs(n_jobs)
    if dry_run:
        return _planned(source, json)
    with progress_bar("building the kernel") as bar:
        told = None if bar is None else lambda _, share: bar(share)
        kernel = build_kernel(source, add=add, jobs=jobs, progress=told)
    if json:
        return say(as_json(_content(kernel)))
    rows = [
        ("program", str(kernel.program)),
        ("SHA-256", kernel.sha256),
        ("source", kernel.source),
        ("compiler", kernel.compiler),
        ("built in", format_quantity(round(kernel.build_s), "s")),
        ("without", ", ".join(kernel.absent) or "nothing that was asked for"),
        *([("to use it", f"NETCTRL_KERNEL={kernel.version}")] if add else []),
    ]
    return say(report(f"Linux {kernel.version}", rows))


def list_kernels(*, json: Annotated[bool, option("", "print one JSON object and nothing else")] = False) -> int:
    """Lists the kernels that are built; the last one is used, unless NETCTRL_KERNEL names another.

    Examples
    --------
    netctrl kernel list
    netctrl kernel list --json
    """
    from netctrl.kernel.build import kernels

    found = kernels()
    if json:
        return say(as_json({"kernels": [_content(each) for each in found]}))
    if not found:
        return say("no kernel is built yet: netctrl kernel build\n")
    rows = [(each.version, f"{each.sha256[:_SHOWN_HASH]}  {each.folder}") for each in found]
    return say(report(f"{len(found)} kernel{'s' if len(found) > 1 else ''}", rows))


def run_program(
    *program: Annotated[str, positional("PROGRAM", "program to run, with its arguments, after --")],
    output: Annotated[str | None, option("DIR", "empty folder that it may write to, inside /run/netctrl", "-o")] = None,
    seed: Annotated[int, _SEED("seed of all of the kernel's random numbers", default="1")] = 1,
    version: Annotated[str | None, option("VERSION", "kernel to use; by default the newest", "--kernel")] = None,
    memory_bytes: Annotated[float, _MEMORY("memory of the kernel", default="1GiB")] = 2.0**30,
    wall_limit_s: Annotated[float, _LIMIT("longest run by the clock of the host", default="15min")] = 900.0,
    dry_run: Annotated[bool, option("", "show the kernel and its settings; run nothing")] = False,
) -> int:
    """Runs a program inside the kernel in virtual time: as root there, with the host's files read-only.

    Its output and exit status are those of this command. It must sleep where it waits: one that polls stops time.

    Examples
    --------
    netctrl kernel run --dry-run -- sleep 1000
    netctrl kernel run --dry-run --seed 7 --memory 2GiB -- ip -brief link
    """
    from netctrl.kernel.build import chosen_kernel, kernels
    from netctrl.kernel.command import run_command

    if not program:
        raise InvalidValue("PROGRAM", None, "a program and its arguments, after --")
    options: dict[str, Any] = {"seed": seed, "memory_bytes": int(memory_bytes), "wall_limit_s": wall_limit_s}
    if dry_run:
        kernel = f"Linux {chosen_kernel(version).version}" if kernels() else "none is built yet: netctrl kernel build"
        rows = [("kernel", kernel), *((name, f"{value:g}") for name, value in options.items())]
        return say(report(f"would run {' '.join(program)}", rows))
    options["kernel"] = chosen_kernel(version)
    if output is not None:
        return _shown(run_command(program, _empty(output), **options))
    with tempfile.TemporaryDirectory(prefix="netctrl-kernel-") as name:
        return _shown(run_command(program, Path(name), **options))


def _planned(source: str | None, json: bool) -> int:
    """Source, tools and kernels that a build would find here."""
    from netctrl.core.errors import NetctrlError
    from netctrl.kernel.build import kernels, missing_tools
    from netctrl.kernel.source import find_source

    try:
        place = str(find_source(source).path)
    except NetctrlError as error:
        place = str(error)
    content = {"source": place, "tools": missing_tools() or "all there", "built": [each.version for each in kernels()]}
    if json:
        return say(as_json(content))
    built = ", ".join(content["built"]) or "no kernel yet"
    return say(report("what a build would use", [("source", place), ("tools", content["tools"]), ("built", built)]))


def _shown(ended: Any) -> int:
    sys.stderr.write(ended.stderr)
    say(ended.stdout)
    return ended.status


def _empty(output: str) -> Path:
    folder = made_folder("output", output)
    if any(folder.iterdir()):
        raise InvalidValue("output", output, "an empty folder, or one that doesn't exist yet")
    return folder


def _content(kernel: Any) -> dict[str, Any]:
    return msgspec.to_builtins(kernel) | {"program": str(kernel.program)}


app.command(build, help="Builds a kernel into the user's cache, about five minutes of one core.")
app.command(
    run_program, name="run", help="Runs a program inside the kernel: as root there, the host's files read-only."
)
app.command(list_kernels, name="list", help="Lists the kernels that are built.")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, {"PROGRAM": "PROGRAM"})
