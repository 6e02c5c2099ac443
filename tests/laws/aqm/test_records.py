"""Queue disciplines as records: every parameter is checked by its name, text and SI numbers give equal records."""

from __future__ import annotations

import math

import msgspec
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.arc import ArcQueue, RateError, arc_queue
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import QUEUES, DesignQueue, DropTailQueue, Queue
from netctrl.laws.aqm.red import RedQueue
from netctrl.laws.aqm.sfc import SfcQueue
from netctrl.laws.aqm.threshold import ThresholdQueue
from netctrl.laws.l4s.pi2 import Pi2Queue
from netctrl.laws.targets.docsis_pie import DocsisPieQueue
from netctrl.model.law import ArcLaw

KINDS = ["arc", "fast-arc", "pi", "avq", "sfc", "red", "pie", "codel", "threshold", "pi2", "docsis-pie"]
KINDS += ["droptail", "design"]

ERRORS = tuple(RateError(amplitude=a, frequency_rad_s=0.1, start=t) for a, t in (("1Mbit", "10s"), (1e6, 10)))
# Each queue with nothing at its default: a value, or the quantity as text and the same in SI numbers.
WRITTEN = {
    ArcQueue: {
        **{"alpha": 2e-5, "target_utilization": 0.9, "rate_error": ERRORS},
        **{"epoch": ("500ms", 0.5), "target_queue": ("50kB", 50e3)},
    },
    FastArcQueue: {
        **{"alpha": 2e-5, "target_utilization": 0.9, "phi": (2, 2.0)},
        **{"epoch": ("2s", 2), "target_queue": ("1kB", 1000)},
    },
    PiQueue: {"alpha": 2e-5, "beta": 1e-5, "frequency_hz": (160, 160.0), "reference_queue": ("20kB", 20e3)},
    AvqQueue: {"target_utilization": 0.9, "damping": 0.2, "virtual_buffer": ("100kB", 1e5)},
    SfcQueue: {"k1": 0.001, "k2": 0.0, "epoch": ("100ms", 0.1), "target_queue": ("5kB", 5000)},
    RedQueue: {
        **{"max_probability": 0.2, "weight": 0.01, "gentle": False, "adaptive": True, "spaced": False},
        **{"min_threshold": ("10kB", 10e3), "max_threshold": ("30kB", 30e3)},
    },
    PieQueue: {
        **{"alpha": 0.2, "beta": (1, 1.0)},
        **{"target": ("20ms", 0.02), "update": ("10ms", 0.01), "burst": ("0s", 0.0)},
    },
    CodelQueue: {"target": ("10ms", 0.01), "interval": ("200ms", 0.2)},
    ThresholdQueue: {"threshold": ("20kB", 20e3)},
    Pi2Queue: {
        **{"alpha": 0.2, "beta": (1, 1.0), "coupling": (1, 1.0)},
        **{"target": ("20ms", 0.02), "update": ("10ms", 0.01)},
    },
    DocsisPieQueue: {
        **{"alpha": 0.2, "beta": (1, 1.0), "max_burst": ("100ms", 0.1)},
        **{"latency_target": ("20ms", 0.02), "interval": ("8ms", 0.008)},
    },
    DropTailQueue: {},
    DesignQueue: {},
}


def written(fields: dict, way: int) -> dict:
    """Fields as text (0) or in SI numbers (1)."""
    return {name: value[way] if isinstance(value, tuple) else value for name, value in fields.items()}


def test_the_kinds_are_the_ones_that_files_name() -> None:
    assert [str(kind.__struct_config__.tag) for kind in QUEUES] == KINDS
    assert tuple(WRITTEN) == QUEUES


