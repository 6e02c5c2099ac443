"""`netctrl certify pie`, `fq_pie`, `docsis-pie`, `dualpi2` and `pi2`."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Annotated, Any

from netctrl.cli.app import option, read_whole
from netctrl.cli.certify.common import HZ_TAKES, Files, Where, gain, judged, sixteenths
from netctrl.cli.certify.pi_options import TARGET, TUPDATE, TwoQueues, times
from netctrl.errors import InvalidValue
from netctrl.units import DURATION_TAKES

__all__ = ["docsis_pie", "dualpi2", "fq_pie", "pi2", "pie"]

_QDELAY_REF = option("TIME", f"target, RFC 8033's QDELAY_REF: {DURATION_TAKES}", "--target", "--qdelay-ref")
_T_UPDATE = option("TIME", f"between two updates, RFC 8033's T_UPDATE: {DURATION_TAKES}", "--tupdate", "--t-update")
_ZERO = re.compile(r"0+(\.0*)?(hz)?", re.IGNORECASE)
_PIE_ALPHA = option("GAIN", "on the delay's error: sixteenths of 1/s as in tc, or in 1/s as in 0.125Hz")
_PIE_BETA = option("GAIN", "on the delay's change, in the same units")
_HZ = option("NUMBER", HZ_TAKES)
_ESTIMATOR = option("", "the delay is estimated from the rate of departures")
_ECN = option("", "packets are marked and not dropped, for linux-reno and linux-creno")
_ALPHA, _BETA = (option("GAIN", f"on the delay's {what} [1/s]") for what in ("error", "change"))


def pie(
    where: Where,
    files: Files | None = None,
    *,
    alpha: Annotated[str, _PIE_ALPHA] = "2",
    beta: Annotated[str, _PIE_BETA] = "20",
    target: Annotated[str, _QDELAY_REF] = "15ms",
    tupdate: Annotated[str, _T_UPDATE] = "15ms",
    hz: Annotated[str, _HZ] = "250",
    dq_rate_estimator: Annotated[bool, _ESTIMATOR] = False,
    ecn: Annotated[bool, _ECN] = False,
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

    def parameters() -> dict[str, Any]:
        return {
            **_pi(sixteenths, target, tupdate, alpha, beta),
            "implementation": "rfc" if rfc else "linux",
            "hz": read_whole("hz", hz, HZ_TAKES),
            "dq_rate_estimator": dq_rate_estimator,
            "ecn": ecn,
        }

    return judged("pie", parameters, where, files)


def fq_pie(
    where: Where,
    files: Files | None = None,
    *,
    alpha: Annotated[str, _PIE_ALPHA] = "2",
    beta: Annotated[str, _PIE_BETA] = "20",
    target: Annotated[str, _QDELAY_REF] = "15ms",
    tupdate: Annotated[str, _T_UPDATE] = "15ms",
    hz: Annotated[str, _HZ] = "250",
    dq_rate_estimator: Annotated[bool, _ESTIMATOR] = False,
    ecn: Annotated[bool, _ECN] = False,
) -> int:
    """Linux's fq_pie: its PIE in a queue for each flow, which has its share of the rate; options have tc's names.

    Examples
    --------
    netctrl certify fq_pie --rtt 20ms:30ms --N 4 --capacity 20Mbit
    netctrl certify fq_pie --rtt 20ms --N 1 --capacity 4Mbit --ecn --sender linux-reno --json
    """

    def parameters() -> dict[str, Any]:
        return {
            **_pi(sixteenths, target, tupdate, alpha, beta),
            "hz": read_whole("hz", hz, HZ_TAKES),
            "dq_rate_estimator": dq_rate_estimator,
            "ecn": ecn,
        }

    if files is not None and files.gains:
        raise InvalidValue("gains", None, "a law with gains of its own: pie, which runs in each queue, dualpi2 or pi2")
    return judged("fq_pie", parameters, where, files)


def docsis_pie(
    where: Where,
    files: Files | None = None,
    *,
    a: Annotated[str, option("GAIN", "A, on the delay's error [1/s]", "--A")] = "0.25",
    b: Annotated[str, option("GAIN", "B, on the delay's change [1/s]", "--B")] = "2.5",
    latency_target: Annotated[str, TARGET] = "10ms",
    interval: Annotated[str, TUPDATE] = "16ms",
) -> int:
    """DOCSIS-PIE as cable modems must run it (RFC 8034); options have its names.

    Examples
    --------
    netctrl certify docsis-pie --rtt 10ms:30ms --N 3:5 --capacity 20Mbit
    netctrl certify docsis-pie --rtt 20ms --window 30 --latency-target 20ms --json
    """

    def parameters() -> dict[str, Any]:
        return {
            **times(latency_target, interval, ("latency_target", "interval")),
            "alpha": gain("a", a),
            "beta": _or_0(gain, "b", b),
        }

    return judged("docsis-pie", parameters, where, files)


def dualpi2(
    where: Where,
    files: Files | None = None,
    *,
    alpha: Annotated[str, _ALPHA] = "0.16015625",
    beta: Annotated[str, _BETA] = "3.19921875",
    target: Annotated[str, TARGET] = "15ms",
    tupdate: Annotated[str, TUPDATE] = "16ms",
    queues: TwoQueues | None = None,
) -> int:
    """DualPI2 (RFC 9332), with the arithmetic of Linux's dualpi2; options have tc's names and units.

    Examples
    --------
    netctrl certify dualpi2 --rtt 5ms:40ms --N 10:20 --capacity 100Mbit --sender reno,creno
    netctrl certify dualpi2 --rtt 20ms --window 50 --sender reno --json
    """

    def parameters() -> dict[str, Any]:
        return {
            **_pi(gain, target, tupdate, alpha, beta),
            **(queues or TwoQueues()).parameters(),
        }

    return judged("dualpi2", parameters, where, files)


def pi2(
    where: Where,
    files: Files | None = None,
    *,
    alpha: Annotated[str, _ALPHA] = "0.16",
    beta: Annotated[str, _BETA] = "3.2",
    target: Annotated[str, TARGET] = "15ms",
    tupdate: Annotated[str, TUPDATE] = "16ms",
) -> int:
    """PI2: a PI law whose output is squared for classic flows, in one queue, in real numbers (RFC 9332, Appendix A).

    Examples
    --------
    netctrl certify pi2 --rtt 5ms:40ms --N 10:20 --capacity 100Mbit
    netctrl certify pi2 --rtt 50ms --window 8 --alpha 0.16 --beta 1.5
    """

    def parameters() -> dict[str, Any]:
        return _pi(gain, target, tupdate, alpha, beta)

    return judged("pi2", parameters, where, files)


def _pi(read_gain: Callable[[str, str], float], target: str, tupdate: str, alpha: str, beta: str) -> dict[str, float]:
    """Parameters that all PI laws have."""
    return {
        **times(target, tupdate),
        "alpha": read_gain("alpha", alpha),
        "beta": _or_0(read_gain, "beta", beta),
    }


def _or_0(read_gain: Callable[[str, str], float], argument: str, text: str) -> float:
    """A gain that may be 0."""
    return 0.0 if _ZERO.fullmatch(text.strip()) else read_gain(argument, text)
