"""`netctrl export`: a scenario under a Design as an ns-3 program, a Design as files for Linux or a switch, or as C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from netctrl.cli.app import new_app, run
from netctrl.cli.cases import RUNS, SEED, References, ScenarioName, read_case, with_references
from netctrl.cli.export.c import export_c, export_congestion
from netctrl.cli.export.ns3 import OPTIONS, Export, export_ns3
from netctrl.cli.export.queue import export_attributes, export_profile, is_queue_design
from netctrl.cli.export.tc import TcJob, export_tc
from netctrl.cli.options import JOBS, PLOT_SUFFIXES, option, positional, whole
from netctrl.core.errors import JOBS_TAKES, InvalidValue

_RUNS = 4
_PACKET = whole("BYTES", "a whole number of bytes from 100 to 65000", least=100, most=65000)

app = new_app(
    "netctrl export",
    "Writes a Design as files for Linux, a program for ns-3, C, or a profile of a switch.",
    "netctrl export ns3 --scenario arc-staircase-bulk -o staircase",
    "netctrl design arc --N 50 -o arc.json && netctrl export tc arc.json --interfaces eth0 -o router",
)


@app.command(
    help="ns-3: a C++ program with a Makefile that runs a scenario on stock ns-3 (3.37 of Debian, or PyPI's wheel ns3)."
)
def ns3(
    design: Annotated[
        str | None,
        positional(
            "DESIGN",
            "a Design file, whose law controls the scenario: link queues of kind arc or design, rates of a network "
            "or of an access link's regulators (connet), windows in a data centre (mpcc), or pacing rates at a "
            "bottleneck (pacing); a queue's (pie --rfc, ecn) becomes attributes of ns-3's queue disc; a file that ends "
            "in .toml is taken for the scenario",
        ),
    ] = None,
    /,
    *,
    output: Annotated[
        str,
        option("DIR", "folder for the program: new, empty or an earlier export, as in my-program", "--output", "-o"),
    ],
    scenario: Annotated[
        ScenarioName | None,
        option(
            "FILE", "a TOML file, or the name of a scenario that comes with netctrl; by default the plant of DESIGN"
        ),
    ] = None,
    run_it: Annotated[bool, option("", "compile and run it, print its result", "--run")] = False,
    seed: Annotated[
        int | None, SEED("a whole number from 0 to 4294967295, the seed in place of the scenario's")
    ] = None,
    runs: Annotated[int | None, RUNS(f"number of runs of a network's scenario, for 95 % intervals ({_RUNS})")] = None,
    n_jobs: Annotated[int | None, JOBS(f"for several runs: {JOBS_TAKES}")] = None,
    packet_size: Annotated[
        int | None, _PACKET("for a network's scenario: packet size with IP and UDP headers (1500)")
    ] = None,
    sampled_delays: Annotated[
        bool, option("", "for a network's scenario: delay data by whole intervals, as in the fluid engine")
    ] = False,
    tracking: References | None = None,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    result: Annotated[
        str | None,
        option(
            "FILE",
            "save the table of --run's result (.csv, .parquet), or of links, networks and bottlenecks all of it (.npz)",
        ),
    ] = None,
    plot: Annotated[
        str | None, option("FILE", f"save a picture of the result of --run ({', '.join(PLOT_SUFFIXES)})")
    ] = None,
) -> int:
    """Writes the program; with --run also compiles it, runs it and reports.

    Examples
    --------
    netctrl export ns3 --scenario arc-staircase-bulk -o staircase
    netctrl design arc --N 50 -o arc.json && netctrl export ns3 arc.json -o arc-ns3 --run
    """
    if design is not None and design.endswith(".toml") and scenario is None:
        design, scenario = None, design
    if design is not None and scenario is None and is_queue_design(design):
        if run_it:
            raise InvalidValue("run", True, "no value with a Design of a queue: it becomes attributes, not a program")
        return export_attributes(design, output, json)
    for name, path in (("plot", plot), ("result", result)):
        if path is not None and not run_it:
            raise InvalidValue(name, path, "a file only with --run")
    case = with_references(read_case(scenario, design, seed), tracking)
    from netctrl.engines.case import has_runs

    if has_runs(case.scenario):
        if packet_size is not None:
            case = case._replace(scenario=case.scenario.replace(packet_size=packet_size))
        many = (runs or _RUNS, n_jobs or 1, sampled_delays)
        return export_ns3(Export(case, scenario, design, output, *many), run_it, json, result, plot)
    of_network = {"runs": runs, "n_jobs": n_jobs, "packet_size": packet_size, "sampled_delays": sampled_delays or None}
    for name, value in of_network.items():
        if value is not None:
            raise InvalidValue(name, value, "a value only for a network's scenario")
    return export_ns3(Export(case, scenario, design, output), run_it, json, result, plot)


@app.command(help="Linux: a batch file for tc, a plan of queues for `netctrl linux apply`, and files for agents.")
def tc(
    design: Annotated[
        str,
        positional(
            "DESIGN",
            "a Design file of arc, hftrac, connet, mpc, pacing, ecn or a queue; or the scenario (.toml) of a network "
            "whose control sets link rates",
        ),
    ],
    /,
    *,
    job: TcJob,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Writes the files, after checking what rounding costs in margins.

    Examples
    --------
    netctrl design arc --N 50 -o arc.json && netctrl export tc arc.json --interfaces eth0 -o router
    netctrl design arc --N 50 -o arc.json && netctrl export tc arc.json --interfaces eth0 --drop -o router
    """
    return export_tc(design, job, json)


