"""A queue's law explored in Jupyter: sliders over flows, round-trip time, rate and target, with a map of the delay, the
loop's figures and a run of packets beside each other.

What stays between two frames, axes and map, is kept as pixels; a point and a line are drawn over it. Only another rate
or target, on which the whole map depends, draws it anew.
"""

from __future__ import annotations

import io
from contextlib import suppress
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import TwoSlopeNorm
from matplotlib.image import imsave
from msgspec.structs import asdict, replace

from netctrl.certificates.certify import subject_of
from netctrl.certificates.loops import box_loops, judged_box
from netctrl.certificates.point_records import BeyondLoop, most_p99_s
from netctrl.certificates.predicted import figures_map, predicted
from netctrl.certificates.record import QueueCertificate
from netctrl.certificates.search import margin_map
from netctrl.certificates.verdict import absent
from netctrl.checks.engines import check_scenario, moments
from netctrl.checks.point import point_at
from netctrl.core.errors import InvalidValue, optional_import
from netctrl.core.units import BITS_PER_BYTE, format_quantity
from netctrl.design.queue.design import certificate_of
from netctrl.design.queue.record import QueueDesign
from netctrl.engines.engine import simulate
from netctrl.plotting.certificates import has_map
from netctrl.plotting.style import ACCENT, INK, canvas, decades, finish

_AROUND = 5.0
"""Factor by which sliders reach beyond the middle of the certificate's box."""
_SIDE, _MARGINS, _APART = 61, 16, 0.4
"""Points of the map along each axis, those of its margins, and distance of those whose figures are computed, in
logarithms."""
_LONGEST_S, _PACKETS, _SAMPLES = 20.0, 1e5, 400
"""Of the run of packets."""


class Place(NamedTuple):
    """Where the sliders stand."""

    flows: float
    rtt_s: float
    capacity_bit_per_s: float
    target_s: float | None
    """None of a law without one."""


class View:
    """Frames of a certificate's law.

    Parameters
    ----------
    found : QueueCertificate
        Of a law with a loop and packets, with flows and a rate; else InvalidValue.
    """

    def __init__(self, found: QueueCertificate) -> None:
        inputs, parameters = found.inputs, found.law.parameters
        if inputs.flows is None or inputs.capacity_bit_per_s is None or not has_map(found):
            takes = "a certificate of pie, pi2, dualpi2, docsis-pie, red or wred with flows and a rate"
            raise InvalidValue("explore", found.law.name, takes)
        target = parameters.get("target_s")
        middles = [float(np.sqrt(low * high)) for low, high in (inputs.flows, inputs.rtt_s, inputs.capacity_bit_per_s)]
        self.found, self.start = found, Place(*middles, None if target is None else float(target))
        self._figure = canvas(9.6, 3.6)
        self._map, self._run = self._figure.subplots(1, 2)
        self._pixels, self._drawn = FigureCanvasAgg(self._figure), (0.0, None)
        self._still: Any = None
        (self._point,) = self._map.plot([], [], "o", color="white", mec=INK, mew=1.6, ms=9)
        (self._delay,) = self._run.plot([], [], color=ACCENT, lw=1.0)
        self._moving = (self._point, self._delay)
        for each in self._moving:
            each.set_animated(True)

    def frame(self, place: Place) -> tuple[bytes, str]:
        """Picture as PNG, and figures in words."""
        at = self._at(place)
        time, delay, used = self._packets(at, place)
        if self._drawn != (place.capacity_bit_per_s, place.target_s):
            self._drawn = (place.capacity_bit_per_s, place.target_s)
            self._background(at, place, time)
        self._point.set_data([place.flows], [place.rtt_s])
        self._delay.set_data(time, 1e3 * delay)
        self._pixels.restore_region(self._still)
        for axes, each in zip((self._map, self._run), self._moving, strict=True):
            axes.draw_artist(each)
        content = io.BytesIO()
        imsave(content, np.asarray(self._pixels.buffer_rgba()), format="png", pil_kwargs={"compress_level": 1})
        return content.getvalue(), f"{self._said(at)}; {_measured(delay, used)}"

    def _at(self, place: Place) -> QueueCertificate:
        """The law at one point, without a verdict."""
        found, inputs = self.found, self.found.inputs
        target = {} if place.target_s is None else {"target_s": place.target_s}
        law = replace(found.law, parameters=found.law.parameters | target)
        flows, rtt, rate = ((each, each) for each in place[:3])
        return replace(found, law=law, inputs=replace(inputs, flows=flows, rtt_s=rtt, capacity_bit_per_s=rate))

    def _said(self, at: QueueCertificate) -> str:
        """Figures of the loop in words, or why it has none."""
        subject: Any = subject_of(at.law.name, at.law.parameters)
        box = judged_box(subject, **_where(at))
        if reason := absent(subject, box):
            return f"the loop has no equilibrium: {reason}"
        felt = predicted(box_loops(subject, box), box, subject)
        if felt.figures is None:
            return f"the loop says nothing: {felt.beyond[0].why}" if felt.beyond else "the loop says nothing"
        return f"{'as asked' if felt.figures.as_asked else 'not as asked'}: {felt.figures.text}"

    def _packets(self, at: QueueCertificate, place: Place) -> tuple[np.ndarray, np.ndarray, float]:
        """Time and delay [s] of a run from the flows' begin on, and utilization of its second half; empty where there
        are no packets of the law."""
        here = BeyondLoop(
            sender=at.inputs.senders[0],
            flows=place.flows,
            capacity_bit_per_s=place.capacity_bit_per_s,
            rtt_s=place.rtt_s,
            why="",
        )
        with suppress(InvalidValue):
            point = point_at(at, here)
            end = min(_LONGEST_S, _PACKETS / point.loop.rate)
            scenario = check_scenario(point, "packet", 1, (0.5 * end, end))
            result: Any = simulate(replace(scenario, interval=end / _SAMPLES), "packet")
            line = scenario.links[0]
            delay = BITS_PER_BYTE * result.series["backlog"][0] / line.capacity
            return np.asarray(result.time_s), np.asarray(delay), float(result["utilization", line.id])
        return np.empty(0), np.empty(0), 0.0

    def _background(self, at: QueueCertificate, place: Place, time: np.ndarray) -> None:
        """Axes and map at this rate and target."""
        start, inputs = self.start, at.inputs
        subject: Any = subject_of(at.law.name, at.law.parameters)
        ends = [(each / _AROUND, each * _AROUND) for each in (start.flows, start.rtt_s)]
        box = judged_box(subject, **_where(at, flows=ends[0], rtt_s=ends[1]))
        over = margin_map(subject, box.inputs, _MARGINS, around=1.0).finer(_SIDE)
        figures = figures_map(subject, box.inputs, over, apart=_APART)
        late = np.full(over.gain_margin_db.shape, np.nan) if figures is None else 1e3 * figures[2]
        most = 1e3 * most_p99_s(inputs.p99_s, place.target_s or subject.target_s or float(np.nanmedian(late)) / 3e3)
        flows = box.rate / over.rate_per_flow
        for axes in (self._map, self._run):
            for each in [*axes.collections, *axes.get_legend_handles_labels()[0]]:
                each.remove()
        self._map.pcolormesh(
            flows, over.rtt_s, late, shading="nearest", cmap="PuOr_r", norm=TwoSlopeNorm(most, 0.0, 2.0 * most)
        )
        self._map.set(xscale="log", yscale="log", xlim=ends[0], ylim=ends[1])
        decades(self._map.xaxis)
        decades(self._map.yaxis, "s")
        rate = format_quantity(float(f"{place.capacity_bit_per_s:.3g}"), "bit/s")
        said = f"99 % below, at {rate}: purple to {most:.3g}, orange to {2.0 * most:.3g} ms; white: packets tell"
        finish(self._map, "flows", "round-trip time without the queue", said, size=8, grid=False)
        self._run.axhline(most, color=INK, lw=1.2, ls="dashed", label="asked of 99 %")
        self._run.set(xlim=(0.0, float(time[-1]) if len(time) else 1.0), ylim=(0.0, 2.0 * most))
        finish(self._run, "time [s]", "queueing delay [ms]", "packets from the flows' begin on", size=8, legend=8)
        self._pixels.draw()
        self._figure.set_layout_engine("none")  # found once: it takes as long as all the rest
        self._still = self._pixels.copy_from_bbox(self._figure.bbox)


