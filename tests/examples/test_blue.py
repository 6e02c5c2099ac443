"""A queue law of another package, examples/blue: in the fluid; on packets and in ns-3 in test_on_packets.py."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from packages import installed, ran, run
from places import ROOT

BLUE = ROOT / "examples" / "blue"

PROBE = """
import numpy as np
from netctrl.laws.aqm.fluid import STATES, Sample, law_of, probability
from netctrl.laws.aqm.records import LAWS
(law,) = [law for law in LAWS if law.name == "blue"]
kind, row = law_of(law.record(increase=0.25, freeze_time=0.1, long_queue=5000.0), 1000.0, None)
state = np.zeros(STATES)
print([probability(kind, row, state, Sample(0.06 * k, 0.06, 10.0, 0.0, 0.0, 100.0)) for k in range(5)])
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return installed(BLUE, tmp_path / "site")


def test_the_law_is_one_short_file() -> None:
    assert len((BLUE / "netctrl_blue.py").read_text().splitlines()) <= 60


@pytest.mark.slow
def test_the_fluid_runs_it_and_no_kernel_of_an_older_version(site: Path) -> None:
    """At 0.06 s steps a freeze time of 0.1 s ends with every other one; another law in the file is another result."""
    assert json.loads(run(site, "-c", PROBE)) == [0.0, 0.25, 0.25, 0.5, 0.5]
    law = site / "netctrl_blue.py"
    law.write_text(law.read_text().replace("change = p.increase if", "change = 2.0 * p.increase if"))
    assert json.loads(run(site, "-c", PROBE)) == [0.0, 0.5, 0.5, 1.0, 1.0]


def test_an_unknown_kind_lists_it(site: Path, tmp_path: Path) -> None:
    text = (BLUE / "blue.toml").read_text().replace('kind = "blue"', 'kind = "bleu"')
    (tmp_path / "s.toml").write_text(text)
    refused = ran(site, "-m", "netctrl", "simulate", str(tmp_path / "s.toml"))
    assert refused.returncode == 2
    assert "blue" in refused.stderr and refused.stderr.count("\n") == 1


POINT = ("--rtt", "50ms", "--N", "20:30", "--capacity", "20Mbit")


def test_it_is_certified_from_its_step(site: Path) -> None:
    """And jumps across its band where it may: the same law with steps 40 times as large."""
    found = json.loads(run(site, "-m", "netctrl", "certify", "blue", *POINT, "--json"))
    assert found["law"]["parameters"] == {
        "increase": 0.0025,
        "decrease": 0.00025,
        "freeze_time": 0.1,
        "long_queue": 4e4,
    }
    assert found["certificate"]["status"] == "admissible"
    refused = ran(site, "-m", "netctrl", "certify", "blue", *POINT, "--set", "increase=0.1,long_queue=40kB")
    assert refused.returncode == 3 and "unstable" in refused.stderr
    wrong = ran(site, "-m", "netctrl", "certify", "blue", *POINT, "--set", "increse=0.1")
    assert wrong.returncode == 2 and "did you mean 'increase'?" in wrong.stderr


def test_a_package_certifies_a_law_itself(tmp_path: Path) -> None:
    site = tmp_path / "site"
    about = site / "halved-1.dist-info"
    about.mkdir(parents=True)
    (site / "halved.py").write_text(
        "from dataclasses import replace\n"
        "from netctrl.certificates.pi_laws import pi2\n\n\n"
        "def halved(*, alpha=0.16):\n"
        "    return replace(pi2(alpha=alpha / 2.0), name='halved', parameters={'alpha': alpha})\n"
    )
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: halved\nVersion: 1\n")
    (about / "entry_points.txt").write_text("[netctrl.certified]\nhalved = halved:halved\n")
    own, known = (
        json.loads(run(site, "-m", "netctrl", "certify", *law, *POINT, "--json"))["certificate"]["sampled"]
        for law in (("halved", "--set", "alpha=0.32"), ("pi2", "--alpha", "0.16"))
    )
    assert own["gain_margin_db"] == known["gain_margin_db"]
