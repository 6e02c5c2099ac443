"""Design files: saved and read back equal, read strictly, described by the published schema, written whole or not."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import re
import stat
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from command_lines import files
from edits import drop, in_any_order, put
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

import netctrl
from netctrl import NoAdmissibleDesign
from netctrl.core.errors import FileError
from netctrl.core.files import write_atomically
from netctrl.model.datasets import design_schema
from netctrl.model.design.design import ArcDesign, design_json_schema, provenance, read_design


def best(*args: Any, **kwargs: Any) -> ArcDesign:
    """The design, or the best that is stable where none is admissible."""
    try:
        return netctrl.arc(*args, **kwargs)
    except NoAdmissibleDesign as error:
        assert isinstance(error.design, ArcDesign)
        return error.design


@pytest.fixture(scope="module")
def point() -> ArcDesign:
    return netctrl.arc(50)


@pytest.fixture(scope="module")
def box() -> ArcDesign:
    return netctrl.arc((50, 60), (0.45, 0.5), argv=["netctrl", "design"])


@pytest.fixture
def raw(point) -> dict[str, Any]:
    return json.loads(point.to_json())


def read(folder: Path, content: Any) -> ArcDesign:
    path = folder / "design.json"
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    path.write_bytes(text)
    return read_design(path)


@pytest.mark.slow
@settings(max_examples=8, phases=(Phase.explicit, Phase.generate))
@given(
    flows=st.floats(20.0, 300.0),
    rtt=st.floats(0.05, 1.0),
    spread=st.sampled_from([1.0, 1.2]),
    capacity=st.floats(1e6, 5e7),
    packet=st.floats(200.0, 9000.0),
    utilization=st.sampled_from([1.0, 0.98, 0.5]),
    epoch=st.floats(0.05, 5.0),
    queue=st.sampled_from([0.0, 33.3]),
    plant=st.sampled_from(["paper", "noq", "phys"]),
    alpha=st.none() | st.floats(1e-9, 1e-2),
)
@example(47.9, 0.859, 1.0, 2.4e7, 1200.0, 0.98, 1.0 / 3.0, 0.0, "paper", 0.00334)  # p is 0 for a whole block
def test_a_design_that_was_saved_and_read_back_is_equal(
    tmp_path_factory, flows, rtt, spread, capacity, packet, utilization, epoch, queue, plant, alpha
) -> None:
    design = best(
        (flows, flows * spread),
        (rtt, rtt * spread),
        capacity,
        packet_size_bytes=packet,
        utilization=utilization,
        epoch_s=epoch,
        target_queue_packets=queue,
        plant=plant,
        alpha_per_packet=alpha,
    )
    path = tmp_path_factory.mktemp("saved") / "design.json"
    path.write_text(design.to_json(), encoding="utf-8")  # an unsafe one isn't saved
    again = read_design(path)
    assert again == design
    assert again.to_json() == design.to_json() == path.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(path.read_bytes()), design_json_schema())


def test_equality_sees_a_small_change(point, raw, tmp_path) -> None:
    raw["certificate"]["paper"]["loop"]["gain"] *= 1.0 + 1e-15
    assert read(tmp_path, raw) != point


def test_a_file_is_one_object_in_the_order_of_the_architecture(point, raw, tmp_path) -> None:
    assert sorted(raw) == sorted(["schema", "method", "inputs", "law", "certificate", "provenance"])
    assert (raw["schema"], raw["method"], point.method) == ("netctrl.design/1", "arc", "arc")
    assert point.to_json().endswith("}\n")
    assert read(tmp_path, json.dumps(raw, indent=None, sort_keys=True).encode()) == point


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (put("colour", value="red"), "colour"),
        (put("inputs", "rtt", value=0.5), "rtt.*inputs"),
        (put("certificate", "paper", "alpha_limits", "foo", value=1.0), "foo.*alpha_limits"),
        (drop("law"), "law"),
        (drop("schema"), "schema"),
        (drop("method"), "method"),
        (drop("law", "kind"), "kind.*law"),
        (drop("certificate", "sampled", "spectral_radius"), "spectral_radius.*sampled"),
        (put("schema", value="netctrl.design/2"), "netctrl.design/2.*schema"),
        (put("method", value="lqr"), "lqr.*method"),
        (put("law", "kind", value="pi"), "pi.*law.kind"),
        (put("law", "epoch_s", value="1s"), "law.epoch_s"),
        (put("law", "epoch_s", value=None), "law.epoch_s"),
        (put("law", "epoch_s", value=True), "law.epoch_s"),
        (put("certificate", "stable", value=1), "certificate.stable"),
        (put("certificate", "status", value="fine"), "fine.*certificate.status"),
        (put("certificate", "paper", "loop", "delay", value=-0.5), "delay.*-0.5.*certificate.paper.loop"),
        (put("inputs", "flows", value=[50.0]), "inputs.flows"),
        (put("inputs", "plant", value="real"), "real.*inputs.plant"),
    ],
)
def test_reading_is_strict_and_names_path_and_key(change, named, raw, tmp_path) -> None:
    change(raw)
    with pytest.raises(FileError) as refusal:
        read(tmp_path, raw)
    assert refusal.value.path == str(tmp_path / "design.json")
    message = str(refusal.value)
    assert message.startswith(refusal.value.path)
    assert re.search(named, message), message
    assert "\n" not in message


def test_the_published_schema_is_the_one_of_this_version() -> None:
    assert in_any_order(design_schema()) == in_any_order(design_json_schema())
    jsonschema.Draft202012Validator.check_schema(design_schema())
    assert design_schema()["$schema"] == jsonschema.Draft202012Validator.META_SCHEMA["$id"]


def nodes(tree: Any, at: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """Every value below the root with the keys that lead to it."""
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield (*at, key), value
        yield from nodes(value, (*at, key))


def damaged(raw: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file with one thing changed, for each thing in it: dropped, of another type, or with a key too many."""
    for keys, value in nodes(raw):
        for what, change in (
            ("dropped", None),
            ("as text", "text"),
            ("as a number", 7),
            ("as a truth value", True),
            ("as null", None),
            ("as a list", []),
            ("with a key too many", {**value, "extra": 1} if isinstance(value, dict) else {"extra": 1}),
        ):
            whole = copy.deepcopy(raw)
            parent: Any = whole
            for key in keys[:-1]:
                parent = parent[key]
            if what == "dropped":
                del parent[keys[-1]]
            else:
                parent[keys[-1]] = change
            yield f"{'.'.join(map(str, keys))} {what}", whole


