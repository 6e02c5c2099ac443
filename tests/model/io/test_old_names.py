"""Scenario and sweep files with keys that were renamed since."""

from __future__ import annotations

import importlib
import warnings

import msgspec
import pytest

from netctrl.cli.simulate import main as simulate
from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.old_names import OLD_NAMES, renewed, renewed_at
from netctrl.scenario.access.scenario import AccessLinkScenario, read_access_link_scenario
from netctrl.scenario.bottleneck.scenario import BottleneckScenario, read_bottleneck_scenario
from netctrl.scenario.fabric.scenario import FabricScenario
from netctrl.scenario.network.scenario import NetworkScenario
from netctrl.scenario.network.sweep import read_sweep

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
    "netctrl.scenario.access.scenario",
    "netctrl.scenario.bottleneck.scenario",
    "netctrl.scenario.network.policy",
)


@pytest.mark.parametrize(
    ("content", "kind", "today"),
    [
        ({"scheme": {"kind": "mpcc", "round_trip": "1ms"}}, FabricScenario, {"scheme": {"kind": "mpcc", "rtt": "1ms"}}),
        (
            {"scheme": {"kind": "dctcp", "round_trip": 1}},
            FabricScenario,
            {"scheme": {"kind": "dctcp", "round_trip": 1}},
        ),
        ({"senders": {"round_trip": "2ms"}}, AccessLinkScenario, {"senders": {"rtt": "2ms"}}),
        ({"warm_up": "1s", "name": "x"}, BottleneckScenario, {"warmup": "1s", "name": "x"}),
        (
            {"policy": {"reference": 1.1, "kind": "hftrac"}},
            NetworkScenario,
            {"policy": {"rate_scale": 1.1, "kind": "hftrac"}},
        ),
    ],
)
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_keys_are_renamed_where_they_stand(content, kind, today) -> None:
    assert renewed(content, kind) == today
    assert renewed(today, kind) == today


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_places_of_a_sweep_are_renamed_too() -> None:
    assert renewed_at("policy.reference", 1.1, NetworkScenario) == ("policy.rate_scale", 1.1)
    old = {"kind": "hftrac", "standing_backlog": "1kB"}
    assert renewed_at("policy", old, NetworkScenario) == ("policy", {"kind": "hftrac", "backlog_setpoint": "1kB"})
    assert renewed_at("network.links.e1.buffer", 3, NetworkScenario) == ("network.links.e1.buffer", 3)


def test_both_names_are_refused() -> None:
    with pytest.raises(InvalidValue, match="warm_up: got '1s', takes no value beside `warmup`"):
        renewed({"warm_up": "1s", "warmup": "2s"}, BottleneckScenario)


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
    assert read_bottleneck_scenario(path).warmup == 2.0
    path.write_text('warm_up = "2s"\nwarmup = "2s"' + BOTTLENECK)
    with pytest.raises(FileError, match="warm_up: got '2s', takes no value beside `warmup`"):
        read_bottleneck_scenario(path)
    path.write_text('[senders]\nround_trip = "3ms"\n')
    assert read_access_link_scenario(path).senders.rtt == 3e-3
    path.write_text(SWEEP + NETWORK.replace("[[network", "[[scenario.network"))
    cells = list(read_sweep(path).cells())
    assert [cell.scenario.policy.rate_scale for cell in cells] == [1.0, 1.02]


def test_an_old_name_is_said_once_with_the_new_one(tmp_path, capsys) -> None:
    with pytest.warns(FutureWarning, match="key `warm_up` of a file is `warmup` now") as warned:
        renewed({"warm_up": "1s"}, BottleneckScenario)
    assert len(warned) == 1
    (tmp_path / "s.toml").write_text('warm_up = "2s"' + BOTTLENECK)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        assert simulate([str(tmp_path / "s.toml"), "--engine", "fluid"]) == 0
    assert capsys.readouterr().err == (
        "warning: key `warm_up` of a file is `warmup` now; the next version of netctrl doesn't read the old name\n"
    )
