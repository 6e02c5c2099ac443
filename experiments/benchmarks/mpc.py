"""MPC: the closed form against qpOASES through CasADi, what our adapter adds to DAQP, a problem of 20 states against
the same in parametrised cvxpy, explicit laws against PPOPT where it is installed, and exports to C against DAQP and our
own table; processor time, one thread."""

import ctypes
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import process_time

import cvxpy as cp
import daqp
import numpy as np
from rows import Agreement, Row, against, alternate, span

from netctrl.design.mpcc.design import mpcc
from netctrl.laws.window.explicit import decide_from_table
from netctrl.model.statespace import StateSpace
from netctrl.mpc.c.program import program_in_c
from netctrl.mpc.c.window import window_in_c
from netctrl.mpc.explicit import WindowTable, window_problem, window_table
from netctrl.mpc.formulate import condensed
from netctrl.mpc.piecewise.law import piecewise_law
from netctrl.mpc.piecewise.search import Bounds
from netctrl.mpc.problem import MpcProblem
from netctrl.mpc.qp.solve import open_solver
from netctrl.mpc.receding import receding_controller, start_receding, step_receding
from netctrl.mpc.solvers.qpoases_ import QpoasesWorkspace

HORIZONS = (3, 5, 10, 20)
BDP, RATE, FLOWS = 3750.0, 1e9, 4
MANY, SOME = 100_000, 50
ROUNDS = 9


def rows() -> Iterator[Row]:
    for horizon in HORIZONS:
        yield from explicit(horizon)
    for horizon in HORIZONS:
        yield adapter(horizon)
    yield from general()
    yield from explicit_laws()
    yield from in_c()


def table(horizon: int) -> WindowTable:
    return window_table(
        bdp_bytes=BDP,
        rate_in_bit_per_s=RATE,
        rate_out_bit_per_s=RATE,
        interval_s=1.0008576e-5,
        horizon=horizon,
        queue_weight=1.0,
        window_weight=1.0,
        most_flows=1024,
    )


def data(horizon: int, count: int) -> tuple[WindowTable, np.ndarray, list[tuple[np.ndarray, ...]]]:
    """The table, queues, and g and bounds of their programs, ready to be solved."""
    law = table(horizon)
    program = condensed(problem(law, horizon))
    queues = np.random.default_rng(0).uniform(0.0, (FLOWS - 1) * BDP, count)
    ready = []
    for queue in queues:
        made = program.program(np.array([queue]))
        ready.append((made.g.copy(), made.lower.copy(), made.upper.copy()))
    return law, queues, ready


def problem(law: WindowTable, horizon: int) -> MpcProblem:
    return window_problem(
        input_gain=float(law.input_gain[FLOWS]),
        fair_window_bytes=float(law.fair_window[FLOWS]),
        bdp_bytes=BDP,
        flows=FLOWS,
        horizon=horizon,
        queue_weight=1.0,
        window_weight=1.0,
    )


def explicit(horizon: int) -> Iterator[Row]:
    law, queues, ready = data(horizon, SOME)
    # Without the check of answers that `open_solver` adds, which is ours and not qpOASES's.
    solver = QpoasesWorkspace(condensed(problem(law, horizon)).program(np.zeros(1)))
    K, c, B = law.gain, law.fair_window, law.input_gain
    listed = queues.tolist()

    def one() -> list[float]:
        return [decide_from_table(queue, FLOWS, K, c, B, BDP) for queue in listed]

    def qpoases() -> list[float]:
        return [BDP * solver.solve(*each).x[0] + c[FLOWS] for each in ready]

    turns = alternate(one, qpoases, ROUNDS, 5, process_time)
    worst = np.abs(np.subtract(*turns.answers)).max() / BDP
    scaled = each_of(turns, SOME, SOME)
    same = Agreement("windows in P_BD", float(worst), 1e-6)
    peer = "qpOASES through CasADi"
    what = f"explicit, one decision, P = {horizon}"
    yield against(what, peer, scaled, ">= 20x", same)
    many = np.random.default_rng(1).uniform(0.0, (FLOWS - 1) * BDP, MANY)
    flows = np.full(MANY, FLOWS)
    turns = each_of(alternate(lambda: law.windows(many, flows), qpoases, ROUNDS, 1, process_time), MANY, SOME)
    what = f"explicit, one of {MANY}, P = {horizon}"
    worst = np.abs(law.windows(queues, np.full(SOME, FLOWS)) - qpoases()).max() / BDP
    same = Agreement("windows in P_BD", float(worst), 1e-6)
    yield against(what, "qpOASES through CasADi", turns, ">= 1000x", same)


def each_of(turns, ours: int, theirs: int):
    return turns._replace(ours=[t / ours for t in turns.ours], theirs=[t / theirs for t in turns.theirs])


