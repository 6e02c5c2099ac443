"""The names that `import netctrl` offers."""

from __future__ import annotations

import importlib
import subprocess
import sys

import msgspec
import pytest

import netctrl
from netctrl.linux.export.records import InterfaceQueue, QueuePlan, TcFifo
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.policy import Fifo


def test_every_public_name_is_there_and_is_the_one_of_its_module() -> None:
    assert len(set(netctrl.__all__)) == len(netctrl.__all__)
    for name in netctrl.__all__:
        thing = getattr(netctrl, name)
        if name != "__version__":
            assert thing.__name__ == name
            assert thing.__module__.startswith("netctrl.")
            assert thing is getattr(sys.modules[thing.__module__], name)


def test_the_front_door_has_at_most_60_names() -> None:
    assert len(netctrl.__all__) <= 60
    assert set(netctrl.__all__).isdisjoint(netctrl._INNER)


@pytest.mark.parametrize(("name", "module"), netctrl._INNER.items())
def test_a_name_of_a_module_alone_is_refused_with_its_module(name, module) -> None:
    assert getattr(importlib.import_module(module), name).__module__ == module
    with pytest.raises(AttributeError, match=f"from {module} import {name}$"):
        getattr(netctrl, name)


def test_dir_lists_them_in_order() -> None:
    assert dir(netctrl) == sorted(netctrl.__all__)


def test_star_import_gives_them_all() -> None:
    names: dict[str, object] = {}
    exec("from netctrl import *", names)
    assert names.keys() - {"__builtins__"} == set(netctrl.__all__)


@pytest.mark.parametrize("name", ["margin", "Arc", "simulation"])
def test_an_unknown_name_is_an_attribute_error_that_lists_the_known_ones(name) -> None:
    with pytest.raises(AttributeError, match="netctrl") as refusal:
        getattr(netctrl, name)
    assert repr(name) in str(refusal.value)
    assert "margins" in str(refusal.value)
    with pytest.raises(ImportError):
        exec(f"from netctrl import {name}")


# -X importtime writes a line for each module: what was imported and dropped again counts too.
@pytest.mark.parametrize("statement", ["import netctrl", "import netctrl; dir(netctrl); netctrl.__version__"])
def test_importing_netctrl_loads_no_library(statement, tmp_path) -> None:
    command = [sys.executable, "-X", "importtime", "-c", statement]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in ran.stderr.splitlines()}
    assert "netctrl" in loaded
    assert loaded & {"numpy", "scipy", "msgspec", "cyclopts", "control", "pandas", "matplotlib", "numba"} == set()


@pytest.mark.parametrize("flows", [(50, 60), [50, 60]], ids=["tuple", "list"])
def test_a_range_is_any_pair(flows) -> None:
    assert netctrl.arc(flows).inputs.flows == (50.0, 60.0)


def test_fifo_is_a_policy_and_tcs_record_has_another_name():
    """`Scenario(control=...)` takes what netctrl calls Fifo; each refusal names the other one."""
    network = read_network(network_path("merge"))
    requested = routed(network, control=Fifo(), duration=1.0, warmup=0.0)
    assert requested.control == Fifo()
    tc = TcFifo(limit=9000)
    assert InterfaceQueue(interface="v0", queue=tc).queue == tc
    with pytest.raises(netctrl.InvalidValue, match=r"control.*takes one of Fifo, StaticPacing, "):
        routed(network, control=tc, duration=1.0, warmup=0.0)
    with pytest.raises(netctrl.InvalidValue, match=r"queue.*takes one of TokenBucket, HtbClass, TcFifo"):
        InterfaceQueue(interface="v0", queue=Fifo())


def test_files_of_queues_are_read_as_before():
    text = b'{"schema":"netctrl.linux/1","interfaces":[{"interface":"v0","queue":{"kind":"fifo","limit":9000}}]}'
    plan = msgspec.json.decode(text, type=QueuePlan)
    assert plan.interfaces[0].queue == TcFifo(limit=9000)


RECORDS = {
    "ArcDesign": lambda: netctrl.arc(50, 0.1, 10e6),
    "HftracDesign": lambda: netctrl.hftrac("merge", 0.01, mu=1.0),
    "Scenario": lambda: netctrl.read("arc-staircase"),
    "IdentifiedModel": lambda: netctrl.read("connet-paper"),
    "SignalTrace": lambda: netctrl.read("connet-link", inputs=["R"], outputs=["delay"]),
    "Margins": lambda: netctrl.margins(netctrl.DelayLoop(gain=1.0, delay=0.1, integrators=1, leads=(), lags=())),
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_is_shown_in_at_most_15_lines_of_100_columns(name) -> None:
    made = RECORDS[name]()
    lines = repr(made).splitlines()
    assert lines[0].startswith(name)
    assert 1 < len(lines) <= 15
    assert max(map(len, lines)) <= 102  # with their indent
    assert made._repr_html_().startswith("<table>")
