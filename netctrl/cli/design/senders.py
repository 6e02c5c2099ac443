"""`netctrl design mpcc` and `pacing`: laws of senders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.certify.common import SHARE
from netctrl.cli.design.common import Wanted, call, deliver, design_report
from netctrl.cli.options import RATE, SIZE, TIME, given, kind, option
from netctrl.core.errors import InvalidValue
from netctrl.core.units import DURATION_TAKES, RATE_TAKES, SIZE_TAKES, parse_range

if TYPE_CHECKING:
    from netctrl.laws.pacing.replay import PacingReplay
    from netctrl.model.design.design import PacingDesign

_WHOLE_TAKES = "a whole number, as in 4"
_SENDERS, _ACKS = (kind(metavar, int, _WHOLE_TAKES) for metavar in ("N", "P"))
_PENALTY = kind("WEIGHT", float, "a number above 0")
_PENALTY_OR_0 = kind("WEIGHT", float, "a number of at least 0")
_TABLE = kind("RANGE", lambda text: parse_range(text, int), "first and last number of flows, as in 1:1024")


def mpcc(
    wanted: Wanted | None = None,
    *,
    flows: Annotated[int, _SENDERS("flows through the bottleneck, as in 4", "--flows", "--N")],
    rate_bit_per_s: Annotated[float, RATE(f"rate of each sender's link: {RATE_TAKES}")],
    rtt_s: Annotated[float, TIME(f"round-trip time without queues: {DURATION_TAKES}")],
    bdp_bytes: Annotated[float | None, SIZE("largest window; by default rate times round-trip time")] = None,
    packet_size_bytes: Annotated[float | None, SIZE(f"size on the wire: {SIZE_TAKES}", default="1080")] = None,
    window_bytes: Annotated[
        float | None, SIZE("window at which acknowledgements are counted; by default --bdp")
    ] = None,
    bottleneck_bit_per_s: Annotated[float | None, RATE("rate of the bottleneck; by default --rate")] = None,
    horizon: Annotated[int | None, _ACKS("horizon in acknowledgements, as in 5", default="5")] = None,
    queue_weight: Annotated[float | None, _PENALTY("weight of squared queues", default="1")] = None,
    window_weight: Annotated[
        float | None, _PENALTY_OR_0("weight of squared deviations from the fair window", default="10")
    ] = None,
    delayed: Annotated[bool, option("", "act on the queue predicted from the packets in flight")] = False,
    table: Annotated[
        tuple[int, int] | None, _TABLE("store gains for a range of numbers of flows, as in 1:1024")
    ] = None,
) -> int:
    """MPCC sets windows of data-centre senders from a switch's queue, without an online solver.

    Examples
    --------
    netctrl design mpcc --N 4 --rate 100Gbit --rtt 8us
    netctrl design mpcc --N 16 --rate 25Gbit --rtt 20us --delayed --table 1:64 -o mpcc.json
    """
    return deliver(wanted, call("mpcc", given(locals(), "wanted")))


REPLAY_TAKES = "run the law over a CSV of RTTs: time_s, rtt_s [, {delivered,in_flight,lost,marked}_bytes]"
_MANY_TAKES, _NUMBER_TAKES = "a whole number, as in 5", "a number above 0, as in 100"
_WORST_TAKES = "search the network with so much jitter that uses least in ten round trips, as in 1ms; some two minutes"
_BURSTS_TAKES = "most that others send at once in each round trip of this network, as in 30kB"
_QUEUE_TAKES = "longest queue that is to come in this network; by default the buffer"
_LOSSES_TAKES = "largest losses of each round trip in this network, as in 2%"
_WORST = {
    "jitter_s": "worst_network",
    "burst_bytes": "worst_bursts",
    "loss": "worst_losses",
    "most_queue_s": "worst_queue",
}
"""Arguments of `worst_network` -> options."""
_PAST_RTTS, _PAST_RATES, _FLOWS = (kind(metavar, int, _MANY_TAKES) for metavar in ("P", "Q", "FLOWS"))
_PSI, _XI, _STEP = (kind(metavar, float, _NUMBER_TAKES) for metavar in ("PSI", "XI", "ALPHA"))


def pacing(
    wanted: Wanted | None = None,
    *,
    mode: Annotated[
        str | None, option("MODE", "paper, or own-rate, which needs no bottleneck's rate", default="paper")
    ] = None,
    psi: Annotated[float | None, _PSI("weight of the predicted RTT's variance", default="1")] = None,
    xi: Annotated[float | None, _XI("weight of the rate", default="100")] = None,
    past_rtts: Annotated[int | None, _PAST_RTTS("number of past RTTs in the paper's model", "--p", default="5")] = None,
    past_rates: Annotated[
        int | None, _PAST_RATES("number of past rates in the paper's model", "--q", default="1")
    ] = None,
    period_s: Annotated[float | None, TIME("shortest time between rate changes", default="10ms")] = None,
    max_rate_bit_per_s: Annotated[float | None, RATE("rate cap R: 10Gbit (paper), 100Gbit (own-rate)")] = None,
    step: Annotated[float | None, _STEP("step size of the estimator; below 2 with nlms", default="0.5")] = None,
    estimator: Annotated[str | None, option("NAME", "nlms, or sgd as in the paper", default="nlms")] = None,
    literal: Annotated[bool, option("", "exactly the paper's Algorithm 1, without guards")] = False,
    rtt_s: Annotated[float | None, TIME("RTT of the certificate", default="10ms")] = None,
    bottleneck_bit_per_s: Annotated[float | None, RATE("bottleneck rate of the certificate; by default R")] = None,
    buffer_bytes: Annotated[
        float | None,
        SIZE("the bottleneck's buffer in the certificate: by default one bandwidth-delay product, at least 30kB"),
    ] = None,
    flows: Annotated[
        int | None, _FLOWS("number of flows that share the bottleneck in the certificate", "--N", default="1")
    ] = None,
    replay: Annotated[str | None, option("FILE", REPLAY_TAKES)] = None,
    worst_network: Annotated[float | None, TIME(_WORST_TAKES)] = None,
    worst_bursts: Annotated[float | None, SIZE(_BURSTS_TAKES)] = None,
    worst_losses: Annotated[float | None, SHARE(_LOSSES_TAKES)] = None,
    worst_queue: Annotated[float | None, TIME(_QUEUE_TAKES)] = None,
) -> int:
    """Pacing sets a sender's rate from its round-trip times: the published law, or one with a target of its own.

    Examples
    --------
    netctrl design pacing --mode own-rate --rtt 20ms --bottleneck 100Mbit --N 4
    netctrl design pacing --accept stable -o pacing.json --plot pacing.png
    """
    worst = {"jitter_s": worst_network, "burst_bytes": worst_bursts, "loss": worst_losses, "most_queue_s": worst_queue}
    asked = given(locals(), "wanted", "literal", "replay", "worst", *_WORST.values())
    made = call("pacing", asked | {"guarded": not literal})
    if replay is not None and worst_network is not None:
        raise InvalidValue("replay", replay, "nothing with --worst-network")
    worst = {name: value for name, value in worst.items() if value is not None}
    if worst_network is not None:
        return deliver(wanted, made, table=lambda design: f"{design_report(design)}\n{_worst(design, worst)}")
    for name, value in worst.items():
        raise InvalidValue(_WORST[name], value, "nothing without --worst-network")
    if replay is None:
        return deliver(wanted, made)

    def table(design: PacingDesign) -> str:
        return f"{design_report(design)}\n{_replay(design, replay).table()}"

    return deliver(wanted, made, table=table, json=lambda design: _replay(design, replay).to_json())


def _replay(design: PacingDesign, path: str) -> PacingReplay:
    from netctrl.laws.pacing.replay import read_replay, replay

    return replay(design.law, read_replay(path, delivered=design.inputs.mode != "paper"))


def _worst(design: PacingDesign, bounds: dict[str, Any]) -> str:
    from netctrl.checks.worst.search import worst_network

    try:
        return worst_network(design, **bounds).table()
    except InvalidValue as error:
        raise InvalidValue(_WORST.get(error.argument, error.argument), error.got, error.takes) from None
