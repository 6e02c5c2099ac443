"""`netctrl what-if`: from a file of each format to an answer by one command; tables, files and refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import netctrl
from netctrl.cli import GOOD, WRONG_USE
from netctrl.cli.design import main as design
from netctrl.cli.what_if import main

CSV = "source,target,capacity_gbps,delay_ms\na,b,1,1\nb,c,1,1\nc,a,1,5\n"
FILES = {
    "g.gml": 'graph [ node [ id 1 label "a" ] node [ id 2 label "b" ] edge [ source 1 target 2 LinkSpeedRaw 1e9 ] ]',
    "g.graphml": '<graphml><graph edgedefault="undirected"><node id="a"/><node id="b"/>'
    '<edge source="a" target="b"/></graph></graphml>',
    "s.xml": "<network><networkStructure><nodes><node id='a'/><node id='b'/></nodes><links><link id='l'>"
    "<source>a</source><target>b</target><preInstalledModule><capacity>1</capacity></preInstalledModule></link></links>"
    "</networkStructure></network>",
    "r.graph": "NODES 2\nlabel x y\na 1 1\nb 2 2\n\nEDGES 2\nlabel src dest weight bw delay\n"
    "e 0 1 1 9 9\nf 1 0 1 9 9\n",
    "c.clab.yml": "name: c\ntopology:\n  nodes: {a: {}, b: {}}\n  links:\n    - endpoints: ['a:e1', 'b:e1']\n",
    "t.json": '{"directed": false, "graph": {"name": "t"}, "nodes": [{"id": "a"}, {"id": "b"}],'
    ' "edges": [{"source": "a", "target": "b", "dist": 100}]}',
    "l.csv": CSV,
}


@pytest.mark.parametrize("name", FILES)
def test_each_format_is_answered_by_one_command(name, tmp_path, capsys) -> None:
    (tmp_path / name).write_text(FILES[name])
    units = [] if name == "t.json" else ["--capacity-unit", "1Gbit", "--delay", "1ms"]
    options = ["--capacity", "1Gbit", *units, "--gravity", "100Mbit", "--n-jobs", "1"]
    assert main([str(tmp_path / name), *options, "--json"]) == GOOD
    content = json.loads(capsys.readouterr().out)
    intact = next(case for case in content["cases"] if case["name"] == "intact")
    assert intact["offered_bit_per_s"] == pytest.approx(1e8)
    assert (intact["lost_bit_per_s"] > 0.0) == (name == "r.graph")  # 9 kbit/s
    assert content["notes"] or name in ("r.graph", "t.json")


@pytest.mark.filterwarnings("ignore::UserWarning")  # notes on what was derived
@pytest.mark.parametrize("name", FILES)
def test_each_format_gets_rates_by_one_command(name, tmp_path, capsys) -> None:
    (tmp_path / name).write_text(FILES[name])
    units = [] if name == "t.json" else ["--capacity-unit", "1Gbit", "--delay", "1ms"]
    added = ["--capacity", "1Gbit", *units, "--gravity", "5kbit", "--std", "10%"]
    options = [*added, "--interval", "1ms", "--mu", "1", "-o", str(tmp_path / "d.json")]
    assert design(["hftrac", "--network", str(tmp_path / name), *options]) == GOOD
    capsys.readouterr()
    made = netctrl.read(tmp_path / "d.json")
    rates = made.certificate.nominal_rate
    assert set(made.law.links) <= {link.id for link in made.inputs.network.links}
    assert max(rates.values()) > 0.0


def test_cases_are_ranked_saved_and_drawn(tmp_path, capsys) -> None:
    (tmp_path / "l.csv").write_text(CSV)
    (tmp_path / "over.csv").write_text("time,source,target,mean\n0,a,b,700Mbit\n0,b,c,600Mbit\n9,a,b,100Mbit\n")
    saved, picture = tmp_path / "x.csv", tmp_path / "map.svg"
    command = [str(tmp_path / "l.csv"), "--over", str(tmp_path / "over.csv"), "--scale", "1,2", "--n-jobs", "1"]
    assert main([*command, "--top", "2", "-o", str(saved), "--plot", str(picture)]) == GOOD
    said = capsys.readouterr().out.splitlines()
    table = pd.read_csv(saved)
    assert len(table) == 2 * 2 * 4
    assert said[3].split("  ")[1] == f"{table['name'][0]} at 0 x 2"
    assert table["unmet"][0] == table["unmet"].max() > 0.0
    assert "a - b" in picture.read_text()
    assert not Path(f"{saved}.parts").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail", "all"], "error: --fail: got 'all', takes each-link"),
        (["--scale", "big"], "error: --scale: got 'big'"),
        (["--resume"], "error: --resume: got 'no -o'"),
        (["-o", "x.txt"], "error: -o: got 'x.txt', takes a file name that ends in .json"),
        (["--reroute", "ospf"], "error: --reroute: got 'ospf', takes one of shortest, ecmp"),
        ([], "error: NETWORK: got 'no demands', takes demands in"),
    ],
)
def test_wrong_use_is_one_line(options, said, tmp_path, capsys) -> None:
    (tmp_path / "l.csv").write_text(CSV)
    assert main([str(tmp_path / "l.csv"), *options]) == WRONG_USE
    assert capsys.readouterr().err.startswith(said)
