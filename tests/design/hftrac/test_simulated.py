"""A Design's cost is what its law costs on average when the linear network is run under noise."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest

from netctrl.design.hftrac.design import hftrac
from netctrl.model.datasets import network_path
from netctrl.model.law import MyopicGain, StaticGain
from netctrl.model.network import read_network
from netctrl.plants.linearize import network_model, network_state_space

RUNS, SETTLE, STEPS = 2000, 50, 300
MAX_ERROR = 0.01 / 3.0  # standard error of a mean: three of them are the percent that is allowed


def gain(law: StaticGain | MyopicGain, first_rate: np.ndarray) -> np.ndarray:
    if isinstance(law, StaticGain):
        return law.gain
    N, first_backlog = len(law.links), first_rate[-1]
    K = np.zeros((N, first_backlog + N))
    K[np.arange(N), first_backlog + np.arange(N)] = law.backlog_gain
    K[np.arange(N), first_rate[:-1]] = law.rate_gain
    return K


@pytest.mark.parametrize(("network", "mu"), [("tandem", 1.0), ("merge", 0.3), ("testbed", 3.0)])
@pytest.mark.parametrize("architecture", ["god", "centralized", "myopic"])
def test_the_cost_is_what_a_run_under_noise_has(architecture: str, network: str, mu: float) -> None:
    chosen = read_network(network_path(network))
    design = hftrac(chosen, 0.01, mu=mu, architecture=architecture)
    model = network_model(chosen, 0.01)
    system, H = network_state_space(model)
    A, B, H = system.A.toarray(), system.B.toarray(), H.toarray()
    K, delay = gain(design.law, model.first_rate), design.certificate.information_delay or 0
    powers = [np.linalg.matrix_power(A, i) for i in range(delay + 1)]
    noise = np.random.default_rng(7)
    x, states, inputs = np.zeros((len(A), RUNS)), [], []
    rate, queue = np.zeros((2, RUNS))
    for step in range(SETTLE + STEPS):
        states.append(x)
        # What was known `delay` samples ago, and the inputs since.
        known = powers[delay] @ states[-1 - delay] if step >= delay else np.zeros_like(x)
        u = K @ (known + sum(powers[i] @ B @ inputs[-1 - i] for i in range(min(delay, step))))
        inputs.append(u)
        if step >= SETTLE:
            rate += np.sum(u**2, axis=0) / STEPS
            queue += mu * np.sum(x[model.first_backlog :] ** 2, axis=0) / STEPS
        x = A @ x + B @ u + H @ (model.std[:, None] * noise.normal(size=(len(model.std), RUNS)))
    certificate = design.certificate
    expected = (certificate.cost_rate, certificate.cost_queue, certificate.cost)
    for sample, value in zip((rate, queue, rate + queue), expected, strict=True):
        assert sample.std(ddof=1) / sqrt(RUNS) < MAX_ERROR * value
        assert abs(sample.mean() - value) < 0.01 * value
