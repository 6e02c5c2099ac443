"""Figures: units on the axes, margins where they are and with their numbers, classes where the map has them."""

from __future__ import annotations

import io
import math
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.figure import Figure

import netctrl
from netctrl import DelayLoop, InvalidValue
from netctrl.certificates.installed import InstalledCertificates
from netctrl.core.register import DESIGNS, FIGURES, REPORTS
from netctrl.design.arc.design import arc_gain_bands, arc_stability_map
from netctrl.evaluation.record import Evaluation
from netctrl.frequency.stability_map import StabilityMap
from netctrl.model.design.arc import ArcSetting
from netctrl.model.design.design import ArcDesign, provenance
from netctrl.model.io.display import Plotted, Reported
from netctrl.plants.tcp_response import arc_response
from netctrl.plotting import arc_figure, draw, time_series
from netctrl.scenario.links import Link
from netctrl.scenario.result import Result
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

# The ARC paper's gain on its own network: GM 7.1229 dB, PM 22.042° (shared/theory/arc.md, input A).
GAIN_MARGIN, PHASE_MARGIN, CROSSOVER, PHASE_CROSSOVER = 7.122914, 22.04231, 0.4016284, 0.6417222


@pytest.fixture(scope="module")
def design() -> ArcDesign:
    return netctrl.arc(50, alpha_per_packet=1.42e-5)


@pytest.fixture(scope="module")
def wide_map() -> StabilityMap:
    """Not square, so that flows and round-trip times can't change places; all four classes are in it."""
    flows, rtt = np.geomspace(5.0, 500.0, 23), np.geomspace(0.1, 3.0, 17)
    bands = arc_gain_bands(flows, rtt[:, None], ArcSetting(capacity_packet_per_s=1250.0))
    limit = np.where(flows > 866.2 * rtt[:, None], np.nan, bands.limit)
    rests = np.where(rtt[:, None] < 1.0, bands.high, 0.0)
    return StabilityMap(flows, rtt, limit, bands.high, rests, 6.21712e-6, "plant paper")


def texts(axes: Axes) -> str:
    return "\n".join(text.get_text() for text in axes.texts)


def labels(axes: Axes) -> list[str]:
    legend = axes.get_legend()
    assert legend is not None
    return [text.get_text() for text in legend.get_texts()]


def rendered(figure: Figure, kind: str = "png") -> bytes:
    content = io.BytesIO()
    figure.savefig(content, format=kind, dpi=50)
    return content.getvalue()


def bars(axes: Axes, x: float) -> list[list[float]]:
    """Ends of the vertical bars at x, in the units of the axis."""
    lines = [line for line in axes.lines if line.get_transform() == axes.transData]
    found = [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in lines]
    return [sorted(map(float, ys)) for xs, ys in found if xs.size == 2 and np.allclose(xs, x, rtol=1e-6)]


def test_bode_has_units_and_both_margins_where_they_are(design) -> None:
    """Of the paper's loop, whose margins the theory note arc gives."""
    figure = draw(design.certificate.paper.loop)
    above, below = figure.axes
    assert above.get_ylabel() == "magnitude [dB]"
    assert below.get_ylabel() == "phase [degrees]"
    assert below.get_xlabel() == "frequency [rad/s]"
    assert "GM 7.12 dB" in texts(above)
    assert "0.642 rad/s" in texts(above)
    assert "PM 22.04°" in texts(below)
    assert "0.402 rad/s" in texts(below)
    # The bars run from the curve to the line that it must not reach, at the crossover.
    assert bars(above, PHASE_CROSSOVER) == [pytest.approx([-GAIN_MARGIN, 0.0], rel=1e-6)]
    assert bars(below, CROSSOVER) == [pytest.approx([-180.0, -180.0 + PHASE_MARGIN], rel=1e-6)]
    for axes, bar in ((above, (-GAIN_MARGIN, 0.0)), (below, (-180.0, -180.0 + PHASE_MARGIN))):
        low, high = sorted(axes.get_ylim())
        assert low < min(bar)
        assert max(bar) < high
        assert axes.get_xlim()[0] < CROSSOVER < PHASE_CROSSOVER < axes.get_xlim()[1]


