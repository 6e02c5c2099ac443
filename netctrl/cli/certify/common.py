"""Shared part of `netctrl certify`: where a law runs, the output, and the certificate that follows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import GOOD, answer, check_files, invocation, picture, report, report_file, write_all
from netctrl.cli.options import PLOT_SUFFIXES, SIZE, TIME, Report, given, kind, option, ranged
from netctrl.core.errors import InvalidValue, NoAdmissibleDesign
from netctrl.core.names import CheckName, LoopSender
from netctrl.core.units import RATE_TAKES, SIZE_TAKES, parse_count, parse_duration, parse_rate

if TYPE_CHECKING:
    from netctrl.certificates.record import QueueCertificate
    from netctrl.model.law import QueueLaw

OPTIONS = {
    "law": "LAW",
    "parameters": "the law's options",
    "min_threshold": "--min",
    "max_threshold": "--max",
    "K": "--K",
    "F": "--F",
}
_RTT_TAKES = "round-trip time without queueing, with its unit, as in 100ms, or a range low:high"
_FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high"
_CAPACITY_TAKES = f"{RATE_TAKES}, or a range low:high"
_WINDOW_TAKES = "the window of one flow in packets, as in 50, or a range, instead of --N and --capacity"
_SENDERS_TAKES = (
    "linux-creno (Cubic where Reno-friendly), linux-reno, rfc-reno, rfc-creno (clocked by acknowledgements), reno, "
    "creno, cubic, dctcp, mixtures as in reno+dctcp; several with commas; by default what Linux sends for its laws, "
    "else reno"
)
_STRETCH_TAKES = "round-trip times of equal groups of flows over --rtt, as in 1,3"
_P99_TAKES = "queueing delay below which 99 % of packets are to wait"
_LONGEST_TITLE = 100
"""Columns up to which a verdict stands on one line; the parts of a longer one have a line each."""
SHARE_TAKES = "a share or percentage above 0, as in 0.98 or 98%"
_CHECK_TAKES = "also run the worst point in the nonlinear fluid, packet or kernel; several with commas"


def _share(text: str) -> float:
    share = parse_count(text.removesuffix("%")) / (100.0 if text.endswith("%") else 1.0)
    if share > 1.0:
        raise ValueError
    return share


SHARE = kind("SHARE", _share, SHARE_TAKES)
_SENDER = kind("NAMES", lambda text: tuple(part.strip() for part in text.split(",")), _SENDERS_TAKES)
_STRETCH = kind("FACTORS", lambda text: tuple(map(parse_count, text.split(","))), _STRETCH_TAKES)
_RTT = Annotated[tuple[float, float], ranged("TIME", parse_duration, f"a {_RTT_TAKES}")(f"the {_RTT_TAKES}")]
_FLOWS = ranged("FLOWS", parse_count, _FLOWS_TAKES)(_FLOWS_TAKES, "--N")
_CAPACITY = ranged("RATE", parse_rate, _CAPACITY_TAKES)(f"rate of the link: {_CAPACITY_TAKES}")
_PACKET = Annotated[float | None, SIZE(SIZE_TAKES, default="1500")]
_P99 = Annotated[float | None, TIME(f"{_P99_TAKES}; by default three targets", "--p99")]
_USED = Annotated[float | None, SHARE(f"of the link that is to be used: {SHARE_TAKES}", default="98%")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Operating points: the arguments of `netctrl.certify`."""

    rtt_s: _RTT
    flows: Annotated[tuple[float, float] | None, _FLOWS] = None
    capacity_bit_per_s: Annotated[tuple[float, float] | None, _CAPACITY] = None
    window_packets: Annotated[
        tuple[float, float] | None, ranged("PACKETS", parse_count, _WINDOW_TAKES)(_WINDOW_TAKES)
    ] = None
    packet_size_bytes: _PACKET = None
    senders: Annotated[tuple[str | LoopSender, ...] | None, _SENDER(_SENDERS_TAKES, "--sender")] = None
    stretches: Annotated[tuple[float, ...] | None, _STRETCH(_STRETCH_TAKES, "--stretch", default="1")] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Asked(Where):
    """Operating points, and what is asked of the queue there."""

    p99_s: _P99 = None
    utilization: _USED = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Link:
    """Operating points of a law with its own sender and a queue in packets."""

    rtt_s: _RTT
    flows: Annotated[tuple[float, float], _FLOWS]
    capacity_bit_per_s: Annotated[tuple[float, float], _CAPACITY]
    packet_size_bytes: _PACKET = None
    p99_s: _P99 = None
    utilization: _USED = None


