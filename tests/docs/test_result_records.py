"""The pages of what functions return: against the classes themselves, which the pages' maker doesn't import."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
import typing

import msgspec
import pytest
from places import ROOT

import netctrl

SECTION = re.compile(r"^## (\w+) \{ #(netctrl[\w.]+) \}\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (.+) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "docs"))
        return importlib.import_module("result_records").Results(ROOT, netctrl._PUBLIC | netctrl._INNER).pages()


@pytest.fixture(scope="module")
def records(pages) -> dict[str, str]:
    """Path of a record -> its section."""
    return {path: text for page in pages.values() for _, path, text in SECTION.findall(page)}


def imported(path: str) -> type:
    module, _, name = path.rpartition(".")
    return getattr(importlib.import_module(module), name)


def names_of(kind: type) -> set[str]:
    """A record's fields at run time."""
    if issubclass(kind, msgspec.Struct):
        return set(kind.__struct_fields__)
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind)}
    return set(getattr(kind, "_fields", ()))


def returned() -> set[str]:
    """Paths of netctrl's classes that its public functions say they return."""
    found = set()
    named = (imported(f"{module}.{name}") for name, module in (netctrl._PUBLIC | netctrl._INNER).items())
    for function in filter(inspect.isfunction, named):
        overloads = typing.get_overloads(function) or [function]
        for text in (str(each.__annotations__.get("return", "")) for each in overloads):
            kinds = (getattr(inspect.getmodule(function), name, None) for name in re.findall(r"\w+", text))
            found |= {f"{kind.__module__}.{kind.__name__}" for kind in kinds if inspect.isclass(kind)}
    public = {f"{module}.{name}" for name, module in (netctrl._PUBLIC | netctrl._INNER).items()}
    return {path for path in found if path.startswith("netctrl.")} - public


@pytest.mark.slow
def test_what_functions_return_is_there(records) -> None:
    assert len(returned()) > 15
    assert returned() <= records.keys()


def test_every_field_is_there_with_its_meaning(records) -> None:
    assert len(records) > 70
    for path, text in records.items():
        rows = ROW.findall(text.partition("| method |")[0])
        names = names_of(imported(path))
        assert {name for name, _, _ in rows} >= names, path
        assert all(len(meaning) > 2 for _, _, meaning in rows)


@pytest.mark.parametrize(
    ("path", "row"),
    [
        ("netctrl.frequency.records.Margins", "| `phase_margin_deg` | float | Least phase change"),
        ("netctrl.synthesis.riccati.dare.DareSolution", "| `X` | array | (n, n) symmetric"),
        ("netctrl.core.errors.RiccatiStatus", "| `'no solution'` | "),
        (
            "netctrl.model.design.design.ArcDesign",
            "| `provenance` | [Provenance][netctrl.model.io.provenance.Provenance]",
        ),
    ],
)
def test_shapes_units_values_and_links(records, path, row) -> None:
    assert row in records[path]


def test_each_link_leads_to_a_record_or_a_public_name(pages, records) -> None:
    targets = {path for page in pages.values() for path in re.findall(r"\]\[(netctrl[\w.]+)\]", page)}
    public = {f"{module}.{name}" for name, module in (netctrl._PUBLIC | netctrl._INNER).items()}
    assert targets <= records.keys() | public


def test_designs_have_their_parts(records) -> None:
    for name in ("ArcCertificate", "ArcInputs", "ArcSampled", "HftracCertificate", "MpccLaw", "PacingCertificate"):
        assert any(path.endswith(f".{name}") for path in records)
