"""`python -m netctrl simulate` on a data centre: table, JSON, files, and what it refuses in one line."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest
from command_lines import runner, the_error

import netctrl
from netctrl.cli.simulate import main

SMALL = """schema = "netctrl.scenario/3"
name = "small fabric"
flows = [{ offers = { kind = "sizes", distribution = "FB_Hadoop", load = 0.3 }, sender = "hpcc" }]
duration = "1ms"
seed = 2

[network]
kind = "fat-tree"
hosts_per_rack = 2
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.toml").write_text(SMALL, encoding="utf-8")
    return tmp_path


def test_a_table_for_people(capsys) -> None:
    assert main(["s.toml"]) == 0
    out = capsys.readouterr().out
    assert re.match(r"[\d.]+ % used \(\w+>\w+\), ", out)
    assert out.splitlines()[1] == "small fabric (packet), 0 to 0.001 s"
    assert re.search(r"transfers +begun \d+, completed \d+, slow-down 1\.", out)


def test_json_and_files(capsys, folder) -> None:
    assert main(["s.toml", "--json", "-o", "flows.csv", "--plot", "picture.png"]) == 0
    content = json.loads(capsys.readouterr().out)
    flows = pd.read_csv(folder / "flows.csv")
    begun = [each["mean"] for each in content["summary"] if each["quantity"] == "begun"]
    assert begun == [len(flows)]
    assert content["scenario"]["flows"][0]["sender"] == "hpcc"
    assert list(content["provenance"]["input_hashes"])
    assert (flows.duration.dropna() >= flows.ideal[flows.duration.notna()]).all()
    assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_a_design_is_what_senders_run(capsys, folder) -> None:
    law = netctrl.mpcc(4, 1e11, 8e-6, delayed=True, window_weight=3.0)
    law.save(folder / "law.json")
    assert main(["s.toml", "--json", "--design", "law.json"]) == 0
    content = json.loads(capsys.readouterr().out)
    scheme = content["scenario"]["flows"][0]["sender"]
    assert (scheme["kind"], scheme["variant"], scheme["window_weight"]) == ("mpcc", "delayed", 3.0)
    assert scheme["window"] == pytest.approx(law.inputs.window_bytes)
    assert len(content["provenance"]["input_hashes"]) == 2
    netctrl.arc(50).save(folder / "arc.json")
    assert main(["s.toml", "--design", "arc.json"]) == 2
    assert "this is a Design of arc; expected one of mpcc" in capsys.readouterr().err
    netctrl.mpcc(4, 1e11, 8e-6, window_weight=0.0).save(folder / "greedy.json", accept="stable")
    assert main(["s.toml", "--design", "greedy.json"]) == 2
    assert "window_weight" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("load = 0.3", "load = 1.5", "load"),
        ('sender = "hpcc"', 'sender = "swift"', "swift"),
        ("[network]", "[network]\nwatch = { ports = ['s9>s8'] }", "watch.ports: got 's9>s8'"),
    ],
)
def test_a_files_mistakes_are_one_line(capsys, folder, old, new, said) -> None:
    (folder / "s.toml").write_text(SMALL.replace(old, new), encoding="utf-8")
    assert said in the_error(runner(main, capsys)("s.toml"))
