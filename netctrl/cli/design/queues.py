"""`netctrl design pie`, `docsis-pie`, `pi2`, `dualpi2`, `red`, `wred`, `codel`, `fq_codel`, `cake` and `ecn`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from netctrl.cli.app import GOOD, invocation
from netctrl.cli.certify.common import SHARE, SHARE_TAKES, Link, Where, engines_of
from netctrl.cli.certify.ecn import GAIN_TAKES, SENDER_GAIN
from netctrl.cli.certify.law_options import (
    BURST,
    BYTES,
    GAIN,
    HZ,
    HZ_TAKES,
    TARGET_TAKES,
    TC_GAIN,
    TUPDATE_TAKES,
    TwoQueues,
)
from netctrl.cli.design.common import Wanted, call, deliver, design_report
from netctrl.cli.options import TIME, given, kind, option
from netctrl.core.errors import InvalidValue
from netctrl.core.names import CheckName
from netctrl.core.units import DURATION_TAKES, SIZE_TAKES, parse_count

if TYPE_CHECKING:
    from netctrl.design.queue.record import QueueDesign

_ALPHA = Annotated[float | None, GAIN("with --objective margin: on the delay's error [1/s]")]
_MARGIN_TAKES = "a number above 0 and at most 1.8, as in 0.667, which is 6 dB or 37 degrees"
_CHECK_TAKES = (
    "figures beside those of the shipped gains, in fluid, packet or kernel; several with commas; by default fluid"
)
_MARGIN = kind("NUMBER", parse_count, _MARGIN_TAKES)
_ECN = Annotated[bool, option("", "packets are marked instead of dropped")]
_OBJECTIVE = (
    "figures: what users feel on packets, or the shipped gains where these are no worse, the default with --p99, "
    "--utilization or --step; speed: greatest alpha, or steepest line, with --disk-margin, else the default; margin: "
    "beta of the greatest disk margin at --alpha"
)


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Feeling:
    """What users are to feel: arguments of `netctrl.queue_design`."""

    p99_s: Annotated[
        float | None, TIME(f"99th percentile of the queueing delay, at most: {DURATION_TAKES}", "--p99")
    ] = None
    utilization: Annotated[float | None, SHARE(f"of the link, at least: {SHARE_TAKES}")] = None
    step_s: Annotated[
        float | None, TIME(f"time above two targets after a step of the load, at most: {DURATION_TAKES}", "--step")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Goal(Feeling):
    """What is sought."""

    objective: Annotated[str | None, option("WHAT", _OBJECTIVE)] = None
    disk_margin: Annotated[
        float | None, _MARGIN(f"disk margin kept at every point: {_MARGIN_TAKES} (0.667; with figures 0.353)")
    ] = None


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PiGoal(Goal):
    """What is sought, and how the law is compared with the shipped gains."""

    check: Annotated[str | CheckName | None, option("ENGINES", _CHECK_TAKES)] = None

    def engines(self) -> tuple[str, ...]:
        """Engines of the comparison; those beside packets where figures are sought."""
        asked = (self.p99_s, self.utilization, self.step_s) != (None, None, None)
        if self.objective == "figures" or (self.objective is None and asked):
            return tuple(name for name in engines_of(self.check) if self.check is not None and name != "packet")
        return engines_of(self.check)


def pie(
    where: Where,
    goal: PiGoal | None = None,
    wanted: Wanted | None = None,
    *,
    alpha: Annotated[
        float | None,
        TC_GAIN("with --objective margin: on the delay's error, in sixteenths of 1/s or as in 0.125Hz (2)"),
    ] = None,
    target_s: Annotated[float, TIME(TARGET_TAKES, default="15ms")] = 0.015,
    tupdate_s: Annotated[float, TIME(TUPDATE_TAKES, default="15ms")] = 0.015,
    hz: Annotated[int, HZ(HZ_TAKES, default="250")] = 250,
    rfc: Annotated[bool, option("", "real numbers, as in RFC 8033 and in ns-3, instead of Linux's sixteenths")] = False,
) -> int:
    """PIE's gains for a range of flows and round-trip times, in the sixteenths of 1/s that Linux takes.

    Examples
    --------
    netctrl design pie --rtt 20ms --N 4 --capacity 20Mbit
    netctrl design pie --rtt 10ms:40ms --N 5:20 --capacity 50Mbit --p99 25ms --step 2s
    """
    parameters = given(locals(), "where", "goal", "wanted", "rfc") | {"implementation": "rfc" if rfc else "linux"}
    return _designed("pie", parameters, where, goal or PiGoal(), wanted)


def docsis_pie(
    where: Where,
    goal: PiGoal | None = None,
    wanted: Wanted | None = None,
    *,
    alpha: _ALPHA = None,
    target_s: Annotated[float, TIME(TARGET_TAKES, "--latency-target", default="10ms")] = 0.01,
    tupdate_s: Annotated[float, TIME(TUPDATE_TAKES, "--interval", default="16ms")] = 0.016,
) -> int:
    """DOCSIS-PIE's gains A and B (RFC 8034) for a range of flows and round-trip times, in real numbers.

    Examples
    --------
    netctrl design docsis-pie --rtt 10ms:30ms --N 3:5 --capacity 20Mbit
    netctrl design docsis-pie --rtt 20ms --window 10 --latency-target 20ms --json
    """
    parameters = given(locals(), "where", "goal", "wanted")
    return _designed("docsis-pie", parameters, where, goal or PiGoal(), wanted)


def dualpi2(
    where: Where,
    goal: PiGoal | None = None,
    wanted: Wanted | None = None,
    *,
    alpha: _ALPHA = None,
    target_s: Annotated[float, TIME(TARGET_TAKES, default="15ms")] = 0.015,
    tupdate_s: Annotated[float, TIME(TUPDATE_TAKES, default="16ms")] = 0.016,
    queues: TwoQueues | None = None,
) -> int:
    """DualPI2's gains for a range of flows and round-trip times, in the steps of 1/256 1/s that tc sends.

    Examples
    --------
    netctrl design dualpi2 --rtt 20ms --N 10:20 --capacity 100Mbit
    netctrl design dualpi2 --rtt 100ms --window 50 -o dualpi2.json
    """
    parameters = given(locals(), "where", "goal", "wanted", "queues") | given(vars(queues or TwoQueues()))
    return _designed("dualpi2", parameters, where, goal or PiGoal(), wanted)


def pi2(
    where: Where,
    goal: PiGoal | None = None,
    wanted: Wanted | None = None,
    *,
    alpha: _ALPHA = None,
    target_s: Annotated[float, TIME(TARGET_TAKES, default="15ms")] = 0.015,
    tupdate_s: Annotated[float, TIME(TUPDATE_TAKES, default="16ms")] = 0.016,
) -> int:
    """PI2's gains for a range of flows and round-trip times, in real numbers.

    Examples
    --------
    netctrl design pi2 --rtt 20ms --N 10:20 --capacity 100Mbit
    netctrl design pi2 --rtt 50ms --window 8 --objective margin --alpha 0.16
    """
    parameters = given(locals(), "where", "goal", "wanted")
    return _designed("pi2", parameters, where, goal or PiGoal(), wanted)


def red(
    where: Where,
    goal: Goal | None = None,
    wanted: Wanted | None = None,
    *,
    min_bytes: Annotated[int, BYTES(f"lower threshold of the average: {SIZE_TAKES}")],
    limit_bytes: Annotated[int | None, BYTES("longest queue; by default 4 times the upper threshold")] = None,
    average_packet: Annotated[
        int, BYTES("average packet, by which the weight follows from --burst", "--avpkt", default="1000")
    ] = 1000,
    burst: Annotated[int | None, BURST("burst in packets; by default 5 --min/(3 --avpkt)")] = None,
    ecn: _ECN = False,
) -> int:
    """RED's upper threshold and probability for a range of loads: the steepest line that Linux keeps stable.

    Examples
    --------
    netctrl design red --min 30kB --rtt 50ms --N 15:20 --capacity 20Mbit --ecn
    netctrl design red --min 30kB --rtt 50ms --N 15:20 --capacity 20Mbit --ecn --p99 60ms
    """
    parameters = given(locals(), "where", "goal", "wanted")
    return _designed("red", parameters, where, goal or Goal(), wanted)


def wred(
    where: Where,
    goal: Goal | None = None,
    wanted: Wanted | None = None,
    *,
    min_bytes: Annotated[int, BYTES(f"lower threshold of the queue: {SIZE_TAKES}")],
    ecn: _ECN = False,
) -> int:
    """WRED's upper threshold and probability for a range of loads: the steepest line that a switch keeps stable.

    Examples
    --------
    netctrl design wred --min 100kB --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp --ecn
    netctrl design wred --min 30kB --rtt 50us --N 8 --capacity 10Gbit --json
    """
    parameters = given(locals(), "where", "goal", "wanted")
    return _designed("wred", parameters, where, goal or Goal(), wanted)


def codel(where: Where, goal: Feeling | None = None, wanted: Wanted | None = None, *, ecn: _ECN = False) -> int:
    """CoDel's target and interval for a range of loads, or the shipped ones where no others are better on packets.

    Examples
    --------
    netctrl design codel --rtt 20ms --N 16 --capacity 2Mbit
    netctrl design codel --rtt 50ms --N 4 --capacity 5Mbit --p99 30ms --json
    """
    return _designed("codel", {"ecn": True} if ecn else {}, where, goal or Feeling(), wanted)


def fq_codel(where: Where, goal: Feeling | None = None, wanted: Wanted | None = None, *, ecn: _ECN = False) -> int:
    """FQ-CoDel's target and interval, and with a rate its quantum, for slow and long links; or the shipped ones.

    Examples
    --------
    netctrl design fq_codel --rtt 50ms --N 1:4 --capacity 2Mbit
    netctrl design fq_codel --rtt 100ms --N 1 --capacity 10Mbit --utilization 97%
    """
    return _designed("fq_codel", {"ecn": True} if ecn else {}, where, goal or Feeling(), wanted)


def cake(where: Where, goal: Feeling | None = None, wanted: Wanted | None = None, *, ecn: _ECN = False) -> int:
    """CAKE's keyword rtt beside its bandwidth, which is --capacity; or the shipped one. Hosts aren't modelled.

    Examples
    --------
    netctrl design cake --rtt 20ms:60ms --N 1:4 --capacity 2Mbit
    netctrl design cake --rtt 100ms --N 1 --capacity 10Mbit --utilization 95% -o cake.json
    """
    return _designed("cake", {"ecn": True} if ecn else {}, where, goal or Feeling(), wanted)


def _tc_line(design: QueueDesign) -> str:
    """The design with the line of tc that sets it."""
    from netctrl.linux.export.queue_law import tc_arguments

    rates = design.inputs.box.capacity_bit_per_s
    arguments = tc_arguments(design.law.name, design.law.parameters, None if rates is None else rates[0])
    return design_report(design, [("tc", f"tc qdisc replace dev DEV root {' '.join(arguments)}")])


def _designed(law: Any, parameters: Mapping[str, Any], where: Where, goal: Feeling, wanted: Wanted | None) -> int:
    """A design, beside the shipped gains where it has a goal for PI laws: written, printed, and its exit status."""
    arguments = {**given(vars(where)), **given(vars(goal), "check")}
    engines = goal.engines() if isinstance(goal, PiGoal) else ()
    failed: list[InvalidValue] = []
    if "alpha" in parameters and arguments.get("objective") != "margin":
        raise InvalidValue("alpha", parameters["alpha"], "a value only with --objective margin")

    def made() -> QueueDesign:
        import netctrl

        design = netctrl.queue_design(law, parameters=parameters, argv=invocation(), **arguments)
        if not engines:
            return design
        design, missing = _beside_shipped(design, parameters, engines)
        failed.extend(missing if isinstance(goal, PiGoal) and goal.check is not None else [])
        return design

    status = deliver(wanted, made, table=None if isinstance(goal, Goal) else _tc_line)
    if status == GOOD and failed:
        raise failed[0]
    return status


def _beside_shipped(
    design: QueueDesign, parameters: Mapping[str, Any], engines: tuple[str, ...]
) -> tuple[QueueDesign, list[InvalidValue]]:
    """The design with its figures beside those of the shipped gains, and why an engine has none."""
    import msgspec

    from netctrl.checks.gains import gains_figures
    from netctrl.core.register import CERTIFIED

    make, law = CERTIFIED[design.law.name], design.law
    others = {name: value for name, value in parameters.items() if name != "alpha"}
    found, failed = [], []
    for engine in engines:
        try:
            found.append([gains_figures(make(**each), design.inputs.box, engine) for each in (law.parameters, others)])
        except InvalidValue as error:
            failed.append(error)
    ours, shipped = (tuple(each for both in found for each in both[which]) for which in (0, 1))
    before = design.certificate
    proof = msgspec.structs.replace(before, figures=before.figures + ours, shipped=before.shipped + shipped)
    return msgspec.structs.replace(design, certificate=proof), failed


_UNITS = (
    "bytes (switches, Linux's and ns-3's RED; in steps of a packet), packets (ns-3's RED) or time (thresholds of "
    "Linux's CoDel and DualPI2, and of ns-3's CoDel; in steps of 1 us)"
)


def ecn(
    where: Link,
    wanted: Wanted | None = None,
    *,
    gain: Annotated[
        float | None, SENDER_GAIN(f"of the senders' average of marks: {GAIN_TAKES}", "--g", default="1/16")
    ] = None,
    unit: Annotated[str | None, option("UNIT", f"of the threshold: {_UNITS}", default="bytes")] = None,
    p99_s: Annotated[float | None, TIME(f"longest queueing delay, at most: {DURATION_TAKES}", "--p99")] = None,
) -> int:
    """Smallest threshold of ECN with which DCTCP senders keep a link busy, for a range of flows and round-trip times.

    Examples
    --------
    netctrl design ecn --rtt 100us --N 2:40 --capacity 10Gbit
    netctrl design ecn --rtt 50us:200us --N 1:20 --capacity 10Gbit --unit time --json
    """
    return deliver(wanted, call("ecn_design", given(locals(), "wanted", "where") | given(vars(where))))
