"""Whole controllers in C beside `RunningMpc`: random laws with estimators, preview, delays and fallbacks."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from c_exports import SANITIZED, checked

import netctrl
from netctrl.cli.export import main
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.design.mpc.file import mpc_from_file
from netctrl.model.datasets import problem_path
from netctrl.model.design.mpc import MpcLaw
from netctrl.mpc.c.controller.controller import controller_in_c

pytestmark = pytest.mark.needs("compiler")


def drawn(seed: int) -> MpcLaw:
    """Stable, integrating or unstable, with what a law may have."""
    random = np.random.default_rng([7, seed])
    n, m, nw = int(random.integers(1, 4)), int(random.integers(1, 3)), int(random.integers(0, 2))
    A = random.standard_normal((n, n))
    A *= random.choice([0.6, 0.9, 1.0, 1.1]) / np.abs(np.linalg.eigvals(A)).max()
    p = min(m, n)
    options = {"output_lower": -1.0, "output_upper": 2.0} if random.random() < 0.4 else {}
    options |= {"output_soft_weight": 30.0} if random.random() < 0.5 else {}
    options |= {"rate_lower": -0.5, "rate_upper": 0.5} if random.random() < 0.5 else {}
    options |= {"blocks": (1, 2)} if random.random() < 0.2 else {}
    problem = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, random.standard_normal((n, m + nw)), np.eye(n)[:p], dt=0.1),
        measured=(m,) if nw else (),
        horizon=int(random.integers(3, 10)),
        output_weight=1.0,
        state_weight=0.1,
        rate_weight=0.2,
        input_lower=-1.0,
        input_upper=1.5,
        delay=tuple(map(int, random.integers(0, 3, m))),
        measurement_delay=int(random.integers(0, 2)),
        **options,
    )
    asked = {"preview": bool(random.random() < 0.4), "hold": int(random.integers(0, 4))}
    if random.random() < 0.6:
        asked["estimator"] = {"disturbance": str(random.choice(["output", "input", "none"]))}
    if random.random() < 0.5:
        asked |= {"output_offset": random.uniform(-2.0, 2.0, p), "input_offset": random.uniform(-2.0, 2.0, m + nw)}
        asked["reference"] = asked["output_offset"]
        asked["disturbances"] = asked["input_offset"][m:]
    try:
        return netctrl.design_mpc(problem, **asked).law
    except NetctrlError:  # disturbances that outputs don't tell apart
        return netctrl.design_mpc(problem, **asked | {"estimator": {"disturbance": "none"}}).law


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(16))
def test_a_law_in_c_decides_as_in_python(seed: int, tmp_path: Path) -> None:
    """Through 500 samples, and with no error that a sanitizer sees."""
    ran = checked(controller_in_c(drawn(seed), "my_law"), tmp_path, SANITIZED)
    assert "500 samples, 0 wrong" in ran.stdout
    assert ran.stderr == ""


def test_courses_have_plans_outside_the_region_and_without_a_plan(tmp_path: Path) -> None:
    codes = set()
    for seed in range(16):
        files, law = controller_in_c(drawn(seed), "my_law"), drawn(seed)
        m = len(law.safe_input)
        codes |= {line.split()[-1 - m] for line in files["vectors.txt"].splitlines()}
    assert codes == {"0", "1", "2", "3"}


def test_a_wrong_number_is_found(tmp_path: Path) -> None:
    files = controller_in_c(mpc_from_file(problem_path("uplink")).law, "my_law")
    assert " 0 wrong" in checked(files, tmp_path).stdout
    *rest, last = files["vectors.txt"].splitlines()
    words = last.split()
    files["vectors.txt"] = "\n".join([*rest, " ".join([*words[:-1], (float.fromhex(words[-1]) + 0.01).hex()])])
    assert " 1 wrong" in checked(files, tmp_path).stdout


def test_the_command_writes_a_design(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mpc_from_file(problem_path("uplink")).save("mpc.json")
    assert main(["c", "mpc.json", "-o", "here"]) == 0
    done = subprocess.run(["make", "-s", "-C", "here", "test"], capture_output=True, text=True, check=True)
    assert "500 samples, 0 wrong" in done.stdout
    assert main(["c", "mpc.json", "-o", "there", "--fixed"]) == 2
    with pytest.raises(InvalidValue, match="name"):
        controller_in_c(mpc_from_file(problem_path("uplink")).law, "input_offset")
