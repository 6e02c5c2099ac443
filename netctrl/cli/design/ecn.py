"""`netctrl design ecn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation, option
from netctrl.cli.certify.common import Link
from netctrl.cli.certify.ecn import GAIN_TAKES, sender_gain
from netctrl.cli.design.common import Wanted, deliver

if TYPE_CHECKING:
    from netctrl.design.queue.ecn_record import EcnDesign

__all__ = ["ecn"]

_UNITS = (
    "bytes (switches, Linux's and ns-3's RED; in steps of a packet), packets (ns-3's RED) or time (thresholds of "
    "Linux's CoDel and DualPI2, and of ns-3's CoDel; in steps of 1 us)"
)


def ecn(
    where: Link,
    wanted: Wanted | None = None,
    *,
    g: Annotated[str, option("GAIN", f"of the senders' average of marks: {GAIN_TAKES}")] = "1/16",
    unit: Annotated[str, option("UNIT", f"of the threshold: {_UNITS}")] = "bytes",
) -> int:
    """Smallest threshold of ECN with which DCTCP senders keep a link busy, for a range of flows and round-trip times.

    Examples
    --------
    netctrl design ecn --rtt 100us --N 2:40 --capacity 10Gbit
    netctrl design ecn --rtt 50us:200us --N 1:20 --capacity 10Gbit --unit time --json
    """
    given: dict[str, Any] = {**where.arguments(), "gain": sender_gain(g), "unit": unit}

    def made() -> EcnDesign:
        import netctrl

        return netctrl.ecn_design(**given, argv=invocation())

    return deliver(wanted, made)