@pytest.mark.parametrize("kind", ["point", "box"])
def test_schema_and_reader_refuse_the_same_files(kind, request, tmp_path) -> None:
    """What a user's validator lets through, netctrl reads, and the other way about."""
    raw = json.loads(request.getfixturevalue(kind).to_json())
    validator = jsonschema.Draft202012Validator(design_json_schema())
    assert validator.is_valid(raw)
    differ, refused = [], 0
    for name, content in damaged(raw):
        try:
            read(tmp_path, content)
            reads = True
        except FileError:
            reads = False
        refused += not reads
        if reads and not validator.is_valid(content):  # the reader also refuses what no schema can say
            differ.append(f"{name}: read, though not valid")
    assert not differ, "\n".join(differ)
    assert refused > 400


def test_provenance_says_how_to_make_it_again(box, tmp_path) -> None:
    made = box.provenance
    assert made.netctrl == netctrl.__version__
    assert made.git_revision is None or re.fullmatch(r"[0-9a-f]{40}(-dirty)?", made.git_revision)
    assert made.argv == ("netctrl", "design")
    assert made.seed is None
    assert made.python == ".".join(map(str, sys.version_info[:3]))
    assert made.libraries == {"numpy": np.__version__}
    assert netctrl.arc(50).provenance.argv == ()

    (tmp_path / "trace.csv").write_bytes(b"t,y\n0,1\n")
    sha256 = hashlib.sha256(b"t,y\n0,1\n").hexdigest()
    found = provenance(argv=["a"], seed=7, inputs=[tmp_path / "trace.csv"])
    assert found.seed == 7
    assert found.input_hashes == {str(tmp_path / "trace.csv"): sha256}


def test_the_same_call_makes_the_same_design(point) -> None:
    again = json.loads(netctrl.arc(50).to_json())
    assert {**again, "provenance": None} == {**json.loads(point.to_json()), "provenance": None}


