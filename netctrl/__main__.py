"""Entry point of `netctrl VERB ...`, which takes the same verbs as `python -m netctrl.VERB ...`."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from netctrl.cli import GOOD, STATUSES, WRONG_USE

__all__ = ["VERBS", "main"]

VERBS = {
    "design": ("design.verb", "gains and a certificate, from a network's parameters"),
    "certify": ("certify", "laws of queues as people run them: are they stable, and for whom"),
    "evaluate": ("evaluate", "an AQM by RFC 7928, or a congestion control by RFC 9743: one report"),
    "identify": ("identify", "a state-space model from measured inputs and outputs"),
    "simulate": ("simulate", "a scenario or a Design: fluid, packets, ns-3 or the Linux kernel"),
    "sweep": ("sweep", "grids of network scenarios, with confidence intervals"),
    "export": ("export.verb", "a Design as files for Linux or ns-3"),
    "kernel": ("kernel", "the Linux kernel in virtual time: build, run programs inside it"),
    "linux": ("linux.verb", "queues of this machine: plan, apply, restore"),
    "list": ("list", "names of designs, scenarios, networks, laws, engines, models, traces, sweeps"),
    "doctor": ("doctor", "checks of this machine: libraries, compilers, ns-3, kernel, compiled code"),
    "completion": ("completion", "a script with which a shell completes verbs and options"),
}
"""Verb -> its module in `netctrl.cli`, and the text of the help."""

EXAMPLES = ("netctrl design arc --N 50", "netctrl list scenarios")


def main(argv: Sequence[str] | None = None) -> int:
    """Run a verb with the remaining arguments; exit status as in `netctrl.cli`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["--version"]:
        import netctrl

        sys.stdout.write(f"netctrl {netctrl.__version__}\n")
        return GOOD
    if arguments[:1] == ["--install-completion"]:
        arguments[:1] = ["completion", "--install"]
    if not arguments or arguments[0] in ("--help", "-h"):
        sys.stdout.write(_help())
        return GOOD
    if arguments[0] not in VERBS:
        from netctrl.cli.help import unknown

        sys.stderr.write(f"error: {unknown('verb', arguments[0], VERBS, 'netctrl')}\n")
        return WRONG_USE
    module, _ = VERBS[arguments[0]]
    return importlib.import_module(f"netctrl.cli.{module}").main(arguments[1:])


def _help() -> str:
    """The text of `netctrl --help`, written by hand so that no library is loaded for it."""
    verbs = "".join(f"  {verb:<12}{what}\n" for verb, (_, what) in VERBS.items())
    examples = "".join(f"  {line}\n" for line in EXAMPLES)
    return (
        f"usage: netctrl VERB ...\n\n{verbs}\nexamples:\n{examples}\n"
        "netctrl VERB --help lists a verb's commands or options; netctrl --install-completion makes the shell\n"
        f"complete them.\n{STATUSES}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
