"""`python -m netctrl.export ns3|tc DESIGN -o DIR`: a Design and a scenario for ns-3, run if asked; a Design for Linux.

TCP flows through queues (`netctrl.Scenario`), a network under fluctuating demands (`netctrl.NetworkScenario`), an
access link under a Design of connet (`netctrl.AccessLinkScenario`), a data centre under a law of its senders
(`netctrl.FabricScenario`), or a bottleneck with paced flows and their peers (`netctrl.BottleneckScenario`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    checked_plot,
    new_app,
    option,
    positional,
    read_jobs,
    run,
)
from netctrl.cli.export.access import REFERENCE_TAKES, AccessLinkJob, connet_design, export_access_link
from netctrl.cli.export.bottleneck import PacingJob, export_pacing, is_bottleneck, pacing_design
from netctrl.cli.export.common import OPTIONS, Output, refuse
from netctrl.cli.export.fabric import FabricJob, export_fabric, mpcc_design
from netctrl.cli.export.network import NetworkJob, export_network, read_packet_size
from netctrl.cli.export.tc import IMPLEMENTATIONS, SHAPERS, TcJob, export_tc
from netctrl.cli.export.tcp_aqm import QueuesJob, export_queues
from netctrl.errors import JOBS_TAKES, InvalidValue

__all__ = ["main"]

_RUNS = "4"

app = new_app("python -m netctrl.export", "Writes a Design as what others run.")


@app.command(
    help="ns-3: a C++ program with a Makefile that runs a scenario on stock ns-3 (3.37 of Debian, or PyPI's wheel ns3)."
)
def ns3(
    design: Annotated[
        str | None,
        positional(
            "DESIGN",
            "a Design file; its law goes to the links whose queue is arc or design, or sets rates of a network, or of "
            "an access link's regulators (connet), or windows in a data centre (mpcc), or pacing rates at a "
            "bottleneck (pacing); a file that ends in .toml is taken for the scenario",
        ),
    ] = None,
    /,
    *,
    output: Annotated[
        str, option("DIR", "write the program there: a new or empty folder, or an earlier export", "--output", "-o")
    ],
    scenario: Annotated[
        str | None,
        option("FILE", "a TOML file, or the name of a scenario that comes with netctrl; else the plant of DESIGN"),
    ] = None,
    run_it: Annotated[bool, option("", "compile and run it, print what came out", "--run")] = False,
    seed: Annotated[str | None, option("N", "instead of the scenario's: a whole number from 0 to 4294967295")] = None,
    runs: Annotated[str | None, option("N", f"of a network's scenario, with 95 % intervals ({_RUNS})")] = None,
    n_jobs: Annotated[str | None, option("N", f"for many runs: {JOBS_TAKES}")] = None,
    packet_size: Annotated[
        str | None, option("BYTES", "of a network's scenario: each packet, with IP and UDP headers (1500)")
    ] = None,
    sampled_delays: Annotated[
        bool, option("", "of a network's scenario: delay data by whole intervals, as the fluid does")
    ] = False,
    reference: Annotated[str | None, option("VALUES", f"with a Design of connet: {REFERENCE_TAKES}")] = None,
    measured: Annotated[
        str | None, option("WHAT", "with a Design of connet: average (over packets) or period (means over it)")
    ] = None,
    governor: Annotated[bool, option("", "with a Design of connet: cut references to what can be had")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
    result: Annotated[
        str | None,
        option(
            "FILE",
            "save what --run gives there (.json; of a network, a link, a data centre or a bottleneck .csv or .parquet)",
        ),
    ] = None,
    plot: Annotated[str | None, option("FILE", f"draw what --run gives there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Read, render, write; with --run compile, run and report."""
    from netctrl.cli.simulate import (
        fabric_scenario_for,
        network_scenario_for,
        read_runs,
        read_seed,
        scenario_for,
    )

    if design is not None and design.endswith(".toml") and scenario is None:
        design, scenario = None, design
    checked_plot(plot, result)
    for name, path in (("plot", plot), ("result", result)):
        if path is not None and not run_it:
            raise InvalidValue(name, path, "a file only with --run")
    network = network_scenario_for(scenario, design, seed)
    fabric = fabric_scenario_for(scenario, design, seed)
    loop = None if network is not None else connet_design(design)
    windows = None if network is not None else mpcc_design(design)
    pacing = None if network is not None else pacing_design(design)
    of_connet = {"reference": reference, "measured": measured, "governor": governor or None}
    of_network = {"runs": runs, "n_jobs": n_jobs, "packet_size": packet_size, "sampled_delays": sampled_delays or None}
    refuse({} if loop is not None else of_connet, "no value but with a Design of connet")
    refuse({} if network is not None else of_network, "no value but for a network's scenario")
    to = Output(output, run_it, json, result, plot)
    if pacing is not None or is_bottleneck(scenario):
        paced = PacingJob(pacing, scenario, design, None if seed is None else read_seed(seed))
        return export_pacing(paced, to)
    if fabric is not None or windows is not None:
        centre = FabricJob(fabric, windows, scenario, design, None if seed is None else read_seed(seed))
        return export_fabric(centre, to)
    if loop is not None and design is not None:
        requested = AccessLinkJob(loop, design, scenario, seed, reference, measured, governor)
        return export_access_link(requested, to)
    if network is not None and scenario is not None:
        job = NetworkJob(
            chosen=network,
            scenario=scenario,
            design=design,
            runs=range(read_runs(runs or _RUNS)),
            n_jobs=read_jobs(n_jobs or "1"),
            packet_size=read_packet_size(packet_size or "1500"),
            sampled_delays=sampled_delays,
        )
        return export_network(job, to)
    chosen = scenario_for(scenario, design, seed)
    return export_queues(QueuesJob(chosen, scenario, design), to)


