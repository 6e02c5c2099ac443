"""`netctrl certify LAW`: whether a queue's law as people run it is stable, for whom, and which gains hold instead."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence

from netctrl.cli.app import GOOD, new_app, run, waiting
from netctrl.cli.certify.codel import cake, codel, fq_codel
from netctrl.cli.certify.common import OPTIONS
from netctrl.cli.certify.ecn import dcqcn, dctcp, hpcc
from netctrl.cli.certify.installed import as_command, file, shipped
from netctrl.cli.certify.network import network
from netctrl.cli.certify.queues import by_name, docsis_pie, dualpi2, fq_pie, pi2, pie, red, wred
from netctrl.core.register import CERTIFIED, QUEUE_LAWS, lack_of

app = new_app(
    "netctrl certify",
    "Certifies laws of queues as people run them, by name or in a FILE: exact margins, proved for a range of loads.",
    "netctrl certify pie --rtt 20ms:30ms --N 4 --capacity 20Mbit",
    "netctrl certify qdiscs.txt --rtt 20ms --N 4 --capacity 20Mbit",
)
_COMMANDS = (
    pie,
    fq_pie,
    docsis_pie,
    dualpi2,
    pi2,
    red,
    wred,
    codel,
    fq_codel,
    cake,
    dctcp,
    dcqcn,
    hpcc,
    network,
    file,
    shipped,
)
_NAMES = [each.__name__.replace("_", "-").replace("fq-", "fq_") for each in _COMMANDS]
for command, name in zip(_COMMANDS, _NAMES, strict=True):
    app.command(command, name=name, help=inspect.getdoc(command))
_OTHERS = ("choke", "sfq")
"""Disciplines that people ask for and of which nothing is certified."""


def _refused(name: str) -> int:
    """Reason why a discipline or a law has no certificate, as an error of one line."""
    asked = new_app("netctrl certify", "")

    def refuse() -> int:
        from netctrl.certificates.certify import subject_of

        subject_of(name, {})
        return GOOD

    asked.command(refuse, name=name)
    return run(asked, [name], OPTIONS)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    tokens = as_command(sys.argv[1:] if argv is None else argv, _NAMES)
    name = tokens[0] if tokens else ""
    if name in _OTHERS or lack_of(name) is not None:
        return _refused(name)
    if name not in _NAMES and (name in CERTIFIED or name in QUEUE_LAWS):
        app.command(by_name(name), name=name, help=f"{name}, from its own step or as its package certifies it.")
    with waiting("certifying"):
        return run(app, tokens, OPTIONS)
