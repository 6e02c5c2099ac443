"""Shared part of `netctrl certify`: where a law runs, the output, and the certificate that follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from cyclopts import Parameter

from netctrl.cli.app import (
    GOOD,
    PLOT_SUFFIXES,
    Report,
    answer,
    check_report,
    checked_plot,
    invocation,
    option,
    picture_file,
    report,
    write_all,
)
from netctrl.cli.design.common import read, read_range
from netctrl.errors import InvalidValue, NoAdmissibleDesign, Status
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_count,
    parse_duration,
    parse_rate,
    parse_size,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.certificates.record import QueueCertificate
    from netctrl.model.law import QueueLaw

__all__ = [
    "HZ_TAKES",
    "OPTIONS",
    "CertificateJson",
    "CertificateOutput",
    "Files",
    "Link",
    "Place",
    "Where",
    "certificate_text",
    "duration",
    "engines_of",
    "gain",
    "judged",
    "sixteenths",
    "whole_bytes",
]

OPTIONS = {
    "a": "--A",
    "b": "--B",
    "law": "LAW",
    "flows": "--N",
    "packet_size": "--packet-size",
    "output": "-o",
    "stretches": "--stretch",
    "senders": "--sender",
    "parameters": "the law's options",
    "min_threshold": "--min",
    "max_threshold": "--max",
    "threshold": "--K",
    "K": "--K",
    "F": "--F",
    "stages": "--F",
}
HZ_TAKES = "CONFIG_HZ of the kernel: 100, 250, 300 or 1000"
_RTT_TAKES = "a round-trip time without the queue, with its unit, as in 100ms, or a range low:high"
_FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high"
_CAPACITY_TAKES = f"{RATE_TAKES}, or a range low:high"
_WINDOW_TAKES = "the window of one flow in packets, as in 50, or a range, instead of --N and --capacity"
_SENDERS_TAKES = (
    "linux-creno (Cubic where Reno-friendly), linux-reno, rfc-reno, rfc-creno (clocked by acknowledgements), reno, "
    "creno, cubic, dctcp, mixtures as in reno+dctcp; several with commas; by default what Linux sends for its laws, "
    "else reno"
)
_STRETCH_TAKES = "round-trip times of equal groups of flows over --rtt, as in 1,3"
_CHECK_TAKES = "also run the worst point in the nonlinear fluid, packet or kernel; several with commas"
_GAIN_TAKES = "a gain above 0 in 1/s, as in 0.16"


class Place(Protocol):
    """Operating points, however they are given."""

    def arguments(self) -> dict[str, Any]:
        """Arguments of `netctrl.certify`."""
        ...


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Where:
    """Operating points."""

    rtt: Annotated[str, option("TIME", _RTT_TAKES)]
    flows: Annotated[str | None, option("FLOWS", _FLOWS_TAKES, "--N")] = None
    capacity: Annotated[str | None, option("RATE", f"of the link: {_CAPACITY_TAKES}")] = None
    window: Annotated[str | None, option("PACKETS", _WINDOW_TAKES)] = None
    packet_size: Annotated[str, option("SIZE", SIZE_TAKES)] = "1500"
    sender: Annotated[str | None, option("NAMES", _SENDERS_TAKES)] = None
    stretch: Annotated[str, option("FACTORS", _STRETCH_TAKES)] = "1"

    def arguments(self) -> dict[str, Any]:
        """Arguments of `netctrl.certify`."""
        return {
            **_link(self.rtt, self.flows, self.capacity, self.packet_size),
            "window_packets": _ends("window", self.window, parse_count, _WINDOW_TAKES),
            "senders": None if self.sender is None else tuple(part.strip() for part in self.sender.split(",")),
            "stretches": tuple(read("stretch", part, parse_count, _STRETCH_TAKES) for part in self.stretch.split(",")),
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Link:
    """Operating points of a law with its own sender and a queue in packets."""

    rtt: Annotated[str, option("TIME", _RTT_TAKES)]
    flows: Annotated[str, option("FLOWS", _FLOWS_TAKES, "--N")]
    capacity: Annotated[str, option("RATE", f"of the link: {_CAPACITY_TAKES}")]
    packet_size: Annotated[str, option("SIZE", SIZE_TAKES)] = "1500"

    def arguments(self) -> dict[str, Any]:
        """Arguments of `netctrl.certify`."""
        return _link(self.rtt, self.flows, self.capacity, self.packet_size)


def _link(rtt: str, flows: str | None, capacity: str | None, packet_size: str) -> dict[str, Any]:
    return {
        "rtt_s": read_range("rtt", rtt, parse_duration, _RTT_TAKES),
        "flows": _ends("flows", flows, parse_count, _FLOWS_TAKES),
        "capacity_bit_per_s": _ends("capacity", capacity, parse_rate, _CAPACITY_TAKES),
        "packet_size_bytes": read("packet_size", packet_size, parse_size, SIZE_TAKES),
    }


def _ends(name: str, text: str | None, parse: Callable[[str], float], takes: str) -> Any:
    return None if text is None else read_range(name, text, parse, takes)


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
    check: Annotated[str | None, option("ENGINES", _CHECK_TAKES)] = None


def judged(law: str, parameters: Callable[[], dict[str, Any]], where: Place, files: Files | None) -> int:
    """Certificate of a law with its parameters: written, printed, and exit status 3 unless it holds."""
    files = files or Files()
    arguments = where.arguments()
    picture = checked_plot(files.plot, files.output)
    check_report(files.report, plot=files.plot, output=files.output)

    from netctrl.certificates.certify import certify

    given, checks = parameters(), () if files.check is None else engines_of(files.check)
    found = certify(law, parameters=given, **arguments, argv=invocation())
    notes: list[str] = []
    if checks and found.certificate.status is Status.INFEASIBLE:
        notes.append("no check: the worst point has no equilibrium")
    elif checks:
        from netctrl.checks.check import with_checks

        found = with_checks(found, checks)
    if files.gains:
        found, more = _with_gains(found, law, given, arguments)
        notes += more
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if files.plot is not None and picture is not None:
        desired["plot"] = files.plot, lambda: picture_file(_map(found), picture)
    if files.report is not None:
        from netctrl.model.io.display import page

        desired["report"] = files.report, lambda: page(found)
    if files.output is not None:
        desired["output"] = files.output, lambda: found.to_json().encode()
    write_all(desired)
    status = answer(found.to_json() if files.json else certificate_text(found, notes), found.holds, found.verdict)
    if status == GOOD and found.failed_checks:
        failed = found.failed_checks[0]
        raise InvalidValue("check", failed.got, failed.takes)
    return status


def certificate_text(found: QueueCertificate, notes: Sequence[str] = ()) -> str:
    """A certificate for people: verdict, rows, what it leaves out, and further notes."""
    warnings = [f"warning: {warning}" for warning in found.certificate.warnings]
    return report(found.verdict, found.rows, [*warnings, *notes])


def engines_of(text: str | None) -> tuple[str, ...]:
    """Models of `--check`, by default the fluid; else InvalidValue."""
    if text is None:
        return ("fluid",)
    from netctrl.checks import checked_engines

    return checked_engines([part.strip() for part in text.split(",")])


def _with_gains(
    found: QueueCertificate, law: str, given: dict[str, Any], arguments: dict[str, Any]
) -> tuple[QueueCertificate, list[str]]:
    """The certificate with gains that hold beside it, and a note where there are none."""
    import msgspec

    from netctrl.certificates.record import GainsThatHold
    from netctrl.design.queue.design import queue_design

    others = {name: value for name, value in given.items() if name not in ("alpha", "beta")}
    try:
        design = queue_design(law, parameters=others, **arguments)
    except NoAdmissibleDesign as error:
        return found, [f"no gains hold: {error}"]
    proof = design.certificate
    sampled = proof.verdict.sampled
    if sampled is None or sampled.gain_margin_db_proved is None:
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


def _map(found: QueueCertificate) -> Figure:
    from netctrl.plotting.certificates import certificate_figure

    drawn = certificate_figure(found)
    if drawn is None:
        takes = "a law with a map of its gain margin: pie, dualpi2, pi2, red or wred"
        raise InvalidValue("plot", found.law.name, takes)
    return drawn


def duration(argument: str, text: str) -> float:
    """An option's time in seconds."""
    return read(argument, text, parse_duration, DURATION_TAKES)


def gain(argument: str, text: str) -> float:
    """An option's gain in 1/s, with or without its unit Hz."""
    return read(argument, text.lower().removesuffix("hz"), parse_count, _GAIN_TAKES)


def whole_bytes(argument: str, text: str) -> int:
    """An option's size in whole bytes."""
    size = read(argument, text, parse_size, SIZE_TAKES)
    if size != int(size):
        raise InvalidValue(argument, text, "a whole number of bytes")
    return int(size)


def sixteenths(argument: str, text: str) -> float:
    """A gain as tc takes it for `pie`, in sixteenths of 1/s, or in 1/s with its unit Hz."""
    takes = "a gain in sixteenths of 1/s as tc takes it, as in 2, or in 1/s with its unit, as in 0.125Hz"
    if text.lower().endswith("hz"):
        return read(argument, text[:-2], parse_count, takes)
    return read(argument, text, parse_count, takes) / 16.0