def test_the_bode_plot_of_a_design_is_of_the_loop_that_decides(design) -> None:
    above, below = draw(design).axes
    proof, at = design.certificate.sampled, design.certificate.operating_point
    response = arc_response(design.inputs.setting)
    w = np.asarray(above.lines[0].get_xdata(), dtype=float)
    L = design.law.alpha_per_packet * response.at(w * proof.epoch_s, at.flows, at.rtt_s)
    assert np.allclose(above.lines[0].get_ydata(), 20.0 * np.log10(np.abs(L)))
    assert w[-1] == pytest.approx(np.pi / proof.epoch_s)  # half the sampling rate
    turns = np.asarray(below.lines[0].get_ydata(), dtype=float) - np.degrees(np.angle(L))
    assert np.allclose(turns, 360.0 * np.round(turns / 360.0), atol=1e-6)
    assert f"GM {proof.gain_margin_db:.2f} dB" in texts(above)
    assert f"PM {proof.phase_margin_deg:.2f}°" in texts(below)
    bar = [-180.0, proof.phase_margin_deg - 180.0]
    assert bars(below, proof.crossover_rad_s) == [pytest.approx(bar, rel=1e-6)]


def test_bode_draws_the_loop_itself(design) -> None:
    """The curves against L(iw) computed here, at every drawn frequency."""
    above, below = draw(design.certificate.paper.loop).axes
    loop = design.certificate.paper.loop
    for axes, value in ((above, lambda L: 20.0 * np.log10(np.abs(L))), (below, lambda L: np.degrees(np.angle(L)))):
        curve = axes.lines[0]
        w = np.asarray(curve.get_xdata(), dtype=float)
        s = 1j * w
        L = loop.gain * np.exp(-s * loop.delay) / s**loop.integrators
        for z in loop.leads:
            L = L * (1.0 + z * s)
        for T in loop.lags:
            L = L / (1.0 + T * s)
        difference = np.asarray(curve.get_ydata(), dtype=float) - value(L)
        wraps = 360.0 * np.round(difference / 360.0) if axes is below else 0.0
        assert np.allclose(difference - wraps, 0.0, atol=1e-9)
    assert np.all(np.diff(np.asarray(below.lines[0].get_ydata(), dtype=float)) < 0.0)  # unwrapped


