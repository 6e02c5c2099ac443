"""The sampled linear network: A, B and H against the paper's blocks, steps against its difference equations, and costs
that were computed before; StateSpace with sparse matrices."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.linalg import block_diag, solve_discrete_are
from scipy.sparse.linalg import aslinearoperator

from netctrl import InvalidValue, StateSpace
from netctrl.laws.link_rate.routing import routing
from netctrl.model.datasets import network_path
from netctrl.model.network import Demand, Link, Network, read_network
from netctrl.model.network_model import NetworkModel
from netctrl.plants.linearize import network_model, network_state_space

# Name and interval [s]. Abilene's delays are whole numbers of 10 µs, which are rounded to whole samples here.
CASES = [("tandem", 0.01), ("merge", 0.005), ("testbed", 0.01), ("abilene", 0.002), ("abilene", 0.02)]


def shipped(name: str) -> Network:
    return read_network(network_path(name))


def model_of(name: str, interval_s: float) -> NetworkModel:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the delays of")
        return network_model(shipped(name), interval_s)


# --- the matrices ---------------------------------------------------------------------------------------------------


def blocks(model: NetworkModel) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and H of HFTraC's appendix, with b in bit; H has tau times the injected share (the paper: tau at edges)."""
    tau, N = model.interval_s, model.n_links
    lengths = [int(n) + 1 for n in model.delay]
    Nf = sum(lengths)
    A_f1 = block_diag(*(np.eye(length, k=-1) for length in lengths))
    B_f = block_diag(*(np.eye(length, 1) for length in lengths))
    oldest = block_diag(*(np.eye(1, length, k=length - 1) for length in lengths))  # f_k(n - n_k) of the state
    A_b1 = tau * model.coupling.toarray() @ oldest
    A = np.block([[A_f1, np.zeros((Nf, N))], [A_b1, np.eye(N)]])
    return (
        A,
        np.vstack([B_f, -tau * np.eye(N)]),
        np.vstack([np.zeros((Nf, len(model.std))), tau * model.injection.toarray()]),
    )


@pytest.mark.parametrize(("name", "interval"), CASES)
def test_matrices_are_the_papers_with_backlogs_divided_by_the_interval(name, interval) -> None:
    model = model_of(name, interval)
    system, H = network_state_space(model)
    A, B, expected_H = blocks(model)
    T = np.diag(np.concatenate([np.ones(model.first_backlog), np.full(model.n_links, model.interval_s)]))
    inverse = np.linalg.inv(T)
    assert system.A.toarray() == pytest.approx(inverse @ A @ T, rel=1e-14, abs=1e-15)
    assert system.B.toarray() == pytest.approx(inverse @ B, rel=1e-14, abs=1e-15)
    assert H.toarray() == pytest.approx(inverse @ expected_H, rel=1e-14, abs=1e-15)


@pytest.mark.parametrize(("name", "interval"), CASES)
def test_the_output_is_the_state_and_all_is_sparse(name, interval) -> None:
    model = model_of(name, interval)
    system, H = network_state_space(model)
    assert np.array_equal(system.C.toarray(), np.eye(model.n_states))
    assert system.D.nnz == 0
    assert system.dt == model.interval_s
    assert all(type(matrix) is sp.csr_array for matrix in (system.A, system.B, system.C, system.D, H))
    assert system.A.nnz == model.delay.sum() + model.n_links + model.coupling.nnz
    assert (system.n_states, system.n_inputs, H.shape[1]) == (model.n_states, model.n_links, len(model.std))


def test_the_state_holds_rates_newest_first_and_then_backlogs() -> None:
    model = NetworkModel(0.01, np.array([2, 0]), np.array([[0, 0], [0.5, 0]]), np.array([[1.0], [0]]), np.array([1e6]))
    assert (model.n_links, model.n_states, model.first_backlog) == (2, 6, 4)
    assert model.first_rate.tolist() == [0, 3, 4]
    assert model.links == ("0", "1")
    system, H = network_state_space(model)
    assert system.A.toarray().tolist() == [
        [0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0],
        [0, 1, 0, 0, 0, 0],
        [0, 0, 0, 0, 0, 0],
        [0, 0, 0, 0, 1, 0],
        [0, 0, 0.5, 0, 0, 1],
    ]
    assert system.B.toarray().tolist() == [[1, 0], [0, 0], [0, 0], [0, 1], [-1, 0], [0, -1]]
    assert H.toarray().ravel().tolist() == [0, 0, 0, 0, 1, 0]


