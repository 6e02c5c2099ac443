"""Designs of model predictive control: what they say is what an own simulation of the plant shows."""

from __future__ import annotations

import math
import random as chance
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import FileError, InvalidValue, NetctrlError, Status
from netctrl.design.mpc.course import mpc_course
from netctrl.design.mpc.file import mpc_from_file
from netctrl.model.datasets import problem_path
from netctrl.model.design.design import MpcDesign
from netctrl.model.design.mpc import MpcCourse
from netctrl.mpc.law import RunningMpc, law_problem, problem_data, problem_of

DT = 0.01
LINK = {
    "plant": netctrl.link_rate_plant(DT),
    "measured": (1,),
    "horizon": 30,
    "output_weight": 1.0,
    "rate_weight": 1e-4,
    "input_lower": 0.0,
    "input_upper": 100.0,
}


def link_design(**asked: object) -> MpcDesign:
    """A link's queue of .5 Mbit for a demand of up to 90 Mbit/s."""
    problem = netctrl.MpcProblem(**LINK | asked.pop("problem", {}))
    return netctrl.design_mpc(problem, **{"reference": 0.5, "disturbances": [[1.0, 90.0]], "link": "uplink"} | asked)


def queue_of(design: MpcDesign, demand: list[float], first: float, late: int = 0, factor: float = 1.0) -> np.ndarray:
    """An own queue under the law, whose rates act `late` samples later than they are set, times a factor."""
    running = RunningMpc(design.law, [first])
    queue, under_way, seen = 0.5, [first] * late, []
    for arrives in demand:
        under_way.append(factor * float(running.decide([queue], disturbances=[arrives])[0]))
        queue += DT * (arrives - under_way.pop(0))
        seen.append(queue)
    return np.array(seen)


@pytest.mark.parametrize("estimator", [None, {"disturbance": "input", "disturbance_noise": 10.0}])
@pytest.mark.parametrize("delay", [0, 2])
def test_the_margins_are_those_at_which_an_own_queue_starts_to_swing(delay: int, estimator: dict | None) -> None:
    design = link_design(problem={"delay": delay}, estimator=estimator, reference=50.0)
    proof = design.certificate
    demand = [10.0] * 20 + [10.5] * 2500

    def swings(late: int, factor: float) -> bool:
        return np.ptp(queue_of(design, demand, 10.0 / factor, late, factor)[-200:]) > 1e-3

    steps = round(proof.delay_margin_s / DT)
    assert not swings(delay + steps, 1.0)
    assert swings(delay + steps + 1, 1.0)
    # The disk is inside what gain alone may do.
    assert not swings(delay, 0.98 * proof.highest_gain)
    if proof.lowest_gain > 0.0:
        assert not swings(delay, 1.02 * proof.lowest_gain)


@pytest.mark.parametrize("seed", range(12))
def test_margins_and_courses_have_direct_effects_on_what_is_measured_late(seed: int) -> None:
    """A random plant whose outputs are those of an interval that ended, with its inputs' direct effects, as an
    identified model has them: an own loop decays, and starts to swing, where the certificate says."""
    random = np.random.default_rng(seed)
    n, late = int(random.integers(1, 4)), int(random.integers(0, 3))
    A = random.standard_normal((n, n))
    A *= random.uniform(0.3, 0.95) / np.abs(np.linalg.eigvals(A)).max()
    B, C, D = random.standard_normal((n, 1)), random.standard_normal((1, n)), random.uniform(0.5, 2.0, (1, 1))
    gain = abs((C @ np.linalg.solve(np.eye(n) - A, B) + D)[0, 0])
    B, D = B / gain, D / gain
    problem = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, B, C, D, dt=1.0), horizon=25, output_weight=1.0, rate_weight=1.0,
        delay=late, measurement_delay=1,
    )  # fmt: skip
    course = MpcCourse(samples=60, references=((0.0, 0.0), (20.0, 1.0)), unmeasured=((40.0, 0.5),))
    options = {"estimator": {"disturbance": "output", "disturbance_noise": 0.1}, "course": course}
    design = netctrl.design_mpc(problem, **options)

    def run(samples: int, factor: float = 1.0, wanted: float = 0.0, shaken: float = 1.0) -> tuple[np.ndarray, ...]:
        running, x, sent = RunningMpc(design.law), shaken * np.ones(n), [0.0] * late
        y, seen = 0.0, []
        for k in range(samples):
            sent.append(running.decide([y], [wanted if k >= 20 else 0.0])[0])
            u = factor * (sent[k] + (0.5 if k >= 40 and wanted else 0.0))
            y = float((C @ x + D[:, 0] * u)[0])
            x = A @ x + B[:, 0] * u
            seen.append(y)
        return np.array(seen), np.array(sent[late:])

    outputs, inputs = run(60, wanted=1.0, shaken=0.0)
    shown = mpc_course(design.law, course, np.zeros(1), np.zeros(0))
    assert np.abs(shown.outputs[:, 0] - outputs).max() < 1e-9
    assert np.abs(shown.inputs[:, 0][: 60 - late] - inputs[: 60 - late]).max() < 1e-9
    radius = design.certificate.spectral_radius
    assert radius < 1.0
    ends = [np.abs(run(samples)[0][-30:]).max() for samples in (100, 200)]
    assert max(ends[1], 1e-12) < 10.0 * max(ends[0] * radius**100, 1e-12)
    assert np.abs(run(400, 0.97 * design.certificate.highest_gain)[0][-50:]).max() < 0.3


