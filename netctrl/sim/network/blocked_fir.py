"""FIR taps as small dense matrices, so that the kernel does more arithmetic per sample that it loads."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from netctrl.laws.link_rate.fir import FirLaw

WIDE, DEEP = 5, 4
"""Links and samples of a tile: their coefficients and samples fit into the 32 registers of AVX-512."""
_MIN_FULL = 0.5  # of a wide tile's coefficients: one costs what two or three links by themselves do


class BlockedFir(NamedTuple):
    """Sums to add to the rates of neighbouring links, each of DEEP samples. Coefficients fill up with 0."""

    link: np.ndarray
    """(tiles,) the first."""
    series: np.ndarray
    """(tiles, DEEP)"""
    lag: np.ndarray
    """(tiles, DEEP) [sample]"""
    coefficient: np.ndarray
    """(tiles, links, DEEP)"""


def blocked_fir(taps: FirLaw) -> tuple[BlockedFir, BlockedFir]:
    """Tiles of WIDE links, where these take much the same samples, and of one link; the last links may not exist."""
    N = len(taps.offset)
    wide, narrow = [], []
    for first in range(0, N, WIDE):
        links = range(first, min(first + WIDE, N))
        together = _tiles(taps, links, WIDE)
        if np.count_nonzero(together.coefficient) >= _MIN_FULL * together.coefficient.size:
            wide.append(together)
        else:
            narrow += [_tiles(taps, range(link, link + 1), 1) for link in links]
    return _joined(wide, WIDE), _joined(narrow, 1)


def _tiles(taps: FirLaw, links: range, width: int) -> BlockedFir:
    part = slice(taps.start[links.start], taps.start[links.stop])
    apart = taps.memory + 1
    samples, row = np.unique(taps.series[part] * apart + taps.lag[part], return_inverse=True)
    deep = -len(samples) % DEEP
    table = np.zeros((width, len(samples) + deep))
    counts = np.diff(taps.start[links.start : links.stop + 1])
    table[np.repeat(np.arange(len(links)), counts), row] = taps.coefficient[part]
    series, lag = np.divmod(np.pad(samples, (0, deep), mode="edge") if deep else samples, apart)
    coefficient = np.ascontiguousarray(table.reshape(width, -1, DEEP).transpose(1, 0, 2))
    link = np.full(len(coefficient), links.start)
    return BlockedFir(link, series.reshape(-1, DEEP), lag.reshape(-1, DEEP), coefficient)


def _joined(tiles: list[BlockedFir], width: int) -> BlockedFir:
    empty = BlockedFir(
        np.empty(0, dtype=np.int64),
        np.empty((0, DEEP), dtype=np.int64),
        np.empty((0, DEEP), dtype=np.int64),
        np.empty((0, width, DEEP)),
    )
    return BlockedFir(*(np.concatenate(arrays) for arrays in zip(empty, *tiles, strict=True)))
