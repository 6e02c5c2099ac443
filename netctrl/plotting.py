"""Records to matplotlib figures. Figures are made without pyplot: nothing global changes and no window opens."""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import cycle
from typing import Any, cast

import numpy as np
from matplotlib import colormaps
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm, Normalize
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter

from netctrl.errors import InvalidValue
from netctrl.frequency.loop import phase_lag, response
from netctrl.frequency.margins import Margins, margins
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.artifact import ArcDesign, ConnetDesign, HftracDesign
from netctrl.model.fabric_result import SIZE_BINS, FabricResult
from netctrl.model.fit import IdentificationResult
from netctrl.model.gain import FirGain, MyopicGain, StaticGain
from netctrl.model.identified import IdentifiedModel
from netctrl.model.loop import DelayLoop
from netctrl.model.network_result import NetworkResult
from netctrl.model.simulation import SimulationResult
from netctrl.runtime.tracking import start_tracking, step_tracking
from netctrl.units import BITS_PER_BYTE

__all__ = [
    "arc_figure",
    "bode",
    "draw",
    "fabric_figure",
    "identification_figure",
    "model_figure",
    "network_figure",
    "network_series",
    "stability_map",
    "time_series",
    "tracking_figure",
]

# Dark to light, so that they also differ without colour.
_CLASSES = (
    ("unstable", "#c0504d"),
    ("stable, GM < 6 dB or PM < 30°", "#f6b26b"),
    ("admissible", "#6aa84f"),
    ("stable, slow: PM > 60°", "#d9e8f5"),
)
_Shapes = dict[str, dict[str, Any]]  # marker -> its style
_INK, _ACCENT = "#222222", "#1f4e9c"
_FAINTEST = 1e-6  # part of a unit that is still drawn

# Where the ARC paper designs (section IV) and what it checks eq. (9) at: flows, RTT [s].
_PAPER_POINTS = {"paper's design point": (50.0, 0.5), "paper's fragile point": (10.0, 2.0)}


class _Shown(Figure):
    """A Figure that Jupyter shows as a picture also without pyplot's inline backend."""

    def _repr_png_(self) -> bytes:
        content = io.BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def draw(record: Any, **options: Any) -> Figure:
    """The figure of one record: Bode for a DelayLoop or an ArcDesign, a map for a StabilityMap, else series in time."""
    if isinstance(record, ArcDesign):
        return bode(record.certificate.loop, title=_title(record), **options)
    if isinstance(record, HftracDesign):
        return network_figure(record, **options)
    if isinstance(record, ConnetDesign):
        return tracking_figure(record, **options)
    if isinstance(record, DelayLoop):
        return bode(record, **options)
    if isinstance(record, StabilityMap):
        return stability_map(record, **options)
    if isinstance(record, SimulationResult):
        return time_series({record.simulator: record}, **options)
    if isinstance(record, NetworkResult):
        return network_series(record, **options)
    if isinstance(record, IdentificationResult):
        return identification_figure(record, **options)
    if isinstance(record, IdentifiedModel):
        return model_figure(record, **options)
    if isinstance(record, FabricResult):
        return fabric_figure({str(type(record.scenario.scheme).__struct_config__.tag): record}, **options)
    known = (
        "ArcDesign, HftracDesign, ConnetDesign, DelayLoop, StabilityMap, SimulationResult, NetworkResult, "
        "IdentificationResult, IdentifiedModel, FabricResult"
    )
    raise InvalidValue("record", type(record).__name__, f"one of {known}")


