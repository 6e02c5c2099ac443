"""Queues' laws as tc's command line and as ns-3's attributes: read back, they are the law that was certified."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from netctrl.certificates.certify import subject_of
from netctrl.certificates.subject import PiSubject
from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.dualpi2 import Dualpi2Law, dualpi2_sent
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.linux.export.queue_law import queue_on_linux, tc_arguments
from netctrl.model.law import QueueLaw
from netctrl.ns3.attributes import attribute_defaults, ns3_attributes


def options(arguments: tuple[str, ...]) -> dict[str, str]:
    """Options with values of tc's command line, after the qdisc's name."""
    return {name: value for name, value in pairwise(arguments[1:]) if value[0].isdigit()}


def micro(text: str) -> int:
    return int(text.removesuffix("ms")) * 1000 if text.endswith("ms") else int(text.removesuffix("us"))


def test_pies_command_line_is_the_certified_law() -> None:
    given = {"target_s": 0.02, "tupdate_s": 0.0165, "alpha": 0.1875, "beta": 1.625}
    arguments = tc_arguments("pie", given)
    assert " ".join(arguments) == "pie target 20ms tupdate 16500us alpha 3 beta 26 noecn"
    assert "ecn" in tc_arguments("pie", given | {"ecn": True})
    found = options(arguments)
    law = PieLaw.sent(
        target_us=micro(found["target"]),
        tupdate_us=micro(found["tupdate"]),
        alpha=int(found["alpha"]),
        beta=int(found["beta"]),
    )
    subject = subject_of("pie", given)
    assert isinstance(subject, PiSubject)
    assert all(gains == law.gains((low * high) ** 0.5 if low else 0.5 * high) for low, high, gains in subject.rungs)


def test_codels_and_cakes_command_lines() -> None:
    times = {"target_s": 0.02, "interval_s": 0.2505}
    line = tc_arguments("fq_codel", times | {"ecn": False}, 20e6)
    assert " ".join(line) == "fq_codel target 20ms interval 250500us quantum 610"
    assert " ".join(tc_arguments("codel", times | {"ecn": True}, 20e6)) == "codel target 20ms interval 250500us ecn"
    line = tc_arguments("cake", {"rtt_s": 0.3, "target_s": 0.015}, 2e6)
    assert " ".join(line) == "cake bandwidth 2000000bit rtt 300ms"
    with pytest.raises(InvalidValue, match="rtt/20"):
        tc_arguments("cake", {"rtt_s": 0.3, "target_s": 0.005})


def test_dualpi2s_command_line_is_the_certified_law() -> None:
    given = {
        "tupdate_s": 0.032,
        "alpha": 7 / 256,
        "beta": 416 / 256,
        "coupling": 3,
        "step_s": 0.002,
        "drop_early": True,
    }
    arguments = tc_arguments("dualpi2", given)
    found = options(arguments)
    assert arguments[-1] == "drop_enqueue"
    law = Dualpi2Law.sent(
        target_us=micro(found["target"]),
        tupdate_us=micro(found["tupdate"]),
        alpha=dualpi2_sent(float(found["alpha"])),
        beta=dualpi2_sent(float(found["beta"])),
        coupling=int(found["coupling_factor"]),
        step_us=micro(found["step_thresh"]),
        drop_early=True,
    )
    subject = subject_of("dualpi2", given)
    assert isinstance(subject, PiSubject)
    assert (subject.sampled, subject.coupling, subject.apart_delay_s) == (law.gains, 3.0, 0.002)
    assert tc_arguments("dualpi2", {**given, "drop_early": False})[-1] == "drop_dequeue"


def test_reds_command_line_is_the_certified_law() -> None:
    given = {
        "limit_bytes": 637_152,
        "min_bytes": 30_000,
        "max_bytes": 159_288,
        "average_packet": 1000,
        "burst": 50,
        "probability": 0.04,
        "ecn": True,
    }
    arguments = tc_arguments("red", given, 20e6)
    assert arguments[-3:] == ("bandwidth", "20000000bit", "ecn")
    found = options(arguments)
    law = RedLaw.sent(
        limit_bytes=int(found["limit"]),
        average_packet=int(found["avpkt"]),
        min_bytes=int(found["min"]),
        max_bytes=int(found["max"]),
        burst=int(found["burst"]),
        probability=float(found["probability"]),
        ecn=True,
    )
    assert law == RedLaw.sent(**given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("pi2", {}),
        ("wred", {}),
        ("pie", {"implementation": "rfc"}),
        ("red", {"weight_log": 5}),
        ("red", {"gentle": True}),
    ],
)
def test_laws_that_tc_does_not_have_are_refused(name: str, given: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue, match="a law of Linux"):
        tc_arguments(name, given)


def test_the_batch_file_has_one_command_and_says_what_tc_shows() -> None:
    law = QueueLaw(
        name="dualpi2",
        implementation="Linux sch_dualpi2",
        parameters={"tupdate_s": 0.016, "alpha": 12 / 256, "beta": 1.5},
        gains={},
    )
    made = queue_on_linux(law, "eth0")
    lines = made.files["queue.tc"].splitlines()
    assert lines[1].startswith("qdisc replace dev eth0 root dualpi2 target 15ms tupdate 16ms alpha 0.046875 beta 1.5 ")
    assert len(lines) == 2
    assert "alpha 0.042969" in made.notes[1]  # 11/256
    with pytest.raises(InvalidValue):
        queue_on_linux(law, "eth0; reboot")


def test_attributes_of_ns3_are_rfc_8033s_law() -> None:
    given = {"implementation": "rfc", "alpha": 0.118, "beta": 1.5, "tupdate_s": 0.03}
    found = ns3_attributes("pie", given)
    assert (float(found["A"]), float(found["B"])) == (0.118, 1.5)
    assert (found["Tupdate"], found["QueueDelayReference"]) == ("30000000ns", "15000000ns")
    assert 'default ns3::PieQueueDisc::A "0.118"\n' in attribute_defaults(found)
    assert "TypeId" not in attribute_defaults(found)
    for name, other in (("pie", {"alpha": 0.125, "beta": 1.25}), ("dualpi2", {}), ("red", {})):
        with pytest.raises(InvalidValue, match="netctrl design pie --rfc"):
            ns3_attributes(name, other)
