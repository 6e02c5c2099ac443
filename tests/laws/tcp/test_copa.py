"""Copa's mode beside senders that fill buffers, by hand."""

from math import inf

import numpy as np
import pytest

from netctrl.laws.record import as_record, width
from netctrl.laws.tcp.copa import CopaState, _compete


def test_its_aim_is_a_reno_s_window_while_the_queue_is_never_nearly_empty():
    """RTTs of 100 to 150 ms, acknowledged each 5 ms: nearly empty is a queue below 5 ms. Five round trips after the
    last such one 1/δ grows by 1 in each, is halved once by the losses of one, and is 2 packets at the next such one."""
    s = as_record(CopaState, np.zeros(width(CopaState)))
    s.rtt, s.min_rtt, s.min_before, s.aim, s.empty_s = 0.1, 0.1, inf, 2.0, 9.9

    def hear(start: float, trips: float, queueing: float, lost: int = 0) -> float:
        for k in range(round(20 * trips)):
            _compete(s, start + 0.005 * k, 0.1 + queueing, queueing, k < lost)
        return s.aim

    assert hear(10.0, 2.0, 0.05) == 2.0
    assert hear(10.2, 1.0, 0.0049) == 2.0
    assert hear(10.3, 4.5, 0.05) == 2.0
    assert hear(10.75, 20.0, 0.05) == pytest.approx(2.0 + 20.0, abs=2.0)
    before = s.aim
    assert hear(12.75, 0.5, 0.05, lost=8) == pytest.approx(0.5 * before, abs=1.0)
    assert hear(12.9, 10.0, 0.05) > 0.5 * before + 8.0
    assert hear(13.9, 0.05, 0.0051) > 2.0
    assert hear(13.905, 0.05, 0.0049) == 2.0
