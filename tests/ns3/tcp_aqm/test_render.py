"""The text of exported ns-3 programs, and the laws in it. After a wanted change, store the text anew and read the diff:

python tests/ns3/tcp_aqm/test_render.py
"""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ns3_support import assert_one_program, assert_stored, origin, store
from places import ROOT

import netctrl
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.core.register import ENGINES
from netctrl.engines.case import case_of
from netctrl.laws.aqm.avq import AvqQueue
from netctrl.laws.aqm.codel import CodelQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.records import DesignQueue
from netctrl.ns3.cpp import nanoseconds, string
from netctrl.ns3.program import compile_program, find_ns3
from netctrl.ns3.tcp_aqm.render import MARKER, render
from netctrl.scenario.design import design_scenario
from netctrl.scenario.files import scenario_from
from netctrl.scenario.scenario import Scenario
from netctrl.sim.fluid.traffic import draw_flows

GENERATED = {"design": ("scenario.txt",), "kinds": ("netctrl-laws.h", "scenario.txt")}


def kinds() -> Scenario:
    """A link of each of five kinds in a row, a reverse link, bulk and web flows, changes."""
    names = ["a", "b", "c", "d", "e", "f"]
    queues = [
        {"kind": "arc", "rate_error": {"amplitude": "1Mbit", "frequency_rad_s": 0.5, "start": "10s"}},
        {"kind": "pi"},
        {"kind": "avq", "virtual_buffer": "100kB"},
        {"kind": "sfc"},
        {"kind": "codel"},
    ]
    links = [
        {
            "id": queue["kind"],
            "source": names[i],
            "target": names[i + 1],
            "capacity": "4Mbit",
            "delay": "5ms",
            "buffer": "200kB",
            "queue": queue,
        }
        for i, queue in enumerate(queues)
    ]
    links.append({"id": "back", "source": "f", "target": "a", "capacity": "4Mbit", "delay": "25ms"})
    path = [queue["kind"] for queue in queues]
    flows = [
        {"id": "long", "path": path, "ack_path": ["back"], "rtt": "100ms:200ms", "count": 3},
        {"id": "old", "path": ["pi"], "rtt": "80ms", "count": 2, "ecn": False, "stop": "30s"},
        {"id": "web", "path": ["arc"], "rtt": "50ms:60ms", "count": 2, "start": "1s:2s", "offers": {"kind": "web"}},
    ]
    changes = [{"at": "20s", "link": "arc", "capacity": "2Mbit"}, {"at": "25s", "link": "pi", "delay": "10ms"}]
    whole = {"name": "five kinds", "duration": "60s", "links": links, "flows": flows, "changes": changes}
    return scenario_from(whole)


def rendered(scenario: Scenario, **options) -> dict[str, str]:
    return render(scenario, draw_flows(scenario, merged=False), **({"provenance": origin()} | options))


def cases() -> dict[str, dict[str, str]]:
    design = netctrl.arc(flows=50)
    design = msgspec.structs.replace(design, provenance=origin("netctrl", "design", "arc"))
    plant = design_scenario(design.inputs, design.law)
    return {"design": rendered(plant, design=design), "kinds": rendered(kinds())}


@pytest.mark.parametrize("case", ["design", "kinds"])
def test_generated_text_is_what_is_stored(case):
    files = cases()[case]
    assert files["netctrl-laws.h"].startswith(MARKER + "\n")
    assert_stored(case, files, GENERATED[case])


def test_one_program_runs_every_scenario():
    assert_one_program(cases())


def test_no_file_names_the_machine():
    text = "".join("".join(files.values()) for files in cases().values())
    assert str(ROOT) not in text
    assert str(Path.home()) + "/" not in text


# --- text in C++ -----------------------------------------------------------------------------------------------------

NASTY = [
    "*/ int x; /*",
    'a"; system("ls"); //',
    "line\nline",
    "end\\",
    "??/",
    '??/"',
    "\\",
    "%s%n",
    "\x00\x7f",
    "naïve π",
]


def skeleton(text: str) -> str:
    """C++ without what stands in comments and string literals, as translation phases 1 to 3 see it."""
    text = text.replace("??/", "\\").replace("\\\n", "")
    token = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"', re.DOTALL)
    return token.sub(lambda found: '""' if found[0].startswith('"') else "", text)


