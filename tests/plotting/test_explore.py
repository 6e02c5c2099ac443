"""A queue's law explored: what a frame draws and says, and sliders that move it."""

from __future__ import annotations

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.plotting.explore import View

WHERE = {"rtt_s": 0.02, "flows": 10.0, "capacity_bit_per_s": 50e6}


@pytest.fixture(scope="module")
def found():
    return netctrl.certify("pi2", **WHERE, packets=False)


@pytest.mark.slow
def test_a_frame_has_the_figures_and_packets_of_its_place(found) -> None:
    view = View(found)
    place = view.start._replace(flows=20.0, capacity_bit_per_s=80e6, target_s=0.01)
    picture, said = view.frame(place)
    there = {"rtt_s": 0.02, "flows": 20.0, "capacity_bit_per_s": 80e6, "parameters": {"target_s": 0.01}}
    expected = netctrl.certify("pi2", **there, packets=False).certificate.predicted
    assert picture.startswith(b"\x89PNG") and said.startswith(f"as asked: {expected.text}; packets, second half: ")
    (point,), (delay, _) = view._map.lines, view._run.lines
    assert (point.get_xdata()[0], point.get_ydata()[0]) == (20.0, 0.02)
    settled = delay.get_ydata()[len(delay.get_ydata()) // 2 :]
    assert np.mean(settled) == pytest.approx(1e3 * expected.delay_mean_s, rel=0.2)
    (shown,) = view._map.collections  # 99th percentile in ms around the place; the middle of the map is at 10 flows
    late = shown.get_array().reshape(61, 61)
    at = netctrl.certify("pi2", **there | {"flows": 10.0}, packets=False).certificate.predicted
    assert late[30, 30] == pytest.approx(1e3 * at.delay_p99_s, rel=0.02)


@pytest.mark.slow
def test_sliders_move_the_picture(found) -> None:
    pytest.importorskip("ipywidgets", reason="pip install ipywidgets")
    sliders, said, picture = (box := found.explore()).children
    flows = sliders.children[0]
    before = picture.value, said.value
    assert (flows.value, flows.description) == (10.0, "flows") and len(sliders.children) == 4
    flows.value = 30.0
    assert picture.value != before[0] and said.value != before[1]
    assert bytes(box.children[2].value).startswith(b"\x89PNG")


def test_what_has_no_loop_is_refused(found) -> None:
    with pytest.raises(InvalidValue, match="with flows and a rate"):
        View(netctrl.certify("codel", **WHERE | {"flows": 1.0}, packets=False))
    with pytest.raises(InvalidValue, match="with flows and a rate"):
        View(netctrl.certify("pi2", rtt_s=0.02, window_packets=10.0, packets=False))
