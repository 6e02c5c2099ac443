"""`python -m netctrl.simulate SCENARIO`: a scenario, as a table, JSON, a result's file and a picture.

TCP flows through queues (`netctrl.Scenario`) run in the fluid, packet by packet, or in ns-3; a network under
fluctuating demands (`netctrl.NetworkScenario`) in the fluid or in ns-3; a data centre (`netctrl.FabricScenario`) packet
by packet or in ns-3.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    check_places,
    checked_plot,
    invocation,
    new_app,
    option,
    picture_file,
    positional,
    progress_bar,
    read_jobs,
    report,
    run,
    say,
    write_all,
)
from netctrl.errors import JOBS_TAKES, FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.scenario.access.result import AccessLinkResult
    from netctrl.scenario.bottleneck.result import BottleneckResult
    from netctrl.scenario.fabric.result import FabricResult
    from netctrl.scenario.fabric.scenario import FabricScenario
    from netctrl.scenario.network.result import NetworkResult
    from netctrl.scenario.network.scenario import NetworkScenario
    from netctrl.scenario.tcp_aqm.result import SimulationResult
    from netctrl.scenario.tcp_aqm.scenario import Scenario

__all__ = [
    "TABLE_SUFFIXES",
    "fabric_scenario_for",
    "inputs_of",
    "main",
    "network_scenario_for",
    "read_runs",
    "read_seed",
    "refused",
    "scenario_for",
    "summary_json",
    "table_file",
]

OPTIONS = {"scenario": "SCENARIO", "output": "-o", "n_jobs": "--n-jobs"}
RESULT_SUFFIXES = (".json", ".csv")
TABLE_SUFFIXES = (".csv", ".parquet")

app = new_app("python -m netctrl.simulate", "Runs a scenario, with the law of a Design file if given.")


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
    design: Annotated[
        str | None,
        option(
            "FILE", "a Design: for the links whose queue is arc or design, a network's rates, a data centre's senders"
        ),
    ] = None,
    seed: Annotated[str | None, option("N", "a whole number from 0 to 4294967295, instead of the scenario's")] = None,
    runs: Annotated[str | None, option("N", "of a network's scenario, with 95 % intervals (20)")] = None,
    n_jobs: Annotated[str | None, option("N", f"for many runs: {JOBS_TAKES}")] = None,
    engine: Annotated[str | None, option("NAME", "fluid, packet or ns3; else the first that has what it takes")] = None,
    compare: Annotated[
        str | None, option("A,B", "run in these engines, --runs seeds each (5), and print one table; as in packet,ns3")
    ] = None,
    json: Annotated[bool, option("", "print scenario and summary as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None,
        option(
            "FILE",
            "a file for the result (.json) or its time series (.csv); of a network for its runs, "
            "of a data centre for its flows (.csv, .parquet)",
            "--output",
            "-o",
        ),
    ] = None,
    plot: Annotated[str | None, option("FILE", f"a file for a picture ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read the scenario, run it, write what was asked for."""
    picture = checked_plot(plot, output)
    if compare is not None:
        if plot is not None or engine is not None or output is not None:
            raise InvalidValue("compare", compare, "no --engine, --plot and -o: it prints a table")
        return _compare(scenario, design, seed, compare, runs or "5", json=json)
    network = network_scenario_for(scenario, design, seed)
    fabric = fabric_scenario_for(scenario, design, seed)
    suffixes = RESULT_SUFFIXES if network is None and fabric is None else TABLE_SUFFIXES
    if output is not None and Path(output).suffix.lower() not in suffixes:
        raise InvalidValue("output", output, f"a file name that ends in {' or '.join(suffixes)}")
    if output is not None and design is not None and Path(output).resolve() == Path(design).resolve():
        raise InvalidValue("output", output, "another file than --design")
    files: dict[str, tuple[str, Callable[[], bytes]]] = {}
    if fabric is not None:
        for name, value in (("runs", runs), ("n_jobs", n_jobs)):
            if value is not None:
                raise InvalidValue(name, value, "no value for a data centre's scenario: it runs once")
    if scenario is not None and (network is not None or fabric is not None):
        check_places({"plot": plot, "output": output})
        found: NetworkResult | FabricResult
        if network is not None:
            found = _run_network(network, scenario, design, runs, n_jobs, engine or "auto")
        elif fabric is not None:
            found = _run(fabric, scenario, engine or "auto", inputs_of(scenario, design))
        if plot is not None and picture is not None:
            files["plot"] = plot, lambda: picture_file(found.plot(), picture)
        if output is not None:
            files["output"] = output, lambda: table_file(found, Path(output).suffix.lower())
        write_all(files)
        return say(summary_json(found) if json else report(*found.table()))
    for name, value in (("runs", runs), ("n_jobs", n_jobs)):
        if value is not None:
            raise InvalidValue(name, value, "no value but for a network's scenario, or with --compare")
    chosen = scenario_for(scenario, design, seed)
    check_places({"plot": plot, "output": output})
    result = _run(chosen, design if scenario is None else scenario, engine or "auto", inputs_of(scenario, design))
    if plot is not None and picture is not None:
        files["plot"] = plot, lambda: picture_file(result.plot(), picture)
    if output is not None:
        files["output"] = output, lambda: _content(result, Path(output).suffix.lower())
    write_all(files)
    return say(summary_json(result) if json else report(*result.table()))


