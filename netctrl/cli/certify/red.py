"""`netctrl certify red` and `wred`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.certify.common import Files, Where, judged
from netctrl.cli.certify.law_options import BURST, BYTES
from netctrl.cli.options import given, kind, option, whole
from netctrl.errors import InvalidValue
from netctrl.units import SIZE_TAKES, parse_count

__all__ = ["red", "wred"]

_BURST_TAKES = "a whole number of packets, as in 55"
_PERCENT_TAKES = "a whole number of percent from 1 to 100, as in 5"
_PERCENT = whole("PERCENT", _PERCENT_TAKES)
_PROBABILITY_TAKES = "a probability above 0 and below 1, as in 0.02"
_PROBABILITY = kind("NUMBER", parse_count, _PROBABILITY_TAKES)


def red(
    where: Where,
    files: Files | None = None,
    *,
    limit_bytes: Annotated[int, BYTES(f"longest queue: {SIZE_TAKES}")],
    min_bytes: Annotated[int | None, BYTES("lower threshold of the average; by default a third of --max")] = None,
    max_bytes: Annotated[int | None, BYTES("upper threshold; by default 3 --min, or a quarter of --limit")] = None,
    average_packet: Annotated[
        int | None, BYTES("average packet, by which the weight follows from --burst", "--avpkt", default="1000")
    ] = None,
    burst: Annotated[int | None, BURST(f"{_BURST_TAKES}; by default (2 --min + --max)/(3 --avpkt)")] = None,
    probability: Annotated[
        float | None, _PROBABILITY(f"at the upper threshold: {_PROBABILITY_TAKES}", default="0.02")
    ] = None,
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
    return judged("red", given(locals(), "where", "files"), where, _without_gains(files))


def wred(
    where: Where,
    files: Files | None = None,
    *,
    min_bytes: Annotated[int, BYTES(f"lower threshold of the queue: {SIZE_TAKES}")],
    max_bytes: Annotated[int, BYTES("upper threshold of the queue, above which every packet is chosen")],
    max_percent: Annotated[
        int, _PERCENT(f"at the upper threshold: {_PERCENT_TAKES}", "--probability", default="100")
    ] = 100,
    ecn: Annotated[bool, option("", "packets are marked instead of dropped")] = False,
) -> int:
    """WRED of switches, for one colour: the probability rises with the present queue, without an average.

    Examples
    --------
    netctrl certify wred --min 1MiB --max 2MiB --probability 5 --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp
    netctrl certify wred --min 100kB --max 400kB --probability 5 --rtt 50us --N 8 --capacity 10Gbit --json
    """
    return judged("wred", given(locals(), "where", "files"), where, _without_gains(files))


def _without_gains(files: Files | None) -> Files | None:
    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains: pie, dualpi2 or pi2")
    return files