LOOPS = {
    "no phase crossover": DelayLoop(gain=5.0, delay=0.0, integrators=0, leads=(), lags=(1.0,)),
    "no gain crossover": DelayLoop(gain=0.5, delay=0.1, integrators=0, leads=(), lags=(1.0,)),
    "no crossover at all": DelayLoop(gain=0.5, delay=0.0, integrators=0, leads=(), lags=(1.0,)),
    "unstable": DelayLoop(gain=100.0, delay=1.0, integrators=1, leads=(), lags=(1.0,)),
    "not monotone": DelayLoop(gain=2.0, delay=0.3, integrators=1, leads=(3.0,), lags=(1.0, 0.5)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_bode_of_any_loop_says_the_margins_it_has(name) -> None:
    loop = LOOPS[name]
    found = netctrl.margins(loop)
    figure = loop.plot()
    above, below = figure.axes
    has_gain, has_phase = math.isfinite(found.gain_margin_db), math.isfinite(found.phase_margin_deg)
    assert (f"GM {found.gain_margin_db:.2f} dB" in texts(above)) == has_gain
    assert (f"PM {found.phase_margin_deg:.2f}°" in texts(below)) == has_phase
    assert ("GM" in texts(above)) == has_gain
    assert ("PM" in texts(below)) == has_phase
    assert rendered(figure).startswith(b"\x89PNG\r\n\x1a\n")


def test_map_shows_each_class_where_it_is(wide_map) -> None:
    figure = draw(wide_map)
    (axes,) = figure.axes
    assert axes.get_xlabel() == "flows N"
    assert axes.get_ylabel() == "round-trip time [s]"
    assert "6.217e-06 per packet" in axes.get_title()
    assert "plant paper" in axes.get_title()
    (mesh,) = (child for child in axes.collections if isinstance(child, QuadMesh))
    shown = np.asarray(mesh.get_array()).reshape(17, 23)
    assert np.array_equal(shown, wide_map.classes)
    assert set(np.unique(shown)) == {0, 1, 2, 3, 4}
    assert {axes.get_xscale(), axes.get_yscale()} == {"log"}
    # The colours of the five classes are those of the five first names in the legend.
    legend = axes.get_legend()
    assert legend is not None
    patches = [patch.get_facecolor() for patch in legend.get_patches()]
    assert np.allclose(mesh.cmap(mesh.norm([0, 1, 2, 3, 4])), patches)
    for desired, label in zip(
        ("no equilibrium", "unstable", "GM < 6 dB", "simulation", "admissible"), labels(axes), strict=False
    ):
        assert desired in label
    assert any("50 flows" in label and "0.5 s" in label and "paper" in label for label in labels(axes))
    assert rendered(figure).startswith(b"\x89PNG")


def test_map_marks_what_it_is_told_to(wide_map) -> None:
    (axes,) = wide_map.plot(marks={"the lab": (80.0, 0.3)}).axes
    assert any(label.startswith("the lab: 80 flows, 0.3 s") for label in labels(axes))
    assert any(np.allclose(line.get_xydata(), [(80.0, 0.3)]) for line in axes.lines)


@pytest.mark.parametrize("flows", [50.0, (50.0, 60.0)], ids=["point", "box"])
def test_the_figure_of_a_design_holds_bode_map_and_operating_point(flows) -> None:
    design = netctrl.arc(flows, 0.5)
    figure = arc_figure(design, arc_stability_map(design, points=15))
    above, below, axes = figure.axes
    assert [above.get_ylabel(), below.get_ylabel(), axes.get_ylabel()] == [
        "magnitude [dB]",
        "phase [degrees]",
        "round-trip time [s]",
    ]
    assert f"PM {design.certificate.sampled.phase_margin_deg:.2f}°" in texts(below)
    assert any(np.allclose(line.get_xydata(), [(50.0, 0.5)]) for line in axes.lines)
    assert any("this design" in label for label in labels(axes))
    assert any("box" in label for label in labels(axes)) == isinstance(flows, tuple)
    title = figure.get_suptitle()
    for shown in ("10 Mbit/s", f"{design.law.alpha_per_packet:.4g} per packet", "1 s", "admissible"):
        assert shown in title


def test_plot_methods_are_draw(design, wide_map) -> None:
    for record in (design, design.certificate.paper.loop, wide_map):
        ours, theirs = record.plot(), draw(record)
        assert isinstance(ours, Figure)
        assert [axes.get_ylabel() for axes in ours.axes] == [axes.get_ylabel() for axes in theirs.axes]
        assert [texts(axes) for axes in ours.axes] == [texts(axes) for axes in theirs.axes]


@pytest.mark.parametrize("record", [None, 5, "arc", netctrl.arc], ids=["None", "5", "text", "function"])
def test_an_unknown_record_is_refused_with_the_known_ones(record) -> None:
    with pytest.raises(InvalidValue) as refusal:
        draw(record)
    for known in ("ArcDesign", "DelayLoop", "StabilityMap"):
        assert known in refusal.value.takes
    assert refusal.value.got == type(record).__name__


ALONE = """
import io, sys, netctrl
netctrl.arc(50).plot().savefig(io.BytesIO(), format="png")
assert "matplotlib" in sys.modules
loaded = [name for name in ("matplotlib.pyplot", "control", "pandas") if name in sys.modules]
assert not loaded, loaded
"""


@pytest.mark.slow
def test_plotting_leaves_pyplot_and_other_libraries_alone(tmp_path) -> None:
    """With pyplot comes a choice of backend, and figures that stay in memory."""
    ran = subprocess.run([sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


def simulated(*, links: int = 1, samples: int = 50, seed: int = 0, name: str = "a test") -> Result:
    """A result of numbers without meaning, that differ from each other."""
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(links + 1)]
    parts = tuple(Link(id=f"link{i}", source=nodes[i], target=nodes[i + 1], capacity=1e6) for i in range(links))
    flows = Flow(id="f", count=1, rtt=0.1, path=("link0",))
    arrived = rng.uniform(100.0, 200.0, (links, samples))
    arrived[:, ::7] = 0.0
    return Result.of_series(
        Scenario(name=name, duration=0.5 * samples, interval=0.5, links=parts, flows=(flows,)),
        "fluid",
        provenance(),
        links={
            "backlog": rng.uniform(0.0, 9e3, (links, samples)),
            "arrived": arrived,
            "departed": rng.uniform(0.0, 5e4, (links, samples)),
            "lost": 0.1 * arrived,
            "probability": rng.uniform(0.0, 1.0, (links, samples)),
        },
        flows={"payload": arrived[:1]},
    )


LABELS = ["backlog [kB]", "throughput of links [Mbit/s]", "goodput of flows [Mbit/s]", "probability", "loss [%]"]


def drawn(axes: Axes) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in axes.lines]


def test_time_series_have_units_and_the_samples_of_a_short_run() -> None:
    """Up to 400 samples each is drawn, at the middle of its interval."""
    found = simulated()
    figure = draw(found)
    assert [axes.get_ylabel() for axes in figure.axes] == LABELS
    assert figure.axes[-1].get_xlabel() == "time [s]"
    assert figure.get_suptitle() == "a test (fluid)"
    assert all(axes.get_ylim()[0] == 0.0 for axes in figure.axes)
    assert figure.axes[0].get_legend() is None
    lost = np.where(found.series["arrived"][0] > 0.0, 10.0, 0.0)
    desired = [
        found.series["backlog"][0] / 1e3,
        found.series["departed"][0] * 8.0 / 0.5 / 1e6,
        found.series["payload"][0] * 8.0 / 0.5 / 1e6,
        found.series["probability"][0],
        lost,
    ]
    for axes, values in zip(figure.axes, desired, strict=True):
        ((t, y),) = drawn(axes)
        assert t == pytest.approx(found.time_s - 0.25)
        assert y == pytest.approx(values, abs=1e-12)
    assert rendered(figure).startswith(b"\x89PNG")


def test_time_series_of_a_long_run_are_means_of_blocks() -> None:
    found = simulated(samples=1003)
    figure = time_series({"fluid": found}, title="chosen")
    assert figure.get_suptitle() == "chosen"
    width, count = 3, 334

    def blocks(series: np.ndarray) -> np.ndarray:
        return series[0, : width * count].reshape(count, width)

    ((t, q),) = drawn(figure.axes[0])
    assert t == pytest.approx(0.5 * width * (np.arange(count) + 0.5))
    assert q == pytest.approx(blocks(found.series["backlog"]).mean(axis=1) / 1e3)
    ((_, rate),) = drawn(figure.axes[1])
    assert rate == pytest.approx(blocks(found.series["departed"]).sum(axis=1) * 8.0 / (0.5 * width) / 1e6)
    (band,) = figure.axes[0].collections
    corners = band.get_paths()[0].vertices
    assert corners[:, 1].max() == pytest.approx(blocks(found.series["backlog"]).max() / 1e3)
    assert corners[:, 1].min() == pytest.approx(blocks(found.series["backlog"]).min() / 1e3)
    assert len(figure.axes[0].lines[0].get_xdata()) <= 400


def test_time_series_of_several_links_and_results_are_named() -> None:
    links = draw(simulated(links=3))
    assert labels(links.axes[0]) == ["link0", "link1", "link2"]
    both = time_series({"fluid": simulated(), "ns-3": simulated(seed=1)})
    assert labels(both.axes[0]) == ["fluid", "ns-3"]
    assert both.get_suptitle() == "a test (fluid, ns-3)"
    several = time_series({"fluid": simulated(links=2), "ns-3": simulated(links=2, seed=1)})
    assert labels(several.axes[0]) == ["fluid: link0", "fluid: link1", "ns-3: link0", "ns-3: link1"]
    for figure, count in ((links, 3), (both, 2), (several, 4)):
        of_links = [axes for axes, name in zip(figure.axes, LABELS, strict=True) if "flows" not in name]
        assert [len(axes.lines) for axes in of_links] == [count] * 4
        for axes in of_links:  # one colour a link, the same in all panels
            colours = [line.get_color() for line in axes.lines]
            assert len(set(colours)) == count
            assert colours == [line.get_color() for line in figure.axes[0].lines]


def test_time_series_of_one_sample_and_of_nothing() -> None:
    assert rendered(draw(simulated(samples=1))).startswith(b"\x89PNG")
    with pytest.raises(InvalidValue, match="results"):
        time_series({})


def test_names_are_shown_as_they_are_written() -> None:
    """Not read as formulas."""
    figure = time_series({r"$\oops$": simulated(name=r"$\frac$"), "other": simulated()})
    assert rendered(figure).startswith(b"\x89PNG")
    assert figure.get_suptitle() == r"$\frac$ ($\oops$, other)"
    assert labels(figure.axes[0]) == [r"$\oops$", "other"]


def test_a_certificate_is_drawn_and_reported(tmp_path):
    found = netctrl.certify("pi2", rtt_s=0.02, flows=10.0, capacity_bit_per_s=50e6, packets=False)
    drawn = found.plot()
    titles = [axes.get_title() for axes in drawn.axes]
    assert titles[0].startswith("pi2 with 10 flows at 20 ms: holds\n")  # no longer than the picture is wide
    found.report(tmp_path / "pi2.html")
    assert found.verdict in (tmp_path / "pi2.html").read_text(encoding="utf-8")
    with pytest.raises(InvalidValue, match="a law with a map"):
        netctrl.certify("codel", rtt_s=0.02, flows=1.0, capacity_bit_per_s=20e6, packets=False).plot()


def below(kind: type) -> set[type]:
    return {kind, *(each for child in kind.__subclasses__() for each in below(child))}


def test_each_record_with_plot_has_a_figure_and_each_with_report_a_page() -> None:
    for name in (*DESIGNS, *FIGURES, *REPORTS):  # which imports the records
        registry = next(each for each in (DESIGNS, FIGURES, REPORTS) if name in each)
        assert callable(registry[name])
    drawn, reported = (
        {each for each in below(kind) if each.__module__ != Plotted.__module__} for kind in (Plotted, Reported)
    )
    assert {Evaluation, InstalledCertificates, Result} <= drawn
    for kinds, registry in ((drawn, FIGURES), (reported, REPORTS)):
        final = [kind for kind in kinds if not kind.__subclasses__()]
        assert not [kind for kind in final if not any(each.__name__ in registry for each in kind.__mro__)]


def test_certificates_of_installed_queues_are_drawn_side_by_side() -> None:
    texts = "qdisc pie 1: dev a root limit 1000p target 15ms tupdate 16ms alpha 2 beta 20"
    others = "qdisc fq_codel 2: dev b root limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms"
    where = {"rtt_s": 0.02, "flows": 10.0, "capacity_bit_per_s": 50e6, "senders": "reno"}
    found = netctrl.certify_queues(netctrl.read_queues(text=f"{texts}\n{others}\n"), **where)
    assert [axes.get_title() for axes in found.plot().axes if axes.get_title()] == ["pie 1: on a, root"]
    assert repr(found).startswith("InstalledCertificates: certified queues: 2 of 2")
    with pytest.raises(InvalidValue, match="a queue of a law with a map"):
        netctrl.certify_queues(netctrl.read_queues(text=f"{others}\n"), **where).plot()
