"""Scenarios: what a file may hold, one line with file and key for what it may not, and records that come back equal."""

from __future__ import annotations

import copy
import json
import math
import os
import re
import tomllib
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from edits import Edit, drop, put
from hypothesis import given, settings
from hypothesis import strategies as st

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.aqm.arc import ArcQueue, RateError, arc_queue
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.records import DesignQueue, DropTailQueue
from netctrl.laws.rate.records import FastSender
from netctrl.model import datasets
from netctrl.model.datasets import scenario_path, scenarios
from netctrl.scenario.design import design_scenario, with_queue
from netctrl.scenario.files import scenario_from
from netctrl.scenario.links import Change, Link
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web

TEXT = """schema = "netctrl.scenario/3"
name = "two ways"
duration = "100s"
warmup = "20s"
interval = "200ms"
seed = 7
step = "5ms"
packet_size = "1kB"
initial_window = 4

[[links]]
id = "forward"
source = "left"
target = "right"
capacity = "10Mbit"
delay = "10ms"
buffer = "500kB"
queue = { kind = "arc", alpha = 1e-5, rate_error = { amplitude = "1Mbit", frequency_rad_s = 0.1 } }

[[links]]
id = "backward"
source = "right"
target = "left"
capacity = "5Mbit"

[[changes]]
at = "50s"
link = "forward"
capacity = "20Mbit"

[[changes]]
at = "60s"
link = "forward"
delay = "30ms"

[[flows]]
id = "ftp"
count = 50
classes = 10
rtt = "60ms:1s"
start = "0s:20s"
stop = "90s"
path = ["forward"]
ack_path = ["backward"]
ecn = false

[[flows]]
id = "web"
count = 100
rtt = ["60ms", "1s"]
path = ["forward"]
offers = { kind = "web" }

[[flows]]
id = "fast"
count = 2
rtt = "100ms"
path = ["backward"]
sender = { kind = "fast", max_rate = "2Mbit", gain = 3 }
"""

SAME = Scenario(
    name="two ways",
    duration=100,
    warmup=20.0,
    interval=0.2,
    packet_size=1000,
    initial_window=4,
    seed=7,
    step=0.005,
    links=(
        Link(
            id="forward",
            source="left",
            target="right",
            capacity=10e6,
            delay=0.01,
            buffer=500e3,
            queue=ArcQueue(alpha=1e-5, rate_error=RateError(amplitude=1e6, frequency_rad_s=0.1)),
        ),
        Link(id="backward", source="right", target="left", capacity=5e6),
    ),
    flows=(
        Flow(
            id="ftp",
            count=50,
            classes=10,
            rtt=(0.06, 1.0),
            start=(0.0, 20.0),
            stop=(90.0, 90.0),
            path=("forward",),
            ack_path=("backward",),
            ecn=False,
        ),
        Flow(id="web", count=100, rtt=(0.06, 1.0), path=("forward",), offers=Web()),
        Flow(id="fast", count=2, rtt=(0.1, 0.1), path=("backward",), sender=FastSender(max_rate=2e6, gain=3.0)),
    ),
    changes=(Change(at=50.0, link="forward", capacity=20e6), Change(at=60.0, link="forward", delay=0.03)),
)


def changed(record: Any, **values: Any) -> Any:
    """Another record, checked as any: `msgspec.structs.replace` checks since msgspec 0.20 only."""
    if isinstance(record, Scenario):
        return record.replace(**values)
    return type(record)(**(msgspec.structs.asdict(record) | values))


@pytest.fixture
def content() -> dict[str, Any]:
    return tomllib.loads(TEXT)


