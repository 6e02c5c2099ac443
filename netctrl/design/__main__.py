"""`python -m netctrl.design arc --N 50`: gains with a certificate, as a table, JSON, a Design file and a picture."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from netctrl.cli import (
    GOOD,
    PLOT_SUFFIXES,
    checked_plot,
    invocation,
    new_app,
    option,
    picture_file,
    report,
    run,
    say,
    workers,
    write_all,
)
from netctrl.errors import FileError, InvalidValue, NoAdmissibleDesign
from netctrl.units import (
    COUNT_TAKES,
    DURATION_TAKES,
    RATE_TAKES,
    SIZE_TAKES,
    parse_count,
    parse_duration,
    parse_range,
    parse_rate,
    parse_size,
    unit_scale,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from netctrl.model.artifact import AnyDesign, ArcDesign, PacingDesign
    from netctrl.model.identified import IdentifiedModel
    from netctrl.runtime.pacing_replay import PacingReplay

__all__ = ["main"]

FLOWS_TAKES = "a number of flows above 0, as in 50, or a range low:high, as in 50:400"
RTT_TAKES = "a round-trip time above 0 with its unit (ns, us, ms, s, min), as in 500ms, or a range, as in 60ms:500ms"
UTILIZATION_TAKES = "a number in (0, 1], as in 0.98"
QUEUE_TAKES = "a number of packets of at least 0, as in 0, or a size with its unit, as in 50kB"
MU_TAKES = "a weight above 0 (lambda·interval²) of squared backlogs; without it, links bring their own, as in 1"
HORIZON_TAKES = "auto, exact, or a whole number of samples, as in 24"
JOBS_TAKES = "a number of threads of at least 1, or -1: one for each core"
MYOPIC_TAKES = "auto (static gains) or the length of its filters"
TRACK_TAKES = "an output, as in delay, or weights of outputs, as in delay=1,jitter=0.5; several with several inputs"
LIMITS_TAKES = "least:greatest input, as in 0Mbit:95Mbit, or numbers in the model's unit"
REFERENCE_TAKES = "all outputs, as in delay=0.46,jitter=0.043; several with semicolons"
REPLAY_TAKES = "CSV of measured RTTs, time_s,rtt_s[,delivered_bytes,in_flight_bytes,lost_bytes]: run the law over it"
ALPHA_TAKES = "a gain above 0 per packet, as in 1.42e-5"

# Argument of netctrl.arc -> option, where the two differ by more than dashes.
OPTIONS = {
    "flows": "--N",
    "fragile_flows": "--fragile-N",
    "output": "-o",
    "law": "the law",
    "n_jobs": "--jobs",
    "references": "--reference",
    "rate_bit_per_s": "--rate",
    "bottleneck_bit_per_s": "--bottleneck",
    "rtt_s": "--rtt",
    "bdp_bytes": "--bdp",
    "packet_size_bytes": "--packet-size",
    "window_bytes": "--window",
    "past_rtts": "--p",
    "past_rates": "--q",
    "period_s": "--period",
    "max_rate_bit_per_s": "--max-rate",
}

app = new_app("python -m netctrl.design", "Control laws for congestion management, with certificates.")


@app.command(help="ARC: AQM gains for TCP on one congested link, exact for the delay and for the epoch.")
def arc(
    *,
    flows: Annotated[str, option("FLOWS", FLOWS_TAKES, "--N")],
    capacity: Annotated[str, option("RATE", f"link capacity: {RATE_TAKES}")] = "10Mbit",
    packet_size: Annotated[str, option("SIZE", SIZE_TAKES)] = "1000",
    rtt: Annotated[str, option("TIME", RTT_TAKES)] = "500ms",
    utilization: Annotated[str, option("GAMMA", f"target utilization: {UTILIZATION_TAKES}")] = "0.98",
    epoch: Annotated[str, option("TIME", f"how often the law acts: {DURATION_TAKES}")] = "1s",
    target_queue: Annotated[str, option("QUEUE", QUEUE_TAKES)] = "0",
    plant: Annotated[str, option("PLANT", "paper (eq. 7), noq (no queue stands) or phys (a queue stands)")] = "paper",
    alpha: Annotated[str | None, option("GAIN", f"analyse this instead of designing one: {ALPHA_TAKES}")] = None,
    accept: Annotated[
        str, option("STATUS", "admissible, or stable: also a gain slower than the rule asks")
    ] = "admissible",
    fragile_flows: Annotated[str, option("FLOWS", "N_min of the minimum-stability check, eq. 9", "--fragile-N")] = "10",
    fragile_rtt: Annotated[str, option("TIME", "longest RTT of the minimum-stability check, eq. 9")] = "2s",
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None, option("FILE", "save the Design there (not with exit status 3)", "--output", "-o")
    ] = None,
    plot: Annotated[str | None, option("FILE", f"draw it there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.arc`, write what was asked for."""
    packet = _read("packet_size", packet_size, parse_size, SIZE_TAKES)
    arguments = {
        "flows": _read_range("flows", flows, parse_count, FLOWS_TAKES),
        "rtt_s": _read_range("rtt", rtt, parse_duration, RTT_TAKES),
        "capacity_bit_per_s": _read("capacity", capacity, parse_rate, RATE_TAKES),
        "packet_size_bytes": packet,
        "utilization": _read("utilization", utilization, parse_count, UTILIZATION_TAKES),
        "epoch_s": _read("epoch", epoch, parse_duration, DURATION_TAKES),
        "target_queue_packets": _read("target_queue", target_queue, lambda text: _queue(text, packet), QUEUE_TAKES),
        "plant": plant,
        "alpha_per_packet": None if alpha is None else _read("alpha", alpha, parse_count, ALPHA_TAKES),
        "accept": accept,
        "fragile_flows": _read("fragile_flows", fragile_flows, parse_count, COUNT_TAKES),
        "fragile_rtt_s": _read("fragile_rtt", fragile_rtt, parse_duration, DURATION_TAKES),
        "argv": invocation(),
    }
    picture = checked_plot(plot, output)

    import netctrl

    try:
        design, refused = netctrl.arc(**arguments), None
        if not design.certificate.stable:
            refused = NoAdmissibleDesign(design.certificate.warnings[0])
    except NoAdmissibleDesign as error:
        design, refused = error.design, error
    return _deliver(_Files(json, output, plot, picture), design, lambda: _with_map(design), refused)


