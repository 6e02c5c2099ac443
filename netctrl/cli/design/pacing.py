"""`design pacing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import (
    PLOT_SUFFIXES,
    checked_plot,
    invocation,
    option,
    say,
)
from netctrl.cli.design.common import Files, Json, Output, deliver, read, write
from netctrl.errors import InvalidValue, NoAdmissibleDesign, Status
from netctrl.units import (
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_duration,
    parse_rate,
    parse_size,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.laws.pacing.replay import PacingReplay
    from netctrl.model.design.design import PacingDesign

__all__ = ["pacing"]

ACCEPT_TAKES = "admissible, or stable: also what the certificate warns of, as of each of the paper's laws"
REPLAY_TAKES = "CSV of measured RTTs, time_s,rtt_s[,delivered_bytes,in_flight_bytes,lost_bytes]: run the law over it"


def pacing(
    *,
    mode: Annotated[str, option("MODE", "paper, or target-rtt, which need not know the bottleneck")] = "paper",
    psi: Annotated[str, option("PSI", "weight of the predicted RTT's variance")] = "1",
    xi: Annotated[str | None, option("XI", "weight of the rate: 100 (paper), 1 (target-rtt)")] = None,
    past_rtts: Annotated[str, option("P", "past RTTs of the paper's model", "--p")] = "5",
    past_rates: Annotated[str, option("Q", "past rates of the paper's model", "--q")] = "1",
    period: Annotated[str | None, option("TIME", "least time between rates: 10ms (paper), 0.1ms (target-rtt)")] = None,
    max_rate: Annotated[str | None, option("RATE", "R: 10Gbit (paper), 100Gbit (target-rtt)")] = None,
    step: Annotated[str, option("ALPHA", "of the estimate; below 2 with nlms")] = "0.5",
    estimator: Annotated[str, option("NAME", "nlms, or sgd as printed")] = "nlms",
    literal: Annotated[bool, option("", "Algorithm 1 to the letter, without the guards")] = False,
    competitive: Annotated[bool, option("", "target-rtt: follow Cubic's window where others keep a queue up")] = False,
    rtt: Annotated[str, option("TIME", "at which the certificate is computed")] = "10ms",
    bottleneck: Annotated[str | None, option("RATE", "at which the certificate is computed; by default R")] = None,
    buffer: Annotated[
        str | None, option("SIZE", "the bottleneck's, for the certificate: one bandwidth-delay product, 30kB at least")
    ] = None,
    flows: Annotated[str, option("FLOWS", "that share the bottleneck, for the certificate", "--N")] = "1",
    accept: Annotated[str, option("STATUS", ACCEPT_TAKES)] = "admissible",
    replay: Annotated[str | None, option("FILE", REPLAY_TAKES)] = None,
    json: Json = False,
    output: Output = None,
    plot: Annotated[str | None, option("FILE", f"draw a map there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """MPC pacing: a sender's rate from its round-trip times, as published, and to a target RTT."""
    whole, number = "a whole number, as in 5", "a number above 0, as in 100"
    arguments = {
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
    if accept not in ("admissible", "stable"):
        raise InvalidValue("accept", accept, "admissible or stable")
    picture = checked_plot(plot, output)

    import netctrl

    design = netctrl.pacing(**arguments)
    replayed = None if replay is None else _replay(design, replay)
    files = Files(json and replayed is None, output, plot, picture)
    if replayed is None:
        return deliver(files, design, lambda: _with_pacing_map(design), _refusal(design, accept))
    if not json:
        deliver(files, design, lambda: _with_pacing_map(design))
        return say("\n" + replayed.table())
    write(files, design, lambda: _with_pacing_map(design))
    return say(replayed.to_json())


def _refusal(design: PacingDesign, accept: str) -> NoAdmissibleDesign | None:
    proof = design.certificate
    enough = (Status.ADMISSIBLE, Status.STABLE) if accept == "stable" else (Status.ADMISSIBLE,)
    return None if proof.status in enough else NoAdmissibleDesign(proof.warnings[0], design)


def _replay(design: PacingDesign, path: str) -> PacingReplay:
    from netctrl.laws.pacing.replay import read_replay, replay

    return replay(design.law, read_replay(path, delivered=design.inputs.mode == "target-rtt"))


def _with_pacing_map(design: PacingDesign) -> Figure:
    from netctrl.design.pacing.design import pacing_map
    from netctrl.plotting import pacing_figure

    return pacing_figure(design, pacing_map(design) if design.inputs.mode == "paper" else None)