@pytest.mark.parametrize("kind", QUEUES, ids=KINDS)
def test_text_and_numbers_give_equal_records_that_come_back(kind) -> None:
    text, numbers = (kind(**written(WRITTEN[kind], way)) for way in (0, 1))
    assert text == numbers
    assert all(getattr(text, name) != getattr(kind(), name) for name in text.__struct_fields__)
    assert hash(text) == hash(numbers)
    for again in (
        msgspec.json.decode(msgspec.json.encode(text), type=Queue),
        type(text)(**msgspec.structs.asdict(text)),
    ):
        assert again == text
        assert type(again) is type(text)
    for name in text.__struct_fields__:
        assert not isinstance(getattr(text, name), str | int) or isinstance(getattr(text, name), bool)


@pytest.mark.parametrize("kind", QUEUES, ids=KINDS)
def test_defaults_are_a_queue_and_are_no_secret(kind) -> None:
    tag = str(kind.__struct_config__.tag)
    assert msgspec.convert({"kind": tag}, Queue) == kind()
    assert msgspec.to_builtins(kind())["kind"] == tag


def test_defaults_of_the_paper() -> None:
    """ARC paper, Section IV."""
    arc, pi, avq, sfc = ArcQueue(), PiQueue(), AvqQueue(), SfcQueue()
    assert (arc.alpha, arc.epoch, arc.target_utilization, arc.target_queue) == (1.42e-5, 1.0, 0.98, 0.0)
    assert (pi.alpha, pi.beta, pi.frequency_hz) == (1.822e-5, 1.816e-5, 170.0)
    assert (avq.target_utilization, avq.damping, avq.virtual_buffer) == (0.98, 0.15, None)
    assert (sfc.k1, sfc.k2, sfc.epoch) == (0.0005, 0.2, 1.0)


# Parameters that must be above 0, and those that may be 0.
POSITIVE = [(ArcQueue, "alpha"), (ArcQueue, "epoch"), (ArcQueue, "target_utilization"), (FastArcQueue, "alpha")]
POSITIVE += [(FastArcQueue, "epoch"), (FastArcQueue, "phi"), (PiQueue, "alpha"), (PiQueue, "frequency_hz")]
POSITIVE += [(AvqQueue, "target_utilization"), (AvqQueue, "damping"), (AvqQueue, "virtual_buffer"), (SfcQueue, "k1")]
POSITIVE += [(SfcQueue, "epoch"), (RedQueue, "min_threshold"), (RedQueue, "max_threshold"), (RedQueue, "weight")]
POSITIVE += [(RedQueue, "max_probability"), (PieQueue, "target"), (PieQueue, "update"), (PieQueue, "alpha")]
POSITIVE += [(FastArcQueue, "target_utilization"), (CodelQueue, "target"), (CodelQueue, "interval")]
POSITIVE += [(ThresholdQueue, "threshold"), (Pi2Queue, "target"), (Pi2Queue, "update"), (Pi2Queue, "alpha")]
POSITIVE += [(Pi2Queue, "coupling"), (DocsisPieQueue, "latency_target"), (DocsisPieQueue, "interval")]
POSITIVE += [(DocsisPieQueue, "alpha")]
FROM_0 = [(ArcQueue, "target_queue"), (FastArcQueue, "target_queue"), (PiQueue, "beta"), (PiQueue, "reference_queue")]
FROM_0 += [(SfcQueue, "k2"), (SfcQueue, "target_queue"), (PieQueue, "beta"), (PieQueue, "burst"), (Pi2Queue, "beta")]
FROM_0 += [(DocsisPieQueue, "beta"), (DocsisPieQueue, "max_burst")]


def test_no_parameter_is_left_out_of_the_two_lists() -> None:
    there = {(kind, name) for kind in QUEUES for name in kind.__struct_fields__}
    flags = {(RedQueue, name) for name in ("gentle", "adaptive", "spaced")}
    assert there == {*POSITIVE, *FROM_0, *flags, (ArcQueue, "rate_error")}