def toml(value: Any) -> str:
    """A value as TOML, tables inline."""
    match value:
        case bool():
            return "true" if value else "false"
        case dict():
            return "{" + ", ".join(f"{json.dumps(key)} = {toml(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case float():
            return {"inf": "inf", "-inf": "-inf", "nan": "nan"}.get(repr(value), repr(value))
        case str():
            return json.dumps(value).replace("\x7f", "\\u007f")
    return str(value)


def document(content: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(key)} = {toml(value)}\n" for key, value in content.items())


def read(folder: Path, content: Any) -> Scenario:
    path = folder / "s.toml"
    text = document(content) if isinstance(content, dict) else content
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_scenario(path)


def why(folder: Path, content: Any) -> str:
    """What the one line says after the file's name."""
    with pytest.raises(FileError) as refusal:
        read(folder, content)
    assert refusal.value.path == str(folder / "s.toml")
    assert str(refusal.value) == f"{folder / 's.toml'}: {refusal.value.why}"
    assert len(refusal.value.why.splitlines()) == 1
    assert len(refusal.value.why) < 400
    assert not any(
        word in refusal.value.why for word in ("`float", "`int", "`str", "`array", "`object", "dict", "NoneType")
    )
    return refusal.value.why


def test_text_with_units_and_numbers_in_si_give_equal_records(tmp_path, content) -> None:
    for scenario in (read(tmp_path, TEXT), read(tmp_path, content), scenario_from(content)):
        assert scenario == SAME
    assert hash(SAME) == hash(scenario_from(content))


def test_another_schema_is_refused_with_ours(tmp_path) -> None:
    said = why(tmp_path, TEXT.replace("scenario/3", "scenario/7"))
    assert said == "unknown schema 'netctrl.scenario/7'; expected schema = \"netctrl.scenario/3\""


def test_fields_of_parts_are_changed_by_their_own_names() -> None:
    other = SAME.replace(seed=8, name="x", packet_size=500.0)
    assert (other.seed, other.name, other.packet_size, other.links) == (8, "x", 500.0, SAME.links)
    with pytest.raises(InvalidValue, match=r"durations: got 1, takes one of name, links, .*did you mean 'duration'"):
        SAME.replace(durations=1)
    with pytest.raises(TypeError, match="duration"):
        Scenario(name="x", links=SAME.links, flows=SAME.flows)  # ty: ignore[missing-argument]


def test_a_record_comes_back_from_json_and_from_plain_dicts() -> None:
    text = msgspec.json.encode(SAME)
    assert msgspec.json.decode(text, type=Scenario) == SAME
    assert msgspec.json.encode(msgspec.json.decode(text, type=Scenario)) == text
    assert scenario_from(msgspec.to_builtins(SAME)) == SAME
    assert Scenario(**msgspec.to_builtins(SAME)) == SAME


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"capacity": "-1Mbit"}, "links[0].capacity: got '-1Mbit', takes a rate from"),
        ({"capacty": "1Mbit"}, "takes a dict as in a file (unknown key `capacty`, did you mean `capacity`?)"),
        ({"queue": {"kind": "pie", "target": "-5ms"}}, "links[0].queue.target: got '-5ms', takes a time above 0"),
        ({"queue": {"kind": "pei"}}, "(queue.kind: got 'pei', takes one of arc, fast-arc, pi,"),
    ],
)
def test_what_is_wrong_with_a_dict_is_named(change: dict[str, Any], said: str) -> None:
    links = [msgspec.to_builtins(SAME.links[0]) | change, *SAME.links[1:]]
    with pytest.raises(InvalidValue, match=rf"^links\[0\].*{re.escape(said.removeprefix('links[0]'))}"):
        SAME.replace(links=links)


def test_lists_become_tuples_and_numbers_of_numpy_plain_ones() -> None:
    """A record that holds a list isn't frozen, and one that holds a numpy number isn't saved."""
    scenario = changed(SAME, links=list(SAME.links), flows=list(SAME.flows), seed=np.uint32(7))
    assert scenario == SAME
    assert type(scenario.links) is tuple
    assert type(scenario.seed) is int
    flows = changed(SAME.flows[0], path=["forward"], count=np.int64(50), rtt=[np.float64(0.06), 1])
    assert flows == SAME.flows[0]
    msgspec.json.encode(changed(scenario, flows=(flows,)))


NAN, INF = math.nan, math.inf
HUGE = 10**30
LINK, CHANGE = ("links", 0), ("changes", 0)
FTP, WEB, FAST = ("flows", 0), ("flows", 1), ("flows", 2)
ERROR = (*LINK, "queue", "rate_error")

