"""Horizon of the regressions: how many past samples explain how many future ones."""

from __future__ import annotations

from collections.abc import Sequence

from netctrl.core.errors import InvalidValue, checked_whole
from netctrl.ident.subspace.lq_reduction import Segment, columns_of

_MOST = 20
_COLUMNS_A_ROW = 3, 1  # columns per row that a default horizon leaves: usually, and in the shortest records


def horizon_of(segments: Sequence[Segment], horizon: object, order: int | None) -> int:
    """Requested horizon, or the longest up to 20 with 3 columns per row, else with 1; InvalidValue if there is none."""
    m, p = segments[0][0].shape[1], segments[0][1].shape[1]
    least = 2 if order is None else order + 1

    def columns(i: int) -> int:
        return sum(columns_of(segments, i))

    if horizon is None:
        usual = max(_MOST, least)
        for share in _COLUMNS_A_ROW:
            for i in range(usual, least - 1, -1):
                if columns(i) >= share * 2 * i * (m + p):
                    return i
        need = 2 * least * (m + p) + 2 * least - 1
        raise InvalidValue("samples", sum(len(u) for u, _ in segments), _too_short(need, order, m, p))
    takes = f"a number of samples of at least {least}, above the order"
    i = checked_whole("horizon", horizon, f"{takes}; lower the order or lengthen the horizon", at_least=least)
    if columns(i) < (need := 2 * i * (m + p)):
        most = next((k for k in range(i, least - 1, -1) if columns(k) >= 2 * k * (m + p)), None)
        if most is None:
            raise InvalidValue("samples", sum(len(u) for u, _ in segments), _too_short(need, order, m, p))
        raise InvalidValue("horizon", i, f"at most {most} with a trace of this length, or a longer trace")
    return i


def _too_short(need: int, order: int | None, m: int, p: int) -> str:
    states = "" if order is None else f" and {order} states"
    return f"at least about {need} in segments that aren't short, for {m} inputs, {p} outputs{states}: record longer"
