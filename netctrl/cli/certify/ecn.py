"""`netctrl certify dctcp` and `dcqcn`: thresholds of ECN with the senders that react to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import Report, option, read_whole
from netctrl.cli.certify.common import CertificateJson, CertificateOutput, Files, Link, duration, judged
from netctrl.cli.design.common import read
from netctrl.errors import InvalidValue
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_count,
    parse_duration,
    parse_rate,
    parse_size,
)

__all__ = ["GAIN_TAKES", "dcqcn", "dctcp", "sender_gain"]

_K_TAKES = "a threshold above 0: packets as in 65, a size with its unit as in 97.5kB, or a time as in 80us"
GAIN_TAKES = "a gain above 0 and at most 1, as in 0.0625 or 1/16"
_STAGES_TAKES = "a whole number of stages, as in 5"
_PERCENT_TAKES = "a probability above 0 and at most 100 in percent, as in 1"


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PageFiles:
    """Requested output."""

    json: CertificateJson = False
    output: CertificateOutput = None
    report: Report = None

    def files(self) -> Files:
        """The same without a map and other gains, which these laws don't have."""
        return Files(json=self.json, output=self.output, report=self.report)


def dctcp(
    where: Link,
    files: PageFiles | None = None,
    *,
    threshold: Annotated[str, option("K", f"{_K_TAKES}, above which every packet is marked", "--K", "--step-thresh")],
    g: Annotated[str, option("GAIN", f"of the sender's average: {GAIN_TAKES}")] = "1/16",
) -> int:
    """A threshold of ECN below DCTCP senders: the queue's limit cycle, and the smallest K that keeps the link busy.

    Examples
    --------
    netctrl certify dctcp --K 65 --rtt 100us --N 2:40 --capacity 10Gbit
    netctrl certify dctcp --K 97.5kB --rtt 50us:100us --N 2:20 --capacity 10Gbit --json
    """

    def parameters() -> dict[str, Any]:
        return {**_threshold(threshold), "g": sender_gain(g)}

    return judged("dctcp", parameters, where, (files or PageFiles()).files())


def dcqcn(
    where: Link,
    files: PageFiles | None = None,
    *,
    kmin: Annotated[str, option("SIZE", f"lower threshold of the queue: {SIZE_TAKES}")] = "5kB",
    kmax: Annotated[str, option("SIZE", "upper threshold, above which every packet is marked")] = "200kB",
    pmax: Annotated[str, option("PERCENT", f"at --kmax: {_PERCENT_TAKES}")] = "1",
    rai: Annotated[str, option("RATE", f"additive increase R_AI: {RATE_TAKES}")] = "40Mbit",
    byte_counter: Annotated[str, option("SIZE", "byte counter B of the rate")] = "10MB",
    timer: Annotated[str, option("TIME", f"timer T of the rate: {DURATION_TAKES}")] = "55us",
    cnp: Annotated[str, option("TIME", "least time between two notifications (CNP) of a flow")] = "50us",
    alpha_timer: Annotated[str, option("TIME", "between two updates of alpha")] = "55us",
    g: Annotated[str, option("GAIN", f"of alpha: {GAIN_TAKES}")] = "1/256",
    stages: Annotated[str, option("NUMBER", f"of fast recovery: {_STAGES_TAKES}", "--F")] = "5",
    marked_arriving: Annotated[bool, option("", "packets are marked as they come, not as they leave")] = False,
) -> int:
    """Two thresholds of ECN below DCQCN senders (RoCEv2); defaults are those of DCQCN's paper at 40 Gbit/s.

    Examples
    --------
    netctrl certify dcqcn --rai 1Mbit --pmax 10 --rtt 4us --N 2:8 --capacity 40Gbit
    netctrl certify dcqcn --kmax 100kB --rai 1Mbit --pmax 10 --rtt 2us:4us --N 4:8 --capacity 40Gbit --json
    """

    def parameters() -> dict[str, Any]:
        return {
            "kmin_bytes": _size("kmin", kmin),
            "kmax_bytes": _size("kmax", kmax),
            "pmax": _percent("pmax", pmax),
            "rai_bit_per_s": read("rai", rai, parse_rate, RATE_TAKES),
            "counter_bytes": _size("byte_counter", byte_counter),
            "timer_s": duration("timer", timer),
            "cnp_s": duration("cnp", cnp),
            "alpha_s": duration("alpha_timer", alpha_timer),
            "g": sender_gain(g),
            "f": read_whole("stages", stages, _STAGES_TAKES),
            "arriving": marked_arriving,
        }

    return judged("dcqcn", parameters, where, (files or PageFiles()).files())


def _threshold(text: str) -> dict[str, float]:
    """A threshold in packets, or with its unit in bytes or seconds."""
    for name, parse in (
        ("k_packets", parse_count),
        ("k_s", parse_duration),
        ("k_bytes", lambda given: parse_size(given, bare=False)),
    ):
        try:
            return {name: parse(text)}
        except ValueError:
            continue
    raise InvalidValue("threshold", text, _K_TAKES)


def sender_gain(text: str) -> float:
    """Gain g of a sender's average, as a number or as in 1/16."""
    one, slash, parts = text.partition("/")
    value = read("g", parts if slash else one, parse_count, GAIN_TAKES)
    if not slash:
        return value
    if one.strip() != "1":
        raise InvalidValue("g", text, GAIN_TAKES)
    return 1.0 / value


def _percent(argument: str, text: str) -> float:
    percent = read(argument, text.removesuffix("%"), parse_count, _PERCENT_TAKES)
    if percent > 100.0:
        raise InvalidValue(argument, text, _PERCENT_TAKES)
    return percent / 100.0


def _size(argument: str, text: str) -> float:
    return read(argument, text, parse_size, SIZE_TAKES)
