"""`netctrl export c` and `bpf`: the law of a Design as C."""

from __future__ import annotations

from pathlib import Path

from netctrl.cli.app import report, say
from netctrl.cli.export.folder import write_folder, write_text
from netctrl.core.errors import FileError, InvalidValue


def export_c(design: str, output: str, name: str | None, fixed: bool, json: bool) -> int:
    """Write the files and say what is next."""
    import shlex

    import msgspec

    from netctrl.model.design.design import MpccDesign, MpcDesign, read_design
    from netctrl.mpc.c.controller.controller import controller_in_c
    from netctrl.mpc.c.window import window_in_c

    found = read_design(design)
    if not isinstance(found, MpccDesign | MpcDesign):
        raise FileError(design, f"a Design of {found.method}: only those of mpc and mpcc are written as C")
    try:
        if isinstance(found, MpcDesign):
            if fixed:
                raise InvalidValue("fixed", True, "no value with a Design of mpc: its programs are solved in doubles")
            name = name or "mpc_law"
            files = controller_in_c(found.law, name)
        else:
            name = name or "mpcc_window"
            files = window_in_c(found.law, name, fixed=fixed)
    except InvalidValue as error:
        if error.argument in ("name", "fixed"):
            raise
        raise FileError(design, str(error)) from None
    folder = write_folder(output, files, _is_earlier)
    if json:
        return say(msgspec.json.encode({"folder": str(folder), "files": [*files]}).decode() + "\n")
    rows = [
        ("certified", found.verdict),
        ("files", ", ".join(files)),
        ("then", f"make -C {shlex.quote(str(folder))} test"),
    ]
    return say(report(f"{name}: C99 in {folder}", rows))


def export_congestion(design: str, name: str, in_tree: bool, output: str | None) -> int:
    """Write a congestion control to a file, or print it."""
    from netctrl.linux.congestion.text import congestion_text
    from netctrl.linux.pacing.socket import pacing_law
    from netctrl.model.design.design import read_design

    found = read_design(design)
    title = f"{name}: a congestion control in {output}"
    return write_text(
        design, found.verdict, title, output, lambda: congestion_text(pacing_law(found), name, in_tree=in_tree)
    )


def _is_earlier(folder: Path) -> bool:
    from netctrl.mpc.c.text import MARKER

    place = folder / "check.c"
    return place.is_file() and place.read_bytes().startswith(f"/* {MARKER}".encode())
