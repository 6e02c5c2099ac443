"""Maps of networks: each direction of a line beside the other, names where they fit; readable at hundreds of links."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Colormap, ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from netctrl.core.errors import checked_whole, optional_import
from netctrl.engines.what_if.record import case_name, case_text
from netctrl.plotting.style import INK, PALE, SECOND, canvas

if TYPE_CHECKING:
    from netctrl.engines.what_if.record import WhatIf
    from netctrl.model.network import Network

_OVER = "#c00020"
_MANY = 60
_CASES = 20


def places_of(network: Network) -> dict[str, tuple[float, float]]:
    """Place of each node in a drawing: its position, with degrees of longitude as long as those of latitude; else by
    springs."""
    place = {node.id: node.pos for node in network.nodes if node.pos is not None}
    if len(place) == len(network.nodes) and len(set(place.values())) > len(place) // 2:
        y = np.array([each[1] for each in place.values()])
        geographical = all(abs(x) <= 360.0 and abs(lat) <= 90.0 for x, lat in place.values())
        narrow = float(np.cos(np.radians(y.mean()))) if geographical else 1.0
        return {name: (narrow * each[0], each[1]) for name, each in place.items()}
    with optional_import():
        import networkx

    graph = networkx.Graph(network.to_networkx().to_undirected())
    layout = networkx.kamada_kawai_layout(graph, weight=None)
    return {name: (float(x), float(y)) for name, (x, y) in layout.items()}


def draw_map(
    axes: Axes,
    network: Network,
    colour: Mapping[str, float],
    width: Mapping[str, float],
    *,
    scale: Normalize,
    colours: Colormap | str = "viridis",
    failed: Collection[str] = (),
    over: Collection[str] = (),
    title: str = "",
    bar: str = "",
) -> None:
    """Draw a network: traffic keeps to the right of its line.

    Parameters
    ----------
    axes : matplotlib Axes
    network : Network
    colour : mapping
        Id of a link -> its value on the colour scale; others are pale.
    width : mapping
        Id of a link -> its width from 0 to 1.
    scale, colours : Normalize, Colormap or str
        The colour scale.
    failed, over : collection of str
        Ids of links that are drawn dotted, or in red.
    title, bar : str
        Text above, and beside the colour scale.
    """
    place, chart = places_of(network), colormaps[colours] if isinstance(colours, str) else colours
    points = np.array([place[node.id] for node in network.nodes])
    span = float(np.ptp(points, axis=0).max()) or 1.0
    many = len(network.links) > 2 * _MANY
    thick, aside = (2.6, 0.0042) if many else (4.5, 0.0075)
    ends = np.array([(place[link.source], place[link.target]) for link in network.links])
    along = ends[:, 1] - ends[:, 0]
    length = np.maximum(np.hypot(*along.T), 1e-12 * span)
    right = np.column_stack([along[:, 1], -along[:, 0]]) / length[:, None] * aside * span
    lines = ends + right[:, None, :]
    names = [link.id for link in network.links]
    widths = [0.5 + thick * min(max(width.get(name, 0.0), 0.0), 1.0) for name in names]
    shades: list[Any] = [
        _OVER if name in over else chart(scale(colour[name])) if name in colour else PALE for name in names
    ]
    order = sorted(range(len(names)), key=lambda row: (names[row] in over, names[row] in colour, widths[row]))
    alive = [row for row in order if names[row] not in failed]
    axes.add_collection(
        LineCollection(
            [*lines[alive]], colors=[shades[r] for r in alive], linewidths=[widths[r] for r in alive], zorder=1
        )
    )
    down = [row for row in order if names[row] in failed]
    axes.add_collection(LineCollection([*ends[down]], colors=SECOND, linewidths=1.8, linestyles=":", zorder=2))
    if not many:
        heads = lines[alive, 0] + 0.7 * (lines[alive, 1] - lines[alive, 0])
        for at, row in zip(heads, alive, strict=True):
            angle = float(np.degrees(np.arctan2(along[row, 1], along[row, 0]))) - 90.0
            axes.plot(*at, marker=(3, 0, angle), color=shades[row], ms=4.0, mew=0.0, zorder=3)
    axes.plot(*points.T, "o", color=INK, ms=2.5 if many else 4.5, zorder=4)
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.autoscale_view()
    axes.set_axis_off()
    axes.set_title(title, fontsize=10, parse_math=False)
    _name_nodes(axes, network, place, size=6.0 if many else 8.0)
    if bar:
        axes.figure.colorbar(ScalarMappable(scale, chart), ax=axes, shrink=0.7, label=bar)


def _name_nodes(axes: Axes, network: Network, place: Mapping[str, tuple[float, float]], *, size: float) -> None:
    """Names beside the nodes, those with most links first; one that would cover another name or a node is left out."""
    degree = dict.fromkeys(place, 0)
    for link in network.links:
        degree[link.source] += 1
        degree[link.target] += 1
    panel = axes.get_window_extent()
    inch = np.array([panel.width, panel.height]) * 72.0 / axes.figure.dpi  # points on each side of the panel
    points = np.array(list(place.values()))
    low, extent = points.min(axis=0), np.maximum(np.ptp(points, axis=0), 1e-12)
    unit = 0.84 * float(np.min(inch / extent)) if extent.min() > 0.0 else 1.0
    spots = {name: (np.array(each) - low) * unit for name, each in place.items()}
    taken = [(x - 2.0, y - 2.0, x + 2.0, y + 2.0) for x, y in spots.values()]
    label = {node.id: node.name if node.name and node.id.isdigit() else node.id for node in network.nodes}
    for name in sorted(place, key=lambda each: -degree[each]):
        wide, high = 0.58 * size * len(label[name]), 1.1 * size
        x, y = spots[name]
        for dx, dy in ((0.0, size), (0.0, -size), (wide / 2 + 5.0, 0.0), (-wide / 2 - 5.0, 0.0)):
            box_of = (x + dx - wide / 2, y + dy - high / 2, x + dx + wide / 2, y + dy + high / 2)
            if not any(_overlap(box_of, other) for other in taken):
                taken.append(box_of)
                text = axes.annotate(label[name], place[name], (dx, dy), textcoords="offset points", fontsize=size)
                text.set(horizontalalignment="center", verticalalignment="center", parse_math=False, zorder=5)
                text.set_in_layout(False)
                text.set_path_effects([withStroke(linewidth=1.6, foreground="white")])
                break


def _overlap(a: tuple[float, ...], b: tuple[float, ...]) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def what_if_figure(answer: WhatIf, *, case: int = 0) -> Figure:
    """Map of one of the worst cases with rates and losses, and the worst cases side by side.

    `case` is the case's place in `answer.details`, 0 for the worst.
    """
    figure = canvas(13.0, 6.8, answer.headline)
    left, right = figure.subplots(1, 2, width_ratios=(2.3, 1.0))
    last = max(0, len(answer.details) - 1)
    checked_whole("case", case, f"a whole number from 0 to {last}", at_most=last)
    if answer.details:
        shown = answer.details[case]
        top = max((each.rate_bit_per_s for each in shown.links), default=0.0) or 1.0
        draw_map(
            left,
            answer.network,
            {each.link: each.utilization for each in shown.links},
            {each.link: each.rate_bit_per_s / top for each in shown.links},
            scale=Normalize(0.0, 1.0),
            colours=ListedColormap(colormaps["YlGnBu"](np.linspace(0.3, 1.0, 256))),
            failed=shown.case.failed,
            over=[each.link for each in shown.links if each.lost_bit_per_s > 0.0],
            title=textwrap.fill(f"{case_name(shown.case)}: {case_text(shown.case)}", 90),
            bar="utilization (red: overloaded, loses; dotted: failed; width: rate)",
        )
    else:
        left.set_axis_off()
    worst = answer.cases[:_CASES]
    rows = np.arange(len(worst))
    right.barh(rows, [each.utilization for each in worst], color=PALE, label="busiest link's utilization")
    right.barh(rows, [each.unmet for each in worst], height=0.4, color=_OVER, label="share that doesn't arrive")
    right.axvline(1.0, color=INK, lw=0.8)
    right.set_yticks(rows, [case_name(each) for each in worst], fontsize=7, parse_math=False)
    right.invert_yaxis()
    right.legend(fontsize=8, loc="lower right")
    right.set_title(f"the worst {len(worst)} of {len(answer.cases)} cases", fontsize=10)
    return figure
