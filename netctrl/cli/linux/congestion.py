"""`netctrl linux cc`: a Design's law as a congestion control in this kernel."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.app import answer, as_json, report, say
from netctrl.cli.options import option, positional
from netctrl.core.errors import InvalidValue, checked_word
from netctrl.linux.state_files import STATE_FOLDER

_ACTIONS = ("load", "unload", "status")


def cc(
    action: Annotated[str, positional("ACTION", ", ".join(_ACTIONS))],
    design: Annotated[str | None, positional("DESIGN", "with load: a Design file of own-rate pacing")] = None,
    /,
    *,
    name: Annotated[str, option("NAME", "of the congestion control", default="netctrl")] = "netctrl",
    dry_run: Annotated[bool, option("", "with load: say what would be done, or what is missing")] = False,
    state_dir: Annotated[str, option("DIR", "folder of its record, the same for all commands")] = STATE_FOLDER,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Loads a Design's law as a congestion control by BPF, takes it out again, or lists those that netctrl has loaded.

    Sockets choose it by TCP_CONGESTION; those that have it keep it after unload. Exit status 3 of status: one is gone.

    Examples
    --------
    netctrl linux cc status
    netctrl design pacing --mode own-rate -o own.json && netctrl linux cc load own.json --dry-run
    """
    checked_word("action", action, _ACTIONS)
    if (design is None) == (action == "load"):
        raise InvalidValue("design", design, "a Design file with load, and only there")
    if action == "status":
        return _status(state_dir, json)

    from netctrl.linux.congestion import load

    if design is None:
        was = load.unload(name, state_dir)
        content = {"name": name, "was_loaded": was}
        said = "taken out" if was else "was gone already; its record is removed"
        return say(as_json(content) if json else f"{name}: {said}\n")

    from netctrl.linux.congestion.text import congestion_text
    from netctrl.linux.pacing.socket import pacing_law
    from netctrl.model.design.design import read_design

    law = pacing_law(read_design(design))
    if dry_run:
        lines, missing = congestion_text(law, name).count("\n"), load.lacks(name)
        rows = [
            ("program", f"{lines} lines of C, compiled by clang, registered by bpftool"),
            ("record", str(load.place(state_dir, name))),
            ("missing here", "; ".join(missing) or "nothing"),
        ]
        content = {"name": name, "lines": lines, "missing": missing}
        return say(as_json(content) if json else report(f"would load {name}; nothing was changed", rows))
    record = load.load(law, name, state_dir)
    rows = [
        ("use", f"setsockopt(IPPROTO_TCP, TCP_CONGESTION, {name!r})"),
        ("undo", f"netctrl linux cc unload{_named(name)}"),
    ]
    return say(as_json(record) if json else report(f"{name}: loaded", rows))


def _named(name: str) -> str:
    return "" if name == "netctrl" else f" --name {name}"


def _status(folder: str, json: bool) -> int:
    from netctrl.linux.congestion.load import loaded, records

    found = [{"name": each.name, "since": each.since, "loaded": loaded(each.name, folder)} for each in records(folder)]
    if json:
        said = as_json({"congestion_controls": found})
    elif not found:
        said = f"netctrl has loaded no congestion control: no record in {folder}\n"
    else:
        gone = "gone: `unload` removes its record"
        rows = [(str(each["name"]), f"since {each['since']}" if each["loaded"] else gone) for each in found]
        said = report("congestion controls of netctrl", rows)
    return answer(said, all(each["loaded"] for each in found), "a congestion control is gone")
