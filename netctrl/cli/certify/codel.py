"""`netctrl certify codel`, `fq_codel` and `cake`: the cycle of a flow in a queue that drops by a schedule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter

from netctrl.cli.certify.common import Asked, Files, judged
from netctrl.cli.certify.law_options import TARGET_TAKES
from netctrl.cli.certify.queues import without_gains
from netctrl.cli.options import TIME, given, option

_ECN = Annotated[bool, option("", "packets are marked and not dropped")]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Times:
    """Parameters of CoDel, as tc has them."""

    target_s: Annotated[float | None, TIME(TARGET_TAKES, default="5ms")] = None
    interval_s: Annotated[
        float | None, TIME("that a delay is above the target before the first drop", default="100ms")
    ] = None
    ecn: _ECN = False


def codel(where: Asked, files: Files | None = None, times: Times | None = None) -> int:
    """CoDel (RFC 8289), one queue for all flows, as Linux's codel; options have tc's names.

    Examples
    --------
    netctrl certify codel --rtt 5ms --N 1 --capacity 20Mbit
    netctrl certify codel --rtt 5ms:20ms --N 1 --capacity 20Mbit --target 10ms --json
    """
    return judged("codel", given(vars(times or Times())), where, without_gains(files))


def fq_codel(where: Asked, files: Files | None = None, times: Times | None = None) -> int:
    """FQ-CoDel (RFC 8290): a CoDel in a queue for each flow, which has its share of the rate; options have tc's names.

    Examples
    --------
    netctrl certify fq_codel --rtt 5ms:20ms --N 1:2 --capacity 50Mbit
    netctrl certify fq_codel --rtt 20ms --N 1 --capacity 20Mbit --sender linux-creno,linux-reno --utilization 90% --json
    """
    return judged("fq_codel", given(vars(times or Times())), where, without_gains(files))


def cake(
    where: Asked,
    files: Files | None = None,
    *,
    rtt_s: Annotated[float | None, TIME("the keyword rtt, CoDel's interval", "--interval", default="100ms")] = None,
    target_s: Annotated[float | None, TIME(TARGET_TAKES, default="a twentieth of --interval")] = None,
    ecn: _ECN = False,
) -> int:
    """CAKE: a COBALT in a queue for each flow; --capacity is its bandwidth, --interval its keyword rtt.

    Examples
    --------
    netctrl certify cake --rtt 10ms:20ms --N 1:2 --capacity 50Mbit
    netctrl certify cake --rtt 300ms --N 1 --capacity 20Mbit --interval 1s --json
    """
    return judged("cake", given(locals(), "where", "files"), where, without_gains(files))
