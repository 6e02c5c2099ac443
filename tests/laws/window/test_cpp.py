"""Laws of senders printed as C++: the bits of what the packet kernel runs, for every law on random numbers."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpp_support import STRICT
from numba import njit

from netctrl.laws.record import width
from netctrl.laws.window import rows
from netctrl.laws.window.law import MAX_HOPS, SILENT, Acknowledged, Packet, WindowLaw
from netctrl.laws.window.law import Path as Way
from netctrl.laws.window.records import LAWS
from netctrl.ns3.laws import window_laws_header

SAMPLES, TABLE, MEMORY, SEEN, HOPS = 100_000, 20, 16, 8, 4 * MAX_HOPS
PATH = len(Way._fields) - 1 + MAX_HOPS
MAIN = r"""
#include "netctrl-window-laws.h"
#include <cstdio>
#include <cstring>

using namespace netctrl;
using Law = KIND;

int main(int argc, char**)
{
    static double law[sizeof(Law) / 8 + 1], state[sizeof(Law::State) / 8], path[sizeof(Path) / 8], seen[8], hops[20];
    std::vector<double> table(20), memory(16);
    const auto read = [](double* to, std::size_t count) { return std::fread(to, 8, count, stdin) == count; };
    while (read(law, LAW) && read(state, sizeof state / 8) && read(path, sizeof path / 8) && read(seen, 8) &&
           read(hops, 20) && read(table.data(), 20) && read(memory.data(), 16))
    {
        Law l; Law::State s; Path p; Acknowledged a{};
        std::memcpy(static_cast<void*>(&l), law, LAW * 8);
        std::memcpy(static_cast<void*>(&s), state, sizeof s);
        std::memcpy(static_cast<void*>(&p), path, sizeof p);
        std::memcpy(static_cast<void*>(&a.hops), hops, sizeof a.hops);
        a.now = seen[0]; a.una = seen[1]; a.nextByte = seen[2]; a.newly = seen[3]; a.rtt = seen[4];
        a.marked = seen[5] > 0.0; a.notified = seen[6] > 0.0; a.lost = seen[7] > 0.0;
        s = argc > 1 ? l.Sent(s, a.now, a.newly, p) : l.Next(s, a, p, table, memory);
        std::fwrite(&s, sizeof s, 1, stdout);
        std::fwrite(memory.data(), 8, 16, stdout);
    }
}
"""


@njit
def replay(number, given, parameters, states, path, seen, hops, table, memory, out):
    for k in range(len(seen)):
        now, una, next_byte, newly, rtt, marked, notified, lost = seen[k]
        ack = Acknowledged(now, una, next_byte, newly, rtt, marked > 0.0, notified > 0.0, lost > 0.0, SILENT)
        told = hops[k].reshape((MAX_HOPS, 4))
        if given:
            rows.act(number, parameters[k], path[k], states[k], table[k], memory[k], ack, told)
        else:
            rows.packet_sent(number, parameters[k], path[k], states[k], now, newly)
        out[k] = states[k]


def drawn(law: WindowLaw, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Numbers over the decades that a scenario may ask for, whole where they count something."""

    def decades(low: float, high: float, *shape: int) -> np.ndarray:
        return np.rint(10.0 ** random.uniform(low, high, (SAMPLES, *shape)))

    usual = rows.row_of(law.read(law.record(), Packet(1000.0, 1100.0, 1e5)))
    parameters = np.tile(usual, (SAMPLES, 1)) * 10.0 ** random.uniform(-1.0, 1.0, (SAMPLES, len(usual)))
    state = decades(0.0, 11.0, width(law.state))
    state[random.random(state.shape) < 0.2] = 0.0
    seen = np.column_stack(
        [decades(3.0, 9.0), decades(3.0, 9.0), decades(3.0, 9.0), decades(0.0, 5.0), decades(3.0, 7.0)]
    )
    seen = np.hstack([seen, random.random((SAMPLES, 3)) < 0.4])
    path = np.column_stack([decades(3.0, 6.0), decades(3.0, 7.0), decades(8.0, 11.0), random.integers(1, 6, SAMPLES)])
    path = np.hstack([path, decades(8.0, 11.5, MAX_HOPS)])
    hops = decades(0.0, 6.0, HOPS)
    hops[random.random(hops.shape) < 0.3] = 0.0
    column = {name: place for place, name in enumerate(law.parameters._fields)}
    if law.name == "mpcc":
        parameters[:, column["variant"]] = random.integers(0, 4, SAMPLES)
        parameters[:, column["given_window"]] = decades(2.0, 5.0) * (random.random(SAMPLES) < 0.5)
        parameters[:, column["horizon"]] = random.integers(1, 40, SAMPLES)
        state[:, 2] = random.integers(0, 40, SAMPLES)
    if law.name == "dcqcn":
        state[:, 3] = random.random(SAMPLES)
        for name, place in (("alpha_interval", 4), ("increase_interval", 5)):
            state[:, place] = np.rint(seen[:, 0] - random.uniform(-1.0, 30.0, SAMPLES) * parameters[:, column[name]])
        state[:, 7] = np.rint(random.uniform(0.0, 20.0, SAMPLES) * parameters[:, column["increase_bytes"]])
        state[:, [6, 8]] = random.integers(0, 12, (SAMPLES, 2))
    if law.name == "hpcc":
        state[:, 6] = random.uniform(0.0, 2.0, SAMPLES)
        state[:, 4] = random.integers(0, 8, SAMPLES)
    return {
        "parameters": parameters, "states": state, "path": path, "seen": seen.astype(float), "hops": hops,
        "table": random.random((SAMPLES, TABLE)), "memory": decades(0.0, 6.0, MEMORY),
    }  # fmt: skip


@pytest.mark.needs("ns3")
@pytest.mark.parametrize("law", LAWS, ids=[law.name for law in LAWS])
def test_cpp_gives_the_bits_of_the_kernel(law: WindowLaw, tmp_path: Path) -> None:
    (tmp_path / "netctrl-window-laws.h").write_text(window_laws_header(LAWS))
    numbers = drawn(law, np.random.default_rng(3))
    main = MAIN.replace("LAW", str(numbers["parameters"].shape[1])).replace("KIND", f"{law.name.capitalize()}Law")
    (tmp_path / "main.cc").write_text(main)
    subprocess.run(["g++", *STRICT, "main.cc", "-o", "law"], cwd=tmp_path, check=True, timeout=120)
    sent = np.hstack(list(numbers.values())).tobytes()
    for given, argv in ((True, ["./law"]), (False, ["./law", "sent"])):
        ran = subprocess.run(argv, cwd=tmp_path, input=sent, capture_output=True, check=True, timeout=120)
        found = np.frombuffer(ran.stdout).reshape(SAMPLES, -1)
        mine = {name: each.copy() for name, each in numbers.items()}
        out = np.empty_like(mine["states"])
        if given or law.sent is not None:
            replay(LAWS.index(law), given, **mine, out=out)
        else:
            out = numbers["states"]
        np.testing.assert_array_equal(found[:, :-MEMORY], out)
        np.testing.assert_array_equal(found[:, -MEMORY:], mine["memory"])
        changed = (out != numbers["states"]).any(axis=0)
        assert changed[: 2 + (law.name == "dcqcn")].any() == (law.name != "fixed" and (given or law.sent is not None))
