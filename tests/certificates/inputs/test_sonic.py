"""WRED profiles of SONiC: the one that it ships, colours, ECN's own thresholds, and what is refused by name."""

import json
import re
from math import inf

import pytest
from installed import wred_profile

from netctrl.certificates.inputs.read import read_queues
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.targets.wred import WredLaw

COLOURS = ("green", "yellow", "red")
AZURE = wred_profile(colours=COLOURS)


def config(profile, name="AZURE_LOSSLESS"):
    return json.dumps({"DEVICE_METADATA": {"localhost": {"hwsku": "any"}}, "WRED_PROFILE": {name: profile}})


def test_the_shipped_profile():
    queues = read_queues(text=config(AZURE))
    law = WredLaw(min_bytes=2**20, max_bytes=2**21, max_percent=5, ecn=True)
    assert [(queue.name, queue.law) for queue in queues] == [
        (f"wred AZURE_LOSSLESS, {colour}", law) for colour in COLOURS
    ]
    points = {0: 0.0, 2**20 - 1: 0.0, 3 * 2**19: 0.025, 2**21: 0.05, 2**21 + 1: 1.0}
    assert {q: law.probability(q) for q in points} == pytest.approx(points)
    assert law.slope == pytest.approx((law.probability(2**20 + 1000) - law.probability(2**20)) / 1000)


def test_colours_and_defaults():
    profile = {"wred_yellow_enable": "true", "ecn": "ecn_green", "yellow_min_threshold": "7", "yellow_max_threshold": 9}
    (queue,) = read_queues(text=config(profile))
    assert queue.law == WredLaw(min_bytes=7, max_bytes=9, max_percent=100, ecn=False)
    assert queue.parent == "yellow"
    (off,) = read_queues(text=config({"ecn": "ecn_none"}))
    assert (off.law, off.reason) == (None, "WRED is off for all colours")


def test_thresholds_of_ecn_s_own():
    own = {"ecn_green_min_threshold": "1000", "ecn_green_max_threshold": "2000"}
    green = {key: value for key, value in AZURE.items() if key == "ecn" or "green" in key} | own
    assert read_queues(text=config(green))[0].law == WredLaw(min_bytes=1000, max_bytes=2000, max_percent=100, ecn=True)
    (queue,) = read_queues(text=config(green | {"ecn_green_mark_probability": "20"}))
    assert queue.law == WredLaw(min_bytes=1000, max_bytes=2000, max_percent=20, ecn=True)


def test_equal_thresholds_are_a_step():
    law = WredLaw(min_bytes=100, max_bytes=100, max_percent=40)
    assert [law.probability(q) for q in (99, 100, 101)] == [0.0, 0.4, 1.0]
    assert law.slope == inf
    with pytest.raises(InvalidValue, match="backlog_bytes"):
        law.probability(-1.0)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"ecn": "ecn_blue"}, "ecn: got 'ecn_blue', takes one of ecn_none"),
        ({"ecn": True}, "ecn: got true"),
        ({"wred_green_enable": "yes"}, "wred_green_enable: got 'yes', takes true or false"),
        ({"green_min_threshold": None}, "green_min_threshold: got nothing, takes a whole number"),
        ({"green_max_threshold": "1e6"}, "green_max_threshold: got '1e6'"),
        ({"green_max_threshold": "-5"}, "green_max_threshold: got '-5'"),
        ({"green_max_threshold": "100"}, "green_max_threshold: got 100, takes at least green_min_threshold, 1048576"),
        ({"green_max_threshold": "9" * 30}, "green_max_threshold"),
        ({"green_drop_probability": "101"}, "green_drop_probability: got '101', takes a whole number from 0 to 100"),
        ({"green_drop_probability": True}, "green_drop_probability: got true"),
        ({"green_drop_probabilty": "5"}, "did you mean 'green_drop_probability'"),
        ({"ecn_green_min_threshold": "5"}, "ecn_green_max_threshold: got nothing"),
        ({"ecn": "ecn_red", "ecn_green_min_threshold": "5"}, "ecn: got 'ecn_red', takes ECN for green"),
    ],
)
def test_what_isn_t_taken_is_named(change, said):
    profile = {key: value for key, value in (AZURE | change).items() if value is not None}
    queues = read_queues(text=config(profile))
    (unread,) = [queue for queue in queues if queue.unreadable]
    assert (unread.handle, unread.law) == ("AZURE_LOSSLESS", None)
    assert re.search(said, unread.reason)
    # The key says which colours can't be read; the others are.
    assert [queue.parent for queue in queues] == (["green", "yellow", "red"] if "green" in str(change) else [""])
    assert all(queue.law is not None for queue in queues if queue is not unread)


def test_a_profile_that_can_t_be_read_doesn_t_hide_the_others():
    found = read_queues(text=json.dumps({"WRED_PROFILE": {"A": 1, "B": {"ecn": "ecn_blue"}, "C": AZURE}}))
    assert [(queue.name, queue.unreadable) for queue in found[:2]] == [("wred A", True), ("wred B", True)]
    assert found[0].reason == "profile: got 1, takes a table of keys"
    assert [queue.law for queue in found[2:]] == [queue.law for queue in read_queues(text=config(AZURE))]


def test_blanks_around_values_are_left_out_and_ect_is_ecn_s_own():
    blank = {key: f" {value} " for key, value in AZURE.items()} | {"green_min_threshold": " 166912"}
    law = read_queues(text=config(blank))[0].law
    assert law == WredLaw(min_bytes=166912, max_bytes=2**21, max_percent=5, ecn=True)
    own = {"min_threshold": "1000", "max_threshold": "2000", "mark_probability": "20"}
    spelled = [{form.format(key): value for key, value in own.items()} for form in ("ecn_green_{}", "green_ect_{}")]
    first, second = (read_queues(text=config(AZURE | each)) for each in spelled)
    assert first == second
    assert first[0].law == WredLaw(min_bytes=1000, max_bytes=2000, max_percent=20, ecn=True)
    assert read_queues(text=config(AZURE | spelled[0] | spelled[1]))[0].reason.startswith(
        "key: got 'green_ect_min_thresh"
    )


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"WRED_PROFILE": {}}', '{"WRED_PROFILE": 5}'])
def test_text_without_profiles(text):
    with pytest.raises(FileError):
        read_queues(text=text)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"min_bytes": -1}, "min_threshold"),
        ({"max_bytes": 5}, "max_threshold"),
        ({"max_percent": 101}, "probability"),
        ({"ecn": 1}, "ecn"),
    ],
)
def test_records_check_their_values(change, argument):
    with pytest.raises(InvalidValue) as refused:
        WredLaw(**({"min_bytes": 10, "max_bytes": 20} | change))
    assert refused.value.argument == argument
