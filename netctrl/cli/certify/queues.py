"""`netctrl certify pie`, `fq_pie`, `docsis-pie`, `dualpi2`, `pi2`, `red` and `wred`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from netctrl.cli.certify.common import Asked, Files, judged
from netctrl.cli.certify.law_options import (
    BETA,
    BURST,
    BYTES,
    GAIN,
    HZ,
    HZ_TAKES,
    TARGET_TAKES,
    TC_BETA,
    TC_GAIN,
    TUPDATE_TAKES,
    TwoQueues,
)
from netctrl.cli.options import SET, SET_TAKES, TIME, given, kind, option, whole
from netctrl.core.errors import InvalidValue
from netctrl.core.units import DURATION_TAKES, SIZE_TAKES, parse_count

_TC_ALPHA = Annotated[
    float | None, TC_GAIN("on the delay's error: sixteenths of 1/s as in tc, or in 1/s as in 0.125Hz", default="2")
]
_TC_BETA = Annotated[float | None, TC_BETA("on the delay's change, in the same units", default="20")]
_QDELAY_REF = Annotated[
    float | None, TIME(f"target, RFC 8033's QDELAY_REF: {DURATION_TAKES}", "--target", "--qdelay-ref", default="15ms")
]
_T_UPDATE = Annotated[
    float | None,
    TIME(f"between two updates, RFC 8033's T_UPDATE: {DURATION_TAKES}", "--tupdate", "--t-update", default="15ms"),
]
_HZ = Annotated[int | None, HZ(HZ_TAKES, default="250")]
_ESTIMATOR = Annotated[bool, option("", "the delay is estimated from the rate of departures")]
_ECN = Annotated[bool, option("", "packets are marked and not dropped, for linux-reno and linux-creno")]
_ERROR, _CHANGE = "on the delay's error [1/s]", "on the delay's change [1/s]"


def pie(
    where: Asked,
    files: Files | None = None,
    *,
    alpha: _TC_ALPHA = None,
    beta: _TC_BETA = None,
    target_s: _QDELAY_REF = None,
    tupdate_s: _T_UPDATE = None,
    hz: _HZ = None,
    dq_rate_estimator: _ESTIMATOR = False,
    ecn: _ECN = False,
    rfc: Annotated[
        bool, option("", "real numbers and no spreading of drops, as in RFC 8033, instead of Linux's")
    ] = False,
) -> int:
    """PIE (RFC 8033), with the arithmetic of Linux's pie; options have tc's names and units.

    Examples
    --------
    netctrl certify pie --rtt 20ms:30ms --N 4 --capacity 20Mbit
    netctrl certify pie --rtt 20ms --N 10 --capacity 20Mbit --check fluid
    """
    return judged(
        "pie", given(locals(), "where", "files", "rfc") | {"implementation": "rfc" if rfc else "linux"}, where, files
    )


def fq_pie(
    where: Asked,
    files: Files | None = None,
    *,
    alpha: _TC_ALPHA = None,
    beta: _TC_BETA = None,
    target_s: _QDELAY_REF = None,
    tupdate_s: _T_UPDATE = None,
    hz: _HZ = None,
    dq_rate_estimator: _ESTIMATOR = False,
    ecn: _ECN = False,
) -> int:
    """Linux's fq_pie: its PIE in a queue for each flow, which has its share of the rate; options have tc's names.

    Examples
    --------
    netctrl certify fq_pie --rtt 10ms:20ms --N 4 --capacity 50Mbit
    netctrl certify fq_pie --rtt 20ms --N 1 --capacity 20Mbit --ecn --sender linux-reno --json
    """
    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains of its own: pie, which runs in each queue, dualpi2 or pi2")
    return judged("fq_pie", given(locals(), "where", "files"), where, files)


def docsis_pie(
    where: Asked,
    files: Files | None = None,
    *,
    alpha: Annotated[float | None, GAIN("A, on the delay's error [1/s]", "--A", default="0.25")] = None,
    beta: Annotated[float | None, BETA("B, on the delay's change [1/s]", "--B", default="2.5")] = None,
    target_s: Annotated[float | None, TIME(TARGET_TAKES, "--latency-target", default="10ms")] = None,
    tupdate_s: Annotated[float | None, TIME(TUPDATE_TAKES, "--interval", default="16ms")] = None,
) -> int:
    """DOCSIS-PIE as cable modems must run it (RFC 8034); options have its names.

    Examples
    --------
    netctrl certify docsis-pie --rtt 10ms:30ms --N 3:5 --capacity 20Mbit
    netctrl certify docsis-pie --rtt 20ms --window 30 --latency-target 20ms --json
    """
    return judged("docsis-pie", given(locals(), "where", "files"), where, files)


def dualpi2(
    where: Asked,
    files: Files | None = None,
    *,
    alpha: Annotated[float | None, GAIN(_ERROR, default="0.16015625")] = None,
    beta: Annotated[float | None, BETA(_CHANGE, default="3.19921875")] = None,
    target_s: Annotated[float | None, TIME(TARGET_TAKES, default="15ms")] = None,
    tupdate_s: Annotated[float | None, TIME(TUPDATE_TAKES, default="16ms")] = None,
    queues: TwoQueues | None = None,
) -> int:
    """DualPI2 (RFC 9332), with the arithmetic of Linux's dualpi2; options have tc's names and units.

    Examples
    --------
    netctrl certify dualpi2 --rtt 5ms:40ms --N 10:20 --capacity 100Mbit --sender reno,creno
    netctrl certify dualpi2 --rtt 20ms --window 50 --sender reno --json
    """
    return judged(
        "dualpi2", given(locals(), "where", "files", "queues") | given(vars(queues or TwoQueues())), where, files
    )


def pi2(
    where: Asked,
    files: Files | None = None,
    *,
    alpha: Annotated[float | None, GAIN(_ERROR, default="0.16")] = None,
    beta: Annotated[float | None, BETA(_CHANGE, default="3.2")] = None,
    target_s: Annotated[float | None, TIME(TARGET_TAKES, default="15ms")] = None,
    tupdate_s: Annotated[float | None, TIME(TUPDATE_TAKES, default="16ms")] = None,
) -> int:
    """PI2: a PI law whose output is squared for classic flows, in one queue, in real numbers (RFC 9332, Appendix A).

    Examples
    --------
    netctrl certify pi2 --rtt 5ms:40ms --N 10:20 --capacity 100Mbit
    netctrl certify pi2 --rtt 50ms --window 8 --alpha 0.16 --beta 1.5
    """
    return judged("pi2", given(locals(), "where", "files"), where, files)


_BURST_TAKES = "a whole number of packets, as in 55"
_PERCENT_TAKES = "a whole number of percent from 1 to 100, as in 5"
_PERCENT = whole("PERCENT", _PERCENT_TAKES)
_PROBABILITY_TAKES = "a probability above 0 and below 1, as in 0.02"
_PROBABILITY = kind("NUMBER", parse_count, _PROBABILITY_TAKES)


def red(
    where: Asked,
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
    return judged("red", given(locals(), "where", "files"), where, without_gains(files))


def wred(
    where: Asked,
    files: Files | None = None,
    *,
    min_bytes: Annotated[int, BYTES(f"lower threshold of the queue: {SIZE_TAKES}")],
    max_bytes: Annotated[int, BYTES("upper threshold of the queue, above which every packet is chosen, as in 2MiB")],
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
    return judged("wred", given(locals(), "where", "files"), where, without_gains(files))


def by_name(name: str) -> Callable[..., int]:
    """Command of a law that is certified from its own step, or by another package.

    Parameters
    ----------
    name : str
        Of the law.
    """

    def command(
        where: Asked,
        files: Files | None = None,
        *,
        parameters: Annotated[Any, SET(f"parameters of the law: {SET_TAKES}", "--set")] = None,
    ) -> int:
        return judged(name, parameters or {}, where, without_gains(files))

    return command


def without_gains(files: Files | None) -> Files | None:
    """Requested output of a law whose gains aren't searched."""
    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains: pie, dualpi2 or pi2")
    return files
