"""Senders in files: words and tables, Design files beside a scenario, what is refused."""

from __future__ import annotations

import msgspec
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue
from netctrl.laws.rate.bbr import BbrSender
from netctrl.laws.rate.cap import CapSender
from netctrl.laws.rate.paced import PacedSender
from netctrl.laws.rate.records import rate_record, read_sender, window_of
from netctrl.scenario.files import scenario_from
from netctrl.scenario.read import read_scenario_file as read_scenario
from netctrl.sim.packet.run import simulate_packets

DESIGN = netctrl.pacing(mode="own-rate", rtt_s=0.02, bottleneck_bit_per_s=1e7)
FILE = """schema = "netctrl.scenario/3"
name = "senders"
duration = "2s"
packet_size = "1500B"

[[links]]
id = "l"
source = "a"
target = "b"
capacity = "10Mbit"

[[flows]]
id = "f"
path = ["l"]
rtt = "20ms"
count = 1
sender = SENDER
"""


def written(folder, sender: str):
    path = folder / "scenario.toml"
    path.write_text(FILE.replace("SENDER", sender))
    return read_scenario(path)


@pytest.mark.parametrize(
    ("text", "sender", "window"),
    [
        ('"vegas"', "vegas", "vegas"),
        ('"bbr"', "bbr", None),
        ('{ kind = "bbr" }', BbrSender(), None),
        ('{ kind = "cap", rate = "2Mbit", window = "htcp" }', CapSender(rate=2e6, window="htcp"), "htcp"),
        ('{ kind = "cap", rate = "2Mbit" }', CapSender(rate=2e6), None),
    ],
)
def test_a_sender_is_read_and_comes_back(text, sender, window, tmp_path):
    scenario = written(tmp_path, text)
    assert scenario.flows[0].sender == sender
    assert window_of(sender) == window
    assert (rate_record(sender) is None) == (sender == "vegas")
    assert scenario_from(msgspec.json.decode(msgspec.json.encode(scenario))) == scenario


def test_a_design_is_found_beside_the_scenario(tmp_path, monkeypatch):
    DESIGN.save(tmp_path / "pacing.json")
    scenario = written(tmp_path, '{ kind = "paced", file = "pacing.json" }')
    monkeypatch.chdir("/")
    found = simulate_packets(scenario)
    given = scenario.replace(flows=(msgspec.structs.replace(scenario.flows[0], sender=DESIGN.law),))
    assert given.flows[0].sender == PacedSender(law=DESIGN.law)
    assert scenario_from(msgspec.json.decode(msgspec.json.encode(given))) == given
    assert (found.series["backlog"] == simulate_packets(given).series["backlog"]).all()
    assert found["utilization", found.links[0]] > 0.9


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('"renno"', "flows[0].sender: got 'renno', takes one of reno, cubic, htcp, dctcp, vegas, prague, ledbat++, "),
        ('"cap"', "flows[0].sender: got 'cap'"),
        ('{ kind = "kap" }', "flows[0].sender.kind: got 'kap', takes one of bbr, bbr3, copa, cap, "),
        ('{ kind = "cap", rate = 2 }', "flows[0].sender.rate: got 2, takes a rate with its unit"),
        ('{ kind = "cap", rate = "2Mbit", window = "new" }', "flows[0].sender.window: got 'new', takes one of reno"),
        ('{ kind = "paced", file = "a", law = { kind = "none" } }', "flows[0].sender.law"),
    ],
)
def test_what_is_wrong_is_named(text, says, tmp_path):
    with pytest.raises(FileError) as refused:
        written(tmp_path, text)
    assert says in str(refused.value)


def test_a_law_that_is_to_come_with_a_design_must_come(tmp_path):
    with pytest.raises(InvalidValue, match=r"paced.*a Design of pacing with the scenario, a file, or a law"):
        simulate_packets(written(tmp_path, '{ kind = "paced" }'))


def test_a_file_that_is_no_design_of_pacing_is_named(tmp_path):
    with pytest.raises(FileError, match=r"none\.json"):
        simulate_packets(written(tmp_path, '{ kind = "paced", file = "none.json" }'))
    netctrl.arc(50).save(tmp_path / "arc.json")
    with pytest.raises(InvalidValue, match=r"flows\.f\.sender\.file.*pacing"):
        simulate_packets(written(tmp_path, '{ kind = "paced", file = "arc.json" }'))


@pytest.mark.parametrize("value", [None, 3, 1.5, [], "renno", b"reno", DESIGN])
def test_what_is_no_sender_is_refused(value):
    with pytest.raises(InvalidValue, match="sender"):
        read_sender("sender", value)
