"""One epoch of a closed sampled loop as a matrix, whose powers are its course."""

from __future__ import annotations

import numpy as np

from netctrl.frequency.sampled import _epoch_map, _lifted
from netctrl.model.loop import SampledLoop


def lifted_matrix(loop: SampledLoop, gain: float) -> np.ndarray:
    """Over (kept states, p_k, p_(k−1), …, p_(k−n−1))."""
    Phi, G_new, G_old, n = _epoch_map(loop)
    return _lifted(Phi, G_new, G_old, int(n), gain, loop)
