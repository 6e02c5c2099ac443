"""Controllers that hear late, never, or act out of step: against the kernel without messages, closed forms and laws."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

import netctrl
from netctrl import InvalidValue, Scenario
from netctrl.model.datasets import network_path
from netctrl.model.network import read_network
from netctrl.scenario.builders import routed
from netctrl.scenario.network.graph import graph_of
from netctrl.scenario.network.policy import Backpressure, Fifo, HftracPolicy, Messages, Policy, StaticPacing
from netctrl.scenario.result import Result
from netctrl.sim.network.demands import DemandSource
from netctrl.sim.network.messages import run_with_messages
from netctrl.sim.network.problem import link_problem
from netctrl.sim.network.run import simulate_network

TAU = 0.01
IDEAL = Messages()
TOLERANCE = {"same": 1e-11, "conserved": 1e-9}
LAWS: dict[str, dict[str, object]] = {
    "god": {"architecture": "god"},
    "centralized": {"architecture": "centralized", "information_delay": 2},
    "coordinated": {"architecture": "coordinated", "horizon": 24},
    "in band": {"architecture": "coordinated", "horizon": 24, "communication": "in-band"},
    "exact": {"architecture": "coordinated", "horizon": "exact"},
    "exact in band": {"architecture": "coordinated", "horizon": "exact", "communication": "in-band"},
    "myopic": {"architecture": "myopic"},
    "myopic filters": {"architecture": "myopic", "horizon": 20},
}
LOCAL = ("myopic", "myopic filters")


def scenario(policy: Policy, messages: Messages = IDEAL, name: str = "testbed", **fields: object) -> Scenario:
    network = read_network(network_path(name))
    tight = tuple(msgspec.structs.replace(link, buffer=min(link.buffer or 2e4, 2e4)) for link in network.links)
    network = msgspec.structs.replace(network, links=tight)
    settings = {"duration": 4.0, "warmup": 0.5} | fields
    if messages != IDEAL:
        policy = msgspec.structs.replace(policy, messages=messages)
    return routed(network, name=name, interval=TAU, control=policy, **{"warmup": 0.0} | settings)


def hftrac(name: str, **fields: object) -> HftracPolicy:
    return HftracPolicy(mu=0.5, **LAWS[name], **fields)


def run(requested: Scenario, runs: int = 3) -> Result:
    return simulate_network(requested, netctrl.scenario_law(requested), runs=runs)


def same(one: Result, other: Result) -> None:
    for name in ("arrived", "departed", "lost", "backlog", "rate_square", "entered"):
        np.testing.assert_array_equal(one.totals[name], other.totals[name], err_msg=name)


@pytest.mark.parametrize("policy", [*LAWS, Fifo(), StaticPacing(factor=1.05), Backpressure()], ids=str)
@pytest.mark.parametrize("name", ["testbed", "merge"])
def test_with_all_heard_in_time_it_is_what_it_is_without_messages(policy: str | Policy, name: str) -> None:
    """Eq. (14) literally, link by link, against taps on surplus and shortfall, where everything saturates."""
    chosen = hftrac(policy, rate_scale=1.02) if isinstance(policy, str) else policy
    requested = scenario(chosen, name=name)
    law = netctrl.scenario_law(requested)
    expected = simulate_network(requested, law, runs=2)
    assert expected.totals["lost"].sum() > 0.0
    ready = link_problem(requested, law)
    source = DemandSource(requested, range(2))
    found = run_with_messages(requested, ready, law, source, range(2), watch=True, routes=None)
    for row, name in enumerate(("backlog", "departed", "lost")):
        theirs = expected.series[name]
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(
            found.watched[row] * (TAU / 8.0) / scale, theirs / scale, atol=TOLERANCE["same"], err_msg=name
        )
    np.testing.assert_allclose(found.offered * TAU / 8.0, expected.totals["entered"], rtol=TOLERANCE["same"])


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize(
    "messages",
    [Messages(loss=0.2), Messages(jitter=(0.0, 0.03)), Messages(asynchronous=True, loss=0.1, jitter=(0.0, 0.005))],
)
def test_bytes_are_conserved(name: str, messages: Messages) -> None:
    found = run(scenario(hftrac(name), messages))
    balance = found.totals["arrived"] - found.totals["departed"] - found.totals["lost"] - found.totals["growth"]
    assert np.abs(balance).max() <= TOLERANCE["conserved"] * found.totals["arrived"].max()


@pytest.mark.parametrize("name", LOCAL)
def test_myopic_control_needs_no_messages(name: str) -> None:
    ideal = run(scenario(hftrac(name)))
    lost = run(scenario(hftrac(name), Messages(loss=1.0, jitter=(0.0, 0.1))))
    np.testing.assert_allclose(lost.totals["backlog"], ideal.totals["backlog"], rtol=TOLERANCE["same"])


def test_links_that_a_central_controller_never_reaches_send_at_their_nominal_rates() -> None:
    central = run(scenario(hftrac("centralized"), Messages(loss=1.0)))
    static = run(scenario(StaticPacing(factor=1.0)))
    np.testing.assert_allclose(central.totals["departed"], static.totals["departed"], rtol=TOLERANCE["same"])
    np.testing.assert_allclose(central.totals["lost"], static.totals["lost"], rtol=TOLERANCE["same"], atol=1e-6)


def test_links_that_hear_nothing_answer_what_they_see_themselves() -> None:
    """All news lost: each link's own column is left, and what others send is news of its own. By hand, in NumPy."""
    requested = scenario(hftrac("coordinated"), Messages(loss=1.0), warmup=0.0, duration=1.5)
    law = netctrl.scenario_law(requested)
    ready = link_problem(requested, law)
    demand = DemandSource(requested, range(1)).draw(requested.steps)[:, :, 0]
    plant, model, N = ready.plant, ready.model, ready.model.n_links
    C, inj = model.coupling.toarray(), model.injection.toarray()
    T = max(column.u.shape[2] for column in law.columns)
    innovations = np.zeros((2, N, requested.steps + T))
    rate = [plant.nominal] * (int(model.delay.max()) + 1)
    backlog, command, kept = np.zeros(N), plant.nominal.copy(), []
    for n in range(requested.steps):
        for link, column in enumerate(law.columns):
            u, b = column.u[:2, 0], column.b[:2, 0]
            ages = range(1, min(n, u.shape[1] - 1) + 1)
            foreseen = sum(b[kind, age] * innovations[kind, link, n - age] for kind in range(2) for age in ages)
            innovations[0, link, n] = backlog[link] - foreseen
            innovations[1, link, n] = rate[-1][link] - command[link]
        for link, column in enumerate(law.columns):
            u = column.u[:2, 0]
            ages = range(min(n, u.shape[1] - 1) + 1)
            answer = sum(u[kind, age] * innovations[kind, link, n - age] for kind in range(2) for age in ages)
            command[link] = plant.nominal[link] + answer
        arriving = C @ np.array([rate[-1 - model.delay[k]][k] for k in range(N)]) + inj @ demand[n]
        offered = backlog + arriving
        sent = np.minimum(offered, np.clip(command, 0.0, plant.capacity))
        backlog = np.minimum(offered - sent, plant.buffer)
        rate.append(sent)
        kept.append(backlog)
    found = simulate_network(requested, law).series["backlog"] * 8.0 / TAU
    np.testing.assert_allclose(
        found / plant.buffer.max(), np.array(kept).T / plant.buffer.max(), atol=TOLERANCE["same"]
    )


