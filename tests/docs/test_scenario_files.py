"""The page of scenario files: all records and keys, links that lead somewhere, defaults that are read as they are."""

from __future__ import annotations

import importlib.util
import re

import msgspec
import pytest
from places import ROOT

import netctrl
from netctrl.core.register import QUEUE_LAWS, RATE_SENDERS, TCP_SENDERS, WINDOW_LAWS
from netctrl.core.units import parse_duration, parse_rate, parse_size
from netctrl.scenario.network.policy import POLICIES
from netctrl.scenario.network.sweep import SweepSpec
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.offers import OFFERS

SECTION = re.compile(r'^### (\S+) \{ id="([\w-]+)" \}\n(.*?)(?=^##|\Z)', re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| `(\w+)` \| (.*?) \| (.*?) \| (.*) \|$", re.MULTILINE)
PARSERS = {"rate": parse_rate, "time": parse_duration, "size": parse_size}


@pytest.fixture(scope="module")
def page() -> str:
    spec = importlib.util.spec_from_file_location("scenario_files", ROOT / "docs" / "scenario_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.scenario_files()


@pytest.fixture(scope="module")
def sections(page) -> dict[str, dict[str, tuple[str, str, str]]]:
    """Id of a record -> key -> what it takes, its default, its meaning."""
    return {name: {key: tuple(cells) for key, *cells in ROW.findall(text)} for _, name, text in SECTION.findall(page)}


@pytest.fixture(scope="module")
def schemas() -> dict[str, dict]:
    """Names of records in msgspec's own JSON Schema -> their properties: another way through the same types."""
    found = [msgspec.json.schema(kind)["$defs"] for kind in (Scenario, SweepSpec)]
    return {name.lower(): record for definitions in found for name, record in definitions.items()}


def test_every_record_and_key_of_the_schema_is_there(page, sections, schemas) -> None:
    start = page.partition("## The file")[2].partition("###")[0]
    written = sections | {"scenario": [key for key, *_ in ROW.findall(start) if key != "schema"]}
    ids = {"netctrl.scenario.links.link": "link", "netctrl.scenario.tcp_aqm.offers.demand": "demand"}
    ids |= {"netctrl.model.network.demand": "graph-demand"}
    for name, record in schemas.items():
        keys = written.get(ids.get(name) or name) or written[f"graph-{name.rpartition('.')[2]}"]
        assert set(record["properties"]) == set(keys), name


def test_every_registered_law_is_named(page, sections) -> None:
    titles = {title for title, _, _ in SECTION.findall(page)}
    assert {*QUEUE_LAWS, *RATE_SENDERS, *WINDOW_LAWS} <= titles
    assert {kind.__struct_config__.tag for kind in (*POLICIES, *OFFERS)} <= titles
    assert all(f"| `{name}` |" in page for name in (*TCP_SENDERS, *RATE_SENDERS, *WINDOW_LAWS))


def test_every_key_has_a_meaning_and_each_link_leads_to_a_record(page, sections) -> None:
    assert sum(map(len, sections.values())) > 300
    for name, rows in sections.items():
        for key, (_, default, meaning) in rows.items():
            assert len(meaning) >= 10 or key == "kind", (name, key)
            assert default, (name, key)
    ids = [name for _, name, _ in SECTION.findall(page)]
    assert len(ids) == len(set(ids))
    assert set(re.findall(r"\]\(#([\w-]+)\)", page)) <= set(ids)


@pytest.mark.parametrize(
    ("record", "key", "value"),
    [
        ("piequeue", "burst", 0.15),
        ("codelqueue", "target", 5e-3),
        ("bottleneck", "capacity", 1e8),
        ("fattree", "fabric_rate", 4e11),
        ("dcqcn", "increase_bytes", 10e6),
        ("packets", "header", 48.0),
    ],
)
def test_a_default_is_read_as_it_stands(sections, record, key, value) -> None:
    takes, default, _ = sections[record][key]
    assert PARSERS[takes](default.strip("`")) == pytest.approx(value)


def test_what_is_required_and_what_a_range_is(sections) -> None:
    assert sections["link"]["capacity"][:2] == ("rate", "required")
    assert sections["flow"]["rtt"][:2] == ("time or range", "`0s`")
    assert sections["flow"]["start"][:2] == ("time or range", "`0s`")
    assert sections["flow"]["stop"][1] == "none"
    assert sections["fattree"]["wiring"][0] == '`"al-fares"`, `"full"`'


def test_the_example_is_a_scenario(page, tmp_path) -> None:
    (text,) = re.findall(r"^```toml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (tmp_path / "fifty.toml").write_text(text, encoding="utf-8")
    scenario = netctrl.read(tmp_path / "fifty.toml")
    assert (scenario.name, scenario.flows[0].count, scenario.warmup) == ("fifty flows", 50, 20.0)