CertificateJson = Annotated[bool, option("", "print the certificate as one JSON object and nothing else")]
CertificateOutput = Annotated[str | None, option("FILE", "save the certificate as JSON", "--output", "-o")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Files:
    """Requested output."""

    json: CertificateJson = False
    output: CertificateOutput = None
    plot: Annotated[str | None, option("FILE", f"map of the gain margin ({', '.join(PLOT_SUFFIXES)})")] = None
    report: Report = None
    gains: Annotated[bool, option("", "also find gains of this law that hold at every point")] = False
    check: Annotated[str | CheckName | None, option("ENGINES", _CHECK_TAKES)] = None


def judged(law: Any, parameters: Mapping[str, Any], where: Where | Link, files: Files | None) -> int:
    """Certificate of a law with its parameters: written, printed, and exit status 3 unless it holds."""
    files = files or Files()
    arguments = given(vars(where))
    check_files({"output": files.output, "plot": files.plot, "report": files.report})

    from netctrl.checks.by_packets import certify

    checks = () if files.check is None else engines_of(files.check)
    found = certify(law, parameters=parameters, **arguments, argv=invocation())
    notes: list[str] = []
    if checks and found.certificate.beyond and found.certificate.sampled is None:
        notes.append("no check: the worst point has no equilibrium")
    elif checks:
        from netctrl.checks.check import with_checks

        found = with_checks(found, checks)
    if files.gains:
        found, more = _with_gains(found, law, parameters, arguments)
        notes += more
    write_all(
        {
            "plot": picture(found.plot, files.plot),
            "report": report_file(found, files.report),
            "output": (files.output, lambda: found.to_json().encode()),
        }
    )
    status = answer(found.to_json() if files.json else certificate_text(found, notes), found.holds, found.verdict)
    if status == GOOD and found.failed_checks:
        failed = found.failed_checks[0]
        raise InvalidValue("check", failed.got, failed.takes)
    return status


def certificate_text(found: QueueCertificate, notes: Sequence[str] = (), name: str = "") -> str:
    """A certificate for people: verdict after a queue's name, rows, what it leaves out, and further notes."""
    warnings = [f"warning: {warning}" for warning in found.certificate.warnings]
    title = f"{name}: {found.verdict}" if name else found.verdict
    if len(title) > _LONGEST_TITLE:
        answer, *figures = title.split("; ")  # the answer stays whole, for who looks for it
        parts = [answer, *("\n  ".join(wrap(each, _LONGEST_TITLE - 3)) for each in figures)]
        title = ";\n  ".join(parts)
    return report(title, found.rows, [*warnings, *notes])


def engines_of(text: str | None) -> tuple[str, ...]:
    """Models of `--check`, by default the fluid; else InvalidValue."""
    if text is None:
        return ("fluid",)
    from netctrl.checks import checked_engines

    return checked_engines([part.strip() for part in text.split(",")])


def _with_gains(
    found: QueueCertificate, law: Any, parameters: Mapping[str, Any], arguments: dict[str, Any]
) -> tuple[QueueCertificate, list[str]]:
    """The certificate with gains that hold beside it, and a note where there are none."""
    import msgspec

    from netctrl.certificates.record import GainsThatHold
    from netctrl.checks.designs import queue_design

    others = {name: value for name, value in parameters.items() if name not in ("alpha", "beta")}
    try:
        design = queue_design(law, parameters=others, **arguments)
    except NoAdmissibleDesign as error:
        return found, [f"no gains hold: {error}"]
    proof = design.certificate
    sampled = proof.verdict.sampled
    if sampled is None or sampled.gain_margin_db_proved is None or proof.disk_margin_proved is None:
        return found, ["no gains hold: the proof of their margins was cut short; narrow the box"]
    held = GainsThatHold(
        parameters=design.law.parameters,
        tc=_tc(design.law),
        ns3=_ns3(design.law),
        gain_margin_db_proved=sampled.gain_margin_db_proved,
        phase_margin_deg=sampled.phase_margin_deg,
        disk_margin_proved=proof.disk_margin_proved,
    )
    return msgspec.structs.replace(found, gains_that_hold=held), []


def _tc(law: QueueLaw) -> str | None:
    from netctrl.linux.export.queue_law import tc_arguments

    try:
        return " ".join(tc_arguments(law.name, law.parameters))
    except InvalidValue:
        return None


def _ns3(law: QueueLaw) -> dict[str, str] | None:
    from netctrl.ns3.attributes import ns3_attributes

    try:
        return ns3_attributes(law.name, law.parameters)
    except InvalidValue:
        return None