@pytest.mark.parametrize("value", [-1, -1e-300, math.nan, math.inf, -math.inf, 1e300, True, "much", [1]], ids=str)
@pytest.mark.parametrize(("kind", "name"), POSITIVE + FROM_0, ids=lambda part: getattr(part, "__name__", part))
def test_every_parameter_is_checked_by_its_name(kind, name, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        kind(**{name: value})
    assert refusal.value.argument == name
    assert refusal.value.got is value
    assert refusal.value.takes


@pytest.mark.parametrize(("kind", "name"), POSITIVE + FROM_0, ids=lambda part: getattr(part, "__name__", part))
def test_zero_is_taken_where_it_means_something(kind, name) -> None:
    if (kind, name) in FROM_0:
        assert getattr(kind(**{name: 0}), name) == 0.0
    else:
        with pytest.raises(InvalidValue):
            kind(**{name: 0})


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (ArcQueue, "target_utilization"),
        (AvqQueue, "target_utilization"),
        (RedQueue, "max_probability"),
        (RedQueue, "weight"),
    ],
)
def test_shares_end_at_one(kind, name) -> None:
    assert getattr(kind(**{name: 1}), name) == 1.0
    with pytest.raises(InvalidValue, match=r"\(0, 1\]"):
        kind(**{name: 1.0 + 1e-9})


def test_what_must_be_above_something_else() -> None:
    with pytest.raises(InvalidValue, match="max_threshold: got 10000"):
        RedQueue(min_threshold="10kB", max_threshold="10kB")
    with pytest.raises(InvalidValue, match="phi"):
        FastArcQueue(phi=1.0)


@pytest.mark.parametrize("optional", [{"virtual_buffer": None}], ids=str)
def test_none_is_taken_only_where_it_means_something(optional) -> None:
    assert AvqQueue(**optional).virtual_buffer is None
    for kind, name in [*POSITIVE, *FROM_0]:
        if name not in optional:
            with pytest.raises(InvalidValue, match="got None"):
                kind(**{name: None})


def test_a_rate_error_may_be_a_dict() -> None:
    found = ArcQueue(rate_error={"amplitude": "1Mbit", "frequency_rad_s": 1}).rate_error
    assert (found.amplitude, found.frequency_rad_s) == (1e6, 1.0)


@pytest.mark.parametrize("wrong", [5, {"amplitude": "1Mbit", "frequency": 1}, "1Mbit"], ids=str)
def test_what_is_no_rate_error_is_refused(wrong) -> None:
    with pytest.raises(InvalidValue, match="rate_error"):
        ArcQueue(rate_error=wrong)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"amplitude": 0, "frequency_rad_s": 1.0}, "amplitude"),
        ({"amplitude": math.nan, "frequency_rad_s": 1.0}, "amplitude"),
        ({"amplitude": "1Mbit", "frequency_rad_s": 0.0}, "frequency_rad_s"),
        ({"amplitude": "1Mbit", "frequency_rad_s": 1.0, "start": -1}, "start"),
    ],
)
def test_a_rate_error_checks_its_values(values, named) -> None:
    with pytest.raises(InvalidValue) as refusal:
        RateError(**values)
    assert refusal.value.argument == named


LAW = ArcLaw(
    alpha_per_packet=2e-5,
    alpha_per_byte=2e-8,
    epoch_s=0.5,
    target_utilization=0.9,
    target_queue_packets=50.0,
    capacity_bit_per_s=20e6,
    packet_size_bytes=1000.0,
)


@pytest.mark.parametrize("packet_size", [1000.0, 1500.0, 250.0])
def test_the_law_of_a_design_runs_with_packets_of_any_size(packet_size) -> None:
    """The gain per byte and the target queue in bytes stay."""
    queue = arc_queue(LAW, packet_size)
    assert queue.alpha / packet_size == pytest.approx(2e-8, rel=1e-15)
    assert (queue.epoch, queue.target_utilization, queue.target_queue) == (0.5, 0.9, 50e3)
    assert queue.rate_error is None


def test_the_law_of_a_real_design_is_a_queue() -> None:
    law = netctrl.arc(50).law
    assert arc_queue(law, law.packet_size_bytes).alpha == pytest.approx(law.alpha_per_packet, rel=1e-14)