def test_pandas_and_html_show_law_and_certificate(point) -> None:
    series = point.to_pandas()
    assert series.name == "arc"
    assert series["law.alpha_per_packet"] == point.law.alpha_per_packet
    assert series["certificate.paper.alpha_over_epoch.limit"] == point.certificate.paper.alpha_over_epoch.limit
    assert series["certificate.paper.alpha_limits.noq"] == point.certificate.paper.alpha_limits.noq
    html = point._repr_html_()
    assert "admissible" in html
    assert f"{point.law.alpha_per_packet:.6g}" in html
    warned = netctrl.arc(50, alpha_per_packet=2e-5, simulation=False)._repr_html_()
    assert "alpha <= " not in warned  # what a warning says arrives escaped
    assert "alpha &lt;= " in warned


def test_writing_replaces_the_whole_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_atomically(tmp_path / "x.json", b"a long first content")
    write_atomically("x.json", b"short")
    assert (tmp_path / "x.json").read_bytes() == b"short"
    assert files(tmp_path) == ["x.json"]


@pytest.mark.parametrize("before", [None, b"old"], ids=["new file", "old file"])
@pytest.mark.parametrize("step", ["replace", "write"])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_write_that_fails_midway_leaves_everything_as_it_was(before, step, failure, tmp_path, monkeypatch) -> None:
    path = tmp_path / "x.json"
    if before is not None:
        path.write_bytes(before)

    def fail(*args: Any) -> None:
        raise failure

    if step == "replace":
        monkeypatch.setattr(os, "replace", fail)
    else:
        fdopen = os.fdopen

        class Full:
            def __init__(self, *args: Any) -> None:
                self.file = fdopen(*args)

            def __enter__(self) -> Full:
                return self

            def __exit__(self, *args: Any) -> None:
                self.file.close()

            def write(self, content: bytes) -> None:
                self.file.write(content[:3])
                raise failure

        monkeypatch.setattr(os, "fdopen", Full)
    expected = FileError if isinstance(failure, OSError) else KeyboardInterrupt
    with pytest.raises(expected) as refusal:
        write_atomically(path, b"the new content")
    monkeypatch.undo()
    if expected is FileError:
        assert str(refusal.value) == f"{path}: can't be written: No space left on device"
    assert files(tmp_path) == ([] if before is None else ["x.json"])
    assert before is None or path.read_bytes() == before


@pytest.mark.parametrize("name", ["folder", "missing/x.json", "file/x.json", ""])
def test_a_place_that_cannot_be_written_is_named(name, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_bytes(b"old")
    with pytest.raises(FileError, match=r"can't be written: [A-Z]") as refusal:
        write_atomically(name, b"content")
    assert refusal.value.path == name
    assert files(tmp_path) == ["file", "folder"]
    assert files(tmp_path / "folder") == []
    assert (tmp_path / "file").read_bytes() == b"old"


@pytest.mark.parametrize("dangling", [False, True])
def test_a_symbolic_link_stays_one(dangling, tmp_path) -> None:
    (tmp_path / "there").mkdir()
    target, link = tmp_path / "there" / "real.json", tmp_path / "link.json"
    if not dangling:
        target.write_bytes(b"old")
    link.symlink_to(target)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert files(tmp_path / "there") == ["real.json"]


def test_a_fifo_stays_one_and_its_reader_gets_the_content(tmp_path) -> None:
    """As with /dev/null or a device: what is no plain file is written into, never renamed over."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    got: list[bytes] = []
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()), daemon=True)
    reader.start()
    write_atomically(path, b"content")
    reader.join(timeout=60)
    assert got == [b"content"]
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert files(tmp_path) == ["fifo"]


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_rights_that_open_would_give(mask, tmp_path) -> None:
    before = os.umask(mask)
    try:
        write_atomically(tmp_path / "ours", b"")
        (tmp_path / "theirs").write_bytes(b"")
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "theirs").stat().st_mode


def test_an_old_file_keeps_its_rights(tmp_path) -> None:
    """Who made the file private does not expect the next run to publish it."""
    path = tmp_path / "private"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
