"""Files that people write: no rate, time or size without its unit, in any kind of scenario and at any place in it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import netctrl
from netctrl.datasets import network_path
from netctrl.errors import FileError, InvalidValue
from netctrl.model.io.toml import check_place, check_units
from netctrl.scenario.network.sweep import read_sweep
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.scenario import Scenario

ARC = """schema = "netctrl.scenario/3"
name = "x"
duration = "10s"
links = [{ id = "l", source = "a", target = "b", capacity = "20Mbit" }]
flows = [{ id = "f", path = ["l"], rtt = "100ms", count = 5 }]
"""
FABRIC = """schema = "netctrl.scenario/3"
name = "x"
network = { kind = "dumbbell", host_rate = "1Gbit" }
sender = { kind = "hpcc", target = 0.95 }
flows = [{ kind = "message", id = "x", source = 0, target = 4, size = "1MB" }]
duration = "1ms"
"""
NETWORK = """schema = "netctrl.scenario/3"
name = "x"
network = { kind = "routed", graph = "tandem" }
interval = "10ms"
duration = "1s"
"""
SWEEP = """
name = "x"
runs = 1
[scenario]
network = { kind = "routed", graph = "tandem" }
flows = [{ kind = "demands" }]
interval = "10ms"
duration = "1s"
"""
SPREAD = "flows.demands.spread"
BOTTLENECK = """schema = "netctrl.scenario/3"
name = "x"
flows = [{ id = "flow", sender = "bbr" }]
duration = "10s"
[network]
kind = "bottleneck"
capacity = "100Mbit"
buffer = "1MB"
"""
ACCESS = """schema = "netctrl.scenario/3"
name = "x"
links = [{ id = "hop", source = "a", target = "b", capacity = "100Mbit" }]
flows = [{ id = "all", offers = { kind = "bursts", rate = "10Mbit" } }]
changes = [{ at = "5s", flow = "all", rate = "20Mbit" }]
duration = "10s"
"""
KINDS = (Scenario,)


def read_networks(path: Path) -> Any:
    return read_scenario_file(path, network_path)


def read_sweeps(path: Path) -> Any:
    return list(read_sweep(path, network_path).cells())


Read = Callable[[Path], Any]

# Each: how it is read, a file that is good, what is changed in it, and the line.
CHANGES: dict[str, tuple[Read, str, str, str, str]] = {
    "a rate": (
        read_scenario,
        ARC,
        'capacity = "20Mbit"',
        "capacity = 20",
        'links[0].capacity: got 20, takes a rate with its unit, as in capacity = "20Mbit" or "20bit"',
    ),
    "a time": (
        read_scenario,
        ARC,
        'duration = "10s"',
        "duration = 10.5",
        'duration: got 10.5, takes a time with its unit, as in duration = "10.5ms" or "10.5s"',
    ),
    "a size": (
        read_scenario,
        BOTTLENECK,
        'buffer = "1MB"',
        "buffer = 1500",
        'network.buffer: got 1500, takes a size with its unit, as in buffer = "1500kB" or "1500B"',
    ),
    "a size in text": (
        read_scenario,
        BOTTLENECK,
        'buffer = "1MB"',
        'buffer = "1500"',
        "network.buffer: got '1500', takes a size from 1B to 1e6GB with its unit (B, kB, MB, GB, KiB, MiB, GiB), "
        "as in 200kB",
    ),
    "nothing": (
        read_scenario,
        BOTTLENECK,
        'buffer = "1MB"',
        'buffer = "1MB"\ncross = 0',
        'network.cross: got 0, takes a rate with its unit, as in cross = "0Mbit" or "0bit"',
    ),
    "one time for a range": (
        read_scenario,
        ARC,
        'rtt = "100ms"',
        "rtt = 0.1",
        'flows[0].rtt: got 0.1, takes a time with its unit, as in rtt = "0.1ms" or "0.1s"',
    ),
    "an end of a range": (
        read_scenario,
        ARC,
        'rtt = "100ms"',
        'rtt = ["100ms", 1]',
        'flows[0].rtt[1]: got 1, takes a time with its unit, as in "1ms" or "1s"',
    ),
    "a queue's": (
        read_scenario,
        ARC,
        'capacity = "20Mbit"',
        'capacity = "20Mbit", queue = { kind = "pie", target = 0.015 }',
        'links[0].queue.target: got 0.015, takes a time with its unit, as in target = "0.015ms" or "0.015s"',
    ),
    "a scheme's": (
        read_scenario,
        FABRIC,
        "target = 0.95",
        "target = 0.95, increase = 80",
        'sender.increase: got 80, takes a size with its unit, as in increase = "80kB" or "80B"',
    ),
    "what another scheme has as a rate": (
        read_scenario,
        FABRIC,
        'kind = "hpcc", target = 0.95',
        'kind = "timely", increase = 80',
        'sender.increase: got 80, takes a rate with its unit, as in increase = "80Mbit" or "80bit"',
    ),
    "a flow's": (
        read_scenario,
        FABRIC,
        'size = "1MB"',
        "size = 1e6",
        'flows[0].size: got 1000000.0, takes a size with its unit, as in size = "20kB" or "20B"',
    ),
    "an access link's": (
        read_scenario,
        ACCESS,
        'capacity = "100Mbit"',
        "capacity = 100",
        'links[0].capacity: got 100, takes a rate with its unit, as in capacity = "100Mbit" or "100bit"',
    ),
    "a regulator's": (
        read_scenario,
        ACCESS,
        'rate = "20Mbit"',
        "rate = 20",
        'changes[0].rate: got 20, takes a rate with its unit, as in rate = "20Mbit" or "20bit"',
    ),
    "a network's": (
        read_networks,
        NETWORK,
        'graph = "tandem"',
        'graph = { links = [{ source = "A", target = "B", capacity = 1 }] }',
        'network.graph.links[0].capacity: got 1, takes a rate with its unit, as in capacity = "1Mbit" or "1bit"',
    ),
    "a policy's": (
        read_networks,
        NETWORK,
        'name = "x"',
        'name = "x"\ncontrol = { kind = "hftrac", architecture = "god", mu = 1, backlog_setpoint = 5 }',
        'control.backlog_setpoint: got 5, takes a size with its unit, as in backlog_setpoint = "5kB" or "5B"',
    ),
    "messages'": (
        read_networks,
        NETWORK,
        'name = "x"',
        'name = "x"\ncontrol = { kind = "design", file = "x", messages = { jitter = 0.02 } }',
        'control.messages.jitter: got 0.02, takes a time with its unit, as in jitter = "0.02ms" or "0.02s"',
    ),
    "what cells share": (
        read_sweeps,
        SWEEP,
        'interval = "10ms"',
        "interval = 0.01",
        'scenario.interval: got 0.01, takes a time with its unit, as in interval = "0.01ms" or "0.01s"',
    ),
    "a value of a sweep": (
        read_sweeps,
        SWEEP,
        "runs = 1",
        'runs = 1\nover = { "network.graph.links.*.buffer" = ["20kB", 20] }',
        'network.graph.links.*.buffer: got 20, takes a size with its unit, as in buffer = "20kB" or "20B"',
    ),
    "what a grid sets": (
        read_sweeps,
        SWEEP,
        "runs = 1",
        f'runs = 1\ngrid = [{{ set = {{ "{SPREAD}.half_width" = 5, "{SPREAD}.kind" = "triangular" }} }}]',
        f'{SPREAD}.half_width: got 5, takes a rate with its unit, as in half_width = "5Mbit" or "5bit"',
    ),
    "a table that a grid sets": (
        read_sweeps,
        SWEEP,
        "runs = 1",
        'runs = 1\ngrid = [{ set = { "network.graph" = { links = [{ source = "A", target = "B", capacity = 9 }] } } }]',
        'network.graph.links[0].capacity: got 9, takes a rate with its unit, as in capacity = "9Mbit" or "9bit"',
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_bare_number_is_refused_with_what_to_write(name: str, tmp_path: Path) -> None:
    read, text, old, new, said = CHANGES[name]
    path = tmp_path / "s.toml"
    path.write_text(text)
    read(path)
    assert text.count(old) == 1
    path.write_text(text.replace(old, new))
    with pytest.raises(FileError) as refusal:
        read(path)
    assert str(refusal.value) == f"{path}: {said}"


def test_json_of_a_network_and_numbers_from_python_are_in_si(tmp_path: Path) -> None:
    assert (
        read_networks(write(tmp_path, NETWORK)).network.graph.links[0].capacity == 23e6
    )  # tandem.json has bare numbers
    flow = {"id": "f", "path": ("l",), "count": 5, "rtt": (0.1, 0.1)}
    link = netctrl.scenario.links.Link(id="l", source="a", target="b", capacity=20e6)
    made = Scenario(name="x", duration=10.0, links=(link,), flows=(netctrl.scenario.tcp_aqm.flows.Flow(**flow),))
    assert read_scenario(write(tmp_path, ARC)) == made
    requested = netctrl.SweepSpec(name="x", scenario={"interval": 0.01}, over={"warmup": [0.2]})
    assert requested.over == {"warmup": [0.2]}


def write(folder: Path, text: str) -> Path:
    path = folder / "s.toml"
    path.write_text(text)
    return path


# --- every field ------------------------------------------------------------------------------------------------------

EXAMPLES = {"rate": "1Mbit", "time": "1ms", "size": "1kB"}


def leaves(found: Any, keys: tuple[str | int, ...] = (), kinds: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys to each leaf in a record that isn't text alone, the `kind`s on the way to it, and its quantity or None."""
    if isinstance(found, msgspec.inspect.UnionType):
        for each in found.types:
            yield from leaves(each, keys, kinds)
    elif isinstance(found, msgspec.inspect.StructType):
        for field in found.fields:
            yield from leaves(field.type, (*keys, field.encode_name), (*kinds, (keys, found.tag)))
    elif hasattr(found, "item_type"):
        yield from leaves(found.item_type, (*keys, 0), kinds)
    elif not isinstance(found, msgspec.inspect.NoneType | msgspec.inspect.StrType):
        yield keys, kinds, (getattr(found, "extra", None) or {}).get("quantity")


