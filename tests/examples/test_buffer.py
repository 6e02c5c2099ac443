"""A design method of another package, examples/buffer: on the command line, in files, read back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import installed, ran, run
from places import ROOT

ASKED = ["--flows", "10000", "--rate", "10Gbit", "--rtt", "250ms"]
READ = """
from netctrl.model.design.design import read_design
design = read_design("made.json")
print(type(design).__name__, design.method, design.summary()[1][0][1])
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return installed(ROOT / "examples" / "buffer", tmp_path / "site")


def test_a_method_stands_beside_ours_and_its_files_are_read(site: Path) -> None:
    """The paper's example: 10 Gbit/s and 250 ms need 2.5 Gbit for one flow, and a hundredth for 10,000."""
    assert "buffer Buffer: what a router needs" in " ".join(run(site, "-m", "netctrl.design", "--help").split())
    said = run(site, "-m", "netctrl.design", "buffer", *ASKED, "-o", "made.json")
    assert "Buffer for 10000 flows at 10000 Mbit/s: ADMISSIBLE" in said
    assert json.loads((site.parent / "made.json").read_text())["law"] == {"kind": "buffer", "buffer_bytes": 3125000.0}
    assert run(site, "-c", READ) == "BufferDesign buffer 3125000 bytes\n"


def test_without_the_package_its_file_is_refused_by_name(site: Path, tmp_path: Path) -> None:
    run(site, "-m", "netctrl.design", "buffer", *ASKED, "-o", "made.json")
    (tmp_path / "nothing").mkdir()
    refused = ran(
        tmp_path / "nothing" / "site", "-m", "netctrl", "export", "ns3", str(site.parent / "made.json"), "-o", "x"
    )
    assert refused.returncode == 2
    assert "buffer" in refused.stderr and "Traceback" not in refused.stderr
