"""Shared part of the design commands: parsing of text, and output of a design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from cyclopts import Parameter

from netctrl.cli.app import (
    GOOD,
    PLOT_SUFFIXES,
    Report,
    check_report,
    checked_plot,
    option,
    picture_file,
    report,
    say,
    write_all,
)
from netctrl.errors import InvalidValue, NoAdmissibleDesign
from netctrl.units import (
    parse_range,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.model.design.design import AnyDesign

__all__ = [
    "OPTIONS",
    "Files",
    "Json",
    "Output",
    "Plot",
    "Wanted",
    "deliver",
    "design_report",
    "read",
    "read_range",
    "write",
]

# Argument of a design's function -> option, where the two differ by more than dashes.
OPTIONS = {
    "flows": "--N",
    "fragile_flows": "--fragile-N",
    "gain": "--g",
    "output": "-o",
    "law": "the law",
    "n_jobs": "--jobs",
    "references": "--reference",
    "senders": "--sender",
    "stretches": "--stretch",
    "parameters": "the law's options",
    "rate_bit_per_s": "--rate",
    "bottleneck_bit_per_s": "--bottleneck",
    "rtt_s": "--rtt",
    "bdp_bytes": "--bdp",
    "packet_size_bytes": "--packet-size",
    "window_bytes": "--window",
    "past_rtts": "--p",
    "past_rates": "--q",
    "period_s": "--period",
    "max_rate_bit_per_s": "--max-rate",
    "buffer_bytes": "--buffer",
}


Json = Annotated[bool, option("", "print the Design as one JSON object and nothing else")]
Output = Annotated[str | None, option("FILE", "save the Design (not with exit status 3)", "--output", "-o")]
Plot = Annotated[str | None, option("FILE", f"save a picture ({', '.join(PLOT_SUFFIXES)})")]


class Files(NamedTuple):
    """Requested output of a design."""

    json: bool
    output: str | None
    plot: str | None
    picture: str | None
    """Format of the picture."""
    report: str | None = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Requested output of a queue's design, as options."""

    json: Json = False
    output: Output = None
    plot: Plot = None
    report: Report = None

    def files(self) -> Files:
        """The same, with its suffixes checked."""
        picture = checked_plot(self.plot, self.output)
        check_report(self.report, plot=self.plot, output=self.output)
        return Files(self.json, self.output, self.plot, picture, self.report)


def deliver(
    files: Files,
    design: AnyDesign,
    figure: Callable[[], Figure],
    refused: NoAdmissibleDesign | None = None,
    more: Sequence[tuple[str, str]] = (),
) -> int:
    """Write the requested files and print the design; a refused design gets no Design file."""
    write(files, design, figure, refused)
    say(design.to_json() if files.json else design_report(design, more))
    if refused is not None:
        raise refused
    return GOOD


def write(
    files: Files, design: AnyDesign, figure: Callable[[], Figure], refused: NoAdmissibleDesign | None = None
) -> None:
    """Write the requested picture, report and Design file: all of them, or none."""
    from netctrl.model.io.display import page

    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    kind = files.picture
    if files.plot is not None and kind is not None:
        desired["plot"] = files.plot, lambda: picture_file(figure(), kind)
    if files.report is not None:
        desired["report"] = files.report, lambda: page(design)
    if files.output is not None and refused is None:
        desired["output"] = files.output, lambda: design.to_json().encode()
    write_all(desired)


def read(argument: str, text: str, parse: Callable[[str], Any], takes: str) -> Any:
    """An option's text parsed by `parse`; else InvalidValue with what it takes."""
    try:
        return parse(text)
    except ValueError:
        raise InvalidValue(argument, text, takes) from None


def read_range(argument: str, text: str, parse: Callable[[str], float], takes: str) -> tuple[float, float]:
    """Both ends of a range low:high; a single value stands for both."""
    low, high = read(argument, text, lambda both: parse_range(both, parse), takes)
    if low > high:
        raise InvalidValue(argument, text, f"{takes}; this range is empty")
    return low, high


def design_report(design: AnyDesign, more: Sequence[tuple[str, str]] = ()) -> str:
    """The Design as a short table, with a method's extra rows."""
    _, rows = design.summary()
    notes = [f"warning: {warning}" for warning in design.certificate.warnings]
    return report(design.headline, [*rows, *more], notes)