def holding(keys: tuple[str | int, ...], kinds: tuple[Any, ...], value: Any) -> Any:
    """Plain data with a value at these keys, and the kinds of the tables on the way."""
    for depth in range(len(keys) - 1, -1, -1):
        tag = dict(kinds).get(keys[:depth])
        value = [value] if keys[depth] == 0 else {keys[depth]: value} | ({"kind": tag} if tag else {})
    return value


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_every_quantity_of_a_record_needs_its_unit_and_nothing_else_does(kind: type) -> None:
    found = list(leaves(msgspec.inspect.type_info(kind)))
    quantities = [each for each in found if each[2]]
    assert len(quantities) > 10
    for keys, kinds, quantity in found:
        check_units(holding(keys, kinds, EXAMPLES.get(quantity, 1)), kind)
        if quantity:
            with pytest.raises(InvalidValue, match="with its unit"):
                check_units(holding(keys, kinds, 1), kind)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_place_needs_a_unit_whichever_kind_is_meant(kind: type) -> None:
    """A sweep's place doesn't say the kind of its table: what is a quantity in one is no number in another."""
    meant: dict[str, set[bool]] = {}
    for keys, _, quantity in leaves(msgspec.inspect.type_info(kind)):
        meant.setdefault(".".join(str(key) for key in keys), set()).add(quantity is not None)
    for place, quantity in meant.items():
        assert len(quantity) == 1, place
        if quantity == {True}:
            with pytest.raises(InvalidValue, match="with its unit"):
                check_place(place, 1, kind)
        else:
            check_place(place, 1, kind)


READERS = {"rate", "rate_or_0", "duration", "instant", "size", "backlog", "span"}
READERS |= {"_link_delay", "packet_bytes", "packet_bytes_or_none", "payload"}  # these call one of them


def read_fields(tree: ast.ClassDef) -> Iterator[str]:
    """Fields that a class settles with a reader of quantities."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "read_fields":
            for keyword in call.keywords:
                names = {node.id for node in ast.walk(keyword.value) if isinstance(node, ast.Name)}
                if keyword.arg and names & READERS:
                    yield keyword.arg


def test_what_is_read_as_a_quantity_is_annotated_as_one() -> None:
    package = Path(netctrl.__file__).parent
    seen = 0
    for path in sorted([*(package / "model").rglob("*.py"), *(package / "scenario").rglob("*.py")]):
        for tree in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(tree, ast.ClassDef):
                annotated = {
                    part.target.id: ast.unparse(part.annotation)
                    for part in tree.body
                    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name)
                }
                for field in read_fields(tree):
                    if field in annotated:
                        seen += 1
                        found = annotated[field].removesuffix(" | None")
                        assert found in ("Rate", "Duration", "Size", "Span"), f"{path.name}: {tree.name}.{field}"
    assert seen > 70
