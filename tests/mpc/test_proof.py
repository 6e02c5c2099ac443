"""What a proof promises of an MPC loop: random designs started at the edge of the region stay feasible and settle."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import netctrl
from netctrl.frequency.hinf_norm import discrete_disk_margin
from netctrl.mpc.proof import MpcProof, prove_mpc
from netctrl.mpc.qp.invariant import invariant
from netctrl.mpc.qp.program import QPStatus
from netctrl.mpc.receding import receding_controller, start_receding, step_receding


def design(seed: int) -> MpcProof:
    """A proof of the first of some random problems that has one."""
    found = (drawn(np.random.default_rng([43, seed, attempt])) for attempt in itertools.count())
    return next(proof for proof in found if proof.holds)


def drawn(random: np.random.Generator) -> MpcProof:
    """A random problem: stable, integrating or unstable, with delays, rates, soft and mixed rows, and a reference."""
    n, m = int(random.integers(1, 5)), int(random.integers(1, 3))
    A, B, C = random.standard_normal((n, n)), random.standard_normal((n, m)), random.standard_normal((m, n))
    A *= random.choice([0.6, 0.95, 1.0, 1.15]) / np.abs(np.linalg.eigvals(A)).max()
    options = {"input_weight": 0.1} if random.random() < 0.5 else {"rate_weight": 0.2, "rate_lower": -0.4}
    if random.random() < 0.5:
        options |= {"output_lower": -3.0, "output_upper": 3.0, "output_soft_weight": random.choice([np.inf, 50.0])}
    if random.random() < 0.3:
        options |= {"mixed_states": random.standard_normal((1, n)), "mixed_upper": 4.0}
        options |= {"mixed_inputs": 0.5 * random.standard_normal((1, m))}
    delay = int(random.integers(0, 3)) if random.random() < 0.5 else tuple(map(int, random.integers(0, 3, m)))
    problem = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, B, C, dt=1.0),
        horizon=int(random.integers(3, 12)),
        output_weight=1.0,
        input_lower=-1.0,
        input_upper=1.5,
        delay=delay,
        **options,
    )
    return prove_mpc(problem, random.uniform(-0.2, 0.2, m) if random.random() < 0.5 else 0.0)


def run(proof: MpcProof, share: float, random: np.random.Generator, steps: int) -> tuple[str, float]:
    """What goes wrong from a start at a share of the way to the edge, in a random direction; and the last error."""
    problem, plant = proof.problem, proof.problem.plant
    A, B = np.asarray(plant.A), np.asarray(plant.B)
    toward = random.standard_normal(plant.n_states)
    moved = np.linalg.matrix_power(A, int(problem.delays.min())) @ toward
    q = problem.terminal_weight.shape[0]
    far = proof.farthest(np.concatenate([moved, np.zeros(q - plant.n_states)]))
    x = proof.steady_state + share * min(far, 1e3) * toward
    controller = receding_controller(problem)
    state = start_receding(controller, proof.steady_input)
    past = [proof.steady_input] * (int(problem.delays.max()) + 1)
    for k in range(steps):
        state = step_receding(controller, state, x, reference=proof.reference.mean(axis=1))
        if state.status is not QPStatus.SOLVED:
            return f"{state.status} at {k}: {state.reason}", np.inf
        past = [*past[1:], state.applied]
        acting = np.array([past[-1 - d][j] for j, d in enumerate(problem.delays)])
        x = A @ x + B @ acting
        low, high = problem.input_limits
        if not ((state.applied >= low - 1e-9) & (state.applied <= high + 1e-9)).all():
            return f"an input out of bounds at {k}", np.inf
    return "", float(np.abs(x - proof.steady_state).max())


@pytest.mark.parametrize("seed", range(8))
def test_from_the_edge_of_the_region_every_plan_is_feasible(seed: int) -> None:
    proof, random = design(seed), np.random.default_rng(seed)
    for share in (1.0 - 1e-7, 1.0 - 1e-7, 0.5):
        wrong, _ = run(proof, share, random, 25)
        assert not wrong
    slowest = np.abs(np.linalg.eigvals(np.asarray(proof.difference.A))).max()
    _, error = run(proof, 0.9, random, 100 + int(np.log(1e-6) / np.log(slowest)))
    assert error < 1e-4


def test_beyond_the_edge_there_is_no_plan() -> None:
    for seed in range(12):
        proof, random = design(seed), np.random.default_rng(seed)
        if not np.isfinite(proof.problem.output_soft_weight).any():
            wrong, _ = run(proof, 1.0 + 1e-4, random, 1)
            unbounded = not np.isfinite(proof.extent).all()
            assert wrong.startswith("infeasible") or unbounded


def test_the_set_of_a_double_integrator() -> None:
    """u = −K x with |K x| ≤ 1: the rows are K Φ^t, and no point beyond one of them stays."""
    Phi, K = np.array([[0.6, 0.5], [-0.3, 0.7]]), np.array([[0.4, 0.8]])
    rows, steps = invariant(Phi, np.vstack([K, -K]))
    grid = np.random.default_rng(1).uniform(-4.0, 4.0, (4000, 2))
    inside = (grid @ rows.T <= 1.0).all(axis=1)
    later = np.stack([np.abs(grid @ np.linalg.matrix_power(Phi, t).T @ K.T)[:, 0] for t in range(60)])
    assert (inside == (later <= 1.0).all(axis=0)).all()
    assert 0 < inside.sum() < len(grid)
    assert steps <= 5


def test_a_scalar_plant_by_hand() -> None:
    """x₊ = 2 x + u, |u| ≤ 1: no law holds |x| ≥ 1, and long plans reach nearly all below."""
    plant = netctrl.StateSpace([[2.0]], [[1.0]], [[1.0]], dt=1.0)
    for horizon, weight in ((1, 1.0), (30, 1.0)):
        problem = netctrl.MpcProblem(
            plant=plant, horizon=horizon, output_weight=1.0, input_weight=weight, input_lower=-1.0, input_upper=1.0
        )
        proof = prove_mpc(problem)
        edge = 1.0 / proof.gain[0, 0]
        for _ in range(horizon):
            edge = (edge + 1.0) / 2.0
        assert proof.extent[0] == pytest.approx([-edge, edge], rel=1e-7)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"blocks": (1, 2, 2)}, "blocks"),
        ({"output_weight": np.stack([np.eye(1)] * 9 + [2.0 * np.eye(1)])}, "by sample"),
        ({"input_lower": 0.0}, "its bound"),
        ({"output_weight": 0.0, "input_weight": 1.0}, "weigh all outputs"),
    ],
)
def test_what_is_missing_is_said(change: dict, said: str) -> None:
    plant = netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)
    options = {"plant": plant, "horizon": 10, "output_weight": 1.0, "input_weight": 0.1, "input_lower": -1.0}
    proof = prove_mpc(netctrl.MpcProblem(**options | change))
    assert not proof.holds
    assert said in proof.missing[0]


def test_a_reference_that_no_input_holds_is_named() -> None:
    plant = netctrl.StateSpace([[0.5]], [[1.0]], [[1.0], [1.0]], dt=1.0)
    problem = netctrl.MpcProblem(plant=plant, horizon=5, output_weight=1.0, input_weight=1.0)
    assert "no steady input" in prove_mpc(problem, [1.0, 0.0]).missing[0]
    assert prove_mpc(problem, [1.0, 1.0]).holds


@pytest.mark.parametrize("delay", [0, 1, 3])
def test_the_margin_is_that_of_the_loop_with_its_delay(delay: int) -> None:
    """By frequency: a = u + w, x = (z − A)⁻¹ B z⁻ᵈ a, and the law's u from x and the inputs sent."""
    A, B = np.array([[1.0, 0.2], [0.0, 0.7]]), np.array([[0.0], [1.0]])
    problem = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, B, np.eye(2), dt=1.0), horizon=5, output_weight=1.0, rate_weight=0.3, delay=delay
    )
    proof = prove_mpc(problem)
    Kx, Ku = proof.gain[:, :2], proof.gain[:, 2:]
    power, worst = np.linalg.matrix_power, 0.0
    for angle in np.linspace(1e-4, np.pi, 20001):
        z = np.exp(1j * angle)
        x = np.linalg.solve(z * np.eye(2) - A, B) * z**-delay
        own = 1.0 + (Ku / z + sum(Kx @ power(A, i) @ B * z ** -(i + 1.0) for i in range(delay)))[0, 0]
        L = (Kx @ power(A, delay) @ x)[0, 0] / own
        worst = max(worst, abs((1.0 - L) / (1.0 + L)))
    assert discrete_disk_margin(proof.difference).alpha == pytest.approx(2.0 / worst, rel=1e-5)
