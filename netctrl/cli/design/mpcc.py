"""`netctrl design mpcc`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation, option
from netctrl.cli.design.common import Wanted, deliver, read
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
)

if TYPE_CHECKING:
    from netctrl.model.design.design import MpccDesign

__all__ = ["mpcc"]


def mpcc(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[str, option("N", "flows through the bottleneck, as in 4", "--flows", "--N")],
    rate: Annotated[str, option("RATE", f"rate of each sender's link: {RATE_TAKES}")],
    rtt: Annotated[str, option("TIME", f"round-trip time without queues: {DURATION_TAKES}")],
    bdp: Annotated[str | None, option("SIZE", "largest window; by default rate times round-trip time")] = None,
    packet_size: Annotated[str, option("SIZE", f"size on the wire: {SIZE_TAKES}")] = "1080",
    window: Annotated[
        str | None, option("SIZE", "window at which acknowledgements are counted; by default --bdp")
    ] = None,
    bottleneck: Annotated[str | None, option("RATE", "rate of the bottleneck; by default --rate")] = None,
    horizon: Annotated[str, option("P", "horizon in acknowledgements, as in 5")] = "5",
    queue_weight: Annotated[str, option("WEIGHT", "weight of squared queues")] = "1",
    window_weight: Annotated[str, option("WEIGHT", "weight of squared deviations from the fair window")] = "10",
    delayed: Annotated[bool, option("", "act on the queue predicted from the packets in flight")] = False,
    table: Annotated[str | None, option("RANGE", "store gains for a range of numbers of flows, as in 1:1024")] = None,
) -> int:
    """MPCC sets windows of data-centre senders from a switch's queue, without an online solver.

    Examples
    --------
    netctrl design mpcc --N 4 --rate 100Gbit --rtt 8us
    netctrl design mpcc --N 16 --rate 25Gbit --rtt 20us --delayed --table 1:64 -o mpcc.json
    """
    whole = "a whole number, as in 4"
    arguments: dict[str, Any] = {
        "flows": read("flows", flows, int, whole),
        "rate_bit_per_s": read("rate", rate, parse_rate, RATE_TAKES),
        "rtt_s": read("rtt", rtt, parse_duration, DURATION_TAKES),
        "bdp_bytes": None if bdp is None else read("bdp", bdp, parse_size, SIZE_TAKES),
        "packet_size_bytes": read("packet_size", packet_size, parse_size, SIZE_TAKES),
        "window_bytes": None if window is None else read("window", window, parse_size, SIZE_TAKES),
        "bottleneck_bit_per_s": None if bottleneck is None else read("bottleneck", bottleneck, parse_rate, RATE_TAKES),
        "horizon": read("horizon", horizon, int, whole),
        "queue_weight": read("queue_weight", queue_weight, float, "a number above 0"),
        "window_weight": read("window_weight", window_weight, float, "a number of at least 0"),
        "delayed": delayed,
        "table": None if table is None else _read_flows(table),
        "argv": invocation(),
    }

    def made() -> MpccDesign:
        import netctrl

        return netctrl.mpcc(**arguments)

    return deliver(wanted, made)


def _read_flows(text: str) -> tuple[int, int]:
    takes = "first and last number of flows, as in 1:1024"
    return read("table", text, lambda both: parse_range(both, int), takes)
