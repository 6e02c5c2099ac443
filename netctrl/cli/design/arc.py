"""`netctrl design arc`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation, option
from netctrl.cli.design.common import Wanted, deliver, design_report, read, read_range
from netctrl.units import (
    COUNT_TAKES,
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

    from netctrl.model.design.design import ArcDesign

__all__ = ["arc"]

FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high, as in 50:400"
RTT_TAKES = "a round-trip time above 0 with its unit (ns, us, ms, s, min), as in 500ms, or a range, as in 60ms:500ms"
UTILIZATION_TAKES = "a number in (0, 1], as in 0.98"
QUEUE_TAKES = "a number of packets of at least 0, as in 0, or a size with its unit, as in 50kB"
ALPHA_TAKES = "a gain above 0 per packet, as in 1.42e-5"


def arc(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[str, option("FLOWS", FLOWS_TAKES, "--N")],
    capacity: Annotated[str, option("RATE", f"link capacity: {RATE_TAKES}")] = "10Mbit",
    packet_size: Annotated[str, option("SIZE", SIZE_TAKES)] = "1000",
    rtt: Annotated[str, option("TIME", RTT_TAKES)] = "500ms",
    utilization: Annotated[str, option("GAMMA", f"target utilization: {UTILIZATION_TAKES}")] = "0.98",
    epoch: Annotated[
        str | None,
        option("TIME", f"interval of the law: {DURATION_TAKES}; by default 1s, or 20 round-trip times if shorter"),
    ] = None,
    target_queue: Annotated[str, option("QUEUE", QUEUE_TAKES)] = "0",
    plant: Annotated[
        str, option("PLANT", "continuous-time loop shown beside the deciding one: auto or paper (eq. 7), noq, phys")
    ] = "auto",
    alpha: Annotated[str | None, option("GAIN", f"analyse this gain instead of designing one: {ALPHA_TAKES}")] = None,
    fragile_flows: Annotated[str, option("FLOWS", "N_min of the minimum-stability check, eq. 9", "--fragile-N")] = "10",
    fragile_rtt: Annotated[str, option("TIME", "longest RTT of the minimum-stability check, eq. 9")] = "2s",
    no_simulation: Annotated[bool, option("", "skip the nonlinear fluid simulation, which finds limit cycles")] = False,
    paper: Annotated[bool, option("", "also show the paper's own rule and its minimum-stability check")] = False,
) -> int:
    """ARC: AQM gains for TCP on one congested link, exact for the delay and for the epoch.

    Examples
    --------
    netctrl design arc --N 50
    netctrl design arc --N 40:100 --rtt 200ms:500ms -o arc.json --plot arc.png
    """
    packet = read("packet_size", packet_size, parse_size, SIZE_TAKES)
    arguments: dict[str, Any] = {
        "flows": read_range("flows", flows, parse_count, FLOWS_TAKES),
        "rtt_s": read_range("rtt", rtt, parse_duration, RTT_TAKES),
        "capacity_bit_per_s": read("capacity", capacity, parse_rate, RATE_TAKES),
        "packet_size_bytes": packet,
        "utilization": read("utilization", utilization, parse_count, UTILIZATION_TAKES),
        "epoch_s": None if epoch is None else read("epoch", epoch, parse_duration, DURATION_TAKES),
        "target_queue_packets": read("target_queue", target_queue, lambda text: _queue(text, packet), QUEUE_TAKES),
        "plant": plant,
        "alpha_per_packet": None if alpha is None else read("alpha", alpha, parse_count, ALPHA_TAKES),
        "simulation": not no_simulation,
        "accept": (wanted or Wanted()).accept,
        "fragile_flows": read("fragile_flows", fragile_flows, parse_count, COUNT_TAKES),
        "fragile_rtt_s": read("fragile_rtt", fragile_rtt, parse_duration, DURATION_TAKES),
        "argv": invocation(),
    }

    def made() -> ArcDesign:
        import netctrl

        return netctrl.arc(**arguments)

    return deliver(wanted, made, _with_map, _with_paper if paper else None)


def _with_paper(design: ArcDesign) -> str:
    from netctrl.model.design.summary import arc_paper_rows  # with NumPy, which --help does without

    return design_report(design, arc_paper_rows(design.law, design.certificate))


def _queue(text: str, packet_size_bytes: float) -> float:
    """A queue in packets: a bare number is in packets, 0 included; a number with a unit is in bytes."""
    if re.fullmatch(r"\s*(0+\.?0*|\.0+)\s*([kmg]i?)?b?\s*", text, re.IGNORECASE):
        return 0.0
    try:
        return parse_count(text)
    except ValueError:
        return parse_size(text) / packet_size_bytes


def _with_map(design: ArcDesign) -> Figure:
    from netctrl.design.arc.design import arc_stability_map
    from netctrl.plotting import arc_figure

    return arc_figure(design, arc_stability_map(design))
