"""Figures of networks: responses of links to disturbances."""

from __future__ import annotations

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure

from netctrl.core.errors import InvalidValue, optional_import
from netctrl.model.design.design import HftracDesign
from netctrl.model.law import FirGain, MyopicGain, StaticGain
from netctrl.plotting.style import INK, PALE, canvas

_FAINTEST = 1e-6  # part of a unit that is still drawn


def network_figure(design: HftracDesign, *, link: str | None = None) -> Figure:
    """Network with each link's gain on its own backlog, and the response of all links to a disturbance at one link.

    `link` is the id of that link; by default the one to which the others respond most.
    """
    law, names = design.law, design.law.links
    own, others = np.zeros(len(names)), np.zeros(len(names))
    for i in range(len(names)):  # one at a time: all at once need too much memory for many links
        size = np.abs(_reactions(design, i))
        own[i], others[i] = size[i, 0], np.delete(size, i, axis=0).sum()
    if link is None:
        row = int(np.argmax(others))
    elif link in names:
        row = names.index(link)
    else:
        raise InvalidValue("link", link, f"one of {', '.join(names[:20])}")
    figure = canvas(12.0, 5.4, design.summary()[0])
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
    return figure


def _reactions(design: HftracDesign, row: int) -> np.ndarray:
    """(N, T) commanded rates of all links after a unit disturbance at t = 0 in the buffer of link `row`."""
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
    """Nodes and arrows; a link's width shows its load, its colour the gain."""
    network, load = design.inputs.network, design.certificate.nominal_rate
    place = {node.id: node.pos for node in network.nodes if node.pos is not None}
    if len(place) < len(network.nodes):
        with optional_import():
            import networkx

        place = networkx.kamada_kawai_layout(network.to_networkx().to_undirected())
    span = np.ptp(list(place.values()), axis=0)
    beside: dict[str, list[str]] = {name: [] for name in place}
    colours, scale = colormaps["viridis"], Normalize(float(gains.min()), float(gains.max()))
    known = dict(zip(design.law.links, gains, strict=True))
    for link in network.links:
        used = load.get(link.id, 0.0) / link.capacity
        colour = colours(scale(known[link.id])) if link.id in known else PALE
        style = {"arrowstyle": "-|>", "color": colour, "lw": 0.8 + 3.0 * used, "shrinkA": 7.0, "shrinkB": 7.0}
        style["connectionstyle"] = "arc3,rad=0.08"
        axes.annotate("", xy=place[link.target], xytext=place[link.source], arrowprops=style)
        beside[link.source].append(link.target)
        beside[link.target].append(link.source)
    for name, (x, y) in place.items():
        axes.plot(x, y, "o", color=INK, ms=6)
        ways = np.array([place[other] for other in beside[name]]).reshape(-1, 2) - (x, y)
        offset = _aside(ways / np.where(span > 0.0, span, 1.0))
        label = axes.annotate(str(name), (x, y), xytext=offset, textcoords="offset points", fontsize=8)
        label.set(horizontalalignment="center", verticalalignment="center", parse_math=False)
    axes.margins(0.12)
    axes.set_axis_off()
    axes.set_title("gain on the own backlog (colour), load (width)", fontsize=10)
    axes.figure.colorbar(ScalarMappable(scale, colours), ax=axes, shrink=0.8)


def _aside(ways: np.ndarray) -> tuple[float, float]:
    """Offset of a node's name [points]: in the widest gap between its links, given the links' directions."""
    angles = np.unique(np.arctan2(ways[:, 1], ways[:, 0])) if len(ways) else np.array([np.pi])
    gaps = np.diff(angles, append=angles[0] + 2.0 * np.pi)
    middle = float((angles + 0.5 * gaps)[np.argmax(gaps)])
    return 16.0 * np.cos(middle), 11.0 * np.sin(middle)