def test_what_is_later_than_any_lag_is_as_good_as_lost() -> None:
    late = run(scenario(hftrac("god"), Messages(jitter=(3.0, 3.0))))
    lost = run(scenario(hftrac("god"), Messages(loss=1.0)))
    early = slice(0, 200)  # before the first arrives
    for name in ("backlog", "departed", "lost"):
        np.testing.assert_array_equal(late.series[name][:, early], lost.series[name][:, early], err_msg=name)


def test_a_fixed_delay_is_an_older_state() -> None:
    """GOD, all news one sample late: a tap of another link finds the state of now only when it is too old."""
    one = run(scenario(hftrac("god"), Messages(jitter=(TAU, TAU))))
    half = run(scenario(hftrac("god"), Messages(jitter=(TAU / 2, TAU / 2))))
    same(one, half)  # in step, what comes within the interval is there at its end


def test_runs_are_the_same_in_whatever_company_they_are() -> None:
    requested = scenario(hftrac("coordinated"), Messages(loss=0.1, jitter=(0.0, 0.02), asynchronous=True))
    law = netctrl.scenario_law(requested)
    together = simulate_network(requested, law, runs=5)
    for first, count in ((0, 2), (2, 1), (3, 2)):
        part = simulate_network(requested, law, runs=count, first_run=first)
        np.testing.assert_array_equal(part.totals["lost"], together.totals["lost"][first : first + count])
        np.testing.assert_array_equal(part.totals["entered"], together.totals["entered"][first : first + count])
    same(together, simulate_network(requested, law, runs=5, n_jobs=2))


