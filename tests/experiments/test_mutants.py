"""Mutants are other code of the same function."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location

import pytest
from places import ROOT


@pytest.fixture(scope="module")
def mutants():
    spec = spec_from_file_location("mutants", ROOT / "experiments" / "mutants.py")
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


CODE = """
from netctrl.core.jit import njit

FAR = 5.0

class Law:
    limit: int = 3

    @property
    def twice(self) -> float:
        if not self.on:
            raise ValueError(f"got {self.on + 1}")
        return 2.0 * -self.gain

@njit(cache=True)
def kernel(x, y=4):
    def inner(z):
        return min(z, 0.0)
    return 1 <= x < y and inner(x) == 7
"""


def test_each_change_is_of_one_place_in_a_function(mutants, tmp_path, monkeypatch):
    monkeypatch.setattr(mutants, "SOURCE", tmp_path)
    (tmp_path / "code.py").write_text(CODE, encoding="utf-8")
    found = [mutants.mutate(site) for site in mutants.sites(tmp_path / "code.py")]
    assert sorted(said.partition(": ")[2] for _, said in found) == [
        "-self.gain  ->  +self.gain",
        "0.0  ->  1.0",
        "1  ->  2",
        "1 <= x < y  ->  1 < x < y",
        "1 <= x < y  ->  1 <= x <= y",
        "1 <= x < y and inner(x) == 7  ->  1 <= x < y or inner(x) == 7",
        "2.0  ->  2.2",
        "2.0 * -self.gain  ->  2.0 / -self.gain",
        "7  ->  8",
        "inner(x) == 7  ->  inner(x) != 7",
        "min(z, 0.0)  ->  max(z, 0.0)",
        "not self.on  ->  not not self.on",
    ]
    assert {code.co_qualname for code, _ in found} == {"Law.twice", "kernel"}


def test_what_fails_or_lasts_too_long_in_a_child_is_none(mutants):
    def work(job):
        if job == 1:
            raise ValueError
        while job == 2:
            pass
        return 10 * job

    assert mutants.in_children(work, [0, 1, 2, 3], [5.0, 5.0, 0.2, 5.0]) == [0, None, None, 30]