@given(st.text() | st.sampled_from(NASTY))
def test_a_literal_is_one_token_and_reads_back(text):
    text = text.encode("utf-8", "replace").decode()
    literal = string(text)
    assert literal.isascii()
    assert literal.isprintable()
    assert skeleton(literal + "\n") == '""\n'
    assert skeleton(f"// {literal}\nint x;") == "\nint x;"
    assert "*/" not in literal
    plain = re.sub(rb"\\([0-7]{3}|\")", lambda m: b'"' if m[1] == b'"' else bytes([int(m[1], 8)]), literal.encode())
    assert plain.decode() == f'"{text}"'


@pytest.mark.slow
@given(st.text(min_size=1, max_size=50), st.text() | st.sampled_from(NASTY))
def test_no_name_and_no_command_line_changes_the_program(name, argument):
    plain, scenario = kinds(), kinds()
    if name.isprintable():
        scenario = scenario.replace(name=name)
    files = rendered(scenario, provenance=origin("netctrl", argument))
    assert [line for line in files["scenario.txt"].split("\n") if not line.startswith("#")] == [
        line for line in rendered(plain)["scenario.txt"].split("\n") if not line.startswith("#")
    ]


# --- what can't be expressed -----------------------------------------------------------------------------------------


def changed(**link) -> Scenario:
    scenario = kinds()
    first = msgspec.structs.replace(scenario.links[0], **link)
    return scenario.replace(links=(first, *scenario.links[1:]))


def with_flows(**fields) -> Scenario:
    content = msgspec.to_builtins(kinds())
    return scenario_from(content | {"flows": [fields]})


BULK = {"id": "x", "path": ["arc"], "rtt": "50ms", "count": 1}
FAST = {"id": "x", "path": ["arc"], "rtt": "50ms", "sender": {"kind": "fast", "max_rate": "1Mbit", "gain": 1.0}}


@pytest.mark.parametrize(
    ("scenario", "field", "says"),
    [
        (changed(queue=FastArcQueue()), "links.arc.queue.kind", "fluid"),
        (with_flows(**FAST), "flows.x.sender", "fluid"),
        (changed(queue=DesignQueue()), "links.arc.queue.kind", "Design"),
        (changed(queue=AvqQueue(), buffer=None), "links.arc.queue.virtual_buffer", "unlimited"),
        (changed(queue=CodelQueue(target=1e-9)), "links.arc.queue.target", "CoDel"),
        (changed(buffer=500.0), "links.arc.buffer", "packet"),
        (changed(buffer=1e10), "links.arc.buffer", "4294967294"),
        (changed(capacity=1.5), "links.arc.capacity", "whole"),
        (changed(capacity=1e12), "links.arc.capacity", "100 ns"),
        (kinds().replace(packet_size=1000.5), "packet_size", "whole"),
        (with_flows(**BULK, ack_path=["pi"]), "flows.x.ack_path", "back to a"),
        (with_flows(**(BULK | {"path": ["arc", "pi", "avq", "sfc", "codel"]}), ack_path=["back"]), None, None),
        (with_flows(**(BULK | {"path": ["back"], "ack_path": ["arc", "pi", "avq", "sfc", "codel"]})), None, None),
    ],
)
def test_what_ns3_cannot_express_is_named(scenario, field, says):
    if field is None:
        assert rendered(scenario)
        return
    with pytest.raises(InvalidValue, match=says) as refused:
        rendered(scenario)
    assert refused.value.argument == field


@pytest.mark.parametrize("sender", ["bbr", {"kind": "bbr"}])
@pytest.mark.parametrize("ecn", [True, False])
def test_bbr_is_ns3_s_as_at_a_bottleneck_and_is_never_marked(sender, ecn):
    scenario = with_flows(**BULK, sender=sender, ecn=ecn)
    assert ENGINES["ns3"].lacks(case_of(scenario)) is None
    assert "group x sender=ns3::TcpBbr ecn=0 path=arc\n" in rendered(scenario)["scenario.txt"]