# Each: what is done to the file above, how the line begins, and what it holds beside.
REFUSED: dict[str, tuple[Edit, str, list[str]]] = {
    "negative capacity": (put(*LINK, "capacity", value="-9bit"), "links[0].capacity: got '-9bit', takes a", ["10Mbit"]),
    "no capacity at all": (put(*LINK, "capacity", value=0), "links[0].capacity: got 0, takes a rate", []),
    "NaN": (put(*LINK, "capacity", value=NAN), "links[0].capacity: got nan, takes a rate", []),
    "infinite capacity": (put("links", 1, "capacity", value=INF), "links[1].capacity: got inf, takes", []),
    "NaN for a whole number": (put(*FTP, "count", value=NAN), "flows[0].count: got nan, takes a whole number", []),
    "NaN deep inside": (put(*ERROR, "amplitude", value=NAN), "links[0].queue.rate_error.amplitude: got nan", []),
    "NaN in a queue": (put(*LINK, "queue", "alpha", value=NAN), "links[0].queue.alpha: got nan, takes a gain", []),
    "NaN in a range": (put(*FTP, "rtt", value=["0.1s", NAN]), "flows[0].rtt[1]: got nan, takes a time", []),
    "rate without a unit": (put(*LINK, "capacity", value="10"), "links[0].capacity: got '10', takes", ["unit"]),
    "ambiguous rate": (put(*LINK, "capacity", value="10Mbps"), "links[0].capacity: got '10Mbps', takes", ["Mbit"]),
    "negative delay": (put(*LINK, "delay", value="-1ms"), "links[0].delay: got '-1ms', takes a time", []),
    "no buffer": (put(*LINK, "buffer", value=0), "links[0].buffer: got 0, takes a size", []),
    "true for a rate": (put(*LINK, "capacity", value=True), "links[0].capacity: got true, takes a rate", []),
    "a list for a rate": (put(*LINK, "capacity", value=["1Mbit"]), "links[0].capacity: got ['1Mbit'], takes a", []),
    "a table for a rate": (
        put(*LINK, "capacity", value={"Mbit": 5}),
        "links[0].capacity: got a table, takes a rate",
        [],
    ),
    "a rate beyond all": (
        put(*LINK, "capacity", value="1e300Tbit"),
        "links[0].capacity: got '1e300Tbit', takes",
        ["1000Tbit"],
    ),
    "a whole rate beyond all": (put(*LINK, "capacity", value=HUGE), f"links[0].capacity: got {HUGE}, takes", []),
    "a denormal rate": (
        put(*LINK, "capacity", value="5e-324bit"),
        "links[0].capacity: got '5e-324bit', takes",
        ["1bit"],
    ),
    "half a flow": (put(*FTP, "count", value=2.5), "flows[0].count: got 2.5, takes a whole number", []),
    "flows with a point": (put(*FTP, "count", value=2.0), "flows[0].count: got 2.0, takes a whole number", []),
    "true flows": (put(*FTP, "count", value=True), "flows[0].count: got true, takes a whole number", []),
    "flows as text": (put(*FTP, "count", value="50"), "flows[0].count: got '50', takes a whole number", []),
    "no flows": (put(*FTP, "count", value=0), "flows[0].count: got 0, takes a whole number from 1", []),
    "too many flows": (
        put(*FTP, "count", value=10**6),
        "flows[0].count: got 1000000, takes a whole number",
        ["100000"],
    ),
    "flows beyond all": (put(*FTP, "count", value=HUGE), f"flows[0].count: got {HUGE}, takes a whole", []),
    "no classes": (put(*FTP, "classes", value=0), "flows[0].classes: got 0, takes", ["from 1 to 50"]),
    "more classes than flows": (put(*FTP, "classes", value=51), "flows[0].classes: got 51, takes", ["from 1 to 50"]),
    "too many flows in all": (put(*WEB, "count", value=99_999), "flows: got '100051 flows', takes at most 100000", []),
    "no round trip": (
        put(*WEB, value={"sender": "cubic", "path": ["backward"]}),
        "flows.cubic.rtt: got (0.0, 0.0), takes a round-trip time",
        ["500ms"],
    ),
    "an empty range": (put(*FTP, "rtt", value="1s:60ms"), "flows[0].rtt: got '1s:60ms', takes", ["range is empty"]),
    "a range of three": (
        put(*FTP, "rtt", value=["1s"] * 3),
        "flows[0].rtt: got ['1s', '1s', '1s'], takes",
        ["60ms:1s"],
    ),
    "stop before start": (put(*FTP, "stop", value="10s"), "flows[0].stop: got (10.0, 10.0), takes", ["20 s"]),
    "ECN as a number": (put(*FTP, "ecn", value=1), "flows[0].ecn: got 1, takes true or false", []),
    "a shape of 1": (
        put(*WEB, "offers", "pareto_shape", value=1),
        "flows[1].offers.pareto_shape: got 1.0, takes a shape above 1",
        [],
    ),
    "objects below the mean": (
        put(*WEB, "offers", "max_object", value="5kB"),
        "flows[1].offers.max_object: got 5000.0, takes",
        [],
    ),
    "no objects": (
        put(*WEB, "offers", "objects_per_page", value=0),
        "flows[1].offers.objects_per_page: got 0, takes",
        ["1000"],
    ),
    "no time to think": (
        put(*WEB, "offers", "think_time", value="0s"),
        "flows[1].offers.think_time: got '0s', takes a time above",
        [],
    ),
    "objects without end": (
        lambda content: content["flows"][1].update(
            offers={"kind": "web", "think_time": "1ns", "objects_per_page": 1000}, rtt="1ms", path=["backward"]
        ),
        "flows.web.count: got 100, takes fewer",
        ["10000000 objects"],
    ),
    "no gain": (put(*FAST, "sender", "gain", value=0), "flows[2].sender.gain: got 0.0, takes a gain above 0", []),
    "unknown key": (put(*LINK, "capasity", value=1), "links[0]: unknown key `capasity`, did you mean `capacity`?", []),
    "unknown key at the top": (put("durations", value=1), "unknown key `durations`, did you mean `duration`?", []),
    "unknown key like none": (put(*LINK, "xyzzy", value=1), "links[0]: unknown key `xyzzy`; there are id, source", []),
    "unknown key of a queue": (put(*LINK, "queue", "beta", value=1), "links[0].queue: unknown key `beta`", ["alpha"]),
    "unknown key of flows": (put(*WEB, "sessions", value=1), "flows[1]: unknown key `sessions`", ["count"]),
    "a kind's name in it": (put(*WEB, "kinds", value=1), "flows[1]: unknown key `kinds`, did you mean `kind`?", []),
    "unknown key two deep": (
        put(*ERROR, "amplitud", value=1),
        "links[0].queue.rate_error: unknown key `amp",
        ["itude`?"],
    ),
    "unknown key of many lines": (put("a\nb", value=1), r"unknown key `'a\nb'`; there are name, links", []),
    "unknown key with a path": (put("x - at `$.links[9]", value=1), "", []),
    "unknown key of great length": (put("k" * 5000, value=1), "unknown key `kkkkkk", ["..."]),
    "a missing duration": (drop("duration"), "key `duration` is missing", []),
    "no capacity key": (drop(*LINK, "capacity"), "links[0]: key `capacity` is missing", []),
    "no kind of offers": (
        drop(*WEB, "offers", "kind"),
        "flows[1].offers: key `kind` is missing; it takes one of web, writes, sizes, incast, stream, bursts, demand",
        [],
    ),
    "no kind of queue": (drop(*LINK, "queue", "kind"), "links[0].queue: key `kind` is missing; it takes", ["codel"]),
    "unknown queue": (
        put(*LINK, "queue", "kind", value="blue"),
        "links[0].queue.kind: got 'blue', takes one of arc",
        [],
    ),
    "unknown offers": (
        put(*WEB, "offers", "kind", value="ftp"),
        "flows[1].offers.kind: got 'ftp', takes one of web, writes, sizes, incast, stream, bursts, demand",
        [],
    ),
    "a number for a kind": (put(*WEB, "offers", "kind", value=5), "flows[1].offers.kind: got 5, takes text", []),
    "text for a queue": (
        put(*LINK, "queue", value="arcs"),
        "links[0].queue: got 'arcs', takes one of arc, ",
        ["or a table whose `kind` is one of these"],
    ),
    "an empty queue": (put(*LINK, "queue", value={}), "links[0].queue: key `kind` is missing; it takes one of", []),
    "a number for flows": (put("flows", 0, value=5), "flows[0]: got 5, takes a table", ["kind", "flow"]),
    "a table for links": (put("links", value={"id": "a"}), "links: got a table, takes a list", []),
    "text for links": (put("links", value="forward"), "links: got 'forward', takes a list", []),
    "a table for a name": (put("name", value={"en": "x"}), "name: got a table, takes text", []),
    "a number for a name": (put("name", value=5), "name: got 5, takes text", []),
    "an empty name": (put("name", value=""), "name: got '', takes printable text", []),
    "a name of two lines": (put("name", value="a\nb"), r"name: got 'a\nb', takes printable text", []),
    "a long name": (put("name", value="x" * 201), "name: got 'xxx", ["200 characters", "..."]),
    "a name of an escape": (put("name", value="\x1b[2J"), r"name: got '\x1b[2J', takes printable", []),
    "a list in a path": (put(*FTP, "path", value=[["forward"]]), "flows[0].path[0]: got ['forward'], takes text", []),
    "text for a path": (put(*FTP, "path", value="forward"), "flows[0].path: got 'forward', takes a list", []),
    "no path": (put(*FTP, "path", value=[]), "flows.ftp.path: got an empty list, takes the ids", []),
    "no links": (put("links", value=[]), "links: got an empty list, takes at least one", []),
    "no flows in the list": (put("flows", value=[]), "flows: got an empty list, takes at least one", []),
    "a link that isn't there": (
        put(*FTP, "path", value=["nowhere"]),
        "flows.ftp.path: got 'nowhere', takes ids of links; there are forward, backward",
        [],
    ),
    "an acknowledgement over no link": (
        put(*FTP, "ack_path", value=["x"]),
        "flows.ftp.ack_path: got 'x', takes ids",
        [],
    ),
    "links that don't join": (
        lambda content: (
            content["links"][1].update(source="far"),
            content["flows"][0].update(path=["forward", "backward"]),
        ),
        "flows.ftp.path: got 'backward', takes links that join: forward ends at right, backward starts at far",
        [],
    ),
    "a link twice": (
        put(*FTP, "path", value=["forward", "backward", "forward"]),
        "flows.ftp.path: got ('forward', 'backward', 'forward'), takes each link at most once",
        [],
    ),
    "a round trip shorter than the links": (
        put(*LINK, "delay", value="40ms"),
        "flows.web.rtt: got 0.06, takes",
        ["0.08"],
    ),
    "a link with one id twice": (
        put("links", 1, "id", value="forward"),
        "links[1].id: got 'forward', takes",
        ["other"],
    ),
    "flows with one id twice": (
        put(*FAST, "id", value="ftp"),
        "flows[2].id: got 'ftp', takes a name different from those",
        [],
    ),
    "an id of two lines": (put(*LINK, "id", value="a\nb"), "links[0].id: got", ["printable characters"]),
    "an id that is too long": (put(*WEB, "id", value="x" * 65), "flows[1].id: got", ["1 to 64"]),
    "a node without a name": (put(*LINK, "source", value=""), "links[0].source: got '', takes a name", []),
    "a link to itself": (
        put(*LINK, "target", value="left"),
        "links[0].target: got 'left', takes a node other than source",
        [],
    ),
    "a change of nothing": (drop(*CHANGE, "capacity"), "changes[0].capacity: got nothing, takes a new capacity", []),
    "a change after the end": (
        put(*CHANGE, "at", value="100s"),
        "changes[0].at: got 100.0, takes a time before",
        ["100 s"],
    ),
    "two changes at once": (
        lambda content: content["changes"].append({"at": "50s", "link": "forward", "capacity": "5Mbit"}),
        "changes[2].at: got 50.0, takes another time",
        [],
    ),
    "a change of no link": (
        put(*CHANGE, "link", value="x"),
        "changes[0].link: got 'x', takes ids of links",
        ["forward"],
    ),
    "a change to nothing": (
        put(*CHANGE, "capacity", value="0bit"),
        "changes[0].capacity: got '0bit', takes a rate",
        [],
    ),
    "a change that leaves no round trip": (
        lambda content: (content["links"][0].update(delay="30ms"), content["changes"][1].update(delay="0s")),
        "flows.web.rtt: got 0.06, takes more than the 0.06 s by which changes of delay shorten it",
        [],
    ),
    "no duration": (put("duration", value="0s"), "duration: got '0s', takes a time above 0", ["500ms"]),
    "an endless duration": (put("duration", value=INF), "duration: got inf, takes a time", []),
    "a date for a duration": ("duration = 2001-02-03", "duration: got the time 2001-02-03, takes a time above", []),
    "a clock for a duration": ("duration = 01:02:03", "duration: got the time 01:02:03, takes a time above", []),
    "warm-up to the end": (put("warmup", value="100s"), "warmup: got 100.0, takes a time shorter", ["100 s"]),
    "samples without end": (put("interval", value="1ns"), "interval: got 1e-09, takes", ["3e-05 s"]),
    "not even one sample": (put("interval", value="101s"), "interval: got 101.0, takes", ["100 s"]),
    "no packet": (put("packet_size", value=0), "packet_size: got 0, takes a size", []),
    "no window": (put("initial_window", value=0), "initial_window: got 0, takes a whole number of packets", []),
    "a negative seed": (put("seed", value=-1), "seed: got -1, takes a whole number from 0 to 4294967295", []),
    "a seed beyond 32 bits": (put("seed", value=2**32), "seed: got 4294967296, takes a whole number", []),
    "a seed beyond all": (put("seed", value=2**200), "seed: got 1606938", ["..."]),
    "a seed with a point": (put("seed", value=1.0), "seed: got 1.0, takes a whole number", []),
    "no step": (put("step", value="0s"), "step: got '0s', takes a time above 0", []),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_one_line_with_file_key_and_value(name, tmp_path, content) -> None:
    change, begins, pieces = REFUSED[name]
    if isinstance(change, str):
        found = why(tmp_path, TEXT.replace('duration = "100s"', change))
    else:
        change(content)
        found = why(tmp_path, content)
    assert found.startswith(begins)
    assert [piece for piece in pieces if piece not in found] == [], found


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("name = ", ["not valid TOML", "end of document"]),
        ('name = "x"\nduration = 5 s\n', ["not valid TOML", "line 2"]),
        ("a = 1\na = 2\n", ["not valid TOML", "line 2"]),
        ("name = 'x'\n\n[[links]\n", ["not valid TOML", "line 3"]),
        (b"\x89PNG\r\n\x1a\n\0\0", ["not valid TOML", "UTF-8", "line 1"]),
        (b"name = 'x'\n# \xff\n", ["not valid TOML", "UTF-8", "line 2"]),
        (b"\0" * 100, ["not valid TOML", "line 1"]),
        ('{"name": "x"}', ["not valid TOML"]),
        ("a = " + "[" * 5000 + "]" * 5000, ["nested too deeply"]),
        ("a = " + "{a = " * 5000 + "1" + "}" * 5000, ["nested too deeply"]),
        (".".join("a" * 300_000) + " = 1", ["nested too deeply"]),
        ("[" + ".".join("a" * 300_000) + "]\n", ["nested too deeply"]),
        ("seed = " + "1" * 5000, ["digits"]),
        ("seed = 0x" + "f" * 5000, ["digits"]),
        ("#" * (2**20 + 1), ["larger", "1 MiB"]),
        ("", ["not a scenario"]),
    ],
    ids=lambda part: ascii(part)[:20] if isinstance(part, str | bytes) else "",
)
def test_what_is_no_toml_or_too_much_of_it_says_so(text, pieces, tmp_path) -> None:
    found = why(tmp_path, text)
    assert [piece for piece in pieces if piece not in found] == [], found


