"""Options of queueing disciplines: numbers against the machine's header, values against what the kernel reports."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import numpy as np
import pytest

from netctrl.core.errors import InvalidValue
from netctrl.linux.kernel.messages import attributes
from netctrl.linux.kernel.queue_options import PARAMETERS, netem_options, queue_counts, queue_options

HEADER = Path("/usr/include/linux/pkt_sched.h")
# Our name, tc's, where it isn't that of the header.
RENAMED = {
    ("cake", "bandwidth"): "BASE_RATE64",
    ("cake", "memory"): "MEMORY",
    ("fq", "limit"): "PLIMIT",
    ("fq", "flow_limit"): "FLOW_PLIMIT",
    ("fq", "pacing"): "RATE_ENABLE",
    ("fq", "refill_delay"): "FLOW_REFILL_DELAY",
    ("fq_codel", "drop_batch"): "DROP_BATCH_SIZE",
    ("dualpi2", "step_thresh"): "STEP_THRESH_US",
    ("dualpi2", "coupling_factor"): "COUPLING",
    ("dualpi2", "drop_on_overload"): "DROP_OVERLOAD",
    ("dualpi2", "drop_enqueue"): "DROP_EARLY",
    ("dualpi2", "classic_protection"): "C_PROTECTION",
}


def numbers_in(header: str) -> dict[str, int]:
    """Numbers of all TCA_* in the header's enums."""
    found = {}
    for body in re.findall(r"enum\s*\w*\s*\{(.*?)\}", re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL), re.DOTALL):
        for number, name in enumerate(re.findall(r"(\w+)\s*(?:,|$)", body.strip())):
            found[name] = number
    return found


@pytest.mark.skipif(not HEADER.is_file(), reason="needs linux/pkt_sched.h: `apt-get install linux-libc-dev`")
@pytest.mark.parametrize("kind", sorted(PARAMETERS))
def test_attributes_have_the_header_s_numbers(kind: str) -> None:
    known = numbers_in(HEADER.read_text())
    if not any(name.startswith(f"TCA_{kind.upper()}_") for name in known):
        pytest.skip(f"this machine's header has no {kind}: it is of an older kernel")
    for name, parameter in PARAMETERS[kind].items():
        assert known[f"TCA_{kind.upper()}_{RENAMED.get((kind, name), name.upper())}"] == parameter.number


def test_times_and_gains_are_in_the_kernel_s_steps() -> None:
    found = attributes(queue_options("dualpi2", {"target": 0.015, "alpha": 0.16, "beta": 3.2}, 1500))
    assert struct.unpack("=I", found[3]) == (15_000,)
    assert struct.unpack("=I", found[5]) == (41,)  # tc sends .16 256 rounded
    assert struct.unpack("=I", found[6]) == (819,)


def test_dualpi2_s_small_numbers_have_one_byte() -> None:
    """linux/pkt_sched.h says u8; Linux 7.2 refuses four bytes: "invalid attribute length"."""
    given = {"coupling_factor": 3, "drop_on_overload": 0, "drop_enqueue": 1, "classic_protection": 20, "ecn_mask": 3}
    found = attributes(queue_options("dualpi2", given | {"split_gso": 1, "min_qlen_step": 2}, 1500))
    assert [found[number] for number in range(10, 16)] == [bytes([n]) for n in (3, 0, 1, 20, 3, 1)]
    assert found[9] == struct.pack("=I", 2)


def test_dualpi2_tells_its_base_probability() -> None:
    """Classic packets are marked with its square."""
    xstats = struct.pack("=10I", 2**30, 0, 0, 0, 0, 0, 7, 0, 0, 0)
    assert queue_counts("dualpi2", xstats) == (7, 1.0 / 16.0)


def test_a_fast_netem_rate_has_64_bits() -> None:
    options = netem_options(0.01, 80e9, 0.25, 100)
    assert struct.unpack_from("=III", options) == (0, 100, round(0.25 * (2**32 - 1)))
    found = attributes(options, 24)
    assert struct.unpack("=q", found[10]) == (10_000_000,)
    assert struct.unpack_from("=I", found[6]) == (2**32 - 1,)
    assert struct.unpack("=Q", found[8]) == (10_000_000_000,)


def test_netem_s_jitter_and_runs_of_losses() -> None:
    """Jitter has both signs, around the delay's middle; Gilbert's p = loss/(run (1 - loss)) and r = 1/run, of 2^32."""
    options = netem_options(0.01, None, 0.2, 100, jitter_s=0.004, run=5.0)
    assert struct.unpack_from("=III", options) == (0, 100, 0)
    found = attributes(options, 24)
    assert struct.unpack("=qq", found[10] + found[11]) == (12_000_000, 2_000_000)
    states = struct.unpack("=IIII", attributes(found[5])[2])
    assert states == (round(0.05 * (2**32 - 1)), round(0.2 * (2**32 - 1)), 0, 0)


def test_netem_s_normal_jitter_has_a_table_of_quantiles() -> None:
    """A standard deviation is 8192 of it (NETEM_DIST_SCALE)."""
    found = attributes(netem_options(0.01, None, 0.0, 100, jitter_s=0.004, normal=True), 24)
    assert struct.unpack("=qq", found[10] + found[11]) == (10_000_000, 4_000_000)
    table = np.frombuffer(found[2], "=i2")
    assert len(table) == 4096
    assert (table == -table[::-1]).all()
    assert table.std() == pytest.approx(8192.0, rel=2e-3)
    assert (np.abs(table) < 8192).mean() == pytest.approx(0.6827, abs=1e-3)


def test_red_wants_its_thresholds_in_order() -> None:
    with pytest.raises(InvalidValue, match="from min"):
        queue_options("red", {"limit": 1e6, "min": 5e4, "max": 4e4}, 1500)
    step = attributes(queue_options("red", {"limit": 1e6, "min": 3e4, "max": 3e4, "weight_log": 1}, 1000))
    assert struct.unpack("=IIIBBBB", step[1]) == (1_000_000, 30_000, 30_000, 1, 6, 11, 1)
    parts = attributes(queue_options("red", {"limit": 1e6, "min": 3e4, "max": 9e4, "probability": 0.1}, 1000))
    assert struct.unpack("=IIIBBBB", parts[1]) == (1_000_000, 30_000, 90_000, 9, 20, 19, 1)
    assert struct.unpack("=I", parts[3]) == (int(0.1 * 2**32),)  # as tc rounds


def test_reds_idle_times_are_in_tcs_cells() -> None:
    """A weight of 1/2 and 1000 bytes at 8 Mbit/s, 1 ms or 15,625 ticks: after t of tc's ticks t ln 2/15625 halvings.

    31 of them take 698,800 ticks: cells of 2048, of which the hundredth has 9.09 halvings. `tc` says Scell_log 11.
    """
    given = {"limit": 400_000, "min": 30_000, "max": 90_000, "weight_log": 1, "bandwidth": 8e6, "probability": 0.25}
    found = attributes(queue_options("red", given | {"adaptive": 1, "ecn": 0}, 1000))
    assert struct.unpack("=IIIBBBB", found[1])[3:] == (1, 18, 11, 4)
    assert (found[2][0], found[2][100], found[2][255], len(found[2])) == (0, 9, 31, 256)
    assert struct.unpack("=I", found[3]) == (2**30,)
    slower = attributes(queue_options("red", given | {"bandwidth": 4e6}, 1000))
    assert struct.unpack("=IIIBBBB", slower[1])[5:] == (12, 1)
