"""Every reader of files, given what is no such file: one line that names the file; no traceback, no waiting."""

from __future__ import annotations

import io
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import opened, read_bounded, sha256
from netctrl.linux.export.agent import read_agent_config
from netctrl.linux.export.agents import read_interface_map
from netctrl.linux.export.records import read_queue_plan
from netctrl.linux.export.shaper import read_marking_config
from netctrl.linux.queues.record import Store
from netctrl.model.datasets import model_path, network_path
from netctrl.model.design.design import read_design
from netctrl.model.identified import read_model
from netctrl.model.io.json_file import decoded, read_json
from netctrl.model.link_trace import read_link_trace
from netctrl.model.network import read_network
from netctrl.model.signals import read_signals
from netctrl.model.trace import read_trace
from netctrl.scenario.network.sweep import read_sweep
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.scenario.result_file import read_result

Reader = Callable[[Any], Any]


def read_head(path: Path) -> Any:
    """The file's content as the head of a result's file in its place."""
    packed = io.BytesIO()
    np.savez(packed, head=np.frombuffer(path.read_bytes(), np.uint8))
    path.write_bytes(packed.getvalue())
    return read_result(path)


JSON: dict[str, Reader] = {
    "Design": read_design,
    "model": read_model,
    "network": read_network,
    "agent": read_agent_config,
    "queues": read_queue_plan,
    "marking": read_marking_config,
}
TOML: dict[str, Reader] = {
    "scenario": read_scenario,
    "network scenario": lambda path: read_scenario(path, network_path),
    "sweep": lambda path: read_sweep(path, network_path),
    "places": read_interface_map,
}
TABLES: dict[str, Reader] = {
    "trace": lambda path: read_trace(path, interval_s=0.01),
    "signals": lambda path: read_signals(path, inputs=("u",), outputs=("y",)),
    "link trace": read_link_trace,
}
NO_JSON = {
    "nothing": b"",
    "text": b"hello",
    "deep lists": b"[" * 100_000,
    "deep objects": b'{"a":' * 50_000,
    "deep and closed": b"[" * 5000 + b"]" * 5000,
    "UTF-16": '{"a": 1}'.encode("utf-16"),
    "no UTF-8": b'{"schema": "\xff\xfe"}',
    "NaN": b'{"schema": NaN}',
    "a number beyond floats": b'{"schema": 1e999}',
    "a number of 6000 digits": b'{"schema": ' + b"9" * 6000 + b"}",
    "half a surrogate": b'{"schema": "\\ud800"}',
    "a key twice": b'{"schema": 1, "schema": 1}',
    "a list": b"[]",
    "null": b"null",
    "two": b"{} {}",
    "a number alone": b"42",
    "cut": b'{"schema": "netctrl.design/1", "inpu',
    "backslashes": b'"' + b"\\" * 100_001,
}
NO_TOML = {
    "text": b"hello",
    "deep lists": b"x = " + b"[" * 5000,
    "deep tables": b"x = " + b"{a = " * 3000,
    "many names": b"a." * 5000 + b"b = 1",
    "no UTF-8": b'name = "\xff"',
    "a key twice": b"duration = 1\nduration = 2",
    "a number of 6000 digits": b"seed = " + b"9" * 6000,
    "cut": b'name = "x',
}


def why(read: Reader, path: Any) -> str:
    """The one line about the file."""
    with pytest.raises(FileError) as refusal:
        read(path)
    assert refusal.value.path == str(path)
    assert len(refusal.value.why.splitlines()) == 1
    assert len(refusal.value.why) < 600
    return refusal.value.why