@app.command(help="HFTraC: rates of a network's links from backlogs and rates, and the price of each architecture.")
def hftrac(
    *,
    network: Annotated[str, option("FILE", "node-link JSON with demands, or the name of one that comes with netctrl")],
    interval: Annotated[str, option("TIME", f"how often rates are set: {DURATION_TAKES}")] = "10ms",
    mu: Annotated[str | None, option("MU", MU_TAKES)] = None,
    architecture: Annotated[str, option("NAME", "god, centralized, coordinated or myopic")] = "coordinated",
    information_delay: Annotated[str | None, option("N", "round trip to a central controller, in samples")] = None,
    communication: Annotated[str, option("HOW", "out-of-band or in-band, of coordinated control")] = "out-of-band",
    horizon: Annotated[str, option("T", f"{HORIZON_TAKES}; of myopic control {MYOPIC_TAKES}")] = "auto",
    reach: Annotated[str | None, option("N", "links off the route that hear later than N samples take no part")] = None,
    capacity: Annotated[str | None, option("RATE", "of links for which the file gives none")] = None,
    jobs: Annotated[str, option("N", "threads of the localized synthesis, -1: all cores")] = "-1",
    dask: Annotated[str | None, option("ADDRESS", "its workers, by their scheduler: tcp://127.0.0.1:8786")] = None,
    compare: Annotated[bool, option("", "all four architectures side by side")] = False,
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the Design there", "--output", "-o")] = None,
    plot: Annotated[str | None, option("FILE", f"draw it there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.hftrac`, write what was asked for."""
    arguments = {
        "interval_s": _read("interval", interval, parse_duration, DURATION_TAKES),
        "mu": None if mu is None else _read("mu", mu, parse_count, MU_TAKES),
        "architecture": architecture,
        "information_delay": _read_samples("information_delay", information_delay),
        "communication": communication,
        "horizon": horizon if horizon in ("auto", "exact") else _read("horizon", horizon, int, HORIZON_TAKES),
        "reach": _read_samples("reach", reach),
        "compare": compare,
        "n_jobs": _read("jobs", jobs, int, JOBS_TAKES),
        "argv": invocation(),
    }
    rate = None if capacity is None else _read("capacity", capacity, parse_rate, RATE_TAKES)
    picture = checked_plot(plot, output)

    import netctrl
    from netctrl.datasets import network_path

    path = network_path(network)
    try:
        with workers(dask):
            design = netctrl.hftrac(netctrl.read_network(path, capacity=rate), inputs=[path], **arguments)
    except InvalidValue as error:
        if "." in error.argument or error.argument == "demands":  # a place in the network
            raise FileError(path, str(error)) from None
        raise
    return _deliver(_Files(json, output, plot, picture), design, design.plot)


@app.command(help="CONNET: the rate of other traffic, so that premium packets see the delay or jitter asked for.")
def connet(
    *,
    model: Annotated[str, option("FILE", "model file of netctrl identify, or the name of one that comes with netctrl")],
    method: Annotated[str, option("METHOD", "lqi (integral action), or paper (the published LQG)")] = "lqi",
    track: Annotated[str | None, option("WHAT", TRACK_TAKES)] = None,
    limits: Annotated[str | None, option("RANGE", f"{LIMITS_TAKES}; by default the range in the model file")] = None,
    input_weight: Annotated[str | None, option("WEIGHT", "the smaller, the faster: 0.01 (lqi), 2.3e-5 (paper)")] = None,
    reference: Annotated[str | None, option("VALUES", f"certify it: {REFERENCE_TAKES}")] = None,
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False,
    output: Annotated[
        str | None, option("FILE", "save the Design there (not with exit status 3)", "--output", "-o")
    ] = None,
    plot: Annotated[str | None, option("FILE", f"draw it there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.connet`, write what was asked for."""
    weight = None if input_weight is None else _read("input_weight", input_weight, parse_count, "a number above 0")
    picture = checked_plot(plot, output)

    import netctrl
    from netctrl.datasets import model_path

    path = model_path(model)
    found = netctrl.read_model(path)
    arguments = {
        "method": method,
        "track": None if track is None else _track(track, found),
        "limits": None if limits is None else _input_limits(limits, found),
        "input_weight": weight,
        "references": () if reference is None else [_values("references", each) for each in reference.split(";")],
        "argv": invocation(),
        "inputs": [path],
    }
    try:
        design, refused = netctrl.connet(found, **arguments), None
    except NoAdmissibleDesign as error:
        if error.design is None:
            raise
        design, refused = error.design, error
    return _deliver(_Files(json, output, plot, picture), design, design.plot, refused)


@app.command(help="MPCC: windows of data-centre senders from a switch's queue, without a solver.")
def mpcc(
    *,
    flows: Annotated[str, option("N", "flows through the bottleneck, as in 4", "--flows", "--N")],
    rate: Annotated[str, option("RATE", f"of each sender's link: {RATE_TAKES}")],
    rtt: Annotated[str, option("TIME", f"round trip without queues: {DURATION_TAKES}")],
    bdp: Annotated[str | None, option("SIZE", "greatest window; by default rate times round trip")] = None,
    packet_size: Annotated[str, option("SIZE", f"on the wire: {SIZE_TAKES}")] = "1080",
    window: Annotated[str | None, option("SIZE", "at which acknowledgements are counted; by default --bdp")] = None,
    bottleneck: Annotated[str | None, option("RATE", "of the bottleneck; by default --rate")] = None,
    horizon: Annotated[str, option("P", "acknowledgements ahead, as in 5")] = "5",
    queue_weight: Annotated[str, option("WEIGHT", "on squared queues")] = "1",
    window_weight: Annotated[str, option("WEIGHT", "on squared windows beside the fair one")] = "10",
    delayed: Annotated[bool, option("", "act on the queue that what is under way leads to")] = False,
    table: Annotated[str | None, option("RANGE", "store gains for numbers of flows, as in 1:1024")] = None,
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the Design there", "--output", "-o")] = None,
    plot: Annotated[str | None, option("FILE", f"draw it there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.mpcc`, write what was asked for."""
    whole = "a whole number, as in 4"
    arguments = {
        "flows": _read("flows", flows, int, whole),
        "rate_bit_per_s": _read("rate", rate, parse_rate, RATE_TAKES),
        "rtt_s": _read("rtt", rtt, parse_duration, DURATION_TAKES),
        "bdp_bytes": None if bdp is None else _read("bdp", bdp, parse_size, SIZE_TAKES),
        "packet_size_bytes": _read("packet_size", packet_size, parse_size, SIZE_TAKES),
        "window_bytes": None if window is None else _read("window", window, parse_size, SIZE_TAKES),
        "bottleneck_bit_per_s": None if bottleneck is None else _read("bottleneck", bottleneck, parse_rate, RATE_TAKES),
        "horizon": _read("horizon", horizon, int, whole),
        "queue_weight": _read("queue_weight", queue_weight, float, "a number above 0"),
        "window_weight": _read("window_weight", window_weight, float, "a number of at least 0"),
        "delayed": delayed,
        "table": None if table is None else _read_flows(table),
        "argv": invocation(),
    }
    picture = checked_plot(plot, output)

    import netctrl

    design = netctrl.mpcc(**arguments)
    return _deliver(_Files(json, output, plot, picture), design, design.plot)


@app.command(help="MPC pacing: a sender's rate from its round-trip times, as published, and to a target RTT.")
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
    replay: Annotated[str | None, option("FILE", REPLAY_TAKES)] = None,
    json: Annotated[bool, option("", "print the Design as one JSON object and nothing else")] = False,
    output: Annotated[str | None, option("FILE", "save the Design there", "--output", "-o")] = None,
    plot: Annotated[str | None, option("FILE", f"draw a map there ({', '.join(PLOT_SUFFIXES)})")] = None,
) -> int:
    """Parse what is text, call `netctrl.pacing`, write what was asked for; with a trace, what the law does on it."""
    whole, number = "a whole number, as in 5", "a number above 0, as in 100"
    arguments = {
        "mode": mode,
        "psi": _read("psi", psi, float, number),
        "xi": None if xi is None else _read("xi", xi, float, number),
        "past_rtts": _read("past_rtts", past_rtts, int, whole),
        "past_rates": _read("past_rates", past_rates, int, whole),
        "period_s": None if period is None else _read("period", period, parse_duration, DURATION_TAKES),
        "max_rate_bit_per_s": None if max_rate is None else _read("max_rate", max_rate, parse_rate, RATE_TAKES),
        "step": _read("step", step, float, number),
        "estimator": estimator,
        "guarded": not literal,
        "competitive": competitive,
        "rtt_s": _read("rtt", rtt, parse_duration, DURATION_TAKES),
        "bottleneck_bit_per_s": None if bottleneck is None else _read("bottleneck", bottleneck, parse_rate, RATE_TAKES),
        "argv": invocation(),
    }
    picture = checked_plot(plot, output)

    import netctrl

    design = netctrl.pacing(**arguments)
    replayed = None if replay is None else _replay(design, replay)
    files = _Files(json and replayed is None, output, plot, picture)
    if replayed is None:
        return _deliver(files, design, lambda: _with_pacing_map(design))
    if not json:
        _deliver(files, design, lambda: _with_pacing_map(design))
        return say("\n" + replayed.table())
    _write(files, design, lambda: _with_pacing_map(design))
    return say(replayed.to_json())


def _replay(design: PacingDesign, path: str) -> PacingReplay:
    from netctrl.runtime.pacing_replay import read_replay, replay

    return replay(design.law, read_replay(path, delivered=design.inputs.mode == "target-rtt"))


def _with_pacing_map(design: PacingDesign) -> Figure:
    from netctrl.design.pacing import pacing_map
    from netctrl.plotting import pacing_figure

    return pacing_figure(design, pacing_map(design) if design.inputs.mode == "paper" else None)


class _Files(NamedTuple):
    """Where a design goes."""

    json: bool
    output: str | None
    plot: str | None
    picture: str | None
    """Kind of the picture."""


def _deliver(
    files: _Files, design: AnyDesign, figure: Callable[[], Figure], refused: NoAdmissibleDesign | None = None
) -> int:
    """Write what was asked for and show the design; of one that is refused there is no Design file."""
    _write(files, design, figure, refused)
    say(design.to_json() if files.json else design_report(design))
    if refused is not None:
        raise refused
    return GOOD


def _write(
    files: _Files, design: AnyDesign, figure: Callable[[], Figure], refused: NoAdmissibleDesign | None = None
) -> None:
    wanted: dict[str, tuple[str, Callable[[], bytes]]] = {}
    kind = files.picture
    if files.plot is not None and kind is not None:
        wanted["plot"] = files.plot, lambda: picture_file(figure(), kind)
    if files.output is not None and refused is None:
        wanted["output"] = files.output, lambda: design.to_json().encode()
    write_all(wanted)


def _track(text: str, model: IdentifiedModel) -> list[Any]:
    """Names of outputs, a weight for each of them, or "name=weight" pairs, which are one combination."""
    parts = [part.strip() for part in text.split(",")]
    if all("=" in part for part in parts):
        weights = _values("track", text)
        if not set(weights) <= set(model.outputs):
            raise InvalidValue("track", text, f"{TRACK_TAKES}; there are {', '.join(model.outputs)}")
        return [weights.get(name, 0.0) for name in model.outputs]
    try:
        return [float(part) for part in parts]
    except ValueError:
        return parts


def _values(argument: str, text: str) -> dict[str, float]:
    pairs = [part.split("=") for part in text.split(",")]
    try:
        return {name.strip(): float(value) for name, value in pairs}
    except ValueError:
        raise InvalidValue(argument, text, REFERENCE_TAKES if argument == "references" else TRACK_TAKES) from None


def _input_limits(text: str, model: IdentifiedModel) -> list[tuple[float, float]]:
    """A range for each input, rates in the model's unit."""
    parts = text.split(",")
    if len(parts) != len(model.inputs):
        raise InvalidValue("limits", text, f"{LIMITS_TAKES}, for each of {', '.join(model.inputs)}")
    return [_input_range(part, unit) for part, unit in zip(parts, model.input_units, strict=True)]


def _input_range(text: str, unit: str) -> tuple[float, float]:
    scale = unit_scale(unit)

    def end(part: str) -> float:
        try:
            return float(part)
        except ValueError:
            # Without a unit in the model file: Mbit/s, as in the paper.
            return parse_rate(part, zero=True) / (1e6 if scale is None else scale)

    return _read("limits", text, lambda both: parse_range(both, end), LIMITS_TAKES)


def _read_samples(argument: str, text: str | None) -> int | None:
    return None if text is None else _read(argument, text, int, "a whole number of samples of at least 0, as in 2")


def _read(argument: str, text: str, parse: Callable[[str], Any], takes: str) -> Any:
    try:
        return parse(text)
    except ValueError:
        raise InvalidValue(argument, text, takes) from None


def _read_range(argument: str, text: str, parse: Callable[[str], float], takes: str) -> tuple[float, float]:
    low, high = _read(argument, text, lambda both: parse_range(both, parse), takes)
    if low > high:
        raise InvalidValue(argument, text, f"{takes}; this range is empty")
    return low, high


def _read_flows(text: str) -> tuple[int, int]:
    takes = "first and last number of flows, as in 1:1024"
    return _read("table", text, lambda both: parse_range(both, int), takes)


def _queue(text: str, packet_size_bytes: float) -> float:
    """A queue as packets: a bare number is packets already, 0 included; with a unit it is bytes."""
    if re.fullmatch(r"\s*(0+\.?0*|\.0+)\s*([kmg]i?)?b?\s*", text, re.IGNORECASE):
        return 0.0
    try:
        return parse_count(text)
    except ValueError:
        return parse_size(text) / packet_size_bytes


def _with_map(design: ArcDesign) -> Figure:
    from netctrl.design.arc import arc_stability_map
    from netctrl.plotting import arc_figure

    return arc_figure(design, arc_stability_map(design))


def design_report(design: AnyDesign) -> str:
    """The Design as a short table for people."""
    title, rows = design.summary()
    notes = [f"warning: {warning}" for warning in design.certificate.warnings]
    return report(f"{title}: {design.certificate.status.upper()}", rows, notes)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status."""
    return run(app, argv, OPTIONS)


if __name__ == "__main__":
    sys.exit(main())