@pytest.mark.parametrize("seconds", [4e-10, 1e-15, 5e9, 1e300])
def test_times_that_ns3_cannot_count_are_named(seconds):
    with pytest.raises(InvalidValue, match="here: got"):
        nanoseconds("here", seconds)
    assert (nanoseconds("here", 0.0), nanoseconds("here", 1 / 170), nanoseconds("here", 1e9)) == (0, 5882353, 10**18)


def test_draws_must_be_one_row_a_flow():
    scenario = kinds()
    draws = draw_flows(scenario, merged=False)
    with pytest.raises(InvalidValue, match="draws"):
        render(scenario, draws[:-1], provenance=origin())
    with pytest.raises(InvalidValue, match="one row per flow"):
        render(scenario, (replace(draws[0], flows=draws[0].flows * 2), *draws[1:]), provenance=origin())


# --- read by the program ---------------------------------------------------------------------------------------------


def test_names_and_command_lines_read_back():
    name, argv = 'a "b" \\ ??/ */ // # π %d', ("netctrl", *NASTY, "\udcff")
    files = rendered(kinds().replace(name=name), provenance=origin(*argv))
    first, second = (line.removeprefix("# ") for line in files["scenario.txt"].splitlines()[:2])
    assert json.JSONDecoder().raw_decode(first)[0] == name
    assert tuple(json.loads(second.removeprefix("How it was made: "))["argv"]) == argv


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    folder = tmp_path_factory.mktemp("program")
    for name, text in rendered(kinds()).items():
        (folder / name).write_text(text, encoding="utf-8")
    compile_program(folder, find_ns3())
    return folder


@pytest.mark.needs("ns3")
@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("set duration=60000000000", "set", "scenario.txt:4: set has no duration"),
        (" sample=100000000 ", " sample=0 ", "set has a duration or sample that is not above 0"),
        ("sender=ns3::TcpNewReno", "sender=ns3::TcpReno", "has sender ns3::TcpReno, which this program does not have"),
        ("capacity=4000000 delay=25000000", "capacity=fast", "back has capacity fast, which is not a number that fits"),
        ("buffer=200000", "buffer=-1", "arc has buffer -1, which is not a number that fits"),
        ("path=arc,pi,", "path=arc,none,", "long has path none, which no record above is"),
        ("host=web/1 start=", "host=web/1 begin=3 start=", "flow has a value that nothing reads, begin"),
        ("group=web ", "group=web,old ", "web/1 has not one group"),
        ("\ngroup old", " again\ngroup old", "long has more than one id, again"),
        ("link pi", "link arc", "arc is there twice"),
        ("change at", "chance at", "chance is not a record of a scenario"),
        ("set ", "# set ", "has no record of kind set"),
        ("RecoveryType=ns3::Tcp", "RecoveryTime=ns3::Tcp", "which is no value of an attribute of ns-3"),
        ("RecoveryType=ns3::Tcp", "RecoveryType=Tcp", "which is no value of an attribute of ns-3"),
    ],
)
def test_the_program_names_the_record_that_it_cannot_read(program, tmp_path, old, new, says):
    text = (program / "scenario.txt").read_text(encoding="utf-8")
    assert old in text
    changed = text.replace(old, new, 1)
    if "# set " in changed:  # with the lines that go on with it
        changed = re.sub("\n  ns3::.*", "", changed)
    (tmp_path / "scenario.txt").write_text(changed, encoding="utf-8")
    ran = subprocess.run([program / "scenario", tmp_path], capture_output=True, text=True, timeout=60, check=False)
    assert ran.returncode == 2
    assert says in ran.stderr


@pytest.mark.needs("ns3")
def test_a_known_program_is_not_compiled_again(program, tmp_path, monkeypatch):
    """Another scenario of the same laws; then a change of the sources."""
    for name, text in cases()["design"].items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ns3 = find_ns3()
    with monkeypatch.context() as patch:
        patch.setattr(subprocess, "run", None)
        compile_program(tmp_path, ns3)
    assert (tmp_path / "scenario").read_bytes() == (program / "scenario").read_bytes()
    (tmp_path / "main.cc").write_text("int main() {}\n")
    with pytest.raises(NetctrlError, match="does not compile"):
        compile_program(tmp_path, replace(ns3, make="/bin/false"))


if __name__ == "__main__":
    store(cases(), GENERATED)
