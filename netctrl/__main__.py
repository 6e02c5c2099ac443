"""`netctrl VERB ...`, the same verbs as `python -m netctrl.VERB ...`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

__all__ = ["main"]

VERBS = {
    "design": ("design.verb", "gains with a certificate, from a network's parameters"),
    "identify": ("identify", "a state-space model, from measured inputs and outputs"),
    "simulate": ("simulate", "a scenario in the fluid, with the law of a Design file"),
    "sweep": ("sweep", "grids of network scenarios, run many times, with intervals"),
    "export": ("export.verb", "a Design as a program that others run"),
    "linux": ("linux.verb", "queues of this machine, planned, applied and put back as they were"),
}
"""Verb -> its module in `netctrl.cli`, and what it gives."""


def main(argv: Sequence[str] | None = None) -> int:
    """Hand the rest of the command line to the verb; exit status as in `netctrl.cli.app`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        import netctrl

        sys.stdout.write(f"netctrl {netctrl.__version__}\n")
        return 0
    if not arguments or arguments[0] in ("--help", "-h"):
        verbs = "".join(f"  {verb:<10}{what}\n" for verb, (_, what) in VERBS.items())
        sys.stdout.write(f"usage: netctrl VERB ...\n\n{verbs}\nnetctrl VERB --help lists a verb's commands.\n")
        return 0
    if arguments[0] not in VERBS:
        sys.stderr.write(f"error: VERB: got {arguments[0]!r}, takes {', '.join(VERBS)}\n")
        return 2
    module, _ = VERBS[arguments[0]]
    return importlib.import_module(f"netctrl.cli.{module}").main(arguments[1:])


if __name__ == "__main__":
    sys.exit(main())
