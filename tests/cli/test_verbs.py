"""Verbs of other packages: in the help, run, completed; a broken one is named and hides nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from packages import installed, ran, run
from places import ROOT

from netctrl.cli import FAILURE, NO, WRONG_USE
from netctrl.core.register import VERB_HELPS, VERBS

BDP = ROOT / "examples" / "bdp"
BROKEN = """
[project]
name = "netctrl-broken"
version = "1.0"

[project.entry-points."netctrl.verbs"]
broken = "netctrl_broken:main"
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """A folder with a package that has a verb and one that can't be imported."""
    broken = tmp_path_factory.mktemp("broken")
    (broken / "pyproject.toml").write_text(BROKEN)
    (broken / "netctrl_broken.py").write_text('"""never says anything"""\n\nimport no_such_library\n')
    return installed(broken, installed(BDP, tmp_path_factory.mktemp("site")))


def test_another_packages_verb_stands_in_the_help_and_runs(site):
    said = run(site, "-m", "netctrl", "--help")
    assert "\n  completion  a script" in said
    assert "\n  bdp         the bandwidth-delay product of a path, and whether a buffer holds it\n" in said
    assert run(site, "-m", "netctrl", "bdp", "--rate", "20Mbit", "--rtt", "50ms") == "125000 bytes\n"
    refused = ran(site, "-m", "netctrl", "bdp", "--rate", "20Mbit", "--buffer", "99kB")
    assert (refused.returncode, refused.stderr) == (NO, "error: the buffer is 1000 bytes too small\n")
    wrong = ran(site, "-m", "netctrl", "bdp", "--rate", "20")
    assert wrong.returncode == WRONG_USE
    assert wrong.stderr.startswith("error: --rate: got '20', takes a rate from 1bit")
    assert "--rtt TIME     round-trip time without queues: a time above 0" in run(
        site, "-m", "netctrl", "bdp", "--help"
    )


def test_a_shell_completes_another_packages_verb(site):
    script = run(site, "-m", "netctrl", "completion", "bash")
    assert "bdp" in script
    assert "--buffer" in script


def test_a_broken_verb_is_named_and_hides_no_other(site):
    assert "\n  broken      never says anything\n" in run(site, "-m", "netctrl", "--help")
    broken = ran(site, "-m", "netctrl", "broken")
    assert broken.returncode == FAILURE
    assert broken.stderr.startswith("error: verb broken of netctrl-broken 1.0 can't be used: ")
    assert "netctrl_broken.py, line 3: ModuleNotFoundError: No module named 'no_such_library'" in broken.stderr


def test_every_verb_has_a_help():
    assert list(VERBS) == list(VERB_HELPS)
    assert all(callable(VERBS[verb]) for verb in VERBS)
