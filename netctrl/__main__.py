"""Entry point of `netctrl VERB ...` and `python -m netctrl VERB ...`."""

from __future__ import annotations

import sys

from netctrl.cli import FAILURE, GOOD, STATUSES, WRONG_USE
from netctrl.core.register import VERB_HELPS, VERBS

TYPE_CHECKING = False  # as in typing, which `netctrl --help` does without
if TYPE_CHECKING:
    from collections.abc import Sequence

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
    verb, *others = arguments
    if verb not in VERBS:
        from netctrl.cli.help import unknown

        sys.stderr.write(f"error: {unknown('verb', verb, VERBS, 'netctrl')}\n")
        return WRONG_USE
    lack = VERBS.lack(verb)
    if lack is not None:
        sys.stderr.write(f"error: {lack}\n")
        return FAILURE
    return VERBS[verb](others)


def _help() -> str:
    """The text of `netctrl --help`, for which no library is loaded."""
    texts = dict(VERB_HELPS)
    others = [verb for verb in VERBS if verb not in texts]
    if others:
        from netctrl.cli.catalogue import documented

        texts |= {verb: documented(VERBS, verb) for verb in others}
    verbs = "".join(f"  {verb:<12}{what}\n" for verb, what in texts.items())
    examples = "".join(f"  {line}\n" for line in EXAMPLES)
    return (
        f"usage: netctrl VERB ...\n\n{verbs}\nexamples:\n{examples}\n"
        "netctrl VERB --help lists a verb's commands or options;\n"
        f"netctrl --install-completion makes the shell complete them.\n{STATUSES}\n"
    )


if __name__ == "__main__":
    sys.exit(main())