@pytest.mark.parametrize(("name", "interval"), CASES)
def test_steps_follow_the_difference_equations(name, interval) -> None:
    """Eqs. 5 to 7, written out with a list of past rates for each link."""
    model = model_of(name, interval)
    system, H = network_state_space(model)
    generator = np.random.default_rng(0)
    N, c, inj = model.n_links, model.coupling.toarray(), model.injection.toarray()
    past = [[0.0] * (int(n) + 1) for n in model.delay]  # f_l(n), f_l(n - 1), ..., f_l(n - n_l)
    b, x = np.zeros(N), np.zeros(model.n_states)
    for _ in range(40):
        u, w = generator.normal(size=N), generator.normal(size=len(model.std))
        arriving = [sum(c[row, k] * past[k][model.delay[k]] for k in range(N)) + inj[row] @ w for row in range(N)]
        b = b + np.array(arriving) - u
        past = [[float(u[row]), *rates[:-1]] for row, rates in enumerate(past)]
        x = system.A @ x + system.B @ u + H @ w
        assert x == pytest.approx(np.concatenate([*past, b]), rel=1e-12, abs=1e-12)


def test_from_an_input_to_the_next_backlog_takes_the_delay_and_two_samples() -> None:
    model = model_of("tandem", 0.01)
    system, _ = network_state_space(model)
    x = system.B.toarray()[:, 0]  # after one sample
    second = model.first_backlog + 1
    reached = 1
    while x[second] == 0.0:
        x, reached = system.A @ x, reached + 1
    assert reached == model.delay[0] + 2


@pytest.mark.parametrize(
    ("name", "mu", "cost"),
    [
        ("tandem", 0.1, 2.844531036),
        ("tandem", 1.0, 11.7006259),
        ("merge", 0.1, 14.41503458),
        ("merge", 1.0, 59.48957478),
        ("testbed", 0.1, 57.0446992),
        ("testbed", 1.0, 234.883517),
    ],
)
def test_costs_without_delays_of_information_come_out_as_before(name, mu, cost) -> None:
    """Σ E f² + lambda E b² with mu = lambda tau² at 10 ms [(Mbit/s)²], by another program before this one."""
    model = network_model(shipped(name), 0.01)
    system, H = network_state_space(model)
    weight = np.diag(np.concatenate([np.zeros(model.first_backlog), np.full(model.n_links, mu)]))
    P = solve_discrete_are(system.A.toarray(), system.B.toarray(), weight, np.eye(model.n_links))
    found = np.trace(H.toarray().T @ P @ H.toarray() @ np.diag((model.std / 1e6) ** 2))
    assert found == pytest.approx(cost, rel=1e-7)


# --- from a network -------------------------------------------------------------------------------------------------


def line(*delays: float, unused: bool = False) -> Network:
    links = [
        Link(id=f"l{k}", source=f"n{k}", target=f"n{k + 1}", capacity=1e9, delay=delay)
        for k, delay in enumerate(delays)
    ]
    if unused:
        links.insert(1, Link(id="unused", source="n0", target="n2", capacity=1e9, delay=1.2345))
    end = f"n{len(delays)}"
    return Network(links=tuple(links), demands=(Demand(source="n0", target=end, mean=1e6, std=1e5),))


def test_delays_become_samples_and_stds_stay() -> None:
    model = network_model(line(0.03, 0.0, 0.1), 0.01)
    assert model.delay.tolist() == [3, 0, 10]  # 0.03 / 0.01 is no whole number of floats, and no rounding to tell of
    assert model.std.tolist() == [1e5]
    assert model.links == ("l0", "l1", "l2")
    assert model.interval_s == 0.01


def test_rounding_is_said_with_the_worst_link() -> None:
    with pytest.warns(UserWarning) as caught:
        model = network_model(line(0.012, 0.02, 0.034, 0.1), 0.01)
    assert [str(each.message) for each in caught] == [
        "the delays of 2 of 4 links were rounded to multiples of 0.01 s; largest change: l2 from 0.034 s to 0.03 s"
    ]
    assert caught[0].filename == __file__
    assert model.delay.tolist() == [1, 2, 3, 10]


