"""`netctrl certify dctcp` and `dcqcn`: thresholds of ECN with the senders that react to them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from cyclopts import Parameter

from netctrl.cli.certify.common import SHARE, CertificateJson, CertificateOutput, Files, Link, judged
from netctrl.cli.options import RATE, SIZE, TIME, Report, given, kind, option, whole
from netctrl.core.units import DURATION_TAKES, RATE_TAKES, SIZE_TAKES, parse_count, parse_duration, parse_size

_K_TAKES = "a threshold above 0: packets as in 65, a size with its unit as in 97.5kB, or a time as in 80us"
GAIN_TAKES = "a gain above 0 and at most 1, as in 0.0625 or 1/16"
_STAGES_TAKES = "a whole number of stages, as in 5"
_PERCENT_TAKES = "a probability above 0 and at most 100 in percent, as in 1"


def _threshold(text: str) -> dict[str, float]:
    """A threshold in packets, or with its unit in bytes or seconds."""
    parsers = {"k_packets": parse_count, "k_s": parse_duration, "k_bytes": partial(parse_size, bare=False)}
    for name, parse in parsers.items():
        with suppress(ValueError):
            return {name: parse(text)}
    raise ValueError


def _gain(text: str) -> float:
    """Gain g of a sender's average, as a number or as in 1/16."""
    one, slash, parts = text.partition("/")
    if not slash:
        return parse_count(text)
    if one.strip() != "1":
        raise ValueError
    return 1.0 / parse_count(parts)


def _percent(text: str) -> float:
    percent = parse_count(text.removesuffix("%"))
    if percent > 100.0:
        raise ValueError
    return percent / 100.0


SENDER_GAIN = kind("GAIN", _gain, GAIN_TAKES)
_K = kind("K", _threshold, _K_TAKES)
_PERCENT = kind("PERCENT", _percent, _PERCENT_TAKES)
_STAGES = whole("NUMBER", _STAGES_TAKES)


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
    threshold: Annotated[Any, _K(f"{_K_TAKES}, above which every packet is marked", "--K", "--step-thresh")],
    g: Annotated[float | None, SENDER_GAIN(f"of the sender's average: {GAIN_TAKES}", default="1/16")] = None,
) -> int:
    """A threshold of ECN below DCTCP senders: the queue's limit cycle, and the smallest K that keeps the link busy.

    Examples
    --------
    netctrl certify dctcp --K 65 --rtt 100us --N 2:40 --capacity 10Gbit
    netctrl certify dctcp --K 97.5kB --rtt 50us:100us --N 2:20 --capacity 10Gbit --json
    """
    return judged(
        "dctcp", given(locals(), "where", "files", "threshold") | threshold, where, (files or PageFiles()).files()
    )


def dcqcn(
    where: Link,
    files: PageFiles | None = None,
    *,
    kmin_bytes: Annotated[float | None, SIZE(f"lower threshold of the queue: {SIZE_TAKES}", default="5kB")] = None,
    kmax_bytes: Annotated[
        float | None, SIZE("upper threshold, above which every packet is marked", default="200kB")
    ] = None,
    pmax: Annotated[float | None, _PERCENT(f"at --kmax: {_PERCENT_TAKES}", default="1")] = None,
    rai_bit_per_s: Annotated[float | None, RATE(f"additive increase R_AI: {RATE_TAKES}", default="40Mbit")] = None,
    counter_bytes: Annotated[float | None, SIZE("byte counter B of the rate", "--byte-counter", default="10MB")] = None,
    timer_s: Annotated[float | None, TIME(f"timer T of the rate: {DURATION_TAKES}", default="55us")] = None,
    cnp_s: Annotated[float | None, TIME("least time between two notifications (CNP) of a flow", default="50us")] = None,
    alpha_s: Annotated[float | None, TIME("between two updates of alpha", "--alpha-timer", default="55us")] = None,
    g: Annotated[float | None, SENDER_GAIN(f"of alpha: {GAIN_TAKES}", default="1/256")] = None,
    f: Annotated[int | None, _STAGES(f"of fast recovery: {_STAGES_TAKES}", "--F", default="5")] = None,
    arriving: Annotated[
        bool, option("", "packets are marked as they come, not as they leave", "--marked-arriving")
    ] = False,
) -> int:
    """Two thresholds of ECN below DCQCN senders (RoCEv2); defaults are those of DCQCN's paper at 40 Gbit/s.

    Examples
    --------
    netctrl certify dcqcn --pmax 10 --rtt 4us --N 2:8 --capacity 40Gbit
    netctrl certify dcqcn --kmax 100kB --pmax 5 --rtt 2us:4us --N 4:8 --capacity 40Gbit --json
    """
    return judged("dcqcn", given(locals(), "where", "files"), where, (files or PageFiles()).files())


def hpcc(
    where: Link,
    files: PageFiles | None = None,
    *,
    eta: Annotated[
        float | None, SHARE("of the link that is aimed at: a share or percentage above 0", default="95%")
    ] = None,
    wai_bytes: Annotated[float | None, SIZE("additive increase W_AI of a window", default="80B")] = None,
) -> int:
    """HPCC senders, which read telemetry and not marks: by packets alone, what their queue and their link do.

    Examples
    --------
    netctrl certify hpcc --rtt 20us --N 4 --capacity 100Gbit
    netctrl certify hpcc --eta 98% --rtt 10us:20us --N 2:8 --capacity 100Gbit --json
    """
    return judged("hpcc", given(locals(), "where", "files"), where, (files or PageFiles()).files())
