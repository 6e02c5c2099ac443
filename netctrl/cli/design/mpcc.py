"""`netctrl design mpcc`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.design.common import Wanted, call, deliver
from netctrl.cli.options import RATE, SIZE, TIME, given, kind, option
from netctrl.units import DURATION_TAKES, RATE_TAKES, SIZE_TAKES, parse_range

__all__ = ["mpcc"]

_WHOLE_TAKES = "a whole number, as in 4"
_FLOWS, _ACKS = (kind(metavar, int, _WHOLE_TAKES) for metavar in ("N", "P"))
_PENALTY = kind("WEIGHT", float, "a number above 0")
_PENALTY_OR_0 = kind("WEIGHT", float, "a number of at least 0")
_TABLE = kind("RANGE", lambda text: parse_range(text, int), "first and last number of flows, as in 1:1024")


def mpcc(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[int, _FLOWS("flows through the bottleneck, as in 4", "--flows", "--N")],
    rate_bit_per_s: Annotated[float, RATE(f"rate of each sender's link: {RATE_TAKES}")],
    rtt_s: Annotated[float, TIME(f"round-trip time without queues: {DURATION_TAKES}")],
    bdp_bytes: Annotated[float | None, SIZE("largest window; by default rate times round-trip time")] = None,
    packet_size_bytes: Annotated[float | None, SIZE(f"size on the wire: {SIZE_TAKES}", default="1080")] = None,
    window_bytes: Annotated[
        float | None, SIZE("window at which acknowledgements are counted; by default --bdp")
    ] = None,
    bottleneck_bit_per_s: Annotated[float | None, RATE("rate of the bottleneck; by default --rate")] = None,
    horizon: Annotated[int | None, _ACKS("horizon in acknowledgements, as in 5", default="5")] = None,
    queue_weight: Annotated[float | None, _PENALTY("weight of squared queues", default="1")] = None,
    window_weight: Annotated[
        float | None, _PENALTY_OR_0("weight of squared deviations from the fair window", default="10")
    ] = None,
    delayed: Annotated[bool, option("", "act on the queue predicted from the packets in flight")] = False,
    table: Annotated[
        tuple[int, int] | None, _TABLE("store gains for a range of numbers of flows, as in 1:1024")
    ] = None,
) -> int:
    """MPCC sets windows of data-centre senders from a switch's queue, without an online solver.

    Examples
    --------
    netctrl design mpcc --N 4 --rate 100Gbit --rtt 8us
    netctrl design mpcc --N 16 --rate 25Gbit --rtt 20us --delayed --table 1:64 -o mpcc.json
    """
    return deliver(wanted, call("mpcc", given(locals(), "wanted")))