def _run(chosen: Any, file: str | None, engine: str, inputs: list[Path]) -> Any:
    """A scenario in an engine; what is wrong with a key of it is of its file."""
    from netctrl.engines.engine import engine_for, simulate

    engine_for(chosen, engine)
    try:
        with progress_bar("simulating") as progress:
            return simulate(chosen, engine, progress=progress, argv=invocation(), inputs=inputs)
    except InvalidValue as error:
        raise FileError(file or "", str(error)) from None


def _compare(scenario: str | None, design: str | None, seed: str | None, engines: str, runs: str, *, json: bool) -> int:
    from netctrl.engines.compare import compare

    chosen, count = scenario_for(scenario, design, seed), read_runs(runs)
    with progress_bar("simulating") as progress:
        found = compare(
            chosen,
            [name.strip() for name in engines.split(",")],
            seeds=count,
            progress=progress,
            argv=invocation(),
            inputs=inputs_of(scenario, design),
        )
    if not json:
        return say(report(*found.table()))
    content = {"scenario": chosen, "seeds": found.seeds, "rows": found.rows, "provenance": found.provenance}
    return say(_indented(content))


def scenario_for(scenario: str | None, design: str | None, seed: str | None) -> Scenario:
    """The scenario that a command line names, with the law of its Design and its seed.

    Raises
    ------
    InvalidValue, FileError
        Neither is named; what is named can't be used.
    """
    import msgspec

    from netctrl.datasets import scenario_path
    from netctrl.laws.aqm.arc import arc_queue
    from netctrl.model.design.design import read_arc_design
    from netctrl.scenario.tcp_aqm.scenario import design_scenario, read_scenario

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
    return chosen if seed is None else msgspec.structs.replace(chosen, seed=read_seed(seed))


def read_seed(text: str) -> int:
    """As `--seed` has it."""
    if not re.fullmatch("[0-9]{1,10}", text) or int(text) >= 2**32:
        raise InvalidValue("seed", text, "a whole number from 0 to 4294967295")
    return int(text)


def network_scenario_for(scenario: str | None, design: str | None, seed: str | None) -> NetworkScenario | None:
    """The network's scenario that a command line names; None where it names another kind."""
    import msgspec

    from netctrl.datasets import network_path, scenario_path
    from netctrl.model.io.toml import read_toml
    from netctrl.scenario.network.policy import DesignPolicy
    from netctrl.scenario.network.scenario import read_network_scenario

    if scenario is None or "network" not in read_toml(scenario_path(scenario)):
        return None
    chosen = read_network_scenario(scenario_path(scenario), network_path)
    if design is not None:
        chosen = msgspec.structs.replace(chosen, policy=DesignPolicy(file=design))
    return chosen if seed is None else msgspec.structs.replace(chosen, seed=read_seed(seed))


