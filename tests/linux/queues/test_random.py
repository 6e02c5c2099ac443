"""Malformed input to readers and commands of netctrl.linux: refused in one line that names the file or the argument.

Mutations are drawn with fixed seeds; what is asserted is only that nothing but a NetctrlError comes out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest
from agent_support import config, link
from linux_support import bare_namespace, kernel
from unit_support import MARKING, PLAN, agent

from netctrl.cli.linux import main
from netctrl.core.errors import FileError
from netctrl.linux import namespace
from netctrl.linux.agent import message
from netctrl.linux.agent.message import Dropped, Echo, Kind, Message, Route, Window, admit, digest, pack, unpack
from netctrl.linux.agent.state import plan
from netctrl.linux.export.agent import read_agent_config
from netctrl.linux.export.records import read_queue_plan
from netctrl.linux.export.shaper import read_marking_config
from netctrl.linux.kernel.objects import desired_objects
from netctrl.linux.queues.record import Entry, OwnershipRecord, Store, applied_rates, this_process

WRONG: tuple[Any, ...] = (
    *(None, True, 0, -1, 1e308, float("nan"), float("inf"), 2**63, 2**64, 10**30, "", "5", "5Mbit", "\0", "a" * 5000),
    *([], {}, [[]], {"a": 1}, ["a"], [None], "/dev/zero", "1:", "root", "::1", {"kind": "tbf"}, {"shape": [10**9]}),
)
BYTES = (b"", b"[]", b"null", b"NaN", b"[" * 100_000, b'{"schema":' * 50_000, b"\xff\xfe", b"\xef\xbb\xbf{}", b"1e999")


def mutated(text: str, rng: Random) -> bytes:
    """A file with a value, a key or some bytes that don't belong there."""
    if rng.random() < 0.25:
        place, raw = rng.randrange(len(text)), text.encode()
        return rng.choice([raw[:place], raw[:place] + rng.choice(BYTES) + raw[place:], rng.choice(BYTES)])
    content = json.loads(text)
    for _ in range(rng.randrange(1, 3)):
        at, parents = content, []
        while isinstance(at, dict | list) and at and (not parents or rng.random() < 0.8):
            parents.append((at, rng.choice(list(at)) if isinstance(at, dict) else rng.randrange(len(at))))
            at = at[parents[-1][1]]
        if parents:
            holder, key = parents[-1]
            holder[key] = deepcopy(rng.choice(WRONG))
            if isinstance(holder, dict) and rng.random() < 0.3:
                holder["unknown"] = holder.pop(key)
    return json.dumps(content).encode()


def as_record(path: Path) -> None:
    """Read as the record of this namespace."""
    store = Store(path.parent / "state")
    store.folder.mkdir(exist_ok=True)
    store.path.write_bytes(path.read_bytes())
    store.read()
    applied_rates(store.folder)


def as_agent(path: Path) -> None:
    """Read and planned, up to where the machine is asked."""
    plan(read_agent_config(path), b"k" * 32)


def record() -> str:
    objects = desired_objects(PLAN.interfaces[0])
    one = Entry(interface="a", index=3, address="", before=(), before_kind="noqueue", desired=objects)
    made = OwnershipRecord(
        schema="netctrl.linux.record/1",
        plan="p",
        owner=this_process(),
        token="t",
        phase="kept",
        since="now",
        entries=(one,),
    )
    return msgspec.json.encode(made).decode()


READERS: dict[str, tuple[Callable[[Path], object], Callable[[], str]]] = {
    "plan": (read_queue_plan, PLAN.to_json),
    "marking": (read_marking_config, MARKING.to_json),
    "agent": (as_agent, lambda: agent().to_json()),
    "record": (as_record, record),
}


@pytest.mark.parametrize("name", READERS)
def test_a_malformed_file_is_refused_by_name(name: str, tmp_path) -> None:
    read, text = READERS[name]
    rng, path, refused = Random(5), tmp_path / "file.json", 0
    for _ in range(250):
        path.write_bytes(mutated(text(), rng))
        try:
            read(path)
        except FileError as error:
            refused += 1
            assert error.path in (str(path), str(Store(tmp_path / "state").path))
    assert refused > 150


def test_a_malformed_datagram_is_dropped() -> None:
    rng, key = Random(5), b"k" * 32
    route = Route(digest("a"), digest("b"), digest("n"))
    entries = ((0, (1.0, 2.0, 3.0, 4.0)), (1, (1.0, 2.0, 3.0, 4.0)))
    good = pack(Message(Kind.STATE, 5, 6, 7, 8, Echo(1, 2, 3), entries), route, key)
    dropped = 0
    for _ in range(3000):
        content = bytearray(good[: rng.randrange(len(good))] if rng.random() < 0.2 else good)
        for _ in range(min(len(content), rng.randrange(1, 5))):
            content[rng.randrange(len(content))] = rng.randrange(256)
        body = bytes(content[:-16])
        signed = body + message._code(body, key) if rng.random() < 0.7 else bytes(content)
        found = unpack(signed, route, key)
        dropped += isinstance(found, Dropped)
        if not isinstance(found, Dropped):
            admit(Window(), found, 5)
            admit(Window(5, 6, 2**64 - 1, 0, ()), found, 5)
    assert dropped > 1500


ARGUMENTS = ("", "-1", "0", "5", "1e400s", "nan", "10ms", "5Mbit", "-5Mbit", "x" * 3000, "/", "/nonesuch/x", ".", "\0")
OPTIONS = {
    "plan": ("--replace", "--json"),
    "apply --dry-run": ("--json", "--confirm-within"),
    "apply --unit": ("--replace", "--state-dir"),
    "agent --unit": ("--user", "--realtime", "--runtime-dir", "--duration"),
    "mark --unit": ("--user", "--duration"),
    "status": ("--json",),
    "restore": ("--log",),
    "confirm": (),
    "pace --dry-run": ("--cap", "--design", "--to", "--for", "--interval", "--"),
}
FLAGS = ("--replace", "--json", "--realtime")


@pytest.fixture
def nowhere() -> Iterator[None]:
    """An empty namespace, in which nothing can be changed by mistake."""
    with bare_namespace() as space, namespace.inside(space):
        yield


@kernel
def test_a_command_line_that_makes_no_sense_is_one_line(nowhere, tmp_path, capsys, monkeypatch) -> None:
    """As root, with options that change nothing."""
    rng, path = Random(5), tmp_path / "file.json"
    monkeypatch.chdir(tmp_path)
    texts = {"plan": PLAN.to_json(), "apply": PLAN.to_json(), "mark": MARKING.to_json()}
    texts["agent"] = config(links=(link("a"),)).to_json()
    state = tmp_path / "state"
    state.mkdir()
    for _ in range(300):
        command = rng.choice(list(OPTIONS))
        verb, *flags = command.split()
        line = [verb, *flags]
        if verb in texts:
            path.write_bytes(mutated(texts[verb], rng))
            line.append(str(path) if rng.random() < 0.9 else rng.choice(ARGUMENTS))
        else:
            Store(state).path.write_bytes(mutated(record(), rng))
            line += [] if verb == "pace" else ["--state-dir", str(state)]
        chosen = rng.sample(OPTIONS[command], rng.randrange(len(OPTIONS[command]) + 1))
        for option in sorted(chosen, key=lambda each: each == "--"):
            line += [option] if option in FLAGS else [option, rng.choice(ARGUMENTS)]
        status = main(line)
        said = capsys.readouterr().err
        assert status in (0, 1, 2, 3), line
        assert "Traceback" not in said
        if status == 2:
            assert said.startswith("error: "), line
            assert said.count("\n") == 1, line
