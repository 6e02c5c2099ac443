"""`netctrl design ecn`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.certify.common import Link
from netctrl.cli.certify.ecn import GAIN, GAIN_TAKES
from netctrl.cli.design.common import Wanted, call, deliver
from netctrl.cli.options import given, option

__all__ = ["ecn"]

_UNITS = (
    "bytes (switches, Linux's and ns-3's RED; in steps of a packet), packets (ns-3's RED) or time (thresholds of "
    "Linux's CoDel and DualPI2, and of ns-3's CoDel; in steps of 1 us)"
)


def ecn(
    where: Link,
    wanted: Wanted | None = None,
    *,
    gain: Annotated[
        float | None, GAIN(f"of the senders' average of marks: {GAIN_TAKES}", "--g", default="1/16")
    ] = None,
    unit: Annotated[str | None, option("UNIT", f"of the threshold: {_UNITS}", default="bytes")] = None,
) -> int:
    """Smallest threshold of ECN with which DCTCP senders keep a link busy, for a range of flows and round-trip times.

    Examples
    --------
    netctrl design ecn --rtt 100us --N 2:40 --capacity 10Gbit
    netctrl design ecn --rtt 50us:200us --N 1:20 --capacity 10Gbit --unit time --json
    """
    return deliver(wanted, call("ecn_design", given(locals(), "wanted", "where") | given(vars(where))))
