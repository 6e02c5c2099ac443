"""Linear closed loop of a plant and a tracking law: from references to outputs and inputs, and at the plant's input."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.errors import checked_kind
from netctrl.model.io.matrix import dense
from netctrl.model.law import LqiLaw, TrackingLaw
from netctrl.model.statespace import StateSpace

__all__ = ["TrackingLoop", "tracking_loop"]


class TrackingLoop(NamedTuple):
    """Closed loop of n + n_c states; p outputs, m inputs."""

    response: StateSpace
    """From references (p) to outputs (p): the complementary sensitivity T."""
    effort: StateSpace
    """From references (p) to inputs (m)."""
    difference: StateSpace
    """S − T, from a disturbance w (m) at the plant's input to 2u + w."""
    controller: np.ndarray
    """(n_c, n_c) the controller's own dynamics."""


def tracking_loop(plant: StateSpace, law: TrackingLaw) -> TrackingLoop:
    """Close the loop around a plant, which may differ from the law's model.

    Source: CONNET paper, eq. (4), for any plant and with the integrator of an LqiLaw.
    """
    checked_kind("plant", plant, StateSpace)
    A, B, C, D = (dense(part) for part in (plant.A, plant.B, plant.C, plant.D))
    n, m = B.shape
    p, states = len(C), len(law.A)
    driven = law.A - law.L @ law.C, law.B - law.L @ law.D
    F = np.hstack([law.K, law.integral_gain]) if isinstance(law, LqiLaw) else law.K
    q = F.shape[1] - states
    own = np.zeros((states + q, states + q))
    own[:states, :states] = driven[0]
    own[:states] -= driven[1] @ F
    from_y, from_r = np.zeros((2, states + q, p))
    from_y[:states] = law.L
    if isinstance(law, LqiLaw):
        own[states:, states:] = np.eye(q)
        from_y[states:], from_r[states:] = -law.W, law.W
    else:
        from_r[:states] = -law.L
    # u = −F ξ, y = C x + D (u + w)
    closed = np.block([[A, -B @ F], [from_y @ C, own - from_y @ D @ F]])
    reference = np.vstack([np.zeros((n, p)), from_r])
    output = np.hstack([C, -D @ F])
    command = np.hstack([np.zeros((m, n)), -F])
    disturbed = np.vstack([B, from_y @ D])
    return TrackingLoop(
        response=StateSpace(closed, reference, output, np.zeros((p, p)), plant.dt),
        effort=StateSpace(closed, reference, command, np.zeros((m, p)), plant.dt),
        difference=StateSpace(closed, disturbed, 2.0 * command, np.eye(m), plant.dt),
        controller=own,
    )