def test_links_that_carry_nothing_are_left_out() -> None:
    """Silently: the odd delay of the unused one is not rounded either."""
    model, without = network_model(line(0.01, 0.02, unused=True), 0.01), network_model(line(0.01, 0.02), 0.01)
    assert model.links == without.links == ("l0", "l1")
    assert np.array_equal(model.coupling.toarray(), without.coupling.toarray())
    assert np.array_equal(model.injection.toarray(), without.injection.toarray())


def test_a_known_routing_is_taken() -> None:
    network = shipped("testbed")
    model, again = network_model(network, 0.01), network_model(network, 0.01, routing(network))
    assert (model.coupling != again.coupling).nnz == 0
    assert (model.injection != again.injection).nnz == 0


@pytest.mark.parametrize("interval", [0, -0.01, np.nan, np.inf, None, "10ms", True], ids=repr)
def test_an_interval_that_is_none_is_refused(interval) -> None:
    with pytest.raises(InvalidValue, match="sampling interval above 0") as refusal:
        network_model(line(0.01), interval)
    assert refusal.value.argument == "interval_s"


def test_what_cannot_be_routed_is_refused() -> None:
    back = Network(links=line(0.01).links, demands=(Demand(source="n1", target="n0", mean=1e6),))
    with pytest.raises(InvalidValue, match="no path leads from n1 to n0"):
        network_model(back, 0.01)


# --- NetworkModel ---------------------------------------------------------------------------------------------------

FIELDS: dict[str, Any] = {
    "interval_s": 0.01,
    "delay": [1, 2],
    "coupling": [[0, 0], [1, 0]],
    "injection": [[1.0], [0.0]],
    "std": [1e6],
    "links": ("a", "b"),
}


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("interval_s", [0, -1, np.nan, "1", None, True]),
        ("delay", [5, None, [1.0, 2.0], [1, -1], [True, False], [[1], [2]], ["1", "2"], [np.nan, 1]]),
        ("coupling", [5, None, [0, 0], np.zeros((2, 3)), [["x", 0], [0, 0]], [[0, 0], [-1, 0]], [[0, 0], [np.nan, 0]]]),
        ("injection", [5, None, [[1.0]], [[1.0, 0], [0, 0]], [[-1.0], [0]], [[np.inf], [0]]]),
        ("std", [5, None, [[1e6]], ["x"], [-1.0], [np.nan]]),
        ("links", [("a",), ("a", "b", "c")]),
    ],
)
def test_arrays_that_do_not_fit_are_refused_by_name(field, values) -> None:
    NetworkModel(**FIELDS)
    for value in values:
        with pytest.raises(InvalidValue) as refusal:
            NetworkModel(**(FIELDS | {field: value}))
        assert refusal.value.argument == field, value


def test_input_is_copied_and_result_is_read_only() -> None:
    given = {name: np.array(FIELDS[name]) for name in ("delay", "std")}
    given |= {name: sp.csr_array(np.array(FIELDS[name], dtype=float)) for name in ("coupling", "injection")}
    model = NetworkModel(**(FIELDS | given))
    for name, value in given.items():
        (value.data if sp.issparse(value) else value)[:] = 7
        ours = getattr(model, name)
        assert np.array_equal(ours.toarray() if sp.issparse(ours) else ours, FIELDS[name])
        with pytest.raises(ValueError, match="read-only"):
            (ours.data if sp.issparse(ours) else ours)[0] = 7
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.std = np.zeros(1)  # ty: ignore[invalid-assignment]


COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda thing: pickle.loads(pickle.dumps(thing))}


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_a_copy_of_a_model_is_equal_and_still_read_only(again) -> None:
    model = NetworkModel(**FIELDS)
    other = again(model)
    assert (other.interval_s, other.links) == (model.interval_s, model.links)
    for name in ("delay", "std"):
        assert np.array_equal(getattr(other, name), getattr(model, name))
        assert not getattr(other, name).flags.writeable
    for name in ("coupling", "injection"):
        assert (getattr(other, name) != getattr(model, name)).nnz == 0
        assert not getattr(other, name).data.flags.writeable


# --- StateSpace with sparse matrices --------------------------------------------------------------------------------

