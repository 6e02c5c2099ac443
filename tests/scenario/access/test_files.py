"""Files of access links."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from access_links import crossing, link_of, sources
from hypothesis import given
from hypothesis import strategies as st

from netctrl.errors import FileError, InvalidValue
from netctrl.scenario.access.flows import PremiumFlow, RegulatorFailure
from netctrl.scenario.access.scenario import access_link, access_parts
from netctrl.scenario.files import scenario_from, scenario_of
from netctrl.scenario.links import Link
from netctrl.scenario.read import read_scenario_file
from netctrl.scenario.scenario import Scenario

TEXT = """schema = "netctrl.scenario/3"
name = "busy"
packet_size = "800B"
duration = "9s"
interval = "1s"
seed = 5

[network]
kind = "access-link"
capacity = "50Mbit"
hops = 2
limit = 20
base_delay = "0.28ms"

[[flows]]
kind = "premium"
size = "200B"

[[flows]]
kind = "regulated"
id = "source0"
share = 0.5
pause_variation = 0.4
failures = [{ start = "5.3s", stop = "7.7s", rate = "50Mbit" }]

[[flows]]
kind = "regulated"
id = "source1"
count = 1
share = 0.5
offered = "30Mbit"
pause_variation = 0.4

[[flows]]
kind = "cross"
id = "cross0"
hop = 1
rate = "20Mbit"
burst = 4
pause_variation = 0.4
"""
BUSY = link_of(
    name="busy",
    capacity=5e7,
    hops=2,
    limit=20,
    base_delay="0.28ms",
    packet_size=800.0,
    premium=PremiumFlow(size=200.0),
    regulated=sources(
        {"share": 0.5, "failures": (RegulatorFailure(start=5.3, stop=7.7, rate=5e7),)},
        {"share": 0.5, "count": 1, "offered": 3e7},
    ),
    every={"pause_variation": 0.4},
    cross=crossing({"hop": 1, "rate": 2e7, "burst": 4, "pause_variation": 0.4}),
    duration=9.0,
    seed=5,
)


def read(folder: Path, text: str) -> Any:
    path = folder / "link.toml"
    path.write_text(text)
    return read_scenario_file(path)


def why(folder: Path, text: str) -> str:
    with pytest.raises(FileError) as refusal:
        read(folder, text)
    assert len(refusal.value.why.splitlines()) == 1
    return refusal.value.why


def test_a_file_is_the_scenario_that_its_text_says(tmp_path) -> None:
    assert read(tmp_path, TEXT) == BUSY
    assert scenario_from(msgspec.to_builtins(BUSY)) == BUSY


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT.replace('"premium"\n', '"cross"\n'), "flows[0]: unknown key `size`"),
        (TEXT.replace('kind = "access-link"', 'kind = "link"'), "network.kind: got 'link', takes one of"),
    ],
)
def test_what_cannot_be_used_is_named(text, said, tmp_path) -> None:
    assert why(tmp_path, text).startswith(said)


_CONTENT = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1s", "2Mbit", "x", "cross", "access-link"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["kind", "id", "rate", "start", "failures", "hops", "count"]), inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(st.dictionaries(st.sampled_from(sorted(Scenario.__struct_fields__)), _CONTENT))
def test_any_content_gives_a_scenario_or_one_line(content: dict[str, Any]) -> None:
    try:
        scenario_of("x.toml", content)
    except FileError as refusal:
        assert len(refusal.why.splitlines()) == 1


def test_fields_of_another_kind_of_network_are_refused() -> None:
    link = Link(id="l", source="a", target="b", capacity=1e6)
    with pytest.raises(InvalidValue, match=r"network: got 'a network of kind access-link', takes none beside links"):
        access_link(links=(link,))
    assert access_parts(access_link(capacity="3Mbit")).line.capacity == 3e6
