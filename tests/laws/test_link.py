"""Self-clocked fair queueing: tags of first packets only, against a tag for each packet."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from kernel_parts import called

from netctrl.laws import link

choose_queue, tag_first = called(link.choose_queue), called(link.tag_first)


def by_the_equation(came: list[tuple[float, int, float]], cost: list[float]) -> list[tuple[float, int]]:
    """(begin, queue) of packets (time, queue, service), each tagged as it comes by eq. (3)."""
    left: list[tuple[float, int]] = []
    waiting: list[tuple[float, int, int, float]] = []
    last, serving, free, number = [0.0] * len(cost), 0.0, 0.0, 0
    while number < len(came) or waiting:
        if not waiting and came[number][0] > free:
            last, serving, free = [0.0] * len(cost), 0.0, came[number][0]
        while number < len(came) and came[number][0] <= free:
            _, q, service = came[number]
            last[q] = max(last[q], serving) + service * cost[q]
            waiting.append((last[q], q, number, service))
            number += 1
        first = min(waiting)
        waiting.remove(first)
        serving = first[0]
        left.append((free, first[1]))
        free += first[3]
    return left


def by_first_tags(came: list[tuple[float, int, float]], cost: list[float]) -> list[tuple[float, int]]:
    tags = np.array([inf] * len(cost) + [0.0])
    queues: list[list[float]] = [[] for _ in cost]
    left, free, number = [], 0.0, 0
    while number < len(came) or any(queues):
        if not any(queues) and came[number][0] > free:
            assert choose_queue(tags) == -1
            free = came[number][0]
        while number < len(came) and came[number][0] <= free:
            _, q, service = came[number]
            queues[q].append(service)
            if len(queues[q]) == 1:
                tag_first(tags, q, service * cost[q])
            number += 1
        q = choose_queue(tags)
        left.append((free, q))
        free += queues[q].pop(0)
        if queues[q]:
            tag_first(tags, q, queues[q][0] * cost[q])
    return left


@pytest.mark.parametrize("load", [0.5, 0.95, 1.5])
def test_first_packets_need_tags_and_no_others(load):
    """Three queues of other weights, packets of other sizes, busy periods of any length: the same order and times."""
    rng = np.random.default_rng(7)
    times = rng.exponential(1.0 / load, 2000).cumsum()
    came = [
        (float(t), int(q), float(s))
        for t, q, s in zip(times, rng.integers(3, size=2000), rng.uniform(0.5, 1.5, 2000), strict=True)
    ]
    cost = [1.0 / 0.2, 1.0 / 0.5, 1.0 / 0.3]
    assert by_first_tags(came, cost) == by_the_equation(came, cost)


def test_of_equal_tags_the_first_queue_is_served_and_an_empty_node_restarts():
    tags = np.array([inf, 4.0, 4.0, 1.0])
    assert choose_queue(tags) == 1
    assert tags.tolist() == [inf, inf, 4.0, 4.0]
    tag_first(tags, 0, 0.5)
    assert tags[0] == 4.5
    assert [choose_queue(tags) for _ in range(3)] == [2, 0, -1]
    assert tags[-1] == 0.0