@pytest.mark.parametrize("reader", [*JSON, "head of a result"])
@pytest.mark.parametrize("bad", NO_JSON)
def test_what_is_no_json_of_ours_is_one_line(reader: str, bad: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(NO_JSON[bad])
    said = why(JSON.get(reader, read_head), path)
    assert ("nested too deeply" in said) == bad.startswith("deep")
    assert ('the key "schema" occurs twice' in said) == (bad == "a key twice")


@pytest.mark.parametrize("reader", TOML)
@pytest.mark.parametrize("bad", NO_TOML)
def test_what_is_no_toml_of_ours_is_one_line(reader: str, bad: str, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(NO_TOML[bad])
    why(TOML[reader], path)


@pytest.fixture(scope="module")
def places(tmp_path_factory) -> Path:
    """A folder with what is no file, under names with each suffix."""
    folder = tmp_path_factory.mktemp("p")
    for suffix in (".json", ".toml", ".csv", ".pcap", ".trace", ".npz"):
        os.mkfifo(folder / f"pipe{suffix}")
        (folder / f"folder{suffix}").mkdir()
        (folder / f"device{suffix}").symlink_to("/dev/zero")
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(str(folder / f"socket{suffix}"))
        sock.close()
    return folder


ALL = {
    **{name: (read, ".json") for name, read in JSON.items()},
    **{name: (read, ".toml") for name, read in TOML.items()},
    **{name: (read, ".csv") for name, read in TABLES.items()},
    "capture": (TABLES["trace"], ".pcap"),
    "result": (read_result, ".npz"),
    "hash": (sha256, ".csv"),
}


@pytest.mark.parametrize("reader", ALL)
@pytest.mark.parametrize("what", ["pipe", "folder", "device", "socket", "missing"])
def test_what_is_no_file_is_refused_at_once(reader: str, what: str, places: Path) -> None:
    """Opened as a file, a named pipe waits for a writer, and a device never ends."""
    read, suffix = ALL[reader]
    assert why(read, places / f"{what}{suffix}").startswith("can't be read: ")


def test_a_record_of_queues_that_is_a_pipe_is_refused(tmp_path: Path) -> None:
    store = Store(tmp_path)
    os.mkfifo(store.path)
    with pytest.raises(FileError, match="is not a regular file"):
        store.read()


def test_a_name_with_a_zero_byte_is_none() -> None:
    with pytest.raises(InvalidValue, match="the name of a file"):
        read_bounded("a\0b", 10, "too large")


def test_a_pipe_of_this_process_is_read_to_its_end() -> None:
    source, sink = os.pipe()
    os.write(sink, b"0123456789")
    os.close(sink)
    try:
        assert read_bounded(f"/dev/fd/{source}", 10, "too large") == b"0123456789"
    finally:
        os.close(source)


def test_what_goes_wrong_while_reading_keeps_its_type(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"x")
    with pytest.raises(ValueError, match="mine"), opened(tmp_path / "x"):
        raise ValueError("mine")


def test_a_file_that_is_too_large_says_how_large_it_may_be(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_bytes(b" " * (2**20 + 1))
    assert why(lambda path: read_json(path, what="test", max_bytes=2**20), path) == (
        "larger than the 1 MiB allowed for a test"
    )


# --- keys and depth ---------------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    LEAVES | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_all_json_without_a_key_twice_is_read(value: Any, indented: bool) -> None:
    text = msgspec.json.encode(value)
    assert decoded("x", msgspec.json.format(text, indent=2) if indented else text) == value


@given(st.text(max_size=5), VALUES, VALUES, st.lists(st.sampled_from(["list", "object"]), max_size=6))
def test_a_key_twice_is_found_wherever_it_is(key: str, one: Any, other: Any, around: list[str]) -> None:
    name, parts = msgspec.json.encode(key), [msgspec.json.encode(each) for each in (one, other)]
    escaped = b'"' + b"".join(b"\\u%04x" % unit for unit in utf16(key)) + b'"'
    for second in (name, escaped):
        text = b"{" + name + b": " + parts[0] + b', "\\"between\\":": {}, ' + second + b"\n : " + parts[1] + b"}"
        for layer in around:
            text = b"[1, " + text + b"]" if layer == "list" else b'{"k": {}, "l": ' + text + b"}"
        with pytest.raises(FileError, match=r"^x: the key .* occurs twice in one object$"):
            decoded("x", text)


def utf16(text: str) -> list[int]:
    raw = text.encode("utf-16-be")
    return [int.from_bytes(raw[i : i + 2], "big") for i in range(0, len(raw), 2)]


def test_depth_has_a_bound() -> None:
    assert decoded("x", b"[" * 200 + b"]" * 200)
    for deep in (b"[" * 2000 + b"]" * 2000, b'{"a":' * 2000 + b"1" + b"}" * 2000):
        with pytest.raises(FileError, match="nested too deeply"):
            decoded("x", deep)


# --- damaged files ----------------------------------------------------------------------------------------------------

GOOD = {"model": (read_model, model_path("connet-paper")), "network": (read_network, network_path("tandem"))}


@pytest.mark.parametrize("name", GOOD)
@given(data=st.data())
def test_any_bytes_in_place_of_some_give_a_record_or_one_line(name: str, data: Any, tmp_path_factory) -> None:
    read, path = GOOD[name]
    text = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(text)))
        text[place : place + data.draw(st.integers(0, 8))] = data.draw(st.binary(max_size=6))
    changed = tmp_path_factory.getbasetemp() / f"{name}.json"
    changed.write_bytes(text)
    try:
        read(changed)
    except FileError as error:
        assert len(str(error).splitlines()) == 1
        assert error.path == str(changed)
    except InvalidValue as error:  # pragma: no cover
        raise AssertionError(f"a file's fault is said of an argument: {error}") from error
