"""Shared part of the design commands: parsing of text, and output of a design."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    Report,
    answer,
    check_report,
    checked_plot,
    option,
    picture_file,
    report,
    write_all,
)
from netctrl.errors import InvalidValue, NoAdmissibleDesign, checked_word
from netctrl.units import parse_range

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.model.design.design import AnyDesign

__all__ = [
    "OPTIONS",
    "Wanted",
    "deliver",
    "design_report",
    "read",
    "read_range",
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


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Options of every design command: what is accepted, and the requested output."""

    accept: Annotated[
        str,
        option("STATUS", "admissible, or stable: accept also a design that is stable but outside the design rule"),
    ] = "admissible"
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False
    output: Annotated[str | None, option("FILE", "save the Design (not with exit status 3)", "--output", "-o")] = None
    plot: Annotated[str | None, option("FILE", f"save a picture ({', '.join(PLOT_SUFFIXES)})")] = None
    report: Report = None


def deliver(
    wanted: Wanted | None,
    make: Callable[[], AnyDesign],
    figure: Callable[[Any], Figure] = lambda design: design.plot(),
    table: Callable[[Any], str] | None = None,
    json: Callable[[Any], str] = lambda design: design.to_json(),
) -> int:
    """Make a design, write the requested files, all of them or none, and print it.

    Where the answer is no (`Design.refusal`), the exit status is 3 and there is no Design file.
    """
    from netctrl.model.design.base import ACCEPTED
    from netctrl.model.io.display import page

    wanted = wanted or Wanted()
    accept: Any = checked_word("accept", wanted.accept, ACCEPTED)
    kind = checked_plot(wanted.plot, wanted.output)
    check_report(wanted.report, plot=wanted.plot, output=wanted.output)
    refused = None
    try:
        design = make()
    except NoAdmissibleDesign as error:
        if error.design is None:
            raise
        design, refused = error.design, error
    refused = refused or design.refusal(accept)
    desired: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if wanted.plot is not None and kind is not None:
        desired["plot"] = wanted.plot, lambda: picture_file(figure(design), kind)
    if wanted.report is not None:
        desired["report"] = wanted.report, lambda: page(design)
    if wanted.output is not None and refused is None:
        desired["output"] = wanted.output, lambda: design.to_json().encode()
    write_all(desired)
    shown = json if wanted.json else table or design_report
    return answer(shown(design), refused is None, str(refused))


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