def bode(loop: DelayLoop, *, title: str = "") -> Figure:
    """Magnitude [dB] and unwrapped phase [degrees] of an open loop, with both margins drawn and labelled."""
    figure = _Shown(figsize=(6.4, 5.4), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    _draw_bode(above, below, loop)
    figure.suptitle(title, fontsize=11)
    return figure


def stability_map(map_: StabilityMap, *, marks: dict[str, tuple[float, float]] | None = None) -> Figure:
    """Classes of a StabilityMap; `marks` names further points (flows, RTT in seconds)."""
    figure = _Shown(figsize=(6.4, 5.4), layout="constrained")
    axes = figure.subplots()
    _legend(axes, _draw_map(axes, map_, marks or {}))
    return figure


def arc_figure(design: ArcDesign, map_: StabilityMap) -> Figure:
    """Bode plot and stability map of an ARC design side by side: what `--plot` writes."""
    figure = _Shown(figsize=(12.0, 5.6), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.0, 1.05)))
    above, below = left.subplots(2, 1, sharex=True)
    _draw_bode(above, below, design.certificate.loop)
    axes = right.subplots()
    point = design.certificate.operating_point
    entries = _draw_map(axes, map_, {"this design": (point.flows, point.rtt_s)})
    box = design.certificate.box
    if box is not None:
        (few, many), (short, long) = design.inputs.flows, design.inputs.rtt_s
        axes.plot([few, many, many, few, few], [short, short, long, long, short], color=_INK, lw=1.6)
    rate = point.rate_packet_per_s
    edge = map_.rtt_s * rate / np.sqrt(2.0)
    axes.plot(edge, map_.rtt_s, color=_INK, ls="--", lw=1.1)
    entries["p0 = 1: right of it TCP's model fails"] = Line2D([], [], color=_INK, ls="--", lw=1.1)
    if box is not None:
        entries["the box asked for"] = Line2D([], [], color=_INK, lw=1.6)
    _legend(axes, entries)
    figure.suptitle(_title(design), fontsize=12)
    return figure


