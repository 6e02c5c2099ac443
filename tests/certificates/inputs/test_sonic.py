"""WRED profiles of SONiC: the one that it ships, colours, ECN's own thresholds, and what is refused by name."""

import json
from math import inf

import pytest

from netctrl.certificates.inputs.sonic import read_sonic
from netctrl.errors import FileError, InvalidValue
from netctrl.laws.targets.wred import WredLaw

# What SONiC's template of QoS configurations has for all platforms without one of their own.
AZURE = {
    "wred_green_enable": "true",
    "wred_yellow_enable": "true",
    "wred_red_enable": "true",
    "ecn": "ecn_all",
    "green_max_threshold": "2097152",
    "green_min_threshold": "1048576",
    "yellow_max_threshold": "2097152",
    "yellow_min_threshold": "1048576",
    "red_max_threshold": "2097152",
    "red_min_threshold": "1048576",
    "green_drop_probability": "5",
    "yellow_drop_probability": "5",
    "red_drop_probability": "5",
}


def config(profile, name="AZURE_LOSSLESS"):
    return json.dumps({"DEVICE_METADATA": {"localhost": {"hwsku": "any"}}, "WRED_PROFILE": {name: profile}})


def test_the_shipped_profile():
    queues = read_sonic(config(AZURE))
    law = WredLaw(min_bytes=2**20, max_bytes=2**21, max_percent=5, ecn=True)
    assert [(queue.name, queue.law) for queue in queues] == [
        (f"wred AZURE_LOSSLESS, {colour}", law) for colour in ("green", "yellow", "red")
    ]
    points = {0: 0.0, 2**20 - 1: 0.0, 3 * 2**19: 0.025, 2**21: 0.05, 2**21 + 1: 1.0}
    assert {q: law.probability(q) for q in points} == pytest.approx(points)
    assert law.slope == pytest.approx((law.probability(2**20 + 1000) - law.probability(2**20)) / 1000)


def test_colours_and_defaults():
    profile = {"wred_yellow_enable": "true", "ecn": "ecn_green", "yellow_min_threshold": "7", "yellow_max_threshold": 9}
    (queue,) = read_sonic(config(profile))
    assert queue.law == WredLaw(min_bytes=7, max_bytes=9, max_percent=100, ecn=False)
    assert queue.parent == "yellow"
    (off,) = read_sonic(config({"ecn": "ecn_none"}))
    assert (off.law, off.reason) == (None, "WRED is off for all colours")


def test_thresholds_of_ecn_s_own():
    own = {"ecn_green_min_threshold": "1000", "ecn_green_max_threshold": "2000"}
    green = {key: value for key, value in AZURE.items() if key == "ecn" or "green" in key} | own
    assert read_sonic(config(green))[0].law == WredLaw(min_bytes=1000, max_bytes=2000, max_percent=100, ecn=True)
    (queue,) = read_sonic(config(green | {"ecn_green_mark_probability": "20"}))
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
    with pytest.raises(FileError, match=rf"db\.json: WRED_PROFILE\|AZURE_LOSSLESS: .*{said}"):
        read_sonic(config(profile), source="db.json")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"WRED_PROFILE": {}}', '{"WRED_PROFILE": 5}', '{"WRED_PROFILE": {"a": 1}}']
)
def test_text_without_profiles(text):
    with pytest.raises(FileError):
        read_sonic(text)


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
