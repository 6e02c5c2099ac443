"""WRED profiles of switches: against the models, their types and ranges, and classes made of them; and read back.

OpenConfig's models are read as the classes of ocbindings, which pyangbind makes of them. The models themselves are
public and not in this repository. `NETCTRL_YANG=FOLDER python -m pytest tests/laws/targets` takes them from
a folder with all .yang files of github.com/openconfig/public and of SONiC's src/sonic-yang-models, and needs yangson.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from openconfig import read_profiles
from yang_models import data_model

from netctrl.certificates.inputs.read import read_queues
from netctrl.core.errors import InvalidValue
from netctrl.laws.targets.switches import openconfig_profiles, sonic_profiles
from netctrl.laws.targets.wred import WredLaw
from netctrl.model.law import QueueLaw

GIVEN = {"min_bytes": 100_000, "max_bytes": 909_673, "max_percent": 11, "ecn": True}

# Leaves of openconfig-qos-mem-mgmt.yang 2.2.0, /qos/queue-management-profiles/.../wred/uniform/config, in the JSON of
# RFC 7951: name, type, range.
OPENCONFIG = {
    "min-threshold": (str, 0, 2**64 - 1),
    "max-threshold": (str, 0, 2**64 - 1),
    "enable-ecn": (bool, 0, 1),
    "drop": (bool, 0, 1),
    "weight": (int, 0, 2**32 - 1),
    "max-drop-probability-percent": (int, 0, 100),
}
# Leaves of sonic-wred-profile.yang: those that a profile has here, all as text in CONFIG_DB.
SONIC = {
    "ecn": re.compile("ecn_(none|green|yellow|red|green_yellow|green_red|yellow_red|all)"),
    **{f"wred_{colour}_enable": re.compile("true|false") for colour in ("green", "yellow", "red")},
    **{f"{c}_{end}_threshold": re.compile("[0-9]{1,20}") for c in ("green", "yellow", "red") for end in ("min", "max")},
    **{f"{c}_drop_probability": re.compile("[0-9]{1,2}|100") for c in ("green", "yellow", "red")},
}


def law(**changed: Any) -> QueueLaw:
    return QueueLaw(name="wred", implementation="WRED of a switch", parameters={**GIVEN, **changed}, gains={})


@pytest.mark.parametrize("changed", [{}, {"ecn": False}, {"min_bytes": 0, "max_bytes": 2**53, "max_percent": 100}])
def test_leaves_have_the_models_types_and_ranges(changed: dict[str, Any]) -> None:
    made = law(**changed)
    wanted = {**GIVEN, **changed}
    tree = json.loads(openconfig_profiles({"dctcp": made}))
    (profile,) = tree["openconfig-qos:qos"]["queue-management-profiles"]["queue-management-profile"]
    assert profile.keys() == {"name", "config", "wred"}
    assert profile["name"] == profile["config"]["name"] == "dctcp"
    leaves = profile["wred"]["uniform"]["config"]
    assert leaves.keys() == OPENCONFIG.keys()
    for name, (kind, low, high) in OPENCONFIG.items():
        assert type(leaves[name]) is kind
        assert low <= int(leaves[name]) <= high
    assert (leaves["min-threshold"], leaves["max-threshold"]) == (str(wanted["min_bytes"]), str(wanted["max_bytes"]))
    assert (leaves["max-drop-probability-percent"], leaves["enable-ecn"]) == (wanted["max_percent"], wanted["ecn"])
    assert (leaves["weight"], leaves["drop"]) == (0, True)
    leaves = json.loads(sonic_profiles({"A-1_b": made}))["WRED_PROFILE"]["A-1_b"]
    assert leaves.keys() == SONIC.keys()
    assert all(SONIC[name].fullmatch(text) for name, text in leaves.items())


@pytest.mark.parametrize("ecn", [True, False])
def test_sonics_profile_is_read_back_as_the_same_law(ecn: bool) -> None:
    queues = read_queues(text=sonic_profiles({"NETCTRL": law(ecn=ecn)}))
    assert [queue.parent for queue in queues] == ["green", "yellow", "red"]
    assert all(queue.law == WredLaw(**{**GIVEN, "ecn": ecn}) for queue in queues)


def step(**threshold: float) -> QueueLaw:
    return QueueLaw(name="dctcp", implementation="step", parameters={**threshold, "g": 0.0625}, gains={})


def test_a_step_has_equal_thresholds_from_which_on_all_is_marked() -> None:
    """One byte above K: a switch that marks at its threshold and one that marks above it do the same with packets."""
    leaves = json.loads(sonic_profiles({"S": step(k_bytes=75_000)}))["WRED_PROFILE"]["S"]
    assert leaves.keys() == SONIC.keys()
    assert {leaves[f"green_{end}_threshold"] for end in ("min", "max")} == {"75001"}
    assert (leaves["green_drop_probability"], leaves["ecn"]) == ("100", "ecn_all")
    tree = json.loads(openconfig_profiles({"s": step(k_bytes=75_000)}))
    (profile,) = tree["openconfig-qos:qos"]["queue-management-profiles"]["queue-management-profile"]
    leaves = profile["wred"]["uniform"]["config"]
    assert leaves.keys() == OPENCONFIG.keys()
    assert (leaves["min-threshold"], leaves["max-threshold"]) == ("75001", "75001")
    assert (leaves["max-drop-probability-percent"], leaves["enable-ecn"]) == (100, True)
    for found in read_queues(text=sonic_profiles({"S": step(k_bytes=75_000)})):
        assert isinstance(found.law, WredLaw)
        assert [found.law.probability(backlog) for backlog in (75_000.0, 75_001.0, 76_500.0)] == [0.0, 1.0, 1.0]
    for render in (sonic_profiles, openconfig_profiles):
        for threshold in ({"k_s": 6e-5}, {"k_packets": 50}):
            with pytest.raises(InvalidValue, match="--unit bytes"):
                render({"S": step(**threshold)})


@pytest.mark.needs("openconfig")
@pytest.mark.parametrize("made", [law(), law(ecn=False, min_bytes=0, max_percent=100), step(k_bytes=75_000)])
def test_openconfigs_classes_read_profiles_and_write_them_again(made: QueueLaw) -> None:
    tree = json.loads(openconfig_profiles({"dctcp": made}))["openconfig-qos:qos"]["queue-management-profiles"]
    assert read_profiles(tree) == tree
    leaves = tree["queue-management-profile"][0]["wred"]["uniform"]["config"]
    for wrong in ({"max-drop-probability-percent": 101}, {"weight": 2**32}, {"min-threshold": "-1"}, {"ecn": True}):
        before = dict(leaves)
        leaves.update(wrong)
        with pytest.raises((ValueError, AttributeError), match=re.escape(next(iter(wrong)).replace("-", "_"))):
            read_profiles(tree)
        leaves.clear()
        leaves.update(before)


@pytest.mark.skipif("NETCTRL_YANG" not in os.environ, reason="needs the public YANG models")
@pytest.mark.parametrize("made", [law(), step(k_bytes=75_000)])
def test_profiles_are_valid_by_the_public_models(made: QueueLaw) -> None:
    from yangson.enumerations import ContentType

    folder = Path(os.environ["NETCTRL_YANG"])
    tree = json.loads(openconfig_profiles({"dctcp": made}))
    data_model(folder, "openconfig-qos").from_raw(tree).validate(ctype=ContentType.config)
    leaves = json.loads(sonic_profiles({"NETCTRL": made}))["WRED_PROFILE"]["NETCTRL"]
    typed = {name: text == "true" if text in ("true", "false") else text for name, text in leaves.items()}
    entry = {"WRED_PROFILE_LIST": [{"name": "NETCTRL", **typed}]}
    model = data_model(folder, "sonic-wred-profile")
    model.from_raw({"sonic-wred-profile:sonic-wred-profile": {"WRED_PROFILE": entry}}).validate(
        ctype=ContentType.config
    )
    entry["WRED_PROFILE_LIST"][0]["green_min_threshold"] = "10000000"  # above max: the model's own rule is seen
    with pytest.raises(Exception, match="Green max threshold"):
        model.from_raw({"sonic-wred-profile:sonic-wred-profile": {"WRED_PROFILE": entry}}).validate(
            ctype=ContentType.config
        )


def test_laws_and_names_that_a_switch_does_not_take_are_refused() -> None:
    other = QueueLaw(name="red", implementation="Linux sch_red", parameters={}, gains={})
    for render in (sonic_profiles, openconfig_profiles):
        with pytest.raises(InvalidValue, match="Linux spaces RED's marks"):
            render({"x": other})
        with pytest.raises(InvalidValue, match="takes wred or a threshold"):
            render({"x": QueueLaw(name="pie", implementation="Linux sch_pie", parameters={}, gains={})})
        with pytest.raises(InvalidValue, match="name"):
            render({"": law()})
    for name in ("_a", "a b", "a" * 33):
        with pytest.raises(InvalidValue, match="1 to 32 letters"):
            sonic_profiles({name: law()})