def network_figure(design: HftracDesign, *, link: str | None = None) -> Figure:
    """The network with each link's gain on its own backlog, and who does something about a disturbance at one link.

    `link` is the id of that link; by default the one to which the others respond most.
    """
    law, names = design.law, design.law.links
    own, others = np.zeros(len(names)), np.zeros(len(names))
    for i in range(len(names)):  # one at a time: all together fill the memory where links are many
        size = np.abs(_reactions(design, i))
        own[i], others[i] = size[i, 0], np.delete(size, i, axis=0).sum()
    if link is None:
        row = int(np.argmax(others))
    elif link in names:
        row = names.index(link)
    else:
        raise InvalidValue("link", link, f"one of {', '.join(names[:20])}")
    figure = _Shown(figsize=(12.0, 5.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    _draw_network(left, design, own)
    size = np.abs(_reactions(design, row))
    responding = np.argsort(-size.max(axis=1), kind="stable")[: min(40, int(np.count_nonzero(size.any(axis=1))))]
    scale, colours = LogNorm(_FAINTEST, 1.0), colormaps["magma_r"].with_extremes(under="white", bad="white")
    image = right.imshow(size[responding], aspect="auto", norm=scale, cmap=colours, interpolation="nearest")
    right.set_yticks(range(len(responding)), [names[i] for i in responding], fontsize=7)
    right.set_xlabel("samples after the disturbance" if not isinstance(law, MyopicGain) else "on backlog, on rate")
    right.set_title(f"magnitude of what each link sends for a unit in the buffer of {names[row]}", fontsize=10)
    figure.colorbar(image, ax=right, shrink=0.8)
    figure.suptitle(design.summary()[0], fontsize=11)
    return figure


def _reactions(design: HftracDesign, row: int) -> np.ndarray:
    """(N, T) commanded rates of all links after a unit at t = 0 in the buffer of link `row`."""
    law = design.law
    N = len(law.links)
    if isinstance(law, FirGain):
        columns = law.columns[row]
        answer = np.zeros((N, columns.u.shape[2]))
        answer[columns.links] = columns.u[0]
        return answer
    if isinstance(law, MyopicGain):
        answer = np.zeros((N, 2))
        answer[row] = law.backlog_gain[row], law.rate_gain[row]
        return answer
    if isinstance(law, StaticGain):
        return law.gain[:, [int(np.sum(law.delay + 1)) + row]]
    column = law.columns[row]
    place = int(np.sum(law.delay[column.links] + 1)) + int(np.flatnonzero(column.links == row)[0])
    answer = np.zeros((N, len(column.gains)))
    answer[column.links] = np.array([gain[:, place] for gain in column.gains]).T
    return answer


def _draw_network(axes: Axes, design: HftracDesign, gains: np.ndarray) -> None:
    """Nodes and arrows; the width of a link is its load, the colour its gain."""
    network, load = design.inputs.network, design.certificate.nominal_rate
    place = {node.id: node.pos for node in network.nodes if node.pos is not None}
    if len(place) < len(network.nodes):
        import networkx

        place = networkx.kamada_kawai_layout(network.to_networkx().to_undirected())
    span = np.ptp(list(place.values()), axis=0)
    beside: dict[str, list[str]] = {name: [] for name in place}
    colours, scale = colormaps["viridis"], Normalize(float(gains.min()), float(gains.max()))
    known = dict(zip(design.law.links, gains, strict=True))
    for link in network.links:
        used = load.get(link.id, 0.0) / link.capacity
        colour = colours(scale(known[link.id])) if link.id in known else "#dddddd"
        style = {"arrowstyle": "-|>", "color": colour, "lw": 0.8 + 3.0 * used, "shrinkA": 7.0, "shrinkB": 7.0}
        style["connectionstyle"] = "arc3,rad=0.08"
        axes.annotate("", xy=place[link.target], xytext=place[link.source], arrowprops=style)
        beside[link.source].append(link.target)
        beside[link.target].append(link.source)
    for name, (x, y) in place.items():
        axes.plot(x, y, "o", color=_INK, ms=6)
        ways = np.array([place[other] for other in beside[name]]).reshape(-1, 2) - (x, y)
        offset = _aside(ways / np.where(span > 0.0, span, 1.0))
        label = axes.annotate(str(name), (x, y), xytext=offset, textcoords="offset points", fontsize=8)
        label.set(horizontalalignment="center", verticalalignment="center", parse_math=False)
    axes.margins(0.12)
    axes.set_axis_off()
    axes.set_title("gain on the own backlog (colour), load (width)", fontsize=10)
    axes.figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.8)


def _aside(ways: np.ndarray) -> tuple[float, float]:
    """Where a node's name stands [points]: in the widest gap between its links, which lead these ways."""
    angles = np.unique(np.arctan2(ways[:, 1], ways[:, 0])) if len(ways) else np.array([np.pi])
    gaps = np.diff(angles, append=angles[0] + 2.0 * np.pi)
    middle = float((angles + 0.5 * gaps)[np.argmax(gaps)])
    return 16.0 * np.cos(middle), 11.0 * np.sin(middle)


def tracking_figure(design: ConnetDesign, *, samples: int = 0) -> Figure:
    """What the loop around the model does: a step in the reference, from the middle of what can be attained, and poles.

    `samples` is the length of the step's picture; by default ten times the slowest pole's time.
    """
    law, proof = design.law, design.certificate
    slow = min(max(abs(complex(*pole)) for pole in proof.closed_loop_poles), 0.999)
    count = samples or int(min(max(10.0 / -np.log(max(slow, 0.05)), 20.0), 2000.0))
    figure = _Shown(figsize=(12.0, 5.6), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.4, 1.0)))
    panels = left.subplots(len(law.outputs) + 1, 1, sharex=True)
    gain = np.array(proof.plant_dc_gain)
    start, stop = (law.low + share * (law.high - law.low) for share in (0.4, 0.6))
    references = [law.output_offset + gain @ (each - law.input_offset) for each in (start, stop)]
    outputs, inputs = _step(design, references, count)
    time = law.interval_s * (np.arange(len(outputs)) - count)
    for row, (axes, name, unit) in enumerate(zip(panels, law.outputs, law.output_units, strict=False)):
        asked = np.where(time < 0.0, references[0][row], references[1][row])
        axes.step(time, asked, where="post", color=_INK, lw=1.0, ls="--", label="reference")
        axes.step(time, outputs[:, row], where="post", color=_ACCENT, lw=1.4, label="model")
        axes.set_ylabel(f"{name} [{unit}]" if unit else name)
    panels[0].legend(fontsize=8, loc="lower right")
    for name, unit, values in zip(law.inputs, law.input_units, inputs.T, strict=True):
        panels[-1].step(time, values, where="post", lw=1.4, label=f"{name} [{unit}]" if unit else name)
    panels[-1].set_ylabel(", ".join(law.inputs) + (f" [{law.input_units[0]}]" if law.input_units[0] else ""))
    panels[-1].set_xlabel("time [s]")
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_xlim(-0.1 * count * law.interval_s, count * law.interval_s)
    axes = right.subplots()
    _draw_poles(axes, {"closed loop": (proof.closed_loop_poles, "x"), "controller": (proof.controller_poles, "+")})
    figure.suptitle(design.summary()[0], fontsize=11).set_parse_math(False)
    return figure


