"""What may happen untold in each sample of a proved loop: worst sequences by the law that runs, and random ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import netctrl
from netctrl.model.design.design import MpcDesign
from netctrl.mpc.law import LatePlant, RunningMpc, law_problem


def random_design(seed: int) -> MpcDesign | None:
    """One or two inputs, to three states, delays, an estimator or none, ranges of references; None without a proof."""
    random = np.random.default_rng(seed)
    n, m = int(random.integers(1, 4)), 1 + int(random.random() < 0.3)
    A = random.standard_normal((n, n))
    A *= random.uniform(0.3, 1.05) / np.abs(np.linalg.eigvals(A)).max()
    B, C = random.standard_normal((n, m)), random.standard_normal((m, n))
    if m > n:
        return None
    late, estimates = random.integers(0, 3, m), random.random() < 0.5
    age = int(random.integers(0, 2))
    problem = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, B, C, dt=1.0), horizon=12, output_weight=1.0,
        rate_weight=10.0 ** random.uniform(-1.0, 1.0), delay=late.tolist(), measurement_delay=age,
        input_lower=-1.0, input_upper=1.0, rate_lower=-random.uniform(0.3, 2.0), rate_upper=random.uniform(0.3, 2.0),
        output_lower=-10.0, output_upper=10.0,
    )  # fmt: skip
    reach = 0.05 * np.abs(C @ np.linalg.pinv(np.eye(n) - A) @ B).sum(axis=1)
    options = {"estimator": {"disturbance": "input", "disturbance_noise": 0.05}} if estimates else {}
    try:
        design = netctrl.design_mpc(problem, reference=np.column_stack([-reach, reach]), **options)
    except netctrl.NetctrlError:
        return None
    return design if design.certificate.proved and design.certificate.tubes else None


def test_a_link_s_queue_stays_above_none() -> None:
    """References down to .02 Mbit: what is added untold empties no queue, of which a linear plant doesn't know."""
    for lowest in (0.02, 0.2):
        problem = netctrl.MpcProblem(
            plant=netctrl.link_rate_plant("10ms"), measured=(1,), horizon=30, output_weight=1.0, rate_weight=1e-4,
            input_lower=0.0, input_upper=100.0,
        )  # fmt: skip
        asked = {"reference": [[lowest, 1.0]], "disturbances": [[30.0, 50.0]]}
        (tube,) = netctrl.design_mpc(problem, link="uplink", **asked).certificate.tubes
        (free,) = netctrl.design_mpc(problem, **asked).certificate.tubes
        assert dict(tube.off)["backlog"] == pytest.approx(lowest)
        assert free.most > tube.most


def run(design: MpcDesign, place: int, added: Sequence[float]) -> tuple[np.ndarray, RunningMpc]:
    """Outputs, inputs and their changes, (T, p + 2 m), with what is added untold to an input, from rest at 0."""
    law, problem = design.law, law_problem(design.law)
    m, old = problem.n_inputs, problem.measurement_delay
    running, plant = RunningMpc(law, np.zeros(m)), LatePlant(problem, np.zeros(len(law.A)), np.zeros(m))
    known = law.estimator is not None
    seen, rows, before = [np.zeros(len(law.C) if known else len(law.A))] * old, [], np.zeros(m)
    for each in added:
        now = plant.outputs(np.zeros(0)) if known else plant.state
        seen.append(now)
        applied = running.decide(seen.pop(0), reference=np.zeros(len(law.C)))
        untold = np.zeros(m)
        untold[place] = each
        outputs = plant.advance(applied, np.zeros(0), untold)
        rows.append(np.concatenate([outputs, applied, applied - before]))
        before = applied
    return np.array(rows), running


@pytest.mark.parametrize("seed", [*range(10), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(10, 40))])
def test_a_loop_stays_in_its_tube_whatever_the_sequence(seed: int) -> None:
    design = random_design(seed)
    if design is None:
        assert seed >= 10
        return
    random, moved = np.random.default_rng(seed), list(design.law.inputs)
    for tube in design.certificate.tubes:
        place, far = moved.index(tube.input), np.array([each for _, each in tube.off])
        # By the law that runs: an impulse so small that no bound is met.
        small = 1e-3 * tube.most
        samples = int(np.log(1e-4) / np.log(design.certificate.spectral_radius)) + 20
        response = run(design, place, [small, *np.zeros(samples)])[0] / small
        assert np.abs(response).sum(axis=0) * tube.most == pytest.approx(far, rel=5e-3, abs=1e-9)
        columns = range(len(far))
        sequences = [np.sign(response[::-1, column]) for column in columns]
        sequences += [random.choice([-1.0, 1.0], 300), np.sign(np.sin(np.arange(300) * random.uniform(0.05, 2.0)))]
        for column, signs in zip([*columns, None, None], sequences, strict=True):
            seen, running = run(design, place, 0.999 * tube.most * signs)
            assert running.outside == running.state.failures == 0
            assert (np.abs(seen).max(axis=0) <= far * (1.0 + 1e-6) + 1e-9).all()
            if column is not None and far[column] > 1e-9:
                assert np.abs(seen[-1, column]) > 0.99 * far[column]