def test_the_status_is_of_the_margin_and_the_proof() -> None:
    assert link_design().certificate.status is Status.ADMISSIBLE
    fast = link_design(problem={"delay": 3}, estimator={"disturbance": "input", "disturbance_noise": 1e6}).certificate
    assert (fast.status, fast.proved) == (Status.STABLE, True)
    assert "disk margin" in fast.warnings[0]
    assert "disturbance_noise" in fast.warnings[0]
    held = link_design(problem={"blocks": (1, 2, 4)}).certificate
    assert (held.status, held.proved) == (Status.STABLE, False)
    assert any("blocks" in each for each in held.warnings)
    beyond = link_design(disturbances=[[1.0, 120.0]]).certificate
    assert "its bound 100" in beyond.missing[0]
    grows = netctrl.StateSpace([[2.0]], [[1.0]], [[1.0]], dt=1.0)
    dear = netctrl.MpcProblem(plant=grows, horizon=2, output_weight=0.01, input_weight=100.0, blocks=(2,))
    lost = netctrl.design_mpc(dear).certificate
    # u = −K x, K = b'Q a / (b'Q b + 2 R) of x_1 = 2 x + u, x_2 = 4 x + 3 u.
    gain = 0.01 * (2.0 * 1.0 + 4.0 * 3.0) / (0.01 * (1.0 + 9.0) + 200.0)
    assert lost.status is Status.UNSTABLE
    assert lost.spectral_radius == pytest.approx(2.0 - gain, rel=1e-9)


def test_a_course_is_an_own_simulation() -> None:
    course = MpcCourse(samples=400, disturbances=((0.0, 30.0), (1.0, 80.0)))
    design = link_design(course=course, problem={"rate_lower": -2.0, "rate_upper": 2.0})
    seen = queue_of(design, [30.0] * 100 + [80.0] * 300, 30.0)
    shown = {each.name: each for each in design.certificate.course}
    assert shown["backlog"].highest == pytest.approx(max(seen[:-1].max(), 0.5), abs=1e-9)
    assert shown["backlog"].last == pytest.approx(0.5, abs=1e-6)
    assert shown["rate"].last == pytest.approx(80.0, abs=1e-5)
    assert shown["change of rate"].highest == pytest.approx(2.0)


def test_preview_and_estimator_are_in_the_course() -> None:
    step = MpcCourse(samples=300, disturbances=((0.0, 30.0), (1.0, 80.0)))
    limits = {"rate_lower": -2.0, "rate_upper": 2.0}
    blind, told = (
        link_design(course=step, problem=limits, preview=each).certificate.course[0] for each in (False, True)
    )
    assert told.highest < 0.5 * blind.highest
    untold = MpcCourse(samples=600, disturbances=((0.0, 30.0),), unmeasured=((1.0, -8.0),))
    kept = link_design(course=untold).certificate.course[0]
    gone = link_design(course=untold, estimator={"disturbance": "input"}).certificate
    assert kept.last > 0.51
    assert gone.course[0].last == pytest.approx(0.5, abs=1e-6)
    assert gone.course[1].last == pytest.approx(38.0, abs=1e-4)
    assert gone.offset == ""


