"""A law's taps as the kernel takes them: each once, and the sums are those of the taps."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_parts import called

from netctrl.laws.link_rate.fir import FirLaw, packed
from netctrl.sim.network.blocked_fir import DEEP, WIDE, blocked_fir
from netctrl.sim.network.kernel import LANES, LinkState, command_links

TOLERANCE = {"same": 1e-12}  # one sum, in another order
SLOTS = 16
set_commands = called(command_links)


def random_taps(seed: int) -> FirLaw:
    """Of up to 13 links, each with few taps or with most of those that there could be."""
    random = np.random.default_rng(seed)
    N = int(random.integers(1, 14))
    fill = random.choice([0.0, 0.02, 0.4, 0.9], size=N)
    drawn = random.random((N, 4 * N, 7)) < fill[:, None, None]
    entries = [(*map(int, place), float(random.normal())) for place in np.argwhere(drawn)]
    return packed(entries, random.normal(size=N), np.ones(N, dtype=bool))


def random_state(seed: int, N: int, runs: int) -> LinkState:
    """Surpluses and shortfalls that are 0 in many slots, and there in some runs alone."""
    random = np.random.default_rng(seed)
    history = random.normal(size=(4 * N, SLOTS, LANES))
    history[2 * N :] *= random.random((2 * N, SLOTS, 1)) < 0.3
    history[2 * N :] *= random.random((2 * N, SLOTS, LANES)) < 0.3
    history = np.ascontiguousarray(history[:, :, LANES - runs :])
    return LinkState(
        history,
        present=history.any(axis=2).astype(np.uint8),
        sums=np.zeros((N, 6, LANES)),
        command=np.full((N + WIDE - 1, LANES), np.nan),
        scratch=np.zeros(3 * LANES),
        offered=np.zeros(runs),
    )


def commanded(taps: FirLaw, state: LinkState, step: int) -> np.ndarray:
    set_commands(taps, *blocked_fir(taps), state, step)
    return state.command[: len(taps.offset), : state.history.shape[2]]


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60)
def test_tiles_have_every_tap_once(seed: int) -> None:
    taps, found = random_taps(seed), []
    for tiles, width in zip(blocked_fir(taps), (WIDE, 1), strict=True):
        assert tiles.coefficient.shape == (len(tiles.link), width, DEEP)
        for tile, i, k in np.argwhere(tiles.coefficient):
            place = (tiles.link[tile] + i, tiles.series[tile, k], tiles.lag[tile, k])
            found.append((*map(int, place), float(tiles.coefficient[tile, i, k])))
        assert tiles.lag.max(initial=0) <= taps.memory
    rows = np.repeat(np.arange(len(taps.offset)), np.diff(taps.start)).tolist()
    assert sorted(found) == list(
        zip(rows, taps.series.tolist(), taps.lag.tolist(), taps.coefficient.tolist(), strict=True)
    )


@pytest.mark.slow
@given(st.integers(0, 2**32 - 1), st.integers(0, 100))
@settings(max_examples=30)
def test_rates_are_the_sums_that_the_taps_say_in_whatever_company(seed: int, step: int) -> None:
    taps = random_taps(seed)
    N = len(taps.offset)
    state = random_state(seed, N, LANES)
    found = commanded(taps, state, step)
    expected = np.repeat(taps.offset[:, None], LANES, axis=1)
    for link in range(N):
        for j in range(taps.start[link], taps.start[link + 1]):
            expected[link] += taps.coefficient[j] * state.history[taps.series[j], (step - taps.lag[j]) % SLOTS]
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=TOLERANCE["same"] * max(1.0, np.abs(expected).max()))
    for runs in (1, 7, 64, 100):
        alone = commanded(taps, random_state(seed, N, runs), step)
        np.testing.assert_array_equal(alone, found[:, LANES - runs :])


@pytest.mark.parametrize(("links", "wide"), [(1, 0), (2, 0), (3, 3), (5, 3), (6, 3), (8, 6)])
def test_links_go_together_where_most_of_a_tile_is_of_use(links: int, wide: int) -> None:
    """All taking the same 10 samples: 3 tiles, of WIDE links or of each."""
    entries = [(link, series, lag, 1.0) for link in range(links) for series in range(2) for lag in range(5)]
    together, single = blocked_fir(packed(entries, np.zeros(links), np.ones(links, dtype=bool)))
    assert len(together.link) == wide
    alone = range(min(links, WIDE * wide // 3), links)
    assert single.link.tolist() == [link for link in alone for _ in range(3)]


def test_links_that_take_different_samples_stay_alone() -> None:
    entries = [(link, link, lag, 1.0) for link in range(WIDE) for lag in range(2 * DEEP)]
    together, single = blocked_fir(packed(entries, np.zeros(WIDE), np.ones(WIDE, dtype=bool)))
    assert len(together.link) == 0
    assert single.link.tolist() == [link for link in range(WIDE) for _ in range(2)]
