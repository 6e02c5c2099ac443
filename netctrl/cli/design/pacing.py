"""`netctrl design pacing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from netctrl.cli.app import invocation, option
from netctrl.cli.design.common import Wanted, deliver, design_report, read
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_duration,
    parse_rate,
    parse_size,
)

if TYPE_CHECKING:
    from netctrl.laws.pacing.replay import PacingReplay
    from netctrl.model.design.design import PacingDesign

__all__ = ["pacing"]

REPLAY_TAKES = "run the law over a CSV of measured RTTs: time_s,rtt_s[,delivered_bytes,in_flight_bytes,lost_bytes]"


def pacing(
    wanted: Wanted | None = None,
    *,
    mode: Annotated[str, option("MODE", "paper, or target-rtt, which does not need the bottleneck's rate")] = "paper",
    psi: Annotated[str, option("PSI", "weight of the predicted RTT's variance")] = "1",
    xi: Annotated[str | None, option("XI", "weight of the rate: 100 (paper), 1 (target-rtt)")] = None,
    past_rtts: Annotated[str, option("P", "number of past RTTs in the paper's model", "--p")] = "5",
    past_rates: Annotated[str, option("Q", "number of past rates in the paper's model", "--q")] = "1",
    period: Annotated[
        str | None, option("TIME", "shortest time between rate changes: 10ms (paper), 0.1ms (target-rtt)")
    ] = None,
    max_rate: Annotated[str | None, option("RATE", "rate cap R: 10Gbit (paper), 100Gbit (target-rtt)")] = None,
    step: Annotated[str, option("ALPHA", "step size of the estimator; below 2 with nlms")] = "0.5",
    estimator: Annotated[str, option("NAME", "nlms, or sgd as in the paper")] = "nlms",
    literal: Annotated[bool, option("", "exactly the paper's Algorithm 1, without guards")] = False,
    competitive: Annotated[
        bool, option("", "target-rtt: follow Cubic's window while other flows keep the queue filled")
    ] = False,
    rtt: Annotated[str, option("TIME", "RTT of the certificate")] = "10ms",
    bottleneck: Annotated[str | None, option("RATE", "bottleneck rate of the certificate; by default R")] = None,
    buffer: Annotated[
        str | None,
        option(
            "SIZE", "the bottleneck's buffer in the certificate: by default one bandwidth-delay product, at least 30kB"
        ),
    ] = None,
    flows: Annotated[str, option("FLOWS", "number of flows that share the bottleneck in the certificate", "--N")] = "1",
    replay: Annotated[str | None, option("FILE", REPLAY_TAKES)] = None,
) -> int:
    """MPC pacing sets a sender's rate from its round-trip times: the published law, or one with a target RTT.

    Examples
    --------
    netctrl design pacing --mode target-rtt --rtt 20ms --bottleneck 100Mbit
    netctrl design pacing --accept stable -o pacing.json --plot pacing.png
    """
    whole, number = "a whole number, as in 5", "a number above 0, as in 100"
    arguments: dict[str, Any] = {
        "mode": mode,
        "psi": read("psi", psi, float, number),
        "xi": None if xi is None else read("xi", xi, float, number),
        "past_rtts": read("past_rtts", past_rtts, int, whole),
        "past_rates": read("past_rates", past_rates, int, whole),
        "period_s": None if period is None else read("period", period, parse_duration, DURATION_TAKES),
        "max_rate_bit_per_s": None if max_rate is None else read("max_rate", max_rate, parse_rate, RATE_TAKES),
        "step": read("step", step, float, number),
        "estimator": estimator,
        "guarded": not literal,
        "competitive": competitive,
        "rtt_s": read("rtt", rtt, parse_duration, DURATION_TAKES),
        "bottleneck_bit_per_s": None if bottleneck is None else read("bottleneck", bottleneck, parse_rate, RATE_TAKES),
        "buffer_bytes": None if buffer is None else read("buffer", buffer, parse_size, SIZE_TAKES),
        "flows": read("flows", flows, int, whole),
        "argv": invocation(),
    }

    def made() -> PacingDesign:
        import netctrl

        return netctrl.pacing(**arguments)

    if replay is None:
        return deliver(wanted, made)

    def table(design: PacingDesign) -> str:
        return f"{design_report(design)}\n{_replay(design, replay).table()}"

    return deliver(wanted, made, table=table, json=lambda design: _replay(design, replay).to_json())


def _replay(design: PacingDesign, path: str) -> PacingReplay:
    from netctrl.laws.pacing.replay import read_replay, replay

    return replay(design.law, read_replay(path, delivered=design.inputs.mode == "target-rtt"))
