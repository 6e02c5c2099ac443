"""ARC on a router: one epoch of counters gives the fluid's law."""

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm import fluid as aqm
from netctrl.laws.aqm.arc import ArcParameters, ArcQueue, ArcState, arc_probability, arc_step
from netctrl.laws.aqm.law import Seen
from netctrl.model.law import ArcLaw

# The ARC paper's setting: alpha/d = 1.42e-5 per packet of 1000 bytes at 10 Mbit/s, utilization 0.98, d = 1 s.
PAPER = ArcLaw(
    alpha_per_packet=1.42e-5,
    alpha_per_byte=1.42e-8,
    epoch_s=1.0,
    target_utilization=0.98,
    target_queue_packets=0.0,
    capacity_bit_per_s=10e6,
    packet_size_bytes=1000.0,
)
COUNTS = st.floats(0.0, 1e7)


def test_an_epoch_by_hand():
    # 1250 packets could leave; 1300 came, 20 wait: b − 0.98 (1250 − 20) = 94.6
    assert arc_probability(PAPER, 0.01, 1.3e6, 20e3) == pytest.approx(0.01 + 1.42e-5 * 94.6, rel=1e-12)


@given(p=st.floats(0.0, 1.0), arrived=COUNTS, backlog=COUNTS, gamma=st.floats(0.5, 1.0), q0=st.floats(0.0, 100.0))
def test_the_fluid_evaluates_the_same(p, arrived, backlog, gamma, q0):
    law = msgspec.structs.replace(PAPER, target_utilization=gamma, target_queue_packets=q0)
    queue = ArcQueue(alpha=1.42e-5, epoch=1.0, target_utilization=gamma, target_queue=q0 * 1000.0)
    kind, parameters = aqm.law_of(queue, 1000.0, None)
    state = np.zeros(aqm.STATES)
    state[aqm.PROBABILITY], state[aqm.ARRIVED] = p, arrived / 1000.0
    seen = aqm.Sample(now=1.0, step=0.1, backlog=backlog / 1000.0, enqueued=0.0, arrivals=0.0, capacity=1250.0)
    expected = aqm.probability(kind, parameters, state, seen)
    assert arc_probability(law, p, arrived, backlog) == pytest.approx(expected, rel=1e-12, abs=1e-15)


@given(arrived=COUNTS, backlog=COUNTS, header=st.floats(0.0, 100.0))
def test_headers_in_all_counts_change_nothing(arrived, backlog, header):
    longer = (1000.0 + header) / 1000.0
    plain = arc_probability(PAPER, 0.2, arrived, backlog)
    with_headers = arc_probability(PAPER, 0.2, arrived * longer, backlog * longer, header_bytes=header)
    assert with_headers == pytest.approx(plain, rel=1e-9)


@given(p=st.floats(0.0, 1.0), b=COUNTS, q=COUNTS, alpha=st.floats(1e-9, 1.0))
def test_it_stays_a_probability_and_rises_with_what_came(p, b, q, alpha):
    law = ArcParameters(alpha, 0.98, 0.0)
    found, more = (arc_step(ArcState(p), Seen(1.0, came, 0.0, q, 1250.0), law).probability for came in (b, b + 1.0))
    assert 0.0 <= found <= more <= 1.0


def test_a_late_epoch_could_have_served_more():
    assert arc_probability(PAPER, 0.5, 2.45e6, 0.0, elapsed_s=2.0) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"probability": 1.1}, "probability"),
        ({"arrived_bytes": -1.0}, "arrived_bytes"),
        ({"backlog_bytes": float("nan")}, "backlog_bytes"),
        ({"elapsed_s": 0.0}, "elapsed_s"),
        ({"header_bytes": -1.0}, "header_bytes"),
    ],
)
def test_bad_counts_are_named(change, named):
    given = {"probability": 0.1, "arrived_bytes": 1.0, "backlog_bytes": 1.0} | change
    with pytest.raises(InvalidValue, match=named):
        arc_probability(PAPER, **given)
