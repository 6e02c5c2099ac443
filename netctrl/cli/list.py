"""`netctrl list`: names of queues, designs, scenarios, networks, laws, engines, models, problems, traces and sweeps."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

from netctrl.cli.app import FAILURE, GOOD, as_json, new_app, run, say
from netctrl.cli.catalogue import KINDS, Entry, KindName, entries, heading, unusable
from netctrl.cli.help import columns
from netctrl.cli.options import option, positional
from netctrl.core.errors import checked_word
from netctrl.core.register import DESIGNED_QUEUES

app = new_app("netctrl list", "Lists names that can be given to other commands, with one line on each.")


@app.default
def list_(
    kind: Annotated[KindName | None, positional("KIND", f"{', '.join(KINDS)}; by default all of them")] = None,
    /,
    *,
    json: Annotated[bool, option("", "print one JSON object, keyed by kind, and nothing else")] = False,
) -> int:
    """Names by kind; each law comes with the engines that run it. What a broken package registers is an error.

    Examples
    --------
    netctrl list scenarios
    netctrl list laws --json
    """
    kinds = KINDS if kind is None else (checked_word("kind", kind, KINDS),)
    found = {each: entries(each) for each in kinds}
    if kind == "laws":
        from netctrl.cli.law_engines import with_engines

        found = {kind: [with_engines(law) for law in found[kind]]}
    if json:
        say(as_json(found))
    else:
        say("\n".join(_table(each, found[each], whole=kind is None) for each in kinds))
    lacks = [lack for each in kinds for lack in unusable(each)]
    sys.stderr.writelines(f"error: {lack}\n" for lack in lacks)
    return FAILURE if lacks else GOOD


def _table(kind: str, found: Sequence[Entry], whole: bool) -> str:
    """A heading with its entries; in the whole list, designs of queues stand among the queues alone."""
    title = heading(kind)
    if whole and kind == "designs":
        title, found = f"research {title}", [each for each in found if each.name not in DESIGNED_QUEUES]
    return f"{title}\n{columns(list(map(_row, found)))}"


def _row(entry: Entry) -> tuple[str, str]:
    details = [entry.kind, ", ".join(entry.verbs or entry.engines or ())]
    shown = "; ".join(filter(None, details))
    return entry.name, f"{entry.what} ({shown})" if shown else entry.what


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, {"kind": "KIND"}, bare=True)
