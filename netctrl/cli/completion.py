"""`netctrl completion`: prints a script with which a shell completes verbs, commands and options."""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App

from netctrl.cli.app import new_app, run, say
from netctrl.cli.help import commands_of
from netctrl.cli.options import option, positional
from netctrl.core.errors import InvalidValue, checked_word
from netctrl.core.register import VERBS

SHELLS = ("bash", "zsh", "fish", "powershell")
app = new_app("netctrl completion", "Prints a script with which a shell completes verbs, commands and options.")


@app.default
def completion(
    shell: Annotated[str | None, positional("SHELL", f"{', '.join(SHELLS)}; by default that of $SHELL")] = None,
    /,
    *,
    install: Annotated[bool, option("", "write the script where the shell reads it at its start")] = False,
) -> int:
    """The script is generated from the command lines themselves.

    Examples
    --------
    netctrl completion bash
    netctrl completion zsh
    """
    found: Any = checked_word("shell", shell or _own_shell(), SHELLS)
    if not install:
        return say(_files_too(_whole().generate_completion(prog_name="netctrl", shell=found)).rstrip() + "\n")
    place = _whole().install_completion(shell=found)
    place.write_text(_files_too(place.read_text(encoding="utf-8")), encoding="utf-8")
    return say(f"written to {place}; a new {found} completes netctrl's verbs and options\n")


def _own_shell() -> str:
    shell = Path(os.environ.get("SHELL", "")).name
    if shell not in SHELLS:
        raise InvalidValue("shell", shell or None, f"one of {', '.join(SHELLS)}, as in netctrl completion bash")
    return shell


def _files_too(script: str) -> str:
    """The script with bash completing files where no name fits, and after a law that is also a command's name, as in
    `evaluate pie`; other scripts as they are."""
    whole = _whole()
    alone = " ".join(name for name in commands_of(whole) if not commands_of(whole[name]))
    word = '[[ " $all_commands " =~ " $word " '
    return script.replace(f"{word}]]", f'{word}&& ! " {alone} " =~ " ${{cmd_path[*]}} " ]]').replace(
        "complete -F _netctrl netctrl", "complete -o bashdefault -o default -F _netctrl netctrl"
    )


def _whole() -> App:
    """All verbs as commands of one App."""
    whole = App(name="netctrl", help="Control theory for network congestion.")
    for name in VERBS.usable():
        verb = getattr(importlib.import_module(VERBS.module_of(name)), "app", None)
        if verb is not None:
            whole.command(verb, name=name)
    return whole


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, {"shell": "SHELL"}, bare=True)