A, B, C = np.array([[0.0, 0.5], [0.0, 1.0]]), np.array([[1.0], [-1.0]]), np.eye(2)
MATRICES = ("A", "B", "C", "D")
SPARSE = StateSpace(sp.csr_array(A), sp.csr_array(B), sp.csr_array(C), dt=0.1)
DENSE = StateSpace(A, B, C, dt=0.1)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.lil_array, sp.dia_array, sp.csr_matrix])
def test_sparse_matrices_of_every_kind_stay_sparse(kind) -> None:
    system = StateSpace(kind(A), kind(B), kind(C), dt=0.1)
    for name in MATRICES:
        matrix = getattr(system, name)
        assert type(matrix) is sp.csr_array
        assert matrix.dtype == float
        assert np.array_equal(matrix.toarray(), getattr(DENSE, name))
    assert StateSpace(kind(A.astype(int)), B, C, dt=0.1).A.dtype == float


def test_sparse_and_dense_may_stand_side_by_side() -> None:
    mixed = StateSpace(sp.csr_array(A), B, C, dt=0.1)
    assert sp.issparse(mixed.A)
    assert isinstance(mixed.B, np.ndarray)
    assert isinstance(mixed.D, np.ndarray)
    assert mixed == DENSE
    assert mixed == SPARSE


def test_equality_is_of_values_and_not_of_what_is_stored() -> None:
    assert SPARSE == DENSE
    assert DENSE == SPARSE
    doubled = sp.coo_array(([0.25, 0.25, 1.0, 0.0], ([0, 0, 1, 1], [1, 1, 1, 0])), shape=(2, 2))  # and a stored zero
    assert StateSpace(doubled, sp.csr_array(B), sp.csr_array(C), dt=0.1) == SPARSE
    assert StateSpace(sp.csr_array(2 * A), sp.csr_array(B), sp.csr_array(C), dt=0.1) != SPARSE
    assert StateSpace(sp.csr_array(A), sp.csr_array(B), sp.csr_array(C), dt=0.2) != SPARSE
    assert StateSpace(sp.eye_array(3), sp.csr_array((3, 1)), sp.csr_array((2, 3)), dt=0.1) != SPARSE


def test_sparse_input_is_copied_and_its_entries_are_read_only() -> None:
    given = sp.csr_array(A)
    system = StateSpace(given, B, C, dt=0.1)
    given.data[:] = 7.0
    assert system == DENSE
    for part in (system.A.data, system.A.indices, system.A.indptr):
        assert not part.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        system.A[0, 1] = 7.0


@pytest.mark.parametrize("again", COPIES.values(), ids=COPIES)
def test_a_copy_is_equal_sparse_and_still_read_only(again) -> None:
    other = again(SPARSE)
    assert other == SPARSE
    for name in MATRICES:
        assert type(getattr(other, name)) is sp.csr_array
        assert not getattr(other, name).data.flags.writeable


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("A", sp.csr_array((2, 3))),
        ("A", sp.csr_array(np.array([[np.nan, 0], [0, 1]]))),
        ("A", sp.csr_array(np.array([[np.inf, 0], [0, 1]]))),
        ("A", sp.csr_array(1j * A)),
        ("A", sp.coo_array(np.array([1.0, 2.0]))),
        ("A", aslinearoperator(A)),
        ("B", sp.csr_array((3, 1))),
        ("C", sp.csr_array((2, 3))),
        ("D", sp.csr_array((1, 1))),
    ],
    ids=["square", "nan", "infinite", "complex", "vector", "operator", "rows of B", "columns of C", "D"],
)
def test_what_is_no_matrix_that_fits_is_refused(argument, value) -> None:
    fields = {"A": sp.csr_array(A), "B": sp.csr_array(B), "C": sp.csr_array(C), "D": sp.csr_array((2, 1))}
    with pytest.raises(InvalidValue, match="a finite real matrix of shape") as refusal:
        StateSpace(**(fields | {argument: value}))
    assert refusal.value.argument == argument


def test_control_and_pandas_get_the_dense_ones() -> None:
    there = SPARSE.to_control()
    assert StateSpace.from_control(there) == SPARSE
    assert isinstance(there.A, np.ndarray)
    assert SPARSE.to_pandas().equals(DENSE.to_pandas())


def test_a_large_system_stays_small() -> None:
    """Dense, each of its matrices would take 80 GB; neither text nor table look at the poles."""
    n = 100_000
    system = StateSpace(sp.eye_array(n, k=-1), sp.eye_array(n), sp.eye_array(n), dt=1.0)
    assert copy.deepcopy(system) == system
    assert len(repr(system)) < 1000
    html = system._repr_html_()
    assert "100000, 100000, 100000" in html
    assert "poles" not in html
    assert "poles" in SPARSE._repr_html_()
    assert SPARSE._repr_html_() == DENSE._repr_html_()