@app.command(help="Linux: a batch file for tc, wanted queues to apply, and what agents are told.")
def tc(
    design: Annotated[str, positional("DESIGN", "a Design file of arc, hftrac, connet or pacing")],
    /,
    *,
    output: Annotated[
        str, option("DIR", "write the files there: a new or empty folder, or an earlier export", "--output", "-o")
    ],
    interfaces: Annotated[
        str | None,
        option(
            "WHERE",
            "LINK=INTERFACE,... of one machine; of ARC one interface; or a .toml file with [[agents]], each with name, "
            "address, port and links",
        ),
    ] = None,
    implementation: Annotated[
        str | None,
        option(
            "WHAT",
            f"of ARC: {', '.join(IMPLEMENTATIONS)}; auto asks the kernel that runs here (ebpf)",
            "--implementation",
            "--carrier",
        ),
    ] = None,
    shaper: Annotated[
        str | None, option("WHAT", f"of HFTraC and CONNET: what keeps a rate, {' or '.join(SHAPERS)} (htb)")
    ] = None,
    packet_size: Annotated[
        str | None, option("BYTES", "of packets as the Design counts them, for HFTraC and CONNET (1500)")
    ] = None,
    frames: Annotated[bool, option("", "the Design's rates count Ethernet headers already")] = False,
    burst: Annotated[str | None, option("SIZE", "of each token bucket (two frames, or 0.1 ms of the rate)")] = None,
    limit: Annotated[str | None, option("SIZE", "what may wait in each queue (the Design's buffer)")] = None,
    reference: Annotated[
        str | None, option("VALUES", "of CONNET, as in delay=1.5,jitter=0.5; of HFTraC rates over the nominal ones (1)")
    ] = None,
    measured_at: Annotated[
        str | None, option("WHERE", "of CONNET: INTERFACE@RATE of the bottleneck whose queue the agent reads")
    ] = None,
    drop: Annotated[bool, option("", "of ebpf: drop packets without ECN where others are marked")] = False,
    json: Annotated[bool, option("", "print one JSON object and nothing else")] = False,
) -> int:
    """Read, render, check what rounding costs, write."""
    job = TcJob(
        design=design,
        output=output,
        interfaces=interfaces,
        implementation=implementation,
        shaper=shaper,
        packet_size=packet_size,
        frames=frames,
        burst=burst,
        limit=limit,
        reference=reference,
        measured_at=measured_at,
        drop=drop,
    )
    return export_tc(job, json)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)
