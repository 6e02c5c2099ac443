"""`netctrl certify pie`, `fq_pie`, `docsis-pie`, `dualpi2` and `pi2`."""

from __future__ import annotations

from typing import Annotated

from netctrl.cli.certify.common import Files, Where, judged
from netctrl.cli.certify.law_options import (
    BETA,
    GAIN,
    HZ,
    HZ_TAKES,
    TARGET_TAKES,
    TC_BETA,
    TC_GAIN,
    TUPDATE_TAKES,
    TwoQueues,
)
from netctrl.cli.options import TIME, given, option
from netctrl.errors import InvalidValue
from netctrl.units import DURATION_TAKES

__all__ = ["docsis_pie", "dualpi2", "fq_pie", "pi2", "pie"]

_TC_ALPHA = Annotated[
    float | None,
    TC_GAIN("on the delay's error: sixteenths of 1/s as in tc, or in 1/s as in 0.125Hz", default="2"),
]
_TC_BETA = Annotated[float | None, TC_BETA("on the delay's change, in the same units", default="20")]
_QDELAY_REF = Annotated[
    float | None,
    TIME(f"target, RFC 8033's QDELAY_REF: {DURATION_TAKES}", "--target", "--qdelay-ref", default="15ms"),
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
    where: Where,
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
    where: Where,
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
    netctrl certify fq_pie --rtt 20ms:30ms --N 4 --capacity 20Mbit
    netctrl certify fq_pie --rtt 20ms --N 1 --capacity 4Mbit --ecn --sender linux-reno --json
    """
    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains of its own: pie, which runs in each queue, dualpi2 or pi2")
    return judged("fq_pie", given(locals(), "where", "files"), where, files)


def docsis_pie(
    where: Where,
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
    where: Where,
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
    where: Where,
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
