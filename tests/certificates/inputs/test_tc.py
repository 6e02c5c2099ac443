"""Queues from tc's output: real output of Linux, values that tc rounds, and what is refused by name."""

import json
import re
import shutil

import numpy as np
import pytest
from installed import DUALPI2, PIE, RED, entry
from places import TESTS

from netctrl.certificates.inputs.queue import MAX_BYTES
from netctrl.certificates.inputs.read import read_queues
from netctrl.certificates.inputs.tc import NO_LAW, OPTIONS
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.targets.dualpi2 import Dualpi2Law, dualpi2_sent, dualpi2_shown
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw

DATA = TESTS / "data" / "tc"
GOOD = {"pie": PIE, "dualpi2": DUALPI2, "red": RED}


def law_of(kind, options, hz=250):
    (queue,) = read_queues(text=json.dumps([entry(kind, options)]), hz=hz)
    return queue.law


def test_output_with_details():
    queues = read_queues(text=(DATA / "details.json").read_text(), hz=1000)
    laws = {queue.device: queue.law for queue in queues if queue.law is not None}
    times = [laws.pop(device).codel[:2] for device in ("lo", "d6")]
    assert np.array(times) == pytest.approx(np.array([(5e-3, 0.1)] * 2), abs=1.5e-6)
    thresholds = {"min_bytes": 30_000, "max_bytes": 90_000, "burst": 55}
    assert laws == {
        "d0": PieLaw.sent(limit=2000, target_us=20_000, ecn=True, hz=1000),
        "d1": PieLaw.sent(target_us=10, tupdate_us=30_000, bytemode=True, dq_rate_estimator=True, hz=1000),
        "d2": PieLaw.sent(limit=10_240, flows=4096, ecn=True, hz=1000),
        "d3": Dualpi2Law(),
        "d4": Dualpi2Law.sent(
            alpha=dualpi2_sent(0.16), beta=dualpi2_sent(3.2), target_us=20_000, step_packets=20, drop_overload=False
        ),
        "d5": RedLaw.sent(limit_bytes=400_000, average_packet=1000, ecn=True, adaptive=True, **thresholds),
    }
    assert {queue.device: queue.kind for queue in queues if queue.reason} == {"d0": "htb", "d7": "choke"}
    names = [queue.name for queue in queues]
    assert names[:3] == ["codel 8008: on lo, root", "htb 1: on d0, root", "pie 2: on d0, parent 1:10"]
    assert [queue.probability for queue in queues if queue.kind in ("pie", "dualpi2")] == [0.0] * 4


def test_output_without_details_lacks_red_s_weight():
    queues = json.loads((DATA / "plain.json").read_text())
    found = read_queues(text=json.dumps(queues), hz=1000)
    (red,) = [queue for queue in found if queue.kind == "red"]
    assert red.name == "red 8005: on d5, root"
    assert red.unreadable
    assert re.match(r"ewma: got nothing, .* `tc -d -j qdisc show`", red.reason)
    detailed = read_queues(text=(DATA / "details.json").read_bytes(), hz=1000)
    assert [queue.law for queue in found if queue is not red] == [q.law for q in detailed if q.kind != "red"]
    assert {queue.probability for queue in found} == {None}


def test_output_of_a_tc_that_doesn_t_know_a_discipline():
    found = read_queues(text=(DATA / "tc-6.1.txt").read_text())
    unknown = [queue for queue in found if "newer iproute2" in queue.reason]
    assert [queue.name for queue in unknown] == ["dualpi2 8003: on d3, root", "dualpi2 8004: on d4, root"]
    assert all(queue.unreadable for queue in unknown)
    detailed = {queue.device: queue.law for queue in read_queues(text=(DATA / "details.json").read_bytes())}
    assert all(queue.law == detailed[queue.device] for queue in found if queue.kind in ("pie", "fq_pie"))


@pytest.mark.parametrize(
    ("shown", "hz"), [([15_000], 1000), ([16_000], 250), ([16_666], 300), ([20_000], 100), ([20_000, 16_000], 250)]
)
def test_the_intervals_that_pie_shows_name_the_kernels_clock(shown, hz):
    """What each kernel shows for the default of 15 ms, and a second pie with 20 ms on one machine."""
    queues = read_queues(text=json.dumps([entry("pie", PIE | {"tupdate": us}) for us in shown]))
    assert [queue.law.hz for queue in queues] == [hz] * len(shown)
    assert [queue.law.shown["tupdate"] for queue in queues] == shown
    assert all(f"taken as {hz}" in queue.notes[0] for queue in queues)
    assert queues[0].law == read_queues(text=json.dumps([entry("pie", PIE | {"tupdate": shown[0]})]), hz=hz)[0].law