def _step(design: ConnetDesign, references: list[np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """Outputs and inputs of the model under its law, `count` samples in one reference and as many in the other."""
    law, model = design.law, design.inputs.model
    x, state = np.zeros(len(model.A)), start_tracking(law)
    outputs, inputs = [], []
    settle = 3 * count
    for n in range(settle + 2 * count):
        v = state.applied - law.input_offset
        outputs.append(model.C @ x + model.D @ v + law.output_offset)
        inputs.append(state.applied)
        x = model.A @ x + model.B @ v
        state = step_tracking(law, state, outputs[-1], references[n >= settle + count])
    return np.array(outputs[settle:]), np.array(inputs[settle:])


def _draw_poles(axes: Axes, poles: Mapping[str, tuple[Any, str]]) -> None:
    """Poles by name, each with its marker, in the unit circle."""
    around = np.linspace(0.0, 2.0 * np.pi, 400)
    axes.plot(np.cos(around), np.sin(around), color=_INK, lw=0.8)
    for (name, (values, marker)), colour in zip(poles.items(), (_ACCENT, "#b45f06", "#6aa84f"), strict=False):
        real, imaginary = np.transpose(values)
        axes.plot(real, imaginary, marker, color=colour, ms=8, mew=1.6, label=name)
    axes.axhline(0.0, color="#dddddd", lw=0.6)
    axes.axvline(0.0, color="#dddddd", lw=0.6)
    axes.set_aspect("equal")
    axes.set_title("poles", fontsize=10)
    axes.legend(fontsize=8, loc="upper left")


def time_series(results: Mapping[str, SimulationResult], *, title: str = "") -> Figure:
    """Backlog, throughput, probability and loss of each link against time, results by name side by side.

    Lines are means over a few hundredths of the whole; the backlog's band is from its least to its greatest sample.
    """
    if not results:
        raise InvalidValue("results", dict(results), "one result by its name, or more")
    figure = _Shown(figsize=(9.0, 8.4), layout="constrained")
    panels = figure.subplots(4, 1, sharex=True)
    several = len(results) > 1
    for name, result in results.items():
        for row, link in enumerate(result.scenario.links):
            label = link.id if not several else name if len(result.scenario.links) == 1 else f"{name}: {link.id}"
            _draw_link(panels, result, row, label)
    for axes, what in zip(panels, ("backlog [kB]", "throughput [Mbit/s]", "probability", "loss [%]"), strict=True):
        axes.set_ylabel(what)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    panels[-1].set_xlabel("time [s]")
    if several or len(next(iter(results.values())).scenario.links) > 1:
        for text in panels[0].legend(fontsize=9, ncols=3, loc="upper left").get_texts():
            text.set_parse_math(False)
    first = next(iter(results.values()))
    shown = figure.suptitle(title or f"{first.scenario.name} ({', '.join(results)})", fontsize=11)
    shown.set_parse_math(False)  # a scenario's name is no formula
    return figure


def _draw_link(panels: Any, result: SimulationResult, row: int, label: str) -> None:
    width = max(1, -(-len(result.time_s) // 400))
    count = len(result.time_s) // width
    seconds = width * float(result.time_s[0])

    def blocks(series: np.ndarray) -> np.ndarray:
        return series[row, : count * width].reshape(count, width)

    t = seconds * (np.arange(count) + 0.5)
    q = blocks(result.backlog_bytes) / 1e3
    arrived, lost = (blocks(series).sum(axis=1) for series in (result.arrived_bytes, result.lost_bytes))
    (line,) = panels[0].plot(t, q.mean(axis=1), lw=1.2, label=label)
    panels[0].fill_between(t, q.min(axis=1), q.max(axis=1), color=line.get_color(), alpha=0.2, lw=0.0)
    panels[1].plot(t, blocks(result.departed_bytes).sum(axis=1) * BITS_PER_BYTE / seconds / 1e6, lw=1.2)
    panels[2].plot(t, blocks(result.probability).mean(axis=1), lw=1.2)
    panels[3].plot(t, 100.0 * np.divide(lost, arrived, out=np.zeros_like(lost), where=arrived > 0.0), lw=1.2)


def network_series(result: NetworkResult, *, samples: int = 400, title: str = "") -> Figure:
    """Backlog, rate and loss of each link in the first run against time: its last samples."""
    if not len(result.watched_time_s):
        raise InvalidValue("result", "no time series", "one that was made with watch=True")
    figure = _Shown(figsize=(9.0, 7.0), layout="constrained")
    panels = figure.subplots(3, 1, sharex=True)
    t = result.watched_time_s[-samples:]
    units = ((1e3, "backlog [kB]"), (1e6, "rate [Mbit/s]"), (1e3, "loss [kB a sample]"))
    for axes, series, (unit, what) in zip(panels, result.watched, units, strict=True):
        for name, values in zip(result.links, series, strict=True):
            axes.plot(t, values[-samples:] / unit, lw=1.2, label=name)
        axes.set_ylabel(what)
        axes.grid(color="#dddddd", lw=0.6)
        axes.set_ylim(bottom=0.0)
    panels[-1].set_xlabel("time [s]")
    if len(result.links) <= 12:
        for text in panels[0].legend(fontsize=9, ncols=6, loc="upper left").get_texts():
            text.set_parse_math(False)
    shown = figure.suptitle(title or f"{result.scenario.name} ({result.simulator}), first run", fontsize=11)
    shown.set_parse_math(False)
    return figure


def fabric_figure(results: Mapping[str, FabricResult], *, title: str = "") -> Figure:
    """Data centres side by side: slow-down against flow size (median and 95 %), and how long switch queues are.

    Where a result has watched ports, their queues against time as well.
    """
    watched = [name for name, result in results.items() if result.queue_bytes.size]
    figure = _Shown(figsize=(5.0 * (2 + bool(watched)), 4.4), layout="constrained")
    panels = figure.subplots(1, 2 + bool(watched))
    for place, (name, result) in enumerate(results.items()):
        colour = f"C{place % 10}"
        rows = result.slow_down_by_size()
        size = [min(each.high, SIZE_BINS[-2] * 3.0) / 1e3 for each in rows]
        panels[0].plot(size, [each.median for each in rows], "o-", ms=3, lw=1.2, color=colour, label=name)
        panels[0].plot(size, [each.percentile_95 for each in rows], "o--", ms=3, lw=1.0, color=colour)
        queue, share = result.queue_cdf()
        panels[1].step(queue / 1e3, share, where="post", lw=1.2, color=colour, label=name)
        if name in watched:
            t = 1e3 * result.scenario.watch.interval * np.arange(result.queue_bytes.shape[1])
            for port, values in zip(result.scenario.watch.ports, result.queue_bytes, strict=True):
                panels[2].plot(t, values / 1e3, lw=1.0, label=f"{name}, {port}")
    panels[0].set(xlabel="flows up to [kB]", ylabel="slow-down: median, 95 % dashed")
    if any(result.done.any() for result in results.values()):
        panels[0].set(xscale="log", yscale="log")
    panels[1].set(xlabel="queue of a switch port [kB]", ylabel="share of samples")
    if watched:
        panels[2].set(xlabel="time [ms]", ylabel="queue [kB]")
    for axes in panels:
        axes.grid(color="#dddddd", lw=0.6)
        if axes.get_legend_handles_labels()[0]:
            for text in axes.legend(fontsize=8).get_texts():
                text.set_parse_math(False)
    figure.suptitle(title or next(iter(results.values())).scenario.name, fontsize=11).set_parse_math(False)
    return figure


def identification_figure(result: IdentificationResult, *, samples: int = 400, title: str = "") -> Figure:
    """Measured and simulated outputs (the last samples, held out where there are such), singular values, poles."""
    figure = _Shown(figsize=(11.0, 6.4), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.5, 1.0)))
    tried = result.held_out is not None and result.held_out_simulated is not None
    trace = result.held_out if tried and result.held_out is not None else result.trace
    simulated = result.held_out_simulated if tried and result.held_out_simulated is not None else result.simulated
    vaf = result.how.held_out_vaf if tried and result.how.held_out_vaf is not None else result.how.vaf
    t = (np.arange(len(trace)) * trace.interval_s)[-samples:]
    panels = left.subplots(len(trace.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for k, (axes, name) in enumerate(zip(panels, trace.outputs, strict=True)):
        axes.plot(t, trace.output_values[-samples:, k], color="#999999", lw=1.0, label="measured")
        axes.plot(t, simulated[-samples:, k], color=_ACCENT, lw=1.3, label="simulated")
        axes.set_ylabel(name, parse_math=False)
        axes.set_title(f"VAF {vaf[k]:.2f} %{' (held out)' if tried else ''}", fontsize=9, loc="right")
        axes.grid(color="#dddddd", lw=0.6)
    panels[0].legend(fontsize=9, ncols=2, loc="upper left")
    panels[-1].set_xlabel("time [s]")
    above, below = right.subplots(2, 1, height_ratios=(1.0, 1.6))
    _draw_singular_values(above, result)
    _draw_cloud(below, result.poles, result.pole_draws)
    shown = figure.suptitle(title or result.table()[0], fontsize=11)
    shown.set_parse_math(False)  # a column's name is no formula
    return figure


def _draw_singular_values(axes: Axes, result: IdentificationResult) -> None:
    how = result.how
    values = how.singular_values[: max(2 * how.order + 4, 12)]
    places = np.arange(1, len(values) + 1)
    floor = max(float(values[0]) * 1e-16, np.finfo(float).tiny)
    axes.semilogy(places, np.maximum(values, floor), "o", color="#bbbbbb", ms=4)
    axes.semilogy(places[: how.order], np.maximum(values[: how.order], floor), "o", color=_ACCENT, ms=5)
    if result.order is not None and how.method == "cva":
        axes.axhline(result.order.noise_edge, color=_INK, ls="--", lw=0.9)
    axes.set_title(f"singular values, {how.order} taken", fontsize=9)
    axes.grid(color="#dddddd", lw=0.6)


def _draw_cloud(axes: Axes, poles: np.ndarray, draws: np.ndarray | None) -> None:
    """Crosses in the unit circle, each with the cloud of its bootstrap draws."""
    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    axes.plot(np.cos(angle), np.sin(angle), color=_INK, lw=0.8)
    if draws is not None:
        axes.plot(draws.real.ravel(), draws.imag.ravel(), ".", color="#f6b26b", ms=3, alpha=0.6)
    axes.plot(poles.real, poles.imag, "x", color=_ACCENT, ms=8, mew=1.8)
    axes.set_aspect("equal")
    axes.set_title("poles" if draws is None else f"poles, {len(draws)} bootstrap draws", fontsize=9)
    axes.grid(color="#dddddd", lw=0.6)


def model_figure(model: IdentifiedModel, *, title: str = "") -> Figure:
    """Responses of a model's outputs to a unit step of each input, and its poles."""
    figure = _Shown(figsize=(10.0, 4.8), layout="constrained")
    left, right = cast(tuple[SubFigure, SubFigure], figure.subfigures(1, 2, width_ratios=(1.4, 1.0)))
    poles = np.linalg.eigvals(model.A)
    slowest = float(np.clip(np.abs(poles).max(initial=0.0), 0.1, 0.999))
    steps = int(np.clip(5.0 / -np.log(slowest), 10, 2000))
    t = np.arange(steps) * model.dt
    panels = left.subplots(len(model.outputs), 1, sharex=True, squeeze=False)[:, 0]
    for j, name in enumerate(model.inputs):
        x, response = np.zeros(len(model.A)), np.empty((steps, len(model.C)))
        for k in range(steps):
            response[k] = model.C @ x + model.D[:, j]
            x = model.A @ x + model.B[:, j]
        for axes, values in zip(panels, response.T, strict=True):
            axes.step(t, values, where="post", lw=1.4, label=f"step of {name}")
    for axes, name in zip(panels, model.outputs, strict=True):
        axes.set_ylabel(name, parse_math=False)
        axes.grid(color="#dddddd", lw=0.6)
    for text in panels[0].legend(fontsize=9).get_texts():
        text.set_parse_math(False)
    panels[-1].set_xlabel("time [s]")
    _draw_cloud(right.subplots(), poles, None)
    figure.suptitle(title or f"{len(model.A)} states, every {model.dt:g} s", fontsize=11)
    return figure


def _title(design: ArcDesign) -> str:
    inputs, law = design.inputs, design.law
    capacity = f"{inputs.capacity_bit_per_s / 1e6:g} Mbit/s"
    gain = f"alpha = {law.alpha_per_packet:.4g} per packet, epoch {law.epoch_s:g} s, plant {inputs.plant}"
    return f"ARC on {capacity}: {gain}: {design.certificate.status}"


def _draw_bode(above: Axes, below: Axes, loop: DelayLoop) -> None:
    found = margins(loop)
    marked = [w for w in (found.crossover_rad_s, found.phase_crossover_rad_s) if np.isfinite(w)] or [1.0]
    w = np.geomspace(min(marked) / 15.0, max(marked) * 8.0, 600)
    size = 20.0 * np.log10(np.abs(response(loop, w)))
    phase = -np.degrees([phase_lag(loop, x) for x in w])
    above.semilogx(w, size, color=_ACCENT, lw=1.8)
    below.semilogx(w, phase, color=_ACCENT, lw=1.8)
    above.axhline(0.0, color=_INK, lw=0.8)
    below.axhline(-180.0, color=_INK, lw=0.8)
    above.set_ylabel("magnitude [dB]")
    below.set_ylabel("phase [degrees]")
    below.set_xlabel("frequency [rad/s]")
    below.set_yticks(np.arange(-360, int(phase.max()) + 20, 45))
    below.set_ylim(max(phase.min(), -400.0), phase.max() + 20.0)
    below.xaxis.set_major_formatter("{x:g}")
    for axes in (above, below):
        axes.grid(which="major", color="#dddddd", lw=0.6)
    _draw_margins(above, below, loop, found)


def _draw_margins(above: Axes, below: Axes, loop: DelayLoop, found: Margins) -> None:
    if np.isfinite(found.phase_crossover_rad_s):
        w = found.phase_crossover_rad_s
        _bracket(above, w, -found.gain_margin_db, 0.0, f"GM {found.gain_margin_db:.2f} dB\nat {w:.3g} rad/s", +1)
        below.axvline(w, color="#b45f06", ls=":", lw=1.2)
    if np.isfinite(found.crossover_rad_s):
        w = found.crossover_rad_s
        above.axvline(w, color="#b45f06", ls=":", lw=1.2)
        lag = -np.degrees(phase_lag(loop, w))
        _bracket(below, w, -180.0, lag, f"PM {found.phase_margin_deg:.2f}°\nat {w:.3g} rad/s", -1)


def _bracket(axes: Axes, x: float, low: float, high: float, text: str, side: int) -> None:
    """A bar from low to high at x with its text to the left (side −1) or to the right (+1)."""
    colour = "#b45f06"
    axes.axvline(x, color=colour, ls=":", lw=1.2)
    axes.plot([x, x], [low, high], color=colour, lw=3.2, solid_capstyle="butt")
    axes.annotate(
        text,
        (x, 0.5 * (low + high)),
        xytext=(8 * side, 0),
        textcoords="offset points",
        ha="left" if side > 0 else "right",
        va="center",
        color=colour,
        fontsize=10,
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
    )


def _draw_map(axes: Axes, map_: StabilityMap, marks: dict[str, tuple[float, float]]) -> dict[str, Artist]:
    """Draw the classes and the points; returns what the legend shows."""
    colours = ListedColormap([colour for _, colour in _CLASSES])
    axes.pcolormesh(
        map_.flows,
        map_.rtt_s,
        map_.classes,
        cmap=colours,
        norm=BoundaryNorm(np.arange(-0.5, 4.0), 4),
        shading="nearest",
        rasterized=True,
    )
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("flows N")
    axes.set_ylabel("round-trip time [s]")
    axes.set_title(f"alpha/epoch = {map_.gain:.4g} /s, {map_.title}", fontsize=10)
    entries: dict[str, Artist] = {name: Patch(color=colour) for name, colour in _CLASSES}
    styles: _Shapes = {"*": {"ms": 15, "mfc": _INK, "mec": "white"}, "D": {"ms": 8, "mfc": _INK, "mec": "white"}}
    rings: _Shapes = {
        "o": {"ms": 19, "mfc": "none", "mec": _INK, "mew": 1.6},
        "s": {"ms": 15, "mfc": "none", "mec": _INK, "mew": 1.6},
    }
    seen = {name: (flows, rtt) for name, (flows, rtt) in _PAPER_POINTS.items() if _inside(map_, flows, rtt)}
    for points, shapes in ((marks, styles), (seen, rings)):
        for (name, (flows, rtt)), (marker, style) in zip(points.items(), cycle(shapes.items()), strict=False):
            axes.plot([flows], [rtt], marker, ls="none", **style)
            shown = Line2D([], [], marker=marker, ls="none")
            shown.set(**(style | {"ms": min(style["ms"], 11)}))
            entries[f"{name}: {flows:g} flows, {rtt:g} s"] = shown
    axes.set_xlim(map_.flows[0], map_.flows[-1])
    axes.set_ylim(map_.rtt_s[0], map_.rtt_s[-1])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())
    return entries


def _inside(map_: StabilityMap, flows: float, rtt: float) -> bool:
    return bool(map_.flows[0] <= flows <= map_.flows[-1] and map_.rtt_s[0] <= rtt <= map_.rtt_s[-1])


def _legend(axes: Axes, entries: dict[str, Artist]) -> None:
    axes.legend(
        list(entries.values()),
        list(entries),
        fontsize=9,
        loc="upper center",
        bbox_to_anchor=(0.5, -0.12),
        ncols=2,
        frameon=False,
    )