def _run_network(
    chosen: NetworkScenario, scenario: str, design: str | None, runs: str | None, n_jobs: str | None, engine: str
) -> NetworkResult:
    from netctrl.design.hftrac.scenario_law import scenario_law
    from netctrl.engines.engine import engine_for
    from netctrl.sim.network.run import simulate_network

    count, jobs = read_runs(runs or "20"), read_jobs(n_jobs or "1")
    if engine != "auto" and engine_for(chosen, engine).name != "fluid":
        if runs is not None or n_jobs is not None:
            raise InvalidValue(
                "runs", runs or n_jobs, f"no value with {engine}, which runs once; `export ns3 --run` more"
            )
        return _run(chosen, scenario, engine, inputs_of(scenario, design))
    try:
        with progress_bar("simulating") as progress:
            return simulate_network(
                chosen,
                scenario_law(chosen),
                runs=count,
                n_jobs=jobs,
                progress=progress,
                argv=invocation(),
                inputs=inputs_of(scenario, design),
            )
    except InvalidValue as error:
        raise refused(error, scenario, design) from None


def fabric_scenario_for(scenario: str | None, design: str | None, seed: str | None) -> FabricScenario | None:
    """The data centre's scenario that a command line names, under a Design's law; None where it names another kind."""
    import msgspec

    from netctrl.datasets import scenario_path
    from netctrl.laws.window.records import mpcc_scheme
    from netctrl.model.design.design import MpccDesign, read_design
    from netctrl.model.io.toml import read_toml
    from netctrl.scenario.fabric.scenario import read_fabric_scenario

    if scenario is None or "topology" not in read_toml(scenario_path(scenario)):
        return None
    chosen = read_fabric_scenario(scenario_path(scenario))
    if design is not None:
        law = read_design(design)
        if not isinstance(law, MpccDesign):
            raise FileError(design, f"is a Design of {law.method}, takes one of mpcc: a data centre's senders run it")
        try:
            chosen = msgspec.structs.replace(chosen, scheme=mpcc_scheme(law.law))
        except InvalidValue as error:  # such as a weight of 0, which no scenario takes
            raise FileError(design, str(error)) from None
    return chosen if seed is None else msgspec.structs.replace(chosen, seed=read_seed(seed))


def read_runs(text: str) -> int:
    """How many, as `--runs` has it."""
    if not re.fullmatch("[1-9][0-9]{0,5}", text):
        raise InvalidValue("runs", text, "a whole number from 1 to 999999")
    return int(text)


def refused(error: InvalidValue, scenario: str, design: str | None) -> InvalidValue | FileError:
    """What is wrong with a key of a network's scenario, of the file or the option that it came from."""
    if design is not None and error.argument == "policy.file":
        return InvalidValue("design", design, error.takes)
    return FileError(scenario, str(error))


def table_file(result: NetworkResult | FabricResult | AccessLinkResult | BottleneckResult, suffix: str) -> bytes:
    """One row a run and link, a flow, a period, or a bin, as .csv or .parquet."""
    frame = result.to_pandas()
    return frame.to_csv(index=False).encode() if suffix == ".csv" else frame.to_parquet(index=False)


def inputs_of(scenario: str | None, design: str | None) -> list[Path]:
    """The files that `scenario_for` reads."""
    from netctrl.datasets import scenario_path

    found = [] if scenario is None else [scenario_path(scenario)]
    return found if design is None else [*found, Path(design)]


def summary_json(result: SimulationResult | NetworkResult | FabricResult) -> str:
    """Scenario, summary and provenance as one JSON object."""
    return _indented({"scenario": result.scenario, "summary": result.summary(), "provenance": result.provenance})


def _indented(content: dict[str, Any]) -> str:
    import msgspec

    text = msgspec.json.encode(content, enc_hook=lambda array: array.tolist())  # of a link's trace
    return msgspec.json.format(text, indent=2).decode() + "\n"


def _content(result: SimulationResult, suffix: str) -> bytes:
    if suffix == ".csv":
        return result.to_pandas().to_csv(index=False).encode()
    return result.to_json().encode()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
