"""Files of access links, today's and those of earlier versions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from access_links import crossing, link_of, sources
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from netctrl.scenario.old import ACCESS_LINK_KEYS

from netctrl.errors import FileError, InvalidValue
from netctrl.scenario.access.flows import PremiumFlow, RegulatorFailure, TcpSenders
from netctrl.scenario.access.scenario import access_link, access_parts
from netctrl.scenario.files import scenario_from, scenario_of
from netctrl.scenario.links import Link
from netctrl.scenario.read import read_scenario_file

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
OLD = """
name = "busy"
capacity = "50Mbit"
hops = 2
limit = 20
base_delay = "0.28ms"
size = "800B"
premium_size = "200B"
pause_variation = 0.4
sources = [{ share = 0.5 }, { flows = 1, share = 0.5, offered = "30Mbit" }]
cross = [{ hop = 1, rate = "20Mbit", burst = 4 }]
failures = [{ source = 0, start = "5.3s", stop = "7.7s", rate = "50Mbit" }]
duration = "9s"
seed = 5
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


def test_a_file_of_an_earlier_version_is_the_same_scenario_with_a_warning(tmp_path) -> None:
    with pytest.warns(FutureWarning, match=r"its keys in parts: \[network\], \[traffic\], \[time\]"):
        assert read(tmp_path, OLD) == BUSY


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_what_an_earlier_file_leaves_out_is_as_it_was(tmp_path) -> None:
    assert read(tmp_path, 'interval = "1s"\n') == access_link()
    tcp = read(tmp_path, 'duration = "10s"\n[senders]\nrtt = "3ms"\n')
    assert tcp == link_of(every={"sender": TcpSenders(rtt=3e-3)}, duration=10.0)


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        (OLD.replace("source = 0", "source = 2"), "failures[0].source: got 2, takes a source from 0 to 1"),
        (OLD.replace("source = 0, ", ""), "failures[0].source: got nothing, takes a source from 0 to 1"),
        (OLD.replace("[{ hop = 1", "[1, { hop = 1"), "cross: got a list of 2, takes a list of tables"),
        ("sources = 3\n", "sources: got 3, takes a list of tables"),
        ("[[sources]]\nshares = 1.0\n", "flows[1]: unknown key `shares`, did you mean `share`?"),
        ("hops = 2\nhop = 3\n", "unknown key `hop`"),
        (TEXT.replace('"premium"\n', '"udp"\n'), "flows[0]: unknown key `size`"),
        (
            TEXT.replace('kind = "access-link"', 'kind = "link"'),
            "network.kind: got 'link', takes one of",
        ),
    ],
)
def test_what_cannot_be_used_is_named(text, said, tmp_path) -> None:
    assert why(tmp_path, text).startswith(said)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::FutureWarning")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.dictionaries(
        st.sampled_from(sorted(ACCESS_LINK_KEYS)),
        st.recursive(
            st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(["1s", "2Mbit", "x"]),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.sampled_from(["source", "flows", "rate", "start", "failures", "id"]), inner)
            ),
            max_leaves=8,
        ),
    )
)
def test_any_content_gives_a_scenario_or_one_line(content) -> None:
    try:
        scenario_of("x.toml", content)
    except FileError as refusal:
        assert len(refusal.why.splitlines()) == 1


def test_fields_of_another_kind_of_network_are_refused() -> None:
    link = Link(id="l", source="a", target="b", capacity=1e6)
    with pytest.raises(InvalidValue, match=r"links: got .*, takes a field of this scenario's network: capacity, hops"):
        access_link(links=(link,))
    assert access_parts(access_link(capacity="3Mbit")).line.capacity == 3e6