def test_messages_do_not_change_the_traffic() -> None:
    ideal = run(scenario(hftrac("god")))
    lost = run(scenario(hftrac("god"), Messages(loss=0.5, asynchronous=True)))
    np.testing.assert_allclose(lost.totals["entered"], ideal.totals["entered"], rtol=TOLERANCE["same"])


def test_without_fluctuations_links_out_of_step_stay_at_rest() -> None:
    """Whatever the moments at which they act, all measure nominal rates from the first time on."""
    requested = scenario(hftrac("god", backlog_setpoint=1e4), Messages(asynchronous=True), warmup=0.0, duration=1.0)
    calm = tuple(msgspec.structs.replace(demand, std=0.0) for demand in graph_of(requested).demands)
    wide = tuple(msgspec.structs.replace(link, buffer=None) for link in graph_of(requested).links)
    network = msgspec.structs.replace(graph_of(requested), demands=calm, links=wide)
    requested = routed(
        network, **{name: getattr(requested, name) for name in ("control", "interval", "duration", "warmup")}
    )
    law = netctrl.hftrac(read_network(network_path("testbed")), TAU, mu=0.5, architecture="god").law
    found = simulate_network(requested, law, runs=4)
    np.testing.assert_allclose(found.series["backlog"], 1e4, rtol=TOLERANCE["conserved"])
    np.testing.assert_allclose(found.totals["backlog"], 1e4, rtol=TOLERANCE["conserved"])


def test_lost_messages_of_coordinated_control_leave_no_lasting_backlog() -> None:
    """Half of all news is lost; a prediction that took for granted that all answered would drift away."""
    network = read_network(network_path("merge"))
    wide = tuple(msgspec.structs.replace(link, buffer=None, capacity=10.0 * link.capacity) for link in network.links)
    network = msgspec.structs.replace(network, links=wide)
    policy = hftrac("coordinated", backlog_setpoint=1e6, messages=Messages(loss=0.5))
    requested = routed(network, interval=TAU, duration=200.0, warmup=0.0, control=policy)
    watched = simulate_network(requested, netctrl.scenario_law(requested)).series["backlog"]
    early, late = watched[:, 2000:10000].mean(axis=1), watched[:, -8000:].mean(axis=1)
    np.testing.assert_allclose(early, 1e6, rtol=0.02)
    np.testing.assert_allclose(late, 1e6, rtol=0.02)


@pytest.mark.parametrize(
    ("fields", "argument"),
    [
        ({"loss": 1.5}, "loss"),
        ({"loss": "x"}, "loss"),
        ({"jitter": -1.0}, "jitter"),
        ({"asynchronous": 1}, "asynchronous"),
    ],
)
def test_fields_are_checked(fields: dict, argument: str) -> None:
    with pytest.raises(InvalidValue) as refusal:
        Messages(**fields)
    assert refusal.value.argument == argument
