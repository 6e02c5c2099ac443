"""`python -m netctrl.simulate SCENARIO`: a scenario in the fluid, as a table, JSON, a result's file and a picture."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from netctrl.cli import (
    PLOT_SUFFIXES,
    check_places,
    checked_plot,
    invocation,
    new_app,
    option,
    positional,
    progress_bar,
    report,
    run,
    say,
    write_all,
)
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.model.scenario import Scenario
    from netctrl.model.simulation import SimulationResult

__all__ = ["inputs_of", "main", "picture_of", "scenario_for", "summary_json"]

OPTIONS = {"scenario": "SCENARIO", "output": "-o"}
RESULT_SUFFIXES = (".json", ".csv")

app = new_app(
    "python -m netctrl.simulate", "Runs a scenario in the fluid simulator, with the law of a Design file if given."
)


@app.default
def simulate(
    scenario: Annotated[
        str | None,
        positional(
            "SCENARIO",
            "a TOML file, or the name of a scenario that comes with netctrl; without one, the plant of --design",
        ),
    ] = None,
    /,
    *,
    design: Annotated[str | None, option("FILE", "a Design, for the links whose queue is arc or design")] = None,
    seed: Annotated[str | None, option("N", "a whole number from 0 to 4294967295, instead of the scenario's")] = None,
    json: Annotated[bool, option("", "print scenario and summary as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None, option("FILE", "a file for the result (.json), or for its time series (.csv)", "--output", "-o")
    ] = None,
    plot: Annotated[str | None, option("FILE", f"a file for a picture ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read the scenario, run it, write what was asked for."""
    picture = checked_plot(plot, output)
    if output is not None and Path(output).suffix.lower() not in RESULT_SUFFIXES:
        raise InvalidValue("output", output, f"a file name that ends in {' or '.join(RESULT_SUFFIXES)}")
    if output is not None and design is not None and Path(output).resolve() == Path(design).resolve():
        raise InvalidValue("output", output, "another file than --design")
    chosen = scenario_for(scenario, design, seed)
    check_places({"plot": plot, "output": output})

    from netctrl.sim.run import simulate

    try:
        with progress_bar("simulating") as progress:
            result = simulate(chosen, progress=progress, argv=invocation(), inputs=inputs_of(scenario, design))
    except InvalidValue as error:  # of a key of the scenario, not of an option
        raise FileError(design if scenario is None else scenario, str(error)) from None
    files: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if plot is not None and picture is not None:
        files["plot"] = plot, lambda: picture_of(result, picture)
    if output is not None:
        files["output"] = output, lambda: _content(result, Path(output).suffix.lower())
    write_all(files)
    return say(summary_json(result) if json else report(*result.table()))


def scenario_for(scenario: str | None, design: str | None, seed: str | None) -> Scenario:
    """The scenario that a command line names, with the law of its Design and its seed.

    Raises
    ------
    InvalidValue, FileError
        Neither is named; what is named can't be used.
    """
    import msgspec

    from netctrl.datasets import scenario_path
    from netctrl.model.artifact import read_arc_design
    from netctrl.model.queue import arc_queue
    from netctrl.model.scenario import design_scenario, read_scenario

    law = None if design is None else read_arc_design(design)
    if scenario is not None:
        chosen = read_scenario(scenario_path(scenario))
        if law is not None:
            chosen = chosen.with_queue(arc_queue(law.law, chosen.packet_size), law.law.capacity_bit_per_s)
    elif law is not None:
        try:
            chosen = design_scenario(law.inputs, law.law)
        except InvalidValue as error:
            raise FileError(design, f"has a plant that can't be simulated: {error}") from None
    else:
        raise InvalidValue("scenario", None, "a TOML file or the name of a scenario, or give --design")
    if seed is None:
        return chosen
    if not re.fullmatch("[0-9]{1,10}", seed) or int(seed) >= 2**32:
        raise InvalidValue("seed", seed, "a whole number from 0 to 4294967295")
    return msgspec.structs.replace(chosen, seed=int(seed))


def inputs_of(scenario: str | None, design: str | None) -> list[Path]:
    """The files that `scenario_for` reads."""
    from netctrl.datasets import scenario_path

    found = [] if scenario is None else [scenario_path(scenario)]
    return found if design is None else [*found, Path(design)]


def summary_json(result: SimulationResult) -> str:
    """Scenario, summary and provenance as one JSON object."""
    import msgspec

    content = {"scenario": result.scenario, "summary": result.summary(), "provenance": result.provenance}
    return msgspec.json.format(msgspec.json.encode(content), indent=2).decode() + "\n"


def _content(result: SimulationResult, suffix: str) -> bytes:
    if suffix == ".csv":
        return result.to_pandas().to_csv(index=False).encode()
    return result.to_json().encode()


def picture_of(result: SimulationResult, kind: str) -> bytes:
    """The result's figure as a file of the kind png, svg or pdf."""
    content = io.BytesIO()
    result.plot().savefig(content, format=kind, dpi=150)
    return content.getvalue()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
