"""Information pattern of a distributed controller: which link's data reaches which link, and when."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from netctrl.errors import InvalidValue

NEVER = -1
_MAX_SAMPLES = 2**31


@dataclass(frozen=True, slots=True, eq=False)
class InformationPattern:
    """Delays n_lk, in samples, after which the controller of link l knows the state of link k.

    Each controller is at the node that its link leaves. Messages take the fastest path over the given lines, or a
    matrix gives the delays.

    Notes
    -----
    HFTraC paper, eq. (9) and Appendix A.
    """

    node: np.ndarray
    """(N,) node of each link's controller; empty with a matrix."""
    offsets: np.ndarray
    """(V + 1,) index in `to` and `samples` of the first line for messages from each node."""
    to: np.ndarray
    """Nodes at the far end of these lines."""
    samples: np.ndarray
    """Delays of these lines [samples]."""
    matrix: np.ndarray
    """(N, N) n_lk, NEVER where link l never receives data of k; of shape (0, 0) where lines give the delays."""

    @classmethod
    def from_lines(cls, node: np.ndarray, lines: list[tuple[int, int, int]], nodes: int) -> InformationPattern:
        """Pattern of messages over `lines`, each (from node, to node, samples); `node` of each link's controller.

        Raises
        ------
        InvalidValue
            A node outside 0, ..., nodes − 1, or a delay that is not a whole number of samples of at least 0.
        """
        takes = f"whole numbers from 0 to {nodes - 1}, the node of each link's controller"
        node = _whole("node", node, (-1,), nodes, takes)
        takes = f"(from, to, samples) each, in whole numbers of at least 0, with nodes up to {nodes - 1}"
        table = _whole("lines", sorted(lines) if lines else np.zeros((0, 3)), (-1, 3), _MAX_SAMPLES, takes)
        if (table[:, :2] >= nodes).any():
            raise InvalidValue("lines", tuple(table[(table[:, :2] >= nodes).any(axis=1)][0].tolist()), takes)
        offsets = np.searchsorted(table[:, 0], np.arange(nodes + 1))
        arrays = (node, offsets.astype(np.int64), table[:, 1].copy(), table[:, 2].copy())
        return cls(*map(_fixed, arrays), _fixed(np.zeros((0, 0), np.int64)))

    @classmethod
    def from_matrix(cls, delays: object) -> InformationPattern:
        """Pattern with n_lk in row l, column k: whole numbers from 0; `inf`, NaN and negative numbers mean never.

        Raises
        ------
        InvalidValue
            Not a square matrix of such numbers, or a link that doesn't know its own state immediately.
        """
        takes = "a square matrix of whole numbers of samples (inf: never) with zeros on its diagonal"
        try:
            given = np.array(delays, dtype=float)
        except (TypeError, ValueError):
            raise InvalidValue("information", delays, takes) from None
        if given.ndim != 2 or given.shape[0] != given.shape[1] or not given.size:
            raise InvalidValue("information", f"shape {given.shape}", takes)
        known = np.isfinite(given) & (given >= 0.0)
        wrong = known & ((given != np.rint(given)) | (given > _MAX_SAMPLES)) | np.eye(len(given), dtype=bool) & (
            given != 0.0
        )
        if wrong.any():
            row, column = np.argwhere(wrong)[0]
            raise InvalidValue("information", f"{given[row, column]} in row {row} and column {column}", takes)
        empty = _fixed(np.zeros(0, np.int64))
        return cls(empty, empty, empty, empty, _fixed(np.where(known, given, NEVER).astype(np.int64)))


def _whole(name: str, value: object, shape: tuple[int, ...], below: int, takes: str) -> np.ndarray:
    try:
        given = np.array(value).reshape(shape)
    except (TypeError, ValueError):
        raise InvalidValue(name, value, takes) from None
    wrong = given[(given < 0) | (given >= below)] if given.dtype.kind in "iu" or not given.size else given
    if wrong.size:
        raise InvalidValue(name, wrong.ravel().tolist()[0], takes)
    return given.astype(np.int64)


def _fixed(array: np.ndarray) -> np.ndarray:
    array.setflags(write=False)
    return array
