"""`netctrl certify red` and `wred`."""

from __future__ import annotations

from typing import Annotated, Any

from netctrl.cli.app import option, read_whole
from netctrl.cli.certify.common import Files, Where, judged, whole_bytes
from netctrl.cli.design.common import read
from netctrl.errors import InvalidValue
from netctrl.units import SIZE_TAKES, parse_count

__all__ = ["red", "wred"]

_BURST_TAKES = "a whole number of packets, as in 55"
_PERCENT_TAKES = "a whole number of percent from 1 to 100, as in 5"
_PROBABILITY_TAKES = "a probability above 0 and below 1, as in 0.02"


def red(
    where: Where,
    files: Files | None = None,
    *,
    limit: Annotated[str, option("SIZE", f"longest queue: {SIZE_TAKES}")],
    min: Annotated[str | None, option("SIZE", "lower threshold of the average; by default a third of --max")] = None,
    max: Annotated[str | None, option("SIZE", "upper threshold; by default 3 --min, or a quarter of --limit")] = None,
    avpkt: Annotated[str, option("SIZE", "average packet, by which the weight follows from --burst")] = "1000",
    burst: Annotated[str | None, option("NUMBER", f"{_BURST_TAKES}; by default (2 --min + --max)/(3 --avpkt)")] = None,
    probability: Annotated[str, option("NUMBER", f"at the upper threshold: {_PROBABILITY_TAKES}")] = "0.02",
    ecn: Annotated[bool, option("", "packets are marked instead of dropped")] = False,
    adaptive: Annotated[bool, option("", "the probability at --max moves from .01 to .5; the worst counts")] = False,
    gentle: Annotated[bool, option("", "above --max it rises to 1 at twice --max, which Linux doesn't do")] = False,
) -> int:
    """RED, with the arithmetic of Linux's red, which marks 2p/(1 + p) of packets; options have tc's names.

    Examples
    --------
    netctrl certify red --limit 400kB --min 30kB --max 90kB --burst 55 --rtt 50ms --N 15:20 --capacity 20Mbit
    netctrl certify red --limit 400kB --min 30kB --max 90kB --adaptive --rtt 5ms --N 20 --capacity 20Mbit --json
    """

    def parameters() -> dict[str, Any]:
        return {
            "limit_bytes": whole_bytes("limit", limit),
            "min_bytes": None if min is None else whole_bytes("min", min),
            "max_bytes": None if max is None else whole_bytes("max", max),
            "average_packet": whole_bytes("avpkt", avpkt),
            "burst": None if burst is None else read_whole("burst", burst, _BURST_TAKES),
            "probability": read("probability", probability, parse_count, _PROBABILITY_TAKES),
            "ecn": ecn,
            "adaptive": adaptive,
            "gentle": gentle,
        }

    return judged("red", parameters, where, _without_gains(files))


def wred(
    where: Where,
    files: Files | None = None,
    *,
    min: Annotated[str, option("SIZE", f"lower threshold of the queue: {SIZE_TAKES}")],
    max: Annotated[str, option("SIZE", "upper threshold of the queue, above which every packet is chosen")],
    probability: Annotated[str, option("PERCENT", f"at the upper threshold: {_PERCENT_TAKES}")] = "100",
    ecn: Annotated[bool, option("", "packets are marked instead of dropped")] = False,
) -> int:
    """WRED of switches, for one colour: the probability rises with the present queue, without an average.

    Examples
    --------
    netctrl certify wred --min 1MiB --max 2MiB --probability 5 --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp
    netctrl certify wred --min 100kB --max 400kB --probability 5 --rtt 50us --N 8 --capacity 10Gbit --json
    """

    def parameters() -> dict[str, Any]:
        return {
            "min_bytes": whole_bytes("min", min),
            "max_bytes": whole_bytes("max", max),
            "max_percent": read_whole("probability", probability, _PERCENT_TAKES),
            "ecn": ecn,
        }

    return judged("wred", parameters, where, _without_gains(files))


def _without_gains(files: Files | None) -> Files | None:
    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains: pie, dualpi2 or pi2")
    return files
