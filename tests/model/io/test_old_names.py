"""Scenario and sweep files with keys that were renamed since."""

from __future__ import annotations

import importlib
import warnings

import msgspec
import pytest

import netctrl
from netctrl.cli.simulate import main as simulate
from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.old_names import OLD_NAMES, renewed, renewed_at
from netctrl.scenario.access.flows import RegulatedFlows, TcpSenders
from netctrl.scenario.network.sweep import read_sweep
from netctrl.scenario.scenario import Scenario, Traffic

NETWORK = """
[[network.links]]
source = "a"
target = "b"
capacity = "10Mbit"
id = "e1"
[[network.demands]]
source = "a"
target = "b"
mean = "5Mbit"
std = "1Mbit"
"""


def test_each_old_name_is_gone_and_each_new_one_is_there() -> None:
    for name, names in OLD_NAMES.items():
        kinds = [getattr(importlib.import_module(module), name, None) for module in RECORDS]
        fields = {field.encode_name for kind in kinds if kind for field in msgspec.structs.fields(kind)}
        assert fields >= set(names.values()), name
        assert fields.isdisjoint(names), name


RECORDS = (
    "netctrl.laws.window.records",
    "netctrl.scenario.access.flows",
    "netctrl.scenario.network.policy",
)


@pytest.mark.parametrize(
    ("content", "kind", "today"),
    [
        ({"sender": {"kind": "mpcc", "round_trip": "1ms"}}, Traffic, {"sender": {"kind": "mpcc", "rtt": "1ms"}}),
        ({"sender": {"kind": "dctcp", "round_trip": 1}}, Traffic, {"sender": {"kind": "dctcp", "round_trip": 1}}),
        ({"sender": {"round_trip": "2ms"}}, RegulatedFlows, {"sender": {"rtt": "2ms"}}),
        (
            {"control": {"reference": 1.1, "kind": "hftrac"}},
            Scenario,
            {"control": {"rate_scale": 1.1, "kind": "hftrac"}},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_keys_are_renamed_where_they_stand(content, kind, today) -> None:
    assert renewed(content, kind) == today
    assert renewed(today, kind) == today


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_places_of_a_sweep_are_renamed_too() -> None:
    assert renewed_at("control.reference", 1.1, Scenario) == ("control.rate_scale", 1.1)
    old = {"kind": "hftrac", "standing_backlog": "1kB"}
    assert renewed_at("control", old, Scenario) == ("control", {"kind": "hftrac", "backlog_setpoint": "1kB"})
    assert renewed_at("network.graph.links.e1.buffer", 3, Scenario) == ("network.graph.links.e1.buffer", 3)


def test_both_names_are_refused() -> None:
    with pytest.raises(InvalidValue, match="round_trip: got '1s', takes no value beside `rtt`"):
        renewed({"round_trip": "1s", "rtt": "2s"}, TcpSenders)


BOTTLENECK = """
bottleneck = "10Mbit"
buffer = "50kB"
rtt = "20ms"
duration = "9s"
flows = [{kind = "cubic"}]
"""
SWEEP = """
name = "x"
runs = 1
[over]
"policy.reference" = [1.0, 1.02]
[scenario]
interval = "10ms"
duration = "1s"
policy = {kind = "hftrac", architecture = "myopic", mu = 0.5, reference = 1.01}
"""


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_files_with_old_names_are_read(tmp_path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('warm_up = "2s"' + BOTTLENECK)
    assert netctrl.read(path).warmup == 2.0
    path.write_text('warm_up = "2s"\nwarmup = "2s"' + BOTTLENECK)
    with pytest.raises(FileError, match="warm_up: got '2s', takes no value beside `warmup`"):
        netctrl.read(path)
    path.write_text(SWEEP + NETWORK.replace("[[network", "[[scenario.network"))
    cells = list(read_sweep(path).cells())
    assert [cell.scenario.control.rate_scale for cell in cells] == [1.0, 1.02]


def test_an_old_name_is_said_once_with_the_new_one(tmp_path, capsys) -> None:
    with pytest.warns(FutureWarning, match="key `round_trip` is now `rtt`") as warned:
        renewed({"round_trip": "1s"}, TcpSenders)
    assert len(warned) == 1
    (tmp_path / "s.toml").write_text('warm_up = "2s"' + BOTTLENECK)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert simulate([str(tmp_path / "s.toml"), "--engine", "fluid"]) == 0
    said = capsys.readouterr().err
    assert said.count("warning: ") == 1
    assert "a scenario of an earlier version" in said