def _where(at: QueueCertificate, **other: Any) -> dict[str, Any]:
    """Arguments of a box, some of them others."""
    return asdict(at.inputs) | other


def _measured(delay: np.ndarray, used: float) -> str:
    if not len(delay):
        return "no packets of this law or sender"
    mean, deviation, most = (1e3 * each for each in moments(delay[len(delay) // 2 :]))
    half = f"{mean:.3g} ms ± {deviation:.2g} ms, 99 % below {most:.3g} ms, link {100.0 * used:.3g} % used"
    return f"packets, second half: {half}"


def explorer(found: QueueCertificate | QueueDesign) -> Any:
    """Sliders and frames of the law of a certificate or a design as a widget of Jupyter.

    Raises
    ------
    InvalidValue
        A law without a loop or packets, or a certificate of windows.
    MissingLibrary
        Without ipywidgets.
    """
    with optional_import():
        ipywidgets: Any = import_module("ipywidgets")
    view = View(certificate_of(found) if isinstance(found, QueueDesign) else found)
    names = {"flows": "flows", "rtt_s": "RTT [ms]", "capacity_bit_per_s": "rate [Mbit/s]", "target_s": "target [ms]"}
    units = {"flows": 1.0, "rtt_s": 1e-3, "capacity_bit_per_s": 1e6, "target_s": 1e-3}
    sliders = {
        name: ipywidgets.FloatLogSlider(
            value=value / units[name],
            min=float(np.log10(value / _AROUND / units[name])),
            max=float(np.log10(value * _AROUND / units[name])),
            step=0.01,
            readout_format=".3g",
            continuous_update=name in ("flows", "rtt_s"),  # the others draw the map anew, when they are let go
            description=names[name],
        )
        for name, value in view.start._asdict().items()
        if value is not None
    }
    picture, said = ipywidgets.Image(format="png"), ipywidgets.Label()

    def show(_: Any = None) -> None:
        values = {name: each.value * units[name] for name, each in sliders.items()}
        picture.value, said.value = view.frame(view.start._replace(**values))

    for each in sliders.values():
        each.observe(show, "value")
    show()
    return ipywidgets.VBox([ipywidgets.HBox(list(sliders.values())), said, picture])
