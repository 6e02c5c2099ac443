"""Maps of the gain margin: the same margins as at points, and a figure that shows them."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from netctrl.certificates.certify import certify, subject_of
from netctrl.certificates.predicted import figures_map
from netctrl.certificates.search import margin_map
from netctrl.core.errors import Status
from netctrl.model.io.display import page
from netctrl.plotting.certificates import margin_figure

SENDERS = "reno"


@pytest.fixture(scope="module", params=["dualpi2", "pie"])
def mapped(request):
    where = {"rtt_s": (0.02, 0.1), "flows": (10.0, 20.0), "capacity_bit_per_s": (50e6, 100e6)}
    found = certify(request.param, senders=SENDERS, **where)
    return found, margin_map(subject_of(request.param, {}), found.inputs)


@pytest.mark.slow
def test_a_map_has_the_margins_of_its_points(mapped) -> None:
    found, over = mapped
    rng = np.random.default_rng(2)
    for i, k in zip(*rng.integers(len(over.rtt_s), size=(2, 8)), strict=True):
        point = certify(
            found.law.name,
            rtt_s=over.rtt_s[i],
            flows=1.0,
            capacity_bit_per_s=12000.0 * over.rate_per_flow[k],
            senders=SENDERS,
        ).certificate
        if point.status is Status.INFEASIBLE:
            assert np.isnan(over.gain_margin_db[i, k])
        else:
            assert over.gain_margin_db[i, k] == pytest.approx(point.sampled.gain_margin_db, abs=0.05)


@pytest.mark.slow
def test_a_map_has_the_figures_of_its_points(mapped) -> None:
    """With the fewest flows of the box, 10, or more where 10 flows at this rate take less than 50 Mbit/s."""
    found, over = mapped
    figures = figures_map(subject_of(found.law.name, {}), found.inputs, over)
    rng, known = np.random.default_rng(3), 0
    for i, k in zip(*rng.integers(len(over.rtt_s), size=(2, 16)), strict=True):
        rate = 12000.0 * over.rate_per_flow[k]
        flows = max(10.0, 50e6 / rate)
        where = {"rtt_s": over.rtt_s[i], "flows": flows, "capacity_bit_per_s": flows * rate}
        at = certify(found.law.name, **where, senders=SENDERS).certificate.predicted
        assert (at is None) == np.isnan(figures[:, i, k]).all()
        if at is not None:
            mean, deviation, late, used = figures[:, i, k]
            assert (mean, deviation) == (pytest.approx(at.delay_mean_s), pytest.approx(at.delay_std_s, rel=0.02))
            assert (late, used) == (pytest.approx(at.delay_p99_s, rel=0.01), pytest.approx(at.utilization, abs=1e-3))
            known += 1
    assert known >= 8


def test_only_the_rate_of_a_flow_counts(mapped) -> None:
    found, over = mapped
    inputs, law = found.inputs, subject_of(found.law.name, {})
    flows, rates = ([3.0 * end for end in ends] for ends in (inputs.flows, inputs.capacity_bit_per_s))
    larger = msgspec.structs.replace(inputs, flows=(flows[0], flows[1]), capacity_bit_per_s=(rates[0], rates[1]))
    other = margin_map(law, larger)
    np.testing.assert_allclose(other.rate_per_flow, over.rate_per_flow, rtol=1e-12)
    np.testing.assert_allclose(other.gain_margin_db, over.gain_margin_db, atol=1e-6)


def test_a_finer_map_has_the_same_margins(mapped) -> None:
    found, over = mapped
    fine = margin_map(subject_of(found.law.name, {}), found.inputs, points=321)
    np.testing.assert_allclose(fine.rtt_s[::2], over.rtt_s, rtol=1e-12)
    ours, theirs = fine.gain_margin_db[::2, ::2], over.gain_margin_db
    assert (np.isnan(ours) == np.isnan(theirs)).mean() > 0.999  # rounding at an end of the range
    assert np.nanmax(np.abs(ours - theirs)) < 0.02


def test_its_figure_names_axes_and_the_verdict(mapped) -> None:
    found, over = mapped
    figure = margin_figure(found, over)
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("rate of the link per flow", "round-trip time without the queue")
    assert found.verdict in axes.get_title()
    low, high = axes.get_xlim()
    assert low < 50e6 / 20.0 < 100e6 / 10.0 < high
    assert "99 % wait less" in [each.get_text() for each in axes.get_legend().get_texts()]
    named = [each.get_text().removesuffix(" ms") for each in axes.texts]
    assert named
    assert all(15.0 < float(each) < 45.0 for each in named)  # from its target to three of it


def test_between_its_points_a_map_is_straight_in_margins_and_has_the_same_figures(mapped) -> None:
    found, over = mapped
    law, fine = subject_of(found.law.name, {}), over.finer(321)
    np.testing.assert_allclose(fine.gain_margin_db[::2, ::2], np.minimum(over.gain_margin_db, 200.0), atol=1e-6)
    ours, theirs = (figures_map(law, found.inputs, each) for each in (fine, over))
    same = np.isnan(ours[:, ::2, ::2]) == np.isnan(theirs)
    assert same.mean() > 0.999
    assert np.nanmax(np.abs(ours[:, ::2, ::2] / theirs - 1.0)) < 1e-6


@pytest.mark.slow
def test_a_report_has_verdict_and_map(mapped) -> None:
    found, _ = mapped
    text = page(found).decode()
    assert found.verdict in text
    assert "gain margin" in text
    assert "<svg" in text