def test_offsets_move_all_signals() -> None:
    A, B = [[0.8]], [[0.5]]
    plain = netctrl.MpcProblem(
        plant=netctrl.StateSpace(A, B, [[1.0]], dt=1.0), horizon=8, output_weight=1.0, rate_weight=0.1, input_upper=2.0
    )
    asked = {"estimator": {"disturbance": "output"}}
    one = RunningMpc(netctrl.design_mpc(plain, reference=1.0, **asked).law)
    moved = netctrl.design_mpc(plain, reference=6.0, input_offset=10.0, output_offset=5.0, **asked)
    other = RunningMpc(moved.law)
    for measured in (0.0, 0.4, 0.9, 1.3):
        assert other.decide([measured + 5.0])[0] == pytest.approx(one.decide([measured])[0] + 10.0, abs=1e-9)
    assert moved.certificate.steady_input == pytest.approx((10.4,))


def test_outside_the_proved_region_plans_go_on_without_the_terminal_set() -> None:
    design = link_design(problem={"horizon": 3, "rate_lower": -2.0, "rate_upper": 2.0})
    inside, outside = RunningMpc(design.law, [45.0]), RunningMpc(design.law, [45.0])
    inside.decide([0.5], disturbances=[45.0])
    outside.decide([20.0], disturbances=[45.0])
    assert (inside.outside, outside.outside) == (0, 1)
    assert outside.state.failures == 0
    assert outside.state.applied[0] == pytest.approx(47.0)


def random_problem(seed: int) -> netctrl.MpcProblem:
    """Of all fields, with bounds that may be infinite."""
    random = np.random.default_rng(seed)
    n, m, p, P = (int(each) for each in random.integers(1, 4, 4))
    weights = random.standard_normal((P, p, p))
    options = {
        "output_weight": weights @ np.swapaxes(weights, 1, 2) if random.random() < 0.5 else 2.0,
        "rate_weight": 0.1 * np.eye(m),
        "state_upper": np.where(random.random(n) < 0.5, np.inf, 3.0),
        "soft_weight": np.where(random.random(n) < 0.5, np.inf, 9.0),
        "output_soft_linear": random.random(p),
        "input_lower": -1.0,
        "delay": tuple(map(int, random.integers(0, 3, m))),
        "measurement_delay": int(random.integers(0, 2)),
        "mixed_states": random.standard_normal((2, n)),
        "mixed_upper": [4.0, np.inf],
        "input_scale": random.uniform(0.5, 2.0, m),
    }
    A = random.standard_normal((n, n))
    plant = netctrl.StateSpace(A, random.standard_normal((n, m)), random.standard_normal((p, n)), dt=1.0)
    return netctrl.MpcProblem(plant=plant, horizon=P, **options)


@pytest.mark.parametrize("seed", range(20))
def test_a_problem_is_read_as_it_was_written(seed: int) -> None:
    problem = random_problem(seed)
    back = problem_of(problem.plant, problem_data(problem))
    for name in ("terminal_weight", "soft_weight", "state_upper", "mixed_upper", "output_weight", "delay", "blocks"):
        assert np.array_equal(getattr(back, name), getattr(problem, name))
    assert problem_data(back) == problem_data(problem)


def test_a_saved_design_runs_as_the_one_that_was_made(tmp_path: Path) -> None:
    made = mpc_from_file(problem_path("uplink"))
    made.save(tmp_path / "mpc.json")
    read = netctrl.read(tmp_path / "mpc.json", kind=MpcDesign)
    assert read.to_json() == made.to_json()
    ahead = np.linspace(30.0, 80.0, 50)[:, None]
    runs = [RunningMpc(each.law, [30.0]) for each in (made, read)]
    for queue in (0.5, 0.7, 1.9, 0.1):
        one, other = (run.decide([queue], disturbances=ahead) for run in runs)
        assert np.array_equal(one, other)