def adapter(horizon: int) -> Row:
    """What a solve takes through our adapter, beside the bare calls that it makes."""
    law, _, ready = data(horizon, SOME)
    program = condensed(problem(law, horizon)).program(np.zeros(1))
    ours, bare = open_solver(program, "daqp"), daqp.Model()
    parts = (np.array(program.H), program.g.copy(), np.array(program.A), program.upper.copy(), program.lower.copy())
    bare.setup(*parts)
    bare.settings = {"primal_tol": 1e-11}

    def by_adapter() -> None:
        for g, lower, upper in ready:
            ours.solve(g, lower, upper)

    def by_hand() -> None:
        for g, lower, upper in ready:
            bare.update(f=g, bupper=upper, blower=lower)
            bare.solve()

    turns = each_of(alternate(by_adapter, by_hand, 25, 20, process_time), SOME, SOME)
    added = median(a - b for a, b in zip(turns.ours, turns.theirs, strict=True))
    what, peer = f"DAQP through our adapter, P = {horizon}", "daqp's update and solve alone"
    target = "adds < 5 us"
    return Row(what, span(turns.ours), peer, span(turns.theirs), f"+{added * 1e6:.2g} us", target, added < 5e-6)


def general() -> Iterator[Row]:
    """20 states, 4 inputs, horizon 20, all bounded: 400 rows, of which 4 to 24 are active, others each time."""
    rng = np.random.default_rng(3)
    n, m, P = 20, 4, 20
    A = rng.standard_normal((n, n))
    A *= 0.98 / np.abs(np.linalg.eigvals(A)).max()
    plant = StateSpace(A, rng.standard_normal((n, m)), np.eye(n), dt=1.0)
    requested = MpcProblem(
        plant=plant,
        horizon=P,
        state_weight=1.0,
        input_weight=0.1,
        state_lower=-10.0,
        state_upper=10.0,
        input_lower=-0.5,
        input_upper=0.5,
    )
    states = rng.uniform(-8.0, 8.0, (SOME // 5, n))
    controller = receding_controller(requested)
    start = start_receding(controller)

    def ours() -> np.ndarray:
        return np.array([step_receding(controller, start, x).applied for x in states])

    for name, options in (("OSQP", {"solver": cp.OSQP}), ("Clarabel", {"solver": cp.CLARABEL})):
        theirs = parametrised(requested, states, options)
        turns = each_of(alternate(ours, theirs, 5, 1, process_time), len(states), len(states))
        worst = np.abs(np.subtract(*turns.answers)).max() / 0.5
        what, same = f"MPC, {n} states, {m} inputs, horizon {P}", Agreement("inputs", float(worst), 1e-2)  # OSQP's
        yield against(what, f"cvxpy with {name}", turns, ">= 10x", same)


def parametrised(requested: MpcProblem, states: np.ndarray, options: dict) -> Callable[[], np.ndarray]:
    """As a user of cvxpy would write it: once, with the measured state as a parameter."""
    n, m, P = requested.plant.n_states, requested.plant.n_inputs, requested.horizon
    x, u, x0 = cp.Variable((P + 1, n)), cp.Variable((P, m)), cp.Parameter(n)
    cost = cp.sum_squares(x[1:]) + 0.1 * cp.sum_squares(u)
    bounds = [cp.abs(x[1:]) <= 10.0, cp.abs(u) <= 0.5]
    model = [x[0] == x0, x[1:] == x[:-1] @ requested.plant.A.T + u @ requested.plant.B.T]
    program = cp.Problem(cp.Minimize(cost), bounds + model)

    def solved() -> np.ndarray:
        found = []
        for state in states:
            x0.value = state
            program.solve(**options)
            found.append(u.value[0])
        return np.array(found)

    return solved


def plant_of(n: int, seed: int) -> StateSpace:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((n, n))
    return StateSpace(A * 1.05 / np.abs(np.linalg.eigvals(A)).max(), rng.standard_normal((n, 1)), np.eye(n), dt=1.0)


def explicit_laws() -> Iterator[Row]:
    """2, 3 and 4 states, one input, all bounded: offline."""
    if find_spec("ppopt") is None:
        return
    from ppopt.mp_solvers.solve_mpqp import mpqp_algorithm, solve_mpqp
    from ppopt.mpqp_program import MPQP_Program

    for n, horizon, seed in ((2, 10, 0), (3, 6, 1), (4, 6, 1)):
        bounds = {"state_lower": -3.0, "state_upper": 3.0, "input_lower": -1.0, "input_upper": 1.0}
        requested = MpcProblem(plant=plant_of(n, seed), horizon=horizon, state_weight=1.0, input_weight=0.1, **bounds)
        program = condensed(requested)
        made = Bounds(program, np.zeros(n), np.full(n, 3.0))
        box = np.vstack([np.eye(n), -np.eye(n)]), np.ones((2 * n, 1))
        parts = (made.G, made.w[:, None], program.g[:, None], program.F * 3.0, np.array(program.H), *box, made.S)

        def ours(requested: MpcProblem = requested) -> int:
            return len(piecewise_law(requested, -3.0, 3.0, merge=False).offset)

        def theirs(parts: tuple[np.ndarray, ...] = parts) -> int:
            solved = solve_mpqp(MPQP_Program(*parts), mpqp_algorithm.geometric)
            return len(solved.critical_regions)

        turns = alternate(ours, theirs, 3, 1, process_time)
        same = Agreement("regions", abs(turns.answers[0] - turns.answers[1]), 0)
        yield against(
            f"explicit law, {n} states, P = {horizon}, {turns.answers[0]} regions", "PPOPT", turns, ">= 1x", same
        )


def in_c() -> Iterator[Row]:
    """One decision of MPCC's law, and of a problem of 27 states: reference with preview, rates, a soft output."""
    law = mpcc(flows=4, rate_bit_per_s=25e9, rtt_s=20e-6, table=(1, 1024)).law
    decide = compiled(window_in_c(law))
    rng = np.random.default_rng(2)
    points = np.column_stack([rng.uniform(0.0, 3.0 * law.bdp_bytes, MANY), rng.integers(1, 1025, MANY)])
    table = [np.concatenate([part[:1], part]) for part in (law.table.gain, law.table.fair_window, law.table.B)]
    ours = WindowTable(law.bdp_bytes, *table, law.horizon, law.queue_weight, law.window_weight)
    turns = alternate(lambda: decide(points)[:, 0], lambda: ours.windows(*points.T), ROUNDS, 1, process_time)
    same = Agreement("windows in P_BD", float(np.abs(np.subtract(*turns.answers)).max() / law.bdp_bytes), 1e-12)
    yield against("MPCC's law in C, one decision", "WindowTable", each_of(turns, MANY, MANY), "< 1 us", same)
    requested = preview()
    program, states = (
        condensed(requested),
        rng.uniform(-1.0, 1.0, (SOME * 10, 27)) * rng.uniform(0.0, 1.0, (SOME * 10, 1)),
    )
    decide = compiled(program_in_c(requested, -1.0, 1.0))
    solver = daqp.Model()
    at = program.program(states[0])
    solver.setup(*(np.array(part) for part in (program.H, at.g, program.A, at.upper, at.lower)))

    def by_daqp() -> np.ndarray:
        found = []
        for theta in states:
            shift = program.E @ theta
            solver.update(f=program.g + program.F @ theta, bupper=program.upper + shift, blower=program.lower + shift)
            found.append(program.first_input(solver.solve()[0], theta))
        return np.array(found)

    turns = each_of(alternate(lambda: decide(states), by_daqp, ROUNDS, 1, process_time), len(states), len(states))
    same = Agreement("inputs", float(np.abs(np.subtract(*turns.answers)).max()), 1e-5)  # of DAQP's own tolerance
    yield against("MPC in C, 27 states, P = 20, one step", "DAQP from Python", turns, "< 50 us", same)


def preview() -> MpcProblem:
    """3 states, a disturbance, the last input, the output and 21 references; input: the change of the plant's input."""
    A, B = np.array([[1.0, 0.1, 0.0], [-0.2, 0.9, 0.1], [0.0, 0.0, 0.8]]), np.array([0.0, 0.0, 0.5])
    Az, Bz, C = np.zeros((27, 27)), np.zeros((27, 1)), np.zeros((1, 27))
    Az[:3, :3], Az[:3, 3], Az[:3, 4], Bz[:3, 0] = A, B, B, B
    Az[3, 3] = Az[4, 4] = Bz[4, 0] = Az[26, 26] = 1.0
    Az[6:26, 7:27] = np.eye(20)
    Az[5], Bz[5] = Az[0], Bz[0]
    C[0, 5], C[0, 6] = 1.0, -1.0
    low, high = np.full(27, -np.inf), np.full(27, np.inf)
    low[4], high[4], high[5] = -4.0, 4.0, 1.05
    return MpcProblem(
        plant=StateSpace(Az, Bz, C, dt=1.0), horizon=20, output_weight=1.0, input_weight=0.1, state_lower=low,
        state_upper=high, soft_weight=np.where(np.arange(27) == 5, 1e4, np.inf), input_lower=-0.3, input_upper=0.3,
    )  # fmt: skip


def compiled(files: Mapping[str, str]) -> Callable[[np.ndarray], np.ndarray]:
    """An export's function of many points, by the `call` of its check.c."""
    folder = Path(tempfile.mkdtemp())
    for name, text in files.items():
        (folder / name).write_text(text)
    loop = (
        "void many(long n, const double *x, double *u) { for (long i = 0; i < n; i++) (void)call(x + i*Q, u + i*M); }"
    )
    (folder / "many.c").write_text(files["check.c"].partition("int main")[0] + loop)
    source = next(name for name in files if name.endswith(".c") and name != "check.c")
    command = ["gcc", "-std=c99", "-O2", "-shared", "-fPIC", "-o", "many.so", "many.c", source, "-lm"]
    subprocess.run(command, cwd=folder, check=True)
    many = ctypes.CDLL(str(folder / "many.so")).many

    def decide(points: np.ndarray) -> np.ndarray:
        u = np.empty((len(points), 1))
        many(ctypes.c_long(len(points)), ctypes.c_void_p(points.ctypes.data), ctypes.c_void_p(u.ctypes.data))
        return u

    return decide
