"""Files that people write: no rate, time or size without its unit, in any kind of scenario and at any place in it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.model.datasets import network_path
from netctrl.model.io.toml import check_place, check_units
from netctrl.scenario.network.sweep import read_sweep
from netctrl.scenario.read import read_scenario_file
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
flows = [{ id = "x", source = 0, target = 4, offers = "1MB", sender = { kind = "hpcc", target = 0.95 } }]
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
interval = "10ms"
duration = "1s"
"""
SPREAD = "network.spread"
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


def read_networks(path: Path) -> Any:
    return read_scenario_file(path, network_path)


def read_sweeps(path: Path) -> Any:
    return list(read_sweep(path, network_path).cells())


INCREASE = ("flows[0].sender.increase", "80")
TARGET = ("links[0].queue.target", "0.015", "time")
CAPACITY = ("network.graph.links[0].capacity",)
GOD, SETPOINT = 'kind = "hftrac", architecture = "god", mu = 1', ("control.backlog_setpoint", "5", "size")
DESIGN, JITTER = 'kind = "design", file = "x"', ("control.messages.jitter", "0.02", "time")
BUFFERS, BUFFER = '"network.graph.links.*.buffer"', ("network.graph.links.*.buffer", "20", "size")
SPREADS = f'"{SPREAD}.half_width" = 5, "{SPREAD}.kind" = "triangular"'
WIDTH = (f"{SPREAD}.half_width", "5", "rate")
LINKS = '"network.graph" = { links = [{ source = "A", target = "B", capacity = 9 }] }'
# Each: a file that is good, what is changed in it, and of what the line is: the place, what it got, and the quantity.
CHANGES: dict[str, tuple[str, str, str, str, str, str]] = {
    "a rate": (ARC, '"20Mbit"', "20", "links[0].capacity", "20", "rate"),
    "a time": (ARC, '"10s"', "10.5", "duration", "10.5", "time"),
    "a size": (BOTTLENECK, '"1MB"', "1500", "network.buffer", "1500", "size"),
    "nothing": (BOTTLENECK, '"1MB"', '"1MB"\ncross = 0', "network.cross", "0", "rate"),
    "one time for a range": (ARC, '"100ms"', "0.1", "flows[0].rtt", "0.1", "time"),
    "an end of a range": (ARC, '"100ms"', '["100ms", 1]', "flows[0].rtt[1]", "1", "time"),
    "a queue's": (ARC, '"20Mbit"', '"20Mbit", queue = { kind = "pie", target = 0.015 }', *TARGET),
    "a scheme's": (FABRIC, "target = 0.95", "increase = 80", *INCREASE, "size"),
    "another scheme's": (FABRIC, '"hpcc", target = 0.95', '"timely", increase = 80', *INCREASE, "rate"),
    "a flow's": (FABRIC, '"1MB"', "1e6", "flows[0].offers", "1000000.0", "size"),
    "a regulator's": (ACCESS, '"20Mbit"', "20", "changes[0].rate", "20", "rate"),
    "a network's": (NETWORK, '"tandem"', "{ links = [{ capacity = 1 }] }", *CAPACITY, "1", "rate"),
    "a policy's": (NETWORK, '"x"', f'"x"\ncontrol = {{ {GOD}, backlog_setpoint = 5 }}', *SETPOINT),
    "messages'": (NETWORK, '"x"', f'"x"\ncontrol = {{ {DESIGN}, messages = {{ jitter = 0.02 }} }}', *JITTER),
    "what cells share": (SWEEP, '"10ms"', "0.01", "scenario.interval", "0.01", "time"),
    "a value of a sweep": (SWEEP, "runs = 1", f"runs = 1\nover = {{ {BUFFERS} = ['20kB', 20] }}", *BUFFER),
    "what a grid sets": (SWEEP, "runs = 1", f"runs = 1\ngrid = [{{ set = {{ {SPREADS} }} }}]", *WIDTH),
    "a table that a grid sets": (
        SWEEP,
        "runs = 1",
        f"runs = 1\ngrid = [{{ set = {{ {LINKS} }} }}]",
        *CAPACITY,
        "9",
        "rate",
    ),
}
WRITTEN = {"rate": ("Mbit", "bit"), "time": ("ms", "s"), "size": ("kB", "B")}


@pytest.mark.parametrize("name", CHANGES)
def test_a_bare_number_is_refused_with_what_to_write(name: str, tmp_path: Path) -> None:
    text, old, new, place, got, kind = CHANGES[name]
    read = read_sweeps if text is SWEEP else read_networks
    read(write(tmp_path, text))
    assert text.count(old) == 1
    path = write(tmp_path, text.replace(old, new))
    with pytest.raises(FileError) as refusal:
        read(path)
    key = "" if place.endswith("]") else f"{place.rpartition('.')[2]} = "
    number = got if got != "1000000.0" else "20"  # an example that is legible
    examples = " or ".join(f'"{number}{unit}"' for unit in WRITTEN[kind])
    assert str(refusal.value) == f"{path}: {place}: got {got}, takes a {kind} with its unit, as in {key}{examples}"


def test_json_of_a_network_and_numbers_from_python_are_in_si(tmp_path: Path) -> None:
    assert read_networks(write(tmp_path, NETWORK)).links[0].capacity == 23e6  # tandem.json has bare numbers
    flow = {"id": "f", "path": ("l",), "count": 5, "rtt": (0.1, 0.1)}
    link = netctrl.scenario.links.Link(id="l", source="a", target="b", capacity=20e6)
    made = Scenario(name="x", duration=10.0, links=(link,), flows=(netctrl.scenario.tcp_aqm.flows.Flow(**flow),))
    assert read_networks(write(tmp_path, ARC)) == made
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
def test_every_quantity_of_a_record_needs_its_unit_and_nothing_else_does() -> None:
    found = list(leaves(msgspec.inspect.type_info(Scenario)))
    quantities = [each for each in found if each[2]]
    assert len(quantities) > 10
    for keys, kinds, quantity in found:
        check_units(holding(keys, kinds, EXAMPLES.get(quantity, 1)), Scenario)
        if quantity:
            with pytest.raises(InvalidValue, match="with its unit"):
                check_units(holding(keys, kinds, 1), Scenario)


@pytest.mark.slow
def test_a_place_needs_a_unit_whichever_kind_is_meant() -> None:
    """A sweep's place doesn't say the kind of its table: what is a quantity in one is no number in another."""
    meant: dict[str, set[bool]] = {}
    for keys, _, quantity in leaves(msgspec.inspect.type_info(Scenario)):
        meant.setdefault(".".join(str(key) for key in keys), set()).add(quantity is not None)
    for place, quantity in meant.items():
        assert len(quantity) == 1, place
        if quantity == {True}:
            with pytest.raises(InvalidValue, match="with its unit"):
                check_place(place, 1, Scenario)
        else:
            check_place(place, 1, Scenario)


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
    assert seen > 60
