"""`netctrl doctor`: what this machine has and lacks, what each item is needed for, and how to install it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated

from netctrl.cli.app import FAILURE, GOOD, as_json, colored, new_app, run, say
from netctrl.cli.doctor.checks import Check, State
from netctrl.cli.help import columns
from netctrl.cli.options import option

_COLORS = {State.OK: "green", State.MISSING: "yellow", State.UNKNOWN: "yellow"}

app = new_app("netctrl doctor", "Shows what this machine has and lacks; needs no privilege and changes nothing.")


@app.default
def doctor(*, json: Annotated[bool, option("", "print one JSON object and nothing else")] = False) -> int:
    """Exit status 1 only if netctrl cannot work at all.

    Examples
    --------
    netctrl doctor
    netctrl doctor --json
    """
    found = list(_checks())
    broken = [each for each in found if each.essential and each.state is not State.OK]
    if json:
        content = {"verdict": _verdict(found, broken), "works": not broken, "checks": found}
        say(as_json(content))
    else:
        say("\n".join([_verdict(found, broken) + "\n", *_tables(found)]))
    return FAILURE if broken else GOOD


def _checks() -> Iterator[Check]:
    from netctrl.cli.doctor.checks import compiled, kernel, libraries, tools, virtual_kernel

    for area in (libraries, tools, kernel, virtual_kernel, compiled):
        yield from area()


def _verdict(found: Sequence[Check], broken: Sequence[Check]) -> str:
    if broken:
        return f"netctrl does not work here: {', '.join(each.name for each in broken)}"
    missing = [each.name for each in found if each.state is State.MISSING]
    return "netctrl works here" + (f"; missing for some parts: {', '.join(missing)}" if missing else "")


def _tables(found: Sequence[Check]) -> Iterator[str]:
    for area in dict.fromkeys(each.area for each in found):
        shown = columns([(each.name, _text(each)) for each in found if each.area == area])
        for state, color in _COLORS.items():
            shown = shown.replace(f"  {state} ", f"  {colored(str(state), color)} ")
        yield f"{area}\n{shown}"


def _text(check: Check) -> str:
    said = f"{check.state}  {check.found}"
    if check.state is State.OK:
        return said
    return f"{said}; for {check.needed_for}" + (f": {check.remedy}" if check.remedy else "")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, bare=True)
