"""`netctrl certify tc`, `sonic` and `shipped`: every queue that is installed, or a published default."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from netctrl.cli.app import answer, invocation, write_all
from netctrl.cli.certify.common import Where, certificate_text
from netctrl.cli.certify.law_options import HZ, HZ_TAKES
from netctrl.cli.options import given, option, positional

if TYPE_CHECKING:
    from netctrl.certificates.inputs.queue import InstalledQueue
    from netctrl.certificates.installed import InstalledCertificates

_PIPE = "/dev/stdin"
_INPUT_TAKES = "file, or - for what is piped in"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ListFiles:
    """Requested output."""

    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False
    output: Annotated[str | None, option("FILE", "save the certificates as JSON", "--output", "-o")] = None


def tc(
    file: Annotated[str, positional("FILE", f"output of `tc -d -j qdisc show`: {_INPUT_TAKES}")],
    /,
    where: Where,
    files: ListFiles | None = None,
    *,
    hz: Annotated[int | None, HZ(f"{HZ_TAKES}; by default the one that pie's tupdate tells")] = None,
) -> int:
    """Each queue that `tc -d -j qdisc show` prints: pie, fq_pie, dualpi2 and red; others are named with the reason.

    Examples
    --------
    netctrl certify tc qdiscs.json --rtt 10ms:30ms --N 10:20 --capacity 20Mbit
    netctrl certify tc qdiscs.json --rtt 10ms --N 10 --capacity 20Mbit --hz 1000 --json
    """

    def queues() -> Sequence[InstalledQueue]:
        from netctrl.certificates.inputs.tc import read_tc

        return read_tc(_content(file), hz=hz, source=_named(file))

    return _judged(queues, where, files)


def sonic(
    file: Annotated[str, positional("FILE", f"CONFIG_DB of a SONiC switch: {_INPUT_TAKES}")],
    /,
    where: Where,
    files: ListFiles | None = None,
) -> int:
    """Each colour with WRED of each profile of a SONiC switch.

    Examples
    --------
    netctrl certify sonic config_db.json --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp
    netctrl certify sonic config_db.json --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp,reno --json
    """

    def queues() -> Sequence[InstalledQueue]:
        from netctrl.certificates.inputs.sonic import read_sonic

        return read_sonic(_content(file), source=_named(file))

    return _judged(queues, where, files)


def as_command(tokens: Sequence[str], commands: Sequence[str]) -> list[str]:
    """`--tc FILE` and `--sonic FILE` as the commands of these names, where the line names no command; - as a path."""
    found = list(tokens)
    if not found or found[0] not in commands:
        for number, token in enumerate(tokens):
            name, equals, value = token.removeprefix("--").partition("=")
            if not token.startswith("--") or name not in ("tc", "sonic"):
                continue
            after = number + (1 if equals else 2)
            if after <= len(tokens):
                found = [name, value if equals else tokens[number + 1], *tokens[:number], *tokens[after:]]
                break
    if found[:1] in (["tc"], ["sonic"]) and found[1:2] == ["-"]:
        found[1] = _PIPE  # a bare - would be read as an option
    return found


def shipped(
    *names: Annotated[str, positional("NAME", "of a default, as the table without names shows it")],
    where: Where | None = None,
    files: ListFiles | None = None,
) -> int:
    """Published defaults (Linux, RFCs, papers, switches) in your network, or where people run them.

    Examples
    --------
    netctrl certify shipped linux-pie linux-dualpi2 --rtt 20ms --N 10:20 --capacity 50Mbit
    netctrl certify shipped dctcp-10g --json
    """

    def found() -> InstalledCertificates:
        from netctrl.certificates.shipped import certify_shipped

        return certify_shipped(names, **({} if where is None else given(vars(where))), argv=invocation())

    return _listed(found, files)


def _judged(queues: Callable[[], Sequence[InstalledQueue]], where: Where, files: ListFiles | None) -> int:
    """Certificates of queues that are installed."""

    def found() -> InstalledCertificates:
        from netctrl.certificates.installed import certify_installed

        return certify_installed(queues(), **given(vars(where)), argv=invocation())

    return _listed(found, files)


def _listed(certified: Callable[[], InstalledCertificates], files: ListFiles | None) -> int:
    """Certificates of queues: written, printed, and exit status 3 unless all hold that have one."""
    from netctrl.checks.by_packets import each_with_packets

    files, found = files or ListFiles(), each_with_packets(certified())
    write_all({"output": (files.output, lambda: found.to_json().encode())})
    if files.json:
        text = found.to_json()
    else:
        parts = [
            f"{each.name}\n\n  no certificate: {each.reason}\n"
            if each.certificate is None
            else f"{each.name}: {certificate_text(each.certificate)}"
            for each in found.queues
        ]
        text = "\n".join([f"{found.verdict}\n", *parts])
    return answer(text, found.holds, found.verdict)


def _content(file: str) -> bytes:
    from netctrl.certificates.inputs.queue import MAX_BYTES
    from netctrl.core.files import read_bounded

    too_large = f"larger than the {MAX_BYTES // 2**20} MiB that netctrl reads"
    return read_bounded(file, MAX_BYTES, too_large)


def _named(file: str) -> str:
    return "standard input" if file == _PIPE else file
