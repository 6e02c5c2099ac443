"""Who hears of what and when: matrices that are taken and refused, and the lines of a network, against networkx."""

from __future__ import annotations

import pickle
from math import inf, nan

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.model.network import Demand, Link, Network
from netctrl.model.network_model import NEVER, InformationPattern
from netctrl.plants.information import COMMUNICATIONS, information_pattern
from netctrl.synthesis.localized import region_kernels as kernels


def lines_of(pattern: InformationPattern) -> list[tuple[int, int, int]]:
    """(from node, to node, samples), as they were given."""
    starts = np.repeat(np.arange(len(pattern.offsets) - 1), np.diff(pattern.offsets))
    return list(zip(starts.tolist(), pattern.to.tolist(), pattern.samples.tolist(), strict=True))


def heard(pattern: InformationPattern, link: int, most: int = 10**6) -> list[int]:
    """When each link hears of `link`, by the kernel that the syntheses use."""
    order = np.argsort(pattern.node, kind="stable")
    offsets = np.searchsorted(pattern.node[order], np.arange(len(pattern.offsets)))
    out = np.full(len(pattern.node), -1, np.int64)
    kernels.hear(link, pattern.node, (pattern.offsets, pattern.to, pattern.samples), (offsets, order), most, out)
    return out.tolist()


NETWORK = Network(
    links=tuple(
        Link(source=a, target=b, capacity="1Gbit", delay=delay)
        for a, b, delay in [("A", "B", 0.02), ("B", "C", 0.01), ("A", "C", 0.004), ("C", "D", 0.0)]
    ),
    demands=(Demand(source="A", target="C", mean=1.0, split={"A->B": 1.0, "B->C": 1.0}),),
)
CONTROLLED = ("A->B", "B->C")


def test_messages_out_of_band_cross_every_line_both_ways() -> None:
    pattern = information_pattern(NETWORK, 0.01, CONTROLLED, "out-of-band")
    expected = [(0, 1, 2), (1, 0, 2), (1, 2, 1), (2, 1, 1), (0, 2, 0), (2, 0, 0), (2, 3, 0), (3, 2, 0)]
    assert sorted(lines_of(pattern)) == sorted(expected)  # 0.4 samples are rounded to none, as in the model
    assert pattern.node.tolist() == [0, 1]
    assert heard(pattern, 0) == [0, 1]  # by C


def test_messages_in_band_go_downstream_over_what_is_controlled() -> None:
    pattern = information_pattern(NETWORK, 0.01, CONTROLLED, "in-band")
    assert lines_of(pattern) == [(0, 1, 2), (1, 2, 1)]
    assert heard(pattern, 0) == [0, 2]
    assert heard(pattern, 1) == [NEVER, 0]


def test_word_that_takes_longer_than_asked_for_is_none() -> None:
    pattern = information_pattern(NETWORK, 0.01, CONTROLLED, "in-band")
    assert heard(pattern, 0, most=1) == [0, NEVER]
    assert heard(pattern, 0, most=2) == [0, 2]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_word_takes_the_quickest_way(seed: int) -> None:
    random = np.random.default_rng(seed)
    nodes = int(random.integers(1, 8))
    lines = [tuple(map(int, (*random.integers(0, nodes, 2), random.integers(0, 5)))) for _ in range(12)]
    pattern = InformationPattern.from_lines(random.integers(0, nodes, 6), lines, nodes)
    assert sorted(lines_of(pattern)) == sorted(lines)
    graph = networkx.MultiDiGraph()
    graph.add_nodes_from(range(nodes))
    graph.add_weighted_edges_from(lines)
    for link in range(6):
        known = networkx.single_source_dijkstra_path_length(graph, int(pattern.node[link]))
        assert heard(pattern, link) == [known.get(int(node), NEVER) for node in pattern.node]


def test_a_matrix_is_kept_as_it_is() -> None:
    delays = [[0, inf, 2], [1.0, 0, nan], [-3, 4, 0]]
    pattern = InformationPattern.from_matrix(delays)
    assert pattern.matrix.tolist() == [[0, NEVER, 2], [1, 0, NEVER], [NEVER, 4, 0]]
    assert pattern.matrix.dtype == np.int64
    assert not pattern.node.size


def test_records_can_not_be_changed_and_travel() -> None:
    given = np.zeros((2, 2))
    matrix, lines = InformationPattern.from_matrix(given), InformationPattern.from_lines(np.arange(2), [(0, 1, 3)], 2)
    given[0, 1] = 9.0
    assert matrix.matrix[0, 1] == 0
    for pattern in (matrix, lines):
        again = pickle.loads(pickle.dumps(pattern))
        for name in pattern.__slots__:
            assert not getattr(pattern, name).flags.writeable
            np.testing.assert_array_equal(getattr(again, name), getattr(pattern, name))


@pytest.mark.parametrize(
    ("delays", "got"),
    [
        ([[0.0, 1.0]], r"shape \(1, 2\)"),
        ([0.0, 1.0], r"shape \(2,\)"),
        (np.zeros((0, 0)), r"shape \(0, 0\)"),
        ([[0, 0.5], [1, 0]], r"0\.5 in row 0 and column 1"),
        ([[0, 1], [1, 2]], r"2\.0 in row 1 and column 1"),
        ([[0, 1], [1, inf]], r"inf in row 1 and column 1"),
        ([[0, 1], [1e19, 0]], r"1e\+19 in row 1 and column 0"),
        ([["a", 0], [0, 0]], "a"),
        ([[0], [0, 0]], ""),
    ],
)
def test_matrices_that_are_none_are_refused(delays: object, got: str) -> None:
    with pytest.raises(InvalidValue, match=rf"information: got .*{got}.* takes a square matrix .*inf: never"):
        InformationPattern.from_matrix(delays)


@pytest.mark.parametrize(
    ("node", "lines", "name"),
    [
        ([0, 2], [(0, 1, 1)], "node"),
        ([0, -1], [(0, 1, 1)], "node"),
        ([0.5, 1], [(0, 1, 1)], "node"),
        ([0, 1], [(0, 2, 1)], "lines"),
        ([0, 1], [(-1, 0, 1)], "lines"),
        ([0, 1], [(0, 1, -1)], "lines"),
        ([0, 1], [(0, 1, 0.5)], "lines"),
        ([0, 1], [(0, 1)], "lines"),
    ],
)
def test_lines_that_are_none_are_refused(node: list, lines: list, name: str) -> None:
    with pytest.raises(InvalidValue, match=f"^{name}: got"):
        InformationPattern.from_lines(np.array(node), lines, 2)


def test_a_network_without_lines_between_controllers_is_a_pattern_too() -> None:
    pattern = InformationPattern.from_lines(np.arange(2), [], 2)
    assert heard(pattern, 0) == [0, NEVER]


def test_what_information_pattern_does_not_know_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"communication: got 'smoke', takes out-of-band or in-band"):
        information_pattern(NETWORK, 0.01, CONTROLLED, "smoke")
    for communication in COMMUNICATIONS:
        with pytest.raises(InvalidValue, match=r"links: got 'A->Z', takes .*ids"):
            information_pattern(NETWORK, 0.01, ("A->B", "A->Z"), communication)
        with pytest.raises(InvalidValue, match="interval_s: got"):
            information_pattern(NETWORK, 0.0, CONTROLLED, communication)
