"""`--report FILE.html` of designs, comparisons, simulations and sweeps: status, one line of error, files."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_lines import files, runner, the_error
from report_support import TWO_FLOWS, coarse_map, read_page

from netctrl.cli.design import main as design
from netctrl.cli.simulate import main as simulate
from netctrl.cli.sweep import main as sweep
from netctrl.plotting.pages import designs

SWEEP = """
name = "small"
runs = 2

[scenario]
network = { kind = "routed", graph = "tandem" }
interval = "10ms"
duration = "500ms"

[[grid]]
label = "static"
set = { "control.kind" = "static" }
over = { "control.factor" = [1.05, 1.2] }
"""
MPCC = "mpcc --flows 4 --rate 1Gbit --rtt 100us"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(designs, "arc_stability_map", coarse_map)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "two.toml").write_text(TWO_FLOWS, encoding="utf-8")
    (tmp_path / "s.toml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("main", "line", "verdict"),
    [
        (design, "arc --N 50 --no-simulation", "Safe for 50 flows"),
        (design, "hftrac --network merge --mu 0.1", "Safe"),
        (design, "connet --model connet-paper", "Safe"),
        (design, MPCC, "Safe"),
        (design, "pacing --accept stable", "Safe for 1 flow at 10 ms and 10 Gbit/s: no"),
        (simulate, "two.toml --engine packet", None),
        (simulate, "two.toml --compare packet,fluid --runs 1", "fluid is within 5 %"),
        (sweep, "s.toml --n-jobs 1", "Least loss: static"),
    ],
    ids=["arc", "hftrac", "connet", "mpcc", "pacing", "simulation", "comparison", "sweep"],
)
def test_a_report_is_written_beside_what_is_printed(main, line, verdict, here, capsys) -> None:
    assert main(shlex.split(line)) == 0
    printed = capsys.readouterr().out
    assert main(shlex.split(f"{line} --report r.html")) == 0
    assert capsys.readouterr().out == printed
    content = (here / "r.html").read_bytes()
    assert read_page(content).wrong == []
    assert f"'>{verdict or printed.partition(chr(10))[0]}" in content.decode()
    command = re.findall(r"<code>(netctrl [^<]*)</code>", content.decode())
    assert [each.endswith(f"{line} --report r.html") for each in command] == [True]


@pytest.mark.slow
def test_a_refused_design_has_a_report_that_says_so(here, capsys) -> None:
    line = "arc --N 50 --alpha 1e-4 --report r.html -o d.json"
    assert design(shlex.split(line)) == 3
    assert "verdict bad" in (here / "r.html").read_text(encoding="utf-8")
    assert not (here / "d.json").exists()


WRONG: list[tuple[Callable[[list[str]], int], str, str]] = [
    (design, f"{MPCC} --report r.pdf", "--report: got 'r.pdf', takes a file name that ends in .html or .htm"),
    (design, f"{MPCC} --report r.html -o ./r.html", "--report: got 'r.html', takes a file that no other option names"),
    (design, f"{MPCC} --report no/r.html -o d.json", "--report: got 'no/r.html', takes a file that can be written"),
    (simulate, "two.toml --report r.txt", "--report: got 'r.txt'"),
    (simulate, "two.toml --report no/r.html", "--report: got 'no/r.html'"),
    (sweep, "s.toml --tune loss --report r.html", "--report: got 'r.html', takes no value with --tune"),
    (sweep, "s.toml --report r", "--report: got 'r'"),
]


@pytest.mark.parametrize(("main", "line", "said"), WRONG, ids=[line for _, line, _ in WRONG])
def test_what_cannot_be_a_report_is_one_line_and_leaves_nothing(main, line, said, here, capsys) -> None:
    before = files(here)
    assert the_error(runner(main, capsys)(line)).startswith(f"error: {said}")
    assert files(here) == before


def test_without_a_report_nothing_of_it_is_loaded(here) -> None:
    code = f"""
import json, sys
from netctrl.cli.design import main
main({MPCC.split()!r})
print(json.dumps(list(sys.modules)))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    loaded = json.loads(ran.stdout.splitlines()[-1])
    assert [name for name in loaded if name.startswith(("netctrl.plotting", "matplotlib"))] == []
