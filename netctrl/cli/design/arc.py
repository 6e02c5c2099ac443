"""`netctrl design arc`."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from netctrl.cli.design.common import Wanted, call, deliver, design_report
from netctrl.cli.options import RATE, SIZE, TIME, given, kind, option, ranged
from netctrl.core.errors import InvalidValue
from netctrl.core.units import (
    COUNT_TAKES,
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_count,
    parse_duration,
    parse_size,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.model.design.design import ArcDesign

FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high, as in 50:400"
RTT_TAKES = "a round-trip time above 0 with its unit (ns, us, ms, s, min), as in 500ms, or a range, as in 60ms:500ms"
UTILIZATION_TAKES = "a number in (0, 1], as in 0.98"
QUEUE_TAKES = "a number of packets of at least 0, as in 0, or a size with its unit, as in 50kB"
ALPHA_TAKES = "a gain above 0 per packet, as in 1.42e-5"
_FLOWS, _RTT = ranged("FLOWS", parse_count, FLOWS_TAKES), ranged("TIME", parse_duration, RTT_TAKES)
_SHARE, _GAIN = kind("GAMMA", parse_count, UTILIZATION_TAKES), kind("GAIN", parse_count, ALPHA_TAKES)
_FEWEST = kind("FLOWS", parse_count, COUNT_TAKES)


def arc(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[tuple[float, float], _FLOWS(FLOWS_TAKES, "--N")],
    capacity_bit_per_s: Annotated[float | None, RATE(f"link capacity: {RATE_TAKES}", default="10Mbit")] = None,
    packet_size_bytes: Annotated[float, SIZE(SIZE_TAKES, default="1000")] = 1000.0,
    rtt_s: Annotated[tuple[float, float] | None, _RTT(RTT_TAKES, default="500ms")] = None,
    utilization: Annotated[float | None, _SHARE(f"target utilization: {UTILIZATION_TAKES}", default="0.98")] = None,
    epoch_s: Annotated[
        float | None, TIME(f"interval of the law: {DURATION_TAKES}; by default 1s, or 20 round-trip times if shorter")
    ] = None,
    target_queue_packets: Annotated[str | None, option("QUEUE", QUEUE_TAKES, default="0")] = None,
    plant: Annotated[
        str | None,
        option(
            "PLANT",
            "continuous-time loop shown beside the deciding one: auto or paper (eq. 7), noq, phys",
            default="auto",
        ),
    ] = None,
    alpha_per_packet: Annotated[
        float | None, _GAIN(f"analyse this gain instead of designing one: {ALPHA_TAKES}")
    ] = None,
    fragile_flows: Annotated[
        float | None, _FEWEST("N_min of the minimum-stability check, eq. 9", "--fragile-N", default="10")
    ] = None,
    fragile_rtt_s: Annotated[
        float | None, TIME("longest RTT of the minimum-stability check, eq. 9", default="2s")
    ] = None,
    no_simulation: Annotated[bool, option("", "skip the nonlinear fluid simulation, which finds limit cycles")] = False,
    paper: Annotated[bool, option("", "also show the paper's own rule and its minimum-stability check")] = False,
) -> int:
    """ARC: AQM gains for TCP on one congested link, exact for the delay and for the epoch.

    Examples
    --------
    netctrl design arc --N 50
    netctrl design arc --N 40:100 --rtt 200ms:500ms -o arc.json --plot arc.png
    """
    asked = given(locals(), "wanted", "no_simulation", "paper", "target_queue_packets")
    if target_queue_packets is not None:
        asked["target_queue_packets"] = _queue(target_queue_packets, packet_size_bytes)
    asked |= {"simulation": not no_simulation, "accept": (wanted or Wanted()).accept}
    return deliver(wanted, call("arc", asked), _with_map, _with_paper if paper else None)


def _with_paper(design: ArcDesign) -> str:
    from netctrl.model.design.summary import arc_paper_rows  # with NumPy, which --help does without

    return design_report(design, arc_paper_rows(design.law, design.certificate))


def _queue(text: str, packet_size_bytes: float) -> float:
    """A queue in packets: a bare number is in packets, 0 included; a number with a unit is in bytes."""
    if re.fullmatch(r"\s*(0+\.?0*|\.0+)\s*([kmg]i?)?b?\s*", text, re.IGNORECASE):
        return 0.0
    for parse, unit in ((parse_count, 1.0), (parse_size, packet_size_bytes)):
        with suppress(ValueError):
            return parse(text) / unit
    raise InvalidValue("target_queue_packets", text, QUEUE_TAKES)


def _with_map(design: ArcDesign) -> Figure:
    from netctrl.design.arc.design import arc_stability_map
    from netctrl.plotting import arc_figure

    return arc_figure(design, arc_stability_map(design))