def test_a_file_states_bounds_around_a_models_operating_point(tmp_path: Path) -> None:
    model = netctrl.read("connet-paper")
    (tmp_path / "delay.toml").write_text(
        "reference = [0.46, 0.043]\n"
        'plant = { kind = "model", file = "connet-paper" }\n'
        "[problem]\nhorizon = 20\noutput_weight = [[1, 0], [0, 0]]\nrate_weight = 1e-4\n"
        "input_lower = 0\ninput_upper = 95\n[estimator]\n"
        f"disturbance = [{[[0.0]] * len(model.A)}, [[1], [0]]]\n"
    )
    design = mpc_from_file(tmp_path / "delay.toml")
    law, problem = design.law, law_problem(design.law)
    assert (law.inputs, law.outputs) == (("R",), ("delay", "jitter"))
    low, high = problem.input_limits
    assert np.array([low, high]).ravel() + law.input_offset == pytest.approx([0.0, 95.0])
    assert law.reference == pytest.approx([0.46, 0.043])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ("horizon = 40", "horizn = 40"),
            "problem.horizn: got 40, takes an argument of netctrl.MpcProblem; did you mean",
        ),
        (("horizon = 40", ""), "problem.horizon"),
        (('"10ms"', "10"), "plant.interval: got 10, takes a time with its unit"),
        (('"link"', '"lnk"'), "lnk"),
        (("disturbance_noise", "disturbance_nose"), "estimator.disturbance_nose"),
        (('["1s", 80]', "[1, 80]"), r"course.disturbances\[1\]"),
        (('["1s", 80]', '["1s", 80, 3]'), "course.disturbances"),
        (("input_upper = 100", "input_upper = -1"), "input_lower"),
        (("preview = true", "preview = 3"), "preview"),
        (("reference = [[0.1, 1.5]]", "reference = [[1.5, 0.1]]"), "reference"),
    ],
)
def test_a_file_that_is_wrong_says_where(change: tuple[str, str], said: str, tmp_path: Path) -> None:
    text = problem_path("uplink").read_text()
    assert change[0] in text
    (tmp_path / "wrong.toml").write_text(text.replace(*change))
    with pytest.raises(FileError, match=said):
        mpc_from_file(tmp_path / "wrong.toml")


@pytest.mark.slow
def test_any_file_is_answered_or_refused(tmp_path: Path) -> None:
    random, text = chance.Random(5), problem_path("uplink").read_text()
    for _ in range(100):
        line, lines = random.randrange(len(text.splitlines())), text.splitlines()
        word = random.choice(["", "[]", "-1", "1e300", "nan", "inf", '"x"', "true", "[[1, 2], [3]]", "{}", "0"])
        lines[line] = random.choice([lines[line].partition("=")[0] + "= " + word, "", lines[line] * 2])
        (tmp_path / "any.toml").write_text("\n".join(lines))
        try:
            design = mpc_from_file(tmp_path / "any.toml")
        except NetctrlError as error:
            assert str(error)
        else:
            assert math.isfinite(design.certificate.spectral_radius)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {
                "link": "uplink",
                "problem": {"measured": (), "plant": netctrl.StateSpace([[1.0]], [[1.0]], [[1.0]], dt=1.0)},
            },
            "link",
        ),
        ({"inputs": ("a", "a")}, "inputs"),
        ({"outputs": ("a", "b")}, "outputs"),
        ({"estimator": {"kid": "step"}}, "estimator.kid"),
        ({"safe_input": 200.0}, "safe_input"),
        ({"course": 3}, "course"),
        ({"unmeasured": 1.0}, "unmeasured"),
    ],
)
def test_what_doesn_t_fit_is_refused(asked: dict, said: str) -> None:
    if said == "link":
        asked = asked | {"disturbances": 0.0}
    with pytest.raises(InvalidValue, match=said):
        link_design(**asked)


def test_the_figure_shows_each_signal_and_its_bounds() -> None:
    design = mpc_from_file(problem_path("uplink"))
    figure = design.plot()
    backlog, rate = figure.axes
    course = mpc_course(design.law, design.inputs.course, np.array([0.8]), np.array([45.5]))
    assert np.array_equal(backlog.lines[0].get_ydata(), course.outputs[:, 0])
    assert {100.0, 0.0} <= {float(line.get_ydata()[0]) for line in rate.lines}
    assert rate.get_ylabel() == "rate [Mbit/s]"