def test_intervals_of_two_machines_have_a_clock_each_and_one_that_fits_none_is_named():
    shown = (15_000, 16_666, 15_001)
    first, second, third = read_queues(text=json.dumps([entry("pie", PIE | {"tupdate": us}) for us in shown]))
    assert (first.law.hz, second.law.hz) == (1000, 300)
    assert (third.law, third.unreadable) == (None, True)
    assert third.reason.startswith("tupdate: got 15001, takes a whole number of the kernel's ticks")


@pytest.mark.parametrize(
    "bad",
    [
        entry("pie", PIE | {"alpha": None}),
        entry("pie", PIE | {"max_burst": 150}),
        entry("red", RED | {"max": 10}),
        entry("dualpi2", {}),
        entry("pei", PIE),
        {"kind": "pie"},
        5,
    ],
)
def test_one_unreadable_discipline_is_named_and_the_others_are_read(bad):
    first, unread, last = read_queues(text=json.dumps([entry("pie", PIE), bad, entry("red", RED)]))
    assert first.law == law_of("pie", PIE)
    assert last.law == law_of("red", RED)
    assert (unread.law, unread.unreadable) == (None, True)
    assert unread.reason


def test_every_shown_target_leads_to_a_law_that_shows_it():
    for sent in (*range(1, 200), 14_999, 15_000, 15_001, 4_294_967):
        law = PieLaw.sent(target_us=sent)
        read = law_of("pie", PIE | {"target": law.shown["target"]})
        assert read.shown["target"] == law.shown["target"]
        assert abs(read.target_ticks - law.target_ticks) * 64 < 1064, sent  # 1 us, and a tick


@pytest.mark.parametrize("hz", [100, 250, 300, 1000])
def test_every_shown_interval_leads_to_its_jiffies(hz):
    for sent in (1, 999, 3334, 15_000, 16_000, 30_001, 1_000_000, 1_400_000_000):
        law = PieLaw.sent(tupdate_us=sent, hz=hz)
        assert law_of("pie", PIE | {"tupdate": law.shown["tupdate"]}, hz).update_jiffies == law.update_jiffies


def test_every_shown_gain_leads_to_what_was_sent():
    for steps in (*range(1, 3000), 51_200, 100_000):
        shown = float(f"{dualpi2_shown(steps) / 256:g}")
        law = law_of("dualpi2", DUALPI2 | {"alpha": shown, "beta": shown})
        assert law == Dualpi2Law.sent(alpha=steps, beta=steps), steps
    large = Dualpi2Law.sent(alpha=2**30, beta=800_000_000)
    shown = {name: float(f"{large.shown[name]:g}") for name in ("alpha", "beta")}
    assert law_of("dualpi2", DUALPI2 | shown).gains.integral == pytest.approx(large.gains.integral, rel=1e-5)


def test_red_s_older_probability():
    law = law_of("red", {**{k: v for k, v in RED.items() if k != "probability"}, "Plog": 22})
    assert law.max_probability == (2**32 - 1 >> 22) * 60_000
    assert law_of("red", RED | {"probability": 1.0}).max_probability == 2**32 - 1


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("pie", {"tupdate": 15_000}, r"tupdate: got 15000, .* at 250 Hz; it is one at CONFIG_HZ = 1000"),
        ("pie", {"tupdate": 15_001}, "tupdate: got 15001, takes a whole number of the kernel's ticks in us, here"),
        ("pie", {"tupdate": 0}, "tupdate: got 0"),
        ("pie", {"target": -1}, "target: got -1"),
        ("pie", {"target": 2**32}, "target: got 4294967296"),
        ("pie", {"alpha": 2.5}, "alpha: got 2.5, takes a whole number"),
        ("pie", {"alpha": 2**32}, "alpha: got 4294967296"),
        ("pie", {"alpha": None}, "alpha: got nothing, takes a whole number"),
        ("pie", {"ecn": 1}, "ecn: got 1, takes true or false"),
        ("pie", {"max_burst": 150}, "unknown key `max_burst`"),
        ("dualpi2", {"alpha": 0.1563}, "alpha: got 0.1563, takes a gain in 1/s as tc prints it"),
        ("dualpi2", {"beta": -3.0}, "beta: got -3.0"),
        ("dualpi2", {"beta": 1e8}, "beta: got 100000000.0"),
        ("dualpi2", {"coupling": 0}, "coupling: got 0"),
        ("dualpi2", {"drop-overload": "never"}, "drop"),
        ("dualpi2", {"step-thresh-pkts": 5}, "step_thresh: got"),
        ("dualpi2", {"memory_limit": 5}, "unknown key `memory_limit`"),
        ("red", {"probability": 0.0}, "probability: got 0.0"),
        ("red", {"max": 10}, "max: got 10"),
        ("red", {"ewma": 32}, "weight_log: got 32"),
        ("red", {"min": 2**26}, "min: got 67108864"),
        ("red", {"nodrop": True, "ecn": False}, "nodrop: got true"),
    ],
)
def test_what_isn_t_taken_is_named(kind, change, said):
    (queue,) = read_queues(text=json.dumps([entry(kind, GOOD[kind] | change)]), hz=250)
    assert (queue.name, queue.law, queue.unreadable) == (f"{kind} 2: on eth0, root", None, True)
    assert re.search(said, queue.reason)


