"""`python -m netctrl.design arc --N 50`: gains with a certificate, as a table, JSON, a Design file and a picture."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli import GOOD, invocation, new_app, run, say
from netctrl.errors import FileError, InvalidValue, NoAdmissibleDesign
from netctrl.units import (
    COUNT_TAKES,
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_count,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)

if TYPE_CHECKING:
    from netctrl.model.artifact import ArcDesign

__all__ = ["main"]

FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high, as in 50:400"
RTT_TAKES = "a round-trip time above 0 with its unit (ns, us, ms, s, min), as in 500ms, or a range, as in 60ms:500ms"
UTILIZATION_TAKES = "a number in (0, 1], as in 0.98"
QUEUE_TAKES = "a number of packets of at least 0, as in 0, or a size with its unit, as in 50kB"
ALPHA_TAKES = "a gain above 0 per packet, as in 1.42e-5"
PLOT_SUFFIXES = (".png", ".svg", ".pdf")

# Argument of netctrl.arc -> option, where the two differ by more than dashes.
OPTIONS = {"flows": "--N", "fragile_flows": "--fragile-N", "output": "-o"}

app = new_app("python -m netctrl.design", "Control laws for congestion management, with certificates.")


def _option(metavar: str, help: str, *names: str) -> Parameter:
    return Parameter(name=list(names) or None, help=f"{metavar}: {help}", allow_leading_hyphen=True)


@app.command(help="ARC: AQM gains for TCP on one congested link, exact for the delay and for the epoch.")
def arc(
    *,
    flows: Annotated[str, _option("FLOWS", FLOWS_TAKES, "--N")],
    capacity: Annotated[str, _option("RATE", f"link capacity: {RATE_TAKES}")] = "10Mbit",
    packet_size: Annotated[str, _option("SIZE", SIZE_TAKES)] = "1000",
    rtt: Annotated[str, _option("TIME", RTT_TAKES)] = "500ms",
    utilization: Annotated[str, _option("GAMMA", f"target utilization: {UTILIZATION_TAKES}")] = "0.98",
    epoch: Annotated[str, _option("TIME", f"how often the law acts: {DURATION_TAKES}")] = "1s",
    target_queue: Annotated[str, _option("QUEUE", QUEUE_TAKES)] = "0",
    plant: Annotated[str, _option("PLANT", "paper (eq. 7), noq (no queue stands) or phys (a queue stands)")] = "paper",
    alpha: Annotated[str | None, _option("GAIN", f"analyse this instead of designing one: {ALPHA_TAKES}")] = None,
    accept: Annotated[
        str, _option("STATUS", "admissible, or stable: also a gain slower than the rule asks")
    ] = "admissible",
    fragile_flows: Annotated[
        str, _option("FLOWS", "N_min of the minimum-stability check, eq. 9", "--fragile-N")
    ] = "10",
    fragile_rtt: Annotated[str, _option("TIME", "longest RTT of the minimum-stability check, eq. 9")] = "2s",
    json: Annotated[
        bool, Parameter(help=": print the Design as one JSON object and nothing else", negative="")
    ] = False,
    output: Annotated[
        str | None, _option("FILE", "save the Design there (not with exit status 3)", "--output", "-o")
    ] = None,
    plot: Annotated[str | None, _option("FILE", f"draw it there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.arc`, write what was asked for."""
    packet = _read("packet_size", packet_size, parse_size, SIZE_TAKES)
    arguments = {
        "flows": _read_range("flows", flows, parse_count, FLOWS_TAKES),
        "rtt_s": _read_range("rtt", rtt, parse_duration, RTT_TAKES),
        "capacity_bit_per_s": _read("capacity", capacity, parse_rate, RATE_TAKES),
        "packet_size_bytes": packet,
        "utilization": _read("utilization", utilization, parse_count, UTILIZATION_TAKES),
        "epoch_s": _read("epoch", epoch, parse_duration, DURATION_TAKES),
        "target_queue_packets": _read("target_queue", target_queue, lambda text: _queue(text, packet), QUEUE_TAKES),
        "plant": plant,
        "alpha_per_packet": None if alpha is None else _read("alpha", alpha, parse_count, ALPHA_TAKES),
        "accept": accept,
        "fragile_flows": _read("fragile_flows", fragile_flows, parse_count, COUNT_TAKES),
        "fragile_rtt_s": _read("fragile_rtt", fragile_rtt, parse_duration, DURATION_TAKES),
        "argv": invocation(),
    }
    if plot is not None and Path(plot).suffix.lower() not in PLOT_SUFFIXES:
        raise InvalidValue("plot", plot, f"a file name that ends in {', '.join(PLOT_SUFFIXES)}")
    if plot is not None and output is not None and Path(plot).resolve() == Path(output).resolve():
        raise InvalidValue("plot", plot, "another file than -o")

    import netctrl

    try:
        design, refused = netctrl.arc(**arguments), None
        if not design.certificate.stable:
            refused = NoAdmissibleDesign(design.certificate.warnings[0])
    except NoAdmissibleDesign as error:
        design, refused = error.design, error
    files: dict[str, tuple[str, bytes]] = {}  # option -> path, content; all are made before the first is written
    if plot is not None:
        files["plot"] = plot, _picture(design, Path(plot).suffix[1:].lower())
    if output is not None and refused is None:
        files["output"] = output, design.to_json().encode()
    _write(files)
    say(design.to_json() if json else arc_report(design))
    if refused is not None:
        raise refused
    return GOOD


def _read(argument: str, text: str, parse: Callable[[str], Any], takes: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        raise InvalidValue(argument, text, takes) from None


def _read_range(argument: str, text: str, parse: Callable[[str], float], takes: str) -> tuple[float, float]:
    low, high = _read(argument, text, lambda both: parse_range(both, parse), takes)
    if low > high:
        raise InvalidValue(argument, text, f"{takes}; this range is empty")
    return low, high


def _queue(text: str, packet_size_bytes: float) -> float:
    """A queue as packets: a bare number is packets already, 0 included; with a unit it is bytes."""
    if re.fullmatch(r"\s*(0+\.?0*|\.0+)\s*([kmg]i?)?b?\s*", text, re.IGNORECASE):
        return 0.0
    try:
        return parse_count(text)
    except ValueError:
        return parse_size(text) / packet_size_bytes


def _write(files: dict[str, tuple[str, bytes]]) -> None:
    """Write all files or, where one place can't be written, none."""
    from netctrl.model.artifact import check_writable, write_atomically

    for act in (lambda path, _: check_writable(path), write_atomically):
        for option, (path, content) in files.items():
            try:
                act(path, content)
            except FileError as error:
                raise InvalidValue(option, path, f"a file that can be written (here: {error.why})") from None


def _picture(design: ArcDesign, kind: str) -> bytes:
    import io

    from netctrl.design.arc import arc_stability_map
    from netctrl.plotting import arc_figure

    content = io.BytesIO()
    arc_figure(design, arc_stability_map(design)).savefig(content, format=kind, dpi=150)
    return content.getvalue()


def arc_report(design: ArcDesign) -> str:
    """The Design as a short table for people."""
    title, rows = design.summary()
    width = max(len(name) for name, _ in rows) + 2
    lines = [f"{title}: {design.certificate.status.upper()}", ""]
    lines += [f"  {name:<{width}}{text}" for name, text in rows]
    if design.certificate.warnings:
        lines += ["", *(f"  warning: {warning}" for warning in design.certificate.warnings)]
    return "\n".join(lines) + "\n"


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
