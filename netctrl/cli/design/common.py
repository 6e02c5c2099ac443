"""Shared part of the design commands: parsing of text, and output of a design."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import answer, check_files, invocation, picture, report, report_file, write_all
from netctrl.cli.options import PLOT_SUFFIXES, Report, option
from netctrl.core.errors import NoAdmissibleDesign, checked_word

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.model.design.design import AnyDesign

OPTIONS = {"law": "the law", "parameters": "the law's options"}


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Options of every design command: what is accepted, and the requested output."""

    accept: Annotated[
        str, option("STATUS", "admissible, or stable: accept also a design that is stable but outside the design rule")
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

    wanted = wanted or Wanted()
    accept: Any = checked_word("accept", wanted.accept, ACCEPTED)
    check_files({"output": wanted.output, "plot": wanted.plot, "report": wanted.report})
    refused = None
    try:
        design = make()
    except NoAdmissibleDesign as error:
        if error.design is None:
            raise
        design, refused = error.design, error
    refused = refused or design.refusal(accept)
    write_all(
        {
            "plot": picture(lambda: figure(design), wanted.plot),
            "report": report_file(design, wanted.report),
            "output": (wanted.output if refused is None else None, lambda: design.to_json().encode()),
        }
    )
    shown = json if wanted.json else table or design_report
    return answer(shown(design), refused is None, str(refused))


def call(function: str, asked: Mapping[str, Any]) -> Callable[[], Any]:
    """A call of one of netctrl's public functions, which is imported only then."""

    def called() -> Any:
        import netctrl

        return getattr(netctrl, function)(**asked, argv=invocation())

    return called


def design_report(design: AnyDesign, more: Sequence[tuple[str, str]] = ()) -> str:
    """The Design as a short table, with a method's extra rows."""
    _, rows = design.summary()
    notes = [f"warning: {warning}" for warning in design.certificate.warnings]
    return report(design.headline, [*rows, *more], notes)