@pytest.mark.parametrize(("kind", "key"), [(kind, key) for kind, good in GOOD.items() for key in good])
def test_missing_options_are_named(kind, key):
    options = {name: value for name, value in GOOD[kind].items() if name != key}
    if key in ("ecn", "Scell_log", "split-gso"):
        assert law_of(kind, options) is not None
        return
    (queue,) = read_queues(text=json.dumps([entry(kind, options)]))
    assert (queue.law, queue.unreadable) == (None, True)
    assert key in queue.reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "not a file that netctrl knows"),
        ("{}", "not a file that netctrl knows: `tc qdisc show`"),
        ("[]", "no queueing discipline"),
        ("[5]", "not a file that netctrl knows"),
        ('[{"kind": 5}]', "not the output of `tc -j qdisc show`"),
        ('[{"kind": "pie"}]', "handle"),
        ('[{"kind": "pie", "kind": "red"}]', "occurs twice"),
        ("[" * 100_000, "nested too deeply|not JSON"),
        (b"\xff", "not UTF-8 text; `docsis -d`"),
        ("\ud800", "not UTF-8"),
        (5, "takes text"),
    ],
)
def test_text_that_isn_t_tc_s(text, said):
    with pytest.raises(FileError, match=said):
        read_queues(text=text)


def test_an_unknown_discipline_is_named_with_a_likely_one():
    (queue,) = read_queues(text=json.dumps([entry("pei", PIE)]))
    assert (queue.name, queue.reason) == ("pei 2: on eth0, root", "unknown discipline 'pei'; did you mean 'pie'?")


def test_large_inputs_are_refused():
    one = json.dumps([entry("pfifo_fast", {})])
    assert len(read_queues(text=one + " " * (MAX_BYTES - len(one)))) == 1
    with pytest.raises(FileError, match="larger than the 16 MiB"):
        read_queues(text=one + " " * (MAX_BYTES - len(one) + 1))


def test_hz_is_one_that_kernels_have():
    with pytest.raises(InvalidValue, match="hz"):
        read_queues(text="[]", hz=60)


def test_each_kind_is_in_one_table():
    assert not OPTIONS.keys() & NO_LAW.keys()
    for kind, reason in NO_LAW.items():
        (queue,) = read_queues(text=json.dumps([entry(kind, {"any": 1})]))
        assert (queue.law, queue.reason) == (None, reason)


COMMANDS = """
set -e
for d in d0 d1 d2; do ip link add $d type dummy; ip link set $d up; done
tc qdisc add dev d0 root pie target 8ms tupdate 30ms alpha 3 beta 31 ecn
tc qdisc add dev d1 root fq_pie alpha 5 flows 4096 ecn_prob 20
tc qdisc add dev d2 root red limit 900000 min 60000 max 150000 avpkt 1500 burst 60 probability 0.1 bandwidth 1Gbit
tc -j -d qdisc show
"""


@pytest.mark.needs("lab")
@pytest.mark.skipif(shutil.which("tc") is None, reason="tc isn't on PATH; remedy: `apt-get install iproute2`")
def test_what_tc_sets_in_the_kernel_is_read_back(tmp_path):
    from netctrl.kernel.command import run_command
    from netctrl.kernel.config import HZ

    ended = run_command(["sh", "-c", COMMANDS], tmp_path)
    assert ended.status == 0, ended.stderr
    laws = {queue.device: queue.law for queue in read_queues(text=ended.stdout, hz=HZ) if queue.law is not None}
    assert laws == {
        "d0": PieLaw.sent(target_us=8000, tupdate_us=30_000, alpha=3, beta=31, ecn=True, hz=HZ),
        "d1": PieLaw.sent(alpha=5, flows=4096, ecn_prob=20, limit=10_240, hz=HZ),
        "d2": RedLaw.sent(
            limit_bytes=900_000, min_bytes=60_000, max_bytes=150_000, average_packet=1500, burst=60, probability=0.1
        ),
    }
