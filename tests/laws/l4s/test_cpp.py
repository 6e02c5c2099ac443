"""L4S's laws in C++, as ns-3 runs them: the same bits as in Python, whatever happens to a packet or a window."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from cpp_support import STRICT

from netctrl.laws.l4s.dualpi2 import (
    DualPi2Queue,
    DualPi2State,
    classic_is_next,
    dualpi2_state,
    fresh_credit,
    judge_packet,
    spend_credit,
    update_dualpi2,
)
from netctrl.laws.record import fields_of
from netctrl.laws.tcp.prague import PRAGUE, PragueState
from netctrl.laws.tcp.sender import Acked, Echoed
from netctrl.ns3.laws import functions_header

COUNT = 50_000
DUAL = r"""
int main()
{
    double row[8];
    netctrl::DualPi2State state;
    if (std::fread(static_cast<void*>(&state), sizeof state, 1, stdin) != 1)
    {
        return 1;
    }
    while (std::fread(row, sizeof row, 1, stdin) == 1)
    {
        const bool low = row[0] > 0.0, capable = row[1] > 0.0, late = row[2] > 0.0;
        const bool next = netctrl::ClassicIsNext(state.credit, low, capable);
        const auto fate = static_cast<double>(netctrl::JudgePacket(state, low, capable, late, row[3], row[4]));
        state.credit = row[7] > 0.9 ? netctrl::FreshCredit(state.weight, state.packet)
                                    : netctrl::SpendCredit(state.credit, state.weight, next, row[6]);
        if (row[7] < 0.1)
        {
            netctrl::UpdateDualpi2(state, row[5]);
        }
        const double out[] = {next ? 1.0 : 0.0, fate, state.credit, state.baseProbability, state.oldDelay};
        std::fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""
PRAGUE_MAIN = r"""
int main()
{
    double row[5];
    netctrl::PragueState state;
    state.window = 10.0;
    state.threshold = 1e9;
    while (std::fread(row, sizeof row, 1, stdin) == 1)
    {
        state.rtt = row[0];
        netctrl::Echo(state, {row[1] > 0.9, row[2], row[3]});
        if (row[4] < 0.001)
        {
            netctrl::Cut(state);
        }
        else if (row[1] > 0.9)
        {
            netctrl::Mark(state);
        }
        else
        {
            netctrl::Grow(state, {row[2], 0.0, row[0], row[4] < 0.9});
        }
        const double out[] = {state.window, state.unmarked, state.threshold, state.spared};
        std::fwrite(out, sizeof out, 1, stdout);
    }
    return 0;
}
"""


def compiled(folder: Path, functions, main: str, given: bytes) -> np.ndarray:
    (folder / "netctrl-x.h").write_text(functions_header("x", "Of a test.", functions))
    (folder / "x.cc").write_text(f'#include "netctrl-x.h"\n#include <cstdio>\n{main}')
    subprocess.run(["g++", *STRICT, "x.cc", "-o", "x"], cwd=folder, check=True, timeout=300)
    ran = subprocess.run([folder / "x"], input=given, capture_output=True, check=True, timeout=120)
    return np.frombuffer(ran.stdout)


@pytest.mark.needs("ns3")
def test_dualpi2(tmp_path: Path) -> None:
    start = dualpi2_state(DualPi2Queue(), 1500.0)
    state = DualPi2State()
    for name, value in zip(fields_of(DualPi2State), start, strict=True):
        setattr(state, name, value)
    random = np.random.default_rng(3)
    rows = random.uniform(size=(COUNT, 8))
    rows[:, :3] = rows[:, :3] > 0.5
    rows[:, 3] *= 10.0 * 1500.0
    rows[:, 5] *= 0.05 * (1.0 + np.sin(np.arange(COUNT) / 3000.0))  # p' comes to both bounds
    rows[:, 6] = np.round(1500.0 * rows[:, 6])
    functions = (fresh_credit, classic_is_next, spend_credit, update_dualpi2, judge_packet)
    found = compiled(tmp_path, functions, DUAL, np.array(start).tobytes() + rows.tobytes()).reshape(COUNT, 5)
    for row, after in zip(rows.tolist(), found.tolist(), strict=True):
        low, capable, late = (each > 0.0 for each in row[:3])
        following = classic_is_next(state.credit, low, capable)
        fate = judge_packet(state, low, capable, late, row[3], row[4])
        fresh = fresh_credit(state.weight, state.packet)
        state.credit = fresh if row[7] > 0.9 else spend_credit(state.credit, state.weight, following, row[6])
        if row[7] < 0.1:
            update_dualpi2(state, row[5])
        assert after == [following, fate, state.credit, state.base_probability, state.old_delay]
    assert found[:, 3].min() == 0.0
    assert found[:, 3].max() == 1.0
    assert set(found[:, 1]) == {0.0, 1.0, 2.0}


@pytest.mark.needs("ns3")
def test_prague(tmp_path: Path) -> None:
    rows = np.random.default_rng(4).uniform(size=(COUNT, 5))
    rows[:, 0] = 10.0 ** (-3.0 + 2.0 * rows[:, 0])
    rows[:, 2] = np.ceil(3.0 * rows[:, 2])
    rows[:, 3] = np.ceil(40.0 * rows[:, 3])
    functions = (PRAGUE.grow, PRAGUE.cut, PRAGUE.mark, PRAGUE.echo)
    assert PRAGUE.mark is not None
    assert PRAGUE.echo is not None
    found = compiled(tmp_path, functions, PRAGUE_MAIN, rows.tobytes()).reshape(COUNT, 4)
    state = PragueState()
    for name in fields_of(PragueState):
        setattr(state, name, 0.0)
    state.window, state.threshold = 10.0, 1e9
    for row, after in zip(rows.tolist(), found.tolist(), strict=True):
        state.rtt = row[0]
        PRAGUE.echo(state, Echoed(row[1] > 0.9, row[2], row[3]))
        if row[4] < 0.001:
            PRAGUE.cut(state)
        elif row[1] > 0.9:
            PRAGUE.mark(state)
        else:
            PRAGUE.grow(state, Acked(row[2], 0.0, row[0], row[4] < 0.9))
        assert after == [state.window, state.unmarked, state.threshold, state.spared]