_Profile = Annotated[str, positional("DESIGN", "a Design file of `netctrl design wred` or `netctrl design ecn`")]
_Name = Annotated[str, option("NAME", "of the profile")]
_To = Annotated[str | None, option("FILE", "where to write; by default it is printed", "--output", "-o")]


@app.command(help="SONiC: the WRED_PROFILE table of a switch's CONFIG_DB as JSON, for `config load`.")
def sonic(design: _Profile, /, *, name: _Name = "NETCTRL", output: _To = None) -> int:
    """Writes one profile, the same for all colours.

    Examples
    --------
    netctrl design wred --min 100kB --rtt 100us --N 8 --capacity 100Gbit -o w.json && netctrl export sonic w.json
    netctrl design ecn --rtt 100us --N 8 --capacity 10Gbit -o e.json && netctrl export sonic e.json --name AZURE
    """
    from netctrl.laws.targets.switches import sonic_profiles

    return export_profile(design, name, output, sonic_profiles)


@app.command(help="OpenConfig: a queue management profile with uniform WRED as JSON (RFC 7951).")
def openconfig(design: _Profile, /, *, name: _Name = "netctrl", output: _To = None) -> int:
    """Writes /qos/queue-management-profiles with one profile.

    Examples
    --------
    netctrl design wred --min 9kB --rtt 100us --N 8 --capacity 10Gbit -o w.json && netctrl export openconfig w.json
    netctrl design wred --min 9kB --rtt 50us --N 8 --capacity 10Gbit -o w.json && netctrl export openconfig w.json -o p
    """
    from netctrl.laws.targets.switches import openconfig_profiles

    return export_profile(design, name, output, openconfig_profiles)


@app.command(help="Linux: the law of own-rate pacing as a congestion control in C, for BPF or a kernel's tree.")
def bpf(
    design: Annotated[str, positional("DESIGN", "a Design file of `netctrl design pacing --mode own-rate`")],
    /,
    *,
    name: Annotated[str, option("NAME", "of the congestion control", default="netctrl")] = "netctrl",
    in_tree: Annotated[bool, option("", "for a kernel's net/ipv4, or as a module")] = False,
    output: _To = None,
) -> int:
    """Writes one file, which computes with doubles in integers: its steps give the bits of the Design's simulations.

    Examples
    --------
    netctrl design pacing --mode own-rate -o own.json && netctrl export bpf own.json -o own.bpf.c
    netctrl design pacing --mode own-rate -o own.json && netctrl export bpf own.json --in-tree -o tcp_own.c
    """
    return export_congestion(design, name, in_tree, output)


@app.command(help="C99: the law as a function without allocation, with test vectors and a program that checks it.")
def c(
    design: Annotated[str, positional("DESIGN", "a Design file of `netctrl design mpc` or `netctrl design mpcc`")],
    /,
    *,
    output: Annotated[
        str, option("DIR", "folder for the files: new, empty or an earlier export, as in my-law", "--output", "-o")
    ],
    name: Annotated[str | None, option("NAME", "of the function and its files", default="mpc_law, mpcc_window")] = None,
    fixed: Annotated[bool, option("", "of mpcc: integers only")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Writes a header, a source, vectors.txt, check.c and a Makefile; `make test` compiles and checks them.

    Examples
    --------
    netctrl design mpc uplink -o mpc.json && netctrl export c mpc.json -o mpc-c
    netctrl design mpcc --N 4 --rate 10Gbit --rtt 10us -o mpcc.json && netctrl export c mpcc.json --fixed -o mpcc-int
    """
    return export_c(design, output, name, fixed, json)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