@pytest.mark.parametrize("name", ["missing.toml", "folder", "folder/x.toml/y"])
def test_a_file_that_cannot_be_read_is_named(name, tmp_path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(FileError, match="can't be read") as refusal:
        read_scenario(tmp_path / name)
    assert refusal.value.path == str(tmp_path / name)


def test_a_file_without_rights_is_named(tmp_path, monkeypatch) -> None:
    def forbidden(*args: Any) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", forbidden)  # the tests may run as root, who may read everything
    with pytest.raises(FileError, match="can't be read: Permission denied"):
        read_scenario(tmp_path / "s.toml")


def places(content: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Every place in nested tables and lists."""
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    return [*([path] if path else []), *(place for key, each in items for place in places(each, (*path, key)))]


PLACES = places(tomllib.loads(TEXT))
NUMBERS = st.sampled_from(
    [0, -1, 1, 2, 1e308, -1e308, 1e-308, 5e-324, 0.5, 1e9, 1e15, 2**31, 2**63, 2**64, NAN, INF, -INF]
)
LEAVES = st.booleans() | NUMBERS | st.floats() | st.integers()
LEAVES |= st.text(max_size=5) | st.sampled_from(
    ["forward", "1s", "0s", "1e308s", "1bit", "1e-300bit", "1s:2s", "5kB", "web"]
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=4,
)


@pytest.mark.slow
@settings(max_examples=400)
@given(st.lists(st.tuples(st.sampled_from(PLACES), VALUES | st.just(...)), min_size=1, max_size=3))
def test_any_change_gives_a_scenario_or_one_line(tmp_path_factory, edits) -> None:
    """Of values, of kinds of values, and of what is there at all."""
    content = tomllib.loads(TEXT)
    for place, value in edits:
        try:
            (drop(*place) if value is ... else put(*place, value=copy.deepcopy(value)))(content)
        except (LookupError, TypeError, AttributeError):  # an earlier edit has taken the place away
            continue
    folder = tmp_path_factory.getbasetemp()
    try:
        scenario = read(folder, content)
    except FileError as error:
        assert len(str(error).splitlines()) == 1
        assert len(error.why) < 600
    else:
        assert msgspec.json.decode(msgspec.json.encode(scenario), type=Scenario) == scenario


@pytest.mark.slow
@settings(max_examples=150)
@given(st.data())
def test_any_damage_to_the_text_gives_a_scenario_or_one_line(tmp_path_factory, data) -> None:
    text = TEXT.encode()
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(start + 30, len(text))))
    path = tmp_path_factory.getbasetemp() / "damaged.toml"
    path.write_bytes(
        text[:start] + data.draw(st.binary(max_size=6) | st.text(max_size=6).map(str.encode)) + text[stop:]
    )
    try:
        read_scenario(path)
    except FileError as error:
        assert len(str(error).splitlines()) == 1


PYTHON = {
    "links": ("forward", [5], None, {}, SAME.flows),
    "flows": ("ftp", [5], None, SAME.links),
    "changes": (5, None, [5]),
    "name": (5, None, b"x"),
    "seed": (1.0, "1", True, None),
    "initial_window": (2.5, None, True),
    "min_rto": (0.0, None, "5"),
    "duration": (None, "5", True),
    "interval": (0.0, "5"),
    "warmup": (None, -1),
}


@pytest.mark.parametrize("name", PYTHON)
def test_python_is_held_to_the_same(name) -> None:
    """msgspec checks types of files only, not of calls."""
    for value in PYTHON[name]:
        with pytest.raises(InvalidValue) as refusal:
            changed(SAME, **{name: value})
        assert refusal.value.argument == name


@pytest.mark.parametrize(
    ("record", "name", "value"),
    [
        (SAME.links[0], "id", 5.5),
        (SAME.links[0], "source", None),
        (SAME.links[0], "capacity", None),
        (SAME.links[0], "delay", None),
        (SAME.links[0], "queue", "arcs"),
        (SAME.links[0], "queue", None),
        (SAME.flows[0], "path", "forward"),
        (SAME.flows[0], "path", None),
        (SAME.flows[0], "rtt", None),
        (SAME.flows[0], "start", None),
        (SAME.flows[0], "ecn", 1),
        (SAME.flows[0], "count", None),
        (SAME.flows[0], "classes", 2.5),
        (SAME.flows[1], "count", "5"),
        (SAME.flows[1], "offers", True),
        (SAME.flows[1].offers, "objects_per_page", True),
        (SAME.flows[2].sender, "max_rate", None),
        (SAME.changes[0], "link", 5.5),
        (SAME.changes[0], "at", None),
    ],
    ids=str,
)
def test_the_parts_are_held_to_the_same(record, name, value) -> None:
    with pytest.raises(InvalidValue) as refusal:
        changed(record, **{name: value})
    assert refusal.value.argument == name


def test_a_round_trip_may_equal_twice_its_links() -> None:
    """Sums of floats: 2 (0.1 + 0.2) is a bit more than 0.6."""
    nodes = ["a", "b", "c"]
    links = tuple(
        Link(id=f"l{i}", source=nodes[i], target=nodes[i + 1], capacity=1e6, delay=delay)
        for i, delay in enumerate((0.1, 0.2))
    )
    flows = Flow(id="x", count=1, rtt="600ms", path=("l0", "l1"))
    assert Scenario(name="x", duration=1, links=links, flows=(flows,)).flows[0].rtt == (0.6, 0.6)


# --- a Design's law in a scenario ---------------------------------------------------------------------------------


def test_a_law_goes_to_the_links_that_wait_for_one() -> None:
    links = (
        Link(id="a", source="x", target="y", capacity=10e6, queue=ArcQueue()),
        Link(id="b", source="y", target="z", capacity=10e6, queue=DesignQueue()),
        Link(id="c", source="z", target="w", capacity=1e6, queue=PiQueue()),
        Link(id="d", source="w", target="v", capacity=2e6, queue=DropTailQueue()),
    )
    flows = Flow(id="f", count=1, rtt=0.1, path=("a", "b", "c", "d"))
    scenario = Scenario(name="x", duration=10, links=links, flows=(flows,))
    queue = ArcQueue(alpha=1e-6)
    found = with_queue(scenario, queue, 10e6)
    assert [link.queue for link in found.links] == [queue, queue, PiQueue(), DropTailQueue()]
    assert [link.id for link in found.links] == ["a", "b", "c", "d"]
    assert scenario.links == links
    assert found.flows == scenario.flows


def test_a_law_for_another_capacity_is_refused_with_both() -> None:
    with pytest.raises(InvalidValue) as refusal:
        with_queue(SAME, ArcQueue(), 20e6)
    assert refusal.value.argument == "design"
    assert "20 Mbit/s" in str(refusal.value)
    assert "10 Mbit/s of link forward" in str(refusal.value)


def test_a_law_without_a_place_is_refused() -> None:
    links = tuple(changed(link, queue=DropTailQueue()) for link in SAME.links)
    with pytest.raises(InvalidValue, match=r"scenario: got 'two ways', takes one with a link whose queue .*design"):
        with_queue(SAME.replace(links=links), ArcQueue(), 10e6)


@pytest.mark.parametrize(
    ("design", "rtt", "count"),
    [(netctrl.arc(50), (0.49, 0.51), 50), (netctrl.arc((50, 60), (0.45, 0.5)), (0.45, 0.5), 50)],
    ids=["point", "box"],
)
def test_the_plant_of_a_design_is_its_network(design, rtt, count) -> None:
    scenario = design_scenario(design.inputs, design.law)
    (link,), (flows,) = scenario.links, scenario.flows
    assert flows.bulk
    assert flows.rtt == pytest.approx(rtt)
    assert flows.count == count
    assert link.capacity == 10e6
    assert link.queue == arc_queue(design.law, 1000.0)
    assert link.buffer == 10e6 * design.inputs.rtt_s[1] / 8
    assert scenario_from(msgspec.to_builtins(scenario)) == scenario


# --- scenarios that come with netctrl -------------------------------------------------------------------------------


OF_THE_PAPER = ("arc-bottlenecks", "arc-capacity", "arc-flash-crowd", "arc-round-trip", "arc-staircase")


def test_scenarios_of_the_paper_come_with_netctrl() -> None:
    assert set(OF_THE_PAPER) <= set(scenarios())
    assert list(scenarios()) == sorted(set(scenarios()))


@pytest.mark.parametrize("name", scenarios())
def test_each_of_them_is_read_and_comes_back(name) -> None:
    path = scenario_path(name)
    scenario = read_scenario(path, datasets.network_path)
    assert msgspec.json.decode(msgspec.json.encode(scenario), type=type(scenario)) == scenario


@pytest.mark.parametrize("name", OF_THE_PAPER)
def test_those_of_the_paper_are_about_arc_at_10_mbit(name) -> None:
    scenario = read_scenario(scenario_path(name))
    assert scenario.name.startswith("ARC Fig. ")
    assert scenario.warmup == 100.0
    assert {type(link.queue) for link in scenario.links} == {ArcQueue}
    assert {link.capacity for link in scenario.links} == {10e6}


def test_numbers_of_the_paper_stand_in_them() -> None:
    """ARC paper, Section IV: flows double from 10 to 800; 1000 sessions more; 10 to 50 Mbit/s; 0.3 to 2.4 s."""
    stairs = read_scenario(scenario_path("arc-staircase"))
    assert sum(group.count for group in stairs.flows if group.bulk and group.path == ("forward",)) == 800
    crowd = read_scenario(scenario_path("arc-flash-crowd"))
    assert [group.count for group in crowd.flows if isinstance(group.offers, Web)] == [300, 1000]
    changes = read_scenario(scenario_path("arc-capacity")).changes
    assert max(change.capacity or 0.0 for change in changes) == 50e6
    trip = read_scenario(scenario_path("arc-round-trip"))
    longest = trip.flows[0].rtt[1] + 2.0 * (max(change.delay or 0.0 for change in trip.changes) - trip.links[0].delay)
    assert longest == pytest.approx(2.4)


def test_a_file_comes_before_a_scenario_of_its_name(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    shipped = scenario_path("arc-staircase")
    assert shipped.is_file()
    assert shipped.is_absolute()
    Path("arc-staircase").mkdir()  # a folder of results, say
    assert scenario_path("arc-staircase") == shipped
    Path("arc-staircase").rmdir()
    Path("arc-staircase").write_text(TEXT)
    assert scenario_path("arc-staircase") == Path("arc-staircase")


def test_a_file_that_is_missing_is_left_to_the_reader() -> None:
    assert scenario_path("missing.toml") == Path("missing.toml")


@pytest.mark.parametrize("name", ["", "arc", "ARC-STAIRCASE", "../arc-staircase", "x" * 5000, "a\0b", "arc-staircase/"])
def test_an_unknown_name_is_refused_with_the_known_ones(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidValue) as refusal:
        scenario_path(name)
    assert refusal.value.argument == "scenario"
    assert ", ".join(scenarios()) in refusal.value.takes


def test_an_installation_without_data_has_no_scenarios(tmp_path, monkeypatch) -> None:
    for folder in ("_INSTALLED", "_CHECKOUT"):
        monkeypatch.setattr(datasets, folder, tmp_path)
    assert scenarios() == ()
    with pytest.raises(InvalidValue):
        scenario_path("arc-staircase")
