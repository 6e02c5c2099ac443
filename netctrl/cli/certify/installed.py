"""`netctrl certify FILE` and `shipped`: every queue of a configuration, or a published default."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from netctrl.cli.app import answer, invocation, write_all
from netctrl.cli.certify.common import Asked, certificate_text
from netctrl.cli.certify.law_options import HZ, HZ_TAKES
from netctrl.cli.options import SIZE, given, option, positional
from netctrl.core.units import SIZE_TAKES

if TYPE_CHECKING:
    from netctrl.certificates.installed import InstalledCertificates
    from netctrl.certificates.record import QueueCertificate
    from netctrl.model.law import QueueLaw

_PIPE = "/dev/stdin"
_PROFILES = "thresholds that hold, of WRED that doesn't with --sender dctcp or dcqcn"
_FILE_TAKES = "configuration, or what tc prints; - for what is piped in"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class ListFiles:
    """Requested output."""

    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False
    output: Annotated[str | None, option("FILE", "save the certificates as JSON", "--output", "-o")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Profiles:
    """Where thresholds that hold are saved, of switches' queues that don't."""

    sonic: Annotated[str | None, option("FILE", f"save {_PROFILES}, as SONiC's CONFIG_DB")] = None
    openconfig: Annotated[str | None, option("FILE", f"save {_PROFILES}, in OpenConfig's JSON")] = None


def file(
    path: Annotated[str, positional("FILE", _FILE_TAKES)],
    /,
    where: Asked,
    files: ListFiles | None = None,
    profiles: Profiles | None = None,
    *,
    buffer_bytes: Annotated[
        float | None, SIZE(f"of each queue, where thresholds are percent of it, as Junos's: {SIZE_TAKES}")
    ] = None,
    hz: Annotated[int | None, HZ(f"{HZ_TAKES}; by default the one that pie's tupdate tells")] = None,
) -> int:
    """Each queue of a configuration, in short `netctrl certify FILE`: what the file is, its content tells.

    tc, OpenWrt's sqm, SONiC, OpenConfig, Cisco and Arista (random-detect), Junos (drop-profiles), DOCSIS (text).

    Examples
    --------
    netctrl certify qdiscs.txt --rtt 10ms:30ms --N 10:20 --capacity 20Mbit
    netctrl certify config_db.json --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp --sonic wred.json
    """

    def found() -> InstalledCertificates:
        from netctrl.certificates.inputs.read import read_queues
        from netctrl.certificates.installed import certify_queues

        given_where = given(vars(where))
        return certify_queues(read_queues(path, hz=hz), buffer_bytes=buffer_bytes, **given_where, argv=invocation())

    return _listed(found, files, profiles)


def as_command(tokens: Sequence[str], commands: Sequence[str]) -> list[str]:
    """`FILE` as `file FILE`, where the first word isn't a command but a path; - as a path.

    Parameters
    ----------
    tokens : sequence of str
        Command line.
    commands : sequence of str
        Names of laws and other commands.
    """
    found = list(tokens)
    if found and found[0] not in commands and (found[0] == "-" or _is_path(found[0])):
        found.insert(0, "file")
    if found[:2] == ["file", "-"]:
        found[1] = _PIPE  # a bare - would be read as an option
    return found


def _is_path(word: str) -> bool:
    return not word.startswith("-") and ("." in word or os.sep in word or os.path.lexists(word))


def shipped(
    *names: Annotated[str, positional("NAME", "of a default, as the table without names shows it")],
    where: Asked | None = None,
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


def _listed(
    certified: Callable[[], InstalledCertificates], files: ListFiles | None, profiles: Profiles | None = None
) -> int:
    """Certificates of queues: written, printed, and exit status 3 unless all hold that have one."""
    from netctrl.checks.by_packets import each_with_packets
    from netctrl.laws.targets.switches import openconfig_profiles, sonic_profiles

    files, profiles, found = files or ListFiles(), profiles or Profiles(), each_with_packets(certified())
    asked = profiles.sonic or profiles.openconfig
    others = _that_hold(found) if asked else {}
    laws = {name: law for name, (law, _) in others.items()}
    write_all(
        {
            "output": (files.output, lambda: found.to_json().encode()),
            "sonic": (profiles.sonic if laws else None, lambda: sonic_profiles(laws).encode()),
            "openconfig": (profiles.openconfig if laws else None, lambda: openconfig_profiles(laws).encode()),
        }
    )
    if files.json:
        text = found.to_json()
    else:
        parts = [
            f"{each.name}\n\n  no certificate: {each.reason}\n"
            if each.certificate is None
            else certificate_text(each.certificate, name=each.name)
            for each in found.queues
        ]
        parts += [
            "{}, thresholds that hold: {min_bytes} and {max_bytes} bytes, {max_percent} %\n\n  certified  {}\n".format(
                name, other.verdict, **law.parameters
            )
            for name, (law, other) in others.items()
        ]
        if asked and not laws:
            parts.append("no profile is saved: there is none that doesn't hold, or none is known that does\n")
        text = "\n".join([f"{found.verdict}\n", *parts])
    return answer(text, found.holds, found.verdict)


def _that_hold(found: InstalledCertificates) -> dict[str, tuple[QueueLaw, QueueCertificate]]:
    """Profiles of switches with thresholds that don't hold -> some that do, where there are any."""
    from netctrl.checks.profiles import profile_that_holds

    wrong = (each for each in found.queues if each.kind == "wred" and each.certificate and not each.certificate.holds)
    made = {each.handle: profile_that_holds(each.certificate) for each in wrong if each.certificate is not None}
    return {name: pair for name, pair in made.items() if pair is not None}
