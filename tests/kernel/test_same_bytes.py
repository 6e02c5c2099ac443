"""A seed's bytes are those of any machine with the same kernel, compiler and C library.

Linux mixes its command line into its random numbers, and what an interpreter asks of it too. So no path of the machine
is on the command line, and laws that mark run without an interpreter.
"""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest

import netctrl
from netctrl.laws.aqm.arc import ArcQueue
from netctrl.laws.aqm.fast_arc import FastArcQueue
from netctrl.laws.aqm.pie import PieQueue

pytestmark = pytest.mark.needs("lab")

QUEUES = {"tail": None, "pie": PieQueue(), "arc": ArcQueue(alpha=1e-4, epoch=0.2), "fast-arc": FastArcQueue(epoch=0.1)}
"""Queues of five Cubic flows at 10 Mbit/s over 5 s."""
TOOLCHAIN = {
    "linux": "6.1.192",
    "compiler": "gcc (Debian 12.2.0-14+deb12u1) 12.2.0",
    "libc": "ldd (Debian GLIBC 2.36-9+deb12u14) 2.36",
}
PUBLISHED = {
    "tail": "12eb7ba4c6d206962d1f7e2cc1ee308f8c8d1de2abeb53fff3990e1f014a707f",
    "pie": "93f9d234db12d02debe2abc0243cc15fa56cd97fdb20f6ceb5590a4c8a741964",
    "arc": "e0d270d81542d3f3195ec1d26f48700ab7884decb91ad3f12e0daca542540bf8",
    "fast-arc": "34ea3dae8761d5204c981e3c74562d36f628b3aacfb9abed24a097b683047212",
}
"""SHA-256 of what the kernel writes, seed 1, by the toolchain above. After a wanted change of plans or of the guest's
programs the test says the new ones."""


@pytest.mark.parametrize("name", QUEUES)
def test_a_published_hash_is_met(scenario_of, results_of, name: str) -> None:
    from netctrl.kernel.build import chosen_kernel, toolchain

    here = {key: value for key, value in toolchain(chosen_kernel()).items() if key in TOOLCHAIN}
    if here != TOOLCHAIN:
        pytest.skip(f"hashes are published for {TOOLCHAIN}, and here are {here}")
    assert hashlib.sha256(results_of(scenario_of(QUEUES[name]))).hexdigest() == PUBLISHED[name]


@pytest.mark.parametrize(
    ("name", "duration"), [("pie", "5s"), ("arc", "5s"), pytest.param("arc", "60s", marks=pytest.mark.slow)]
)
def test_neither_the_cache_nor_the_environment_has_a_part(
    scenario_of, results_of, tmp_path, monkeypatch, name: str, duration: str
) -> None:
    from netctrl.kernel.build import chosen_kernel

    scenario, kernel = scenario_of(QUEUES[name], duration=duration), chosen_kernel()
    first = results_of(scenario)
    other = tmp_path / "another cache with a longer name"
    shutil.copytree(kernel.folder, other / "netctrl/linux" / Path(kernel.folder).name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(other))
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert chosen_kernel().folder != kernel.folder
    assert results_of(scenario) == first


def test_provenance_names_what_bytes_depend_on(scenario_of) -> None:
    from netctrl.kernel.build import build_guest, chosen_kernel

    named = netctrl.simulate(scenario_of(duration="1s"), "kernel").provenance.libraries
    assert {"linux", "compiler", "libc"} <= set(named)
    for name, program in {"linux": chosen_kernel().program, "guest": build_guest().first_process}.items():
        assert named[f"{name} sha256"] == hashlib.sha256(program.read_bytes()).hexdigest()
