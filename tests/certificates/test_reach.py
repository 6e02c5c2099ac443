"""How far the design rule is kept, against certificates of single points."""

from __future__ import annotations

import numpy as np
import pytest

from netctrl.certificates.certify import certify
from netctrl.certificates.search import _outwards

BOXES = [
    ("pie", (8.0, 24.0), 50e6, "reno", {}),
    ("docsis-pie", (10.0, 20.0), 50e6, "reno", {}),
    ("dualpi2", (20.0, 40.0), 60e6, "reno+dctcp", {}),
    ("pi2", (12.0, 12.0), 30e6, "creno", {"alpha": 0.3, "beta": 2.0}),
    ("red", (10.0, 13.0), 20e6, "reno", {"limit_bytes": 600_000, "probability": 0.02, "gentle": True}),
]


def kept(law: str, flows, capacity: float, sender: str, parameters: dict, rtt: float) -> bool:
    """Whether a range of flows keeps 6 dB and 30 degrees, by the criterion of the verdict."""
    found = certify(
        law, rtt_s=rtt, flows=flows, capacity_bit_per_s=capacity, senders=sender, parameters=parameters
    ).certificate
    assert found.sampled is not None
    return not found.lacking


@pytest.mark.parametrize(("law", "flows", "capacity", "sender", "parameters"), BOXES)
def test_up_to_the_longest_round_trip_all_flows_keep_the_rule(law, flows, capacity, sender, parameters) -> None:
    found = certify(
        law, rtt_s=0.025, flows=flows, capacity_bit_per_s=capacity, senders=sender, parameters=parameters
    ).certificate.reach
    longest = found.longest_rtt_s
    assert kept(law, flows, capacity, sender, parameters, 0.999 * longest)
    assert not kept(law, flows, capacity, sender, parameters, 1.002 * longest)


def test_a_range_of_flows_that_ends_on_a_steeper_line_has_no_round_trip() -> None:
    """With 30 flows gentle RED is on its second line, unstable; with 10 flows alone it would keep 6 dB to 48 ms."""
    law, _, capacity, sender, parameters = BOXES[-1]
    found = certify(
        law, rtt_s=0.01, flows=(10.0, 30.0), capacity_bit_per_s=capacity, parameters=parameters
    ).certificate.reach
    assert found.longest_rtt_s is None
    assert not kept(law, (10.0, 30.0), capacity, sender, parameters, 1e-4)


@pytest.mark.parametrize(("law", "sender"), [("dualpi2", "reno"), ("pie", "creno")])
def test_down_to_the_fewest_flows_the_longest_round_trip_keeps_the_rule(law: str, sender: str) -> None:
    found = certify(law, rtt_s=(0.02, 0.08), flows=60.0, capacity_bit_per_s=60e6, senders=sender).certificate.reach
    assert kept(law, 1.001 * found.fewest_flows, 60e6, sender, {}, 0.08)
    assert not kept(law, 0.999 * found.fewest_flows, 60e6, sender, {}, 0.08)


def test_the_largest_window_keeps_the_rule() -> None:
    found = certify("dualpi2", rtt_s=0.09, window_packets=3.0).certificate.reach
    ends = [
        certify("dualpi2", rtt_s=0.09, window_packets=factor * found.largest_window_packets).certificate
        for factor in (0.999, 1.001)
    ]
    assert [end.lacking for end in ends] == [False, True]


def test_a_box_that_keeps_the_rule_has_a_reach_even_if_more_flows_do_not() -> None:
    """With 30 flows gentle RED is on its second line, unstable; down to 9 flows it keeps 6 dB."""
    law, _, capacity, sender, parameters = BOXES[-1]
    found = certify(law, rtt_s=0.03, flows=(10.0, 12.0), capacity_bit_per_s=capacity, parameters=parameters).certificate
    assert found.sampled is not None
    assert not found.lacking
    assert found.reach.fewest_flows is not None
    fewest = found.reach.fewest_flows
    assert fewest < 10.0
    assert kept(law, 1.001 * fewest, capacity, sender, parameters, 0.03)
    assert not kept(law, 0.999 * fewest, capacity, sender, parameters, 0.03)
    assert not kept(law, 30.0, capacity, sender, parameters, 0.03)


@pytest.mark.parametrize("start", [1.0, 1.7, 99.0])
@pytest.mark.parametrize("root", [1e-5, 1e-3, 0.02, 0.5, 3.0])
@pytest.mark.parametrize("likely", [False, True])
def test_a_reach_is_found_from_wherever_it_ends(root: float, start: float, likely: bool) -> None:
    """Of a margin that falls to 0 at e^root, where the least value itself counts as kept; a guess may be wrong."""
    search = _outwards(1.0, start, 100.0, likely)
    asked, found = next(search), None
    while found is None:
        try:
            asked = search.send(np.where(asked == 0.0, np.inf, root - asked))
        except StopIteration as end:
            found = end.value
    assert np.exp(root) * (1.0 - 1.1e-4) <= found <= np.exp(root)
