"""A TCP sender of another package, examples/scalable, in the fluid of a bottleneck."""

from __future__ import annotations

import json
from math import log
from pathlib import Path

import pytest
from packages import installed, run
from places import ROOT

PROBE = """
import json
import numpy as np
import netctrl
from netctrl import RateCap, simulate_bottleneck
found = []
for rate in (2e7, 1e8, 5e8):
    link = simulate_bottleneck([RateCap(1e12, 0.02, window="scalable")], rate, rate * 0.002 / 8, 30.0, bin_s=0.005)
    late = link.time_s > 15.0
    cuts = link.time_s[1:][late[1:] & (np.diff((link.lost_bytes[0] > 0).astype(int)) > 0)]
    found.append(np.median(np.diff(cuts)) / np.nanmean(link.rtt_s[0, late]))
print(json.dumps(found))
"""


def test_its_cuts_are_as_many_round_trips_apart_at_any_rate(tmp_path: Path) -> None:
    """ln(8/7)/ln(1.01) = 13.4 (Kelly 2003, section 3), and half a round trip or so until a loss is heard of."""
    found = json.loads(run(installed(ROOT / "examples" / "scalable", tmp_path / "site"), "-c", PROBE))
    assert found == pytest.approx(3 * [log(8.0 / 7.0) / log(1.01)], rel=0.12)
