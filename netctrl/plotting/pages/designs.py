"""Reports of Designs: verdict, figures, loop and certificate."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from netctrl.core.errors import InvalidValue
from netctrl.core.units import format_quantity
from netctrl.design.arc.map import arc_stability_map
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.design.base import Design
from netctrl.model.design.design import ArcDesign
from netctrl.model.io.display import has_figure
from netctrl.plotting.loops import CLASS_NAMES, arc_figure
from netctrl.plotting.pages.fields import field_rows
from netctrl.plotting.pages.html import Html, figure, folded, rows_table, section
from netctrl.plotting.pages.origin import design_lines, judged
from netctrl.plotting.pages.page import Page
from netctrl.plotting.pages.svg import Hover, grid_of


def design_page(design: Design[Any, Any, Any]) -> Page:
    """Page of any Design, with its figure if its method has one; CoDel's has no map."""
    drawn = None
    if has_figure(design):
        with suppress(InvalidValue):
            drawn = design.plot()
    return _page(design, drawn)


def arc_page(design: ArcDesign) -> Page:
    """Report of an ARC Design, with an interactive stability map."""
    map_ = arc_stability_map(design)
    drawn = arc_figure(design, map_)
    return _page(design, drawn, _map_values(drawn, map_, design))


def _page(design: Design[Any, Any, Any], drawn: Figure | None, hover: Hover | None = None) -> Page:
    title, rows = design.summary()
    caption = "" if hover is None else "Point at the map to read off its values; the arrow keys move on it."
    proof = field_rows(design.certificate, without=("warnings",))
    asked = field_rows(design.inputs, without=("network", "model"))
    return judged(
        f"{_name(design)} design",
        title,
        design,
        rows,
        Html("") if drawn is None else section("Figures", figure(drawn, "f", caption, hover)),
        section(
            "Certificate", rows_table("Checks and margins, named as in the Design file", proof, ("Field", "Value"))
        ),
        section("Inputs", folded("All inputs", rows_table("Named as in the Design file", asked))),
        lines=design_lines(design),
        warnings="Warnings",
    )


def _name(design: Design[Any, Any, Any]) -> str:
    """Name of the method, as at the beginning of the summary."""
    return {"pacing": "Pacing", "queue": "Queue"}.get(design.method, design.method.upper().replace("HFTRAC", "HFTraC"))


def _map_values(drawn: Figure, map_: StabilityMap, design: ArcDesign) -> Hover:
    """Class and gain margin of each point of the map; begins at the design's own point."""
    at = design.certificate.operating_point
    places = ((map_.rtt_s, at.rtt_s), (map_.flows, at.flows))
    row, column = (int(np.argmin(np.abs(np.log(each / own)))) for each, own in places)
    margin, classes = map_.gain_margin_db, map_.classes
    return grid_of(
        drawn.axes[-1],
        [(float(N), f"{N:.4g} flows") for N in map_.flows],
        [(float(tau), f"RTT {format_quantity(float(f'{tau:.4g}'), 's')}") for tau in map_.rtt_s],
        CLASS_NAMES,
        [
            (int(kind), "" if np.isnan(each) else f"GM {each:.1f} dB")
            for kind, each in zip(classes.ravel(), margin.ravel(), strict=True)
        ],
        start=row * len(map_.flows) + column,
    )
