"""Lines of tc for designed queues, run by tc in a real kernel: what the kernel reports is what the design says.

Debian 12's tc (iproute2 6.1) doesn't know `dualpi2`: there netctrl's own netlink code sends what the line says. PI2,
DOCSIS-PIE and WRED have no line, as Linux has no such queue.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import netctrl
from netctrl.kernel.build import chosen_kernel
from netctrl.kernel.command import run_command
from netctrl.laws.targets.dualpi2 import dualpi2_sent, dualpi2_shown
from netctrl.laws.targets.pie_law import PieLaw
from netctrl.laws.targets.red import RedLaw
from netctrl.linux.export.queue_law import queue_on_linux
from netctrl.linux.kernel.messages import attributes
from netctrl.model.law import QueueLaw

pytestmark = pytest.mark.needs("lab")
HZ = 1000
"""CONFIG_HZ of the kernel in virtual time."""
HERE: dict[str, Any] = {"rtt_s": 0.05, "flows": (15.0, 20.0), "capacity_bit_per_s": 20e6}
READ = """
import json, subprocess, sys
from netctrl.linux.kernel.netlink import RouteSocket
with RouteSocket() as route:
    if sys.argv[1] == "batch":
        subprocess.run(["tc", "-batch", sys.argv[2]], check=True)
    else:
        route.add_qdisc(1, 0xFFFFFFFF, 0x10000, sys.argv[1], bytes.fromhex(sys.argv[2]))
    found = route.qdisc(1)
print(json.dumps([found.kind, found.options.hex()]))
"""
"""Puts a queue on the loopback, by tc or by netlink, and reads it back by netlink."""


def designed(law: str, folder: Path, **parameters: Any) -> tuple[dict[str, Any], Path]:
    """Parameters of a design, and its batch file."""
    found = netctrl.queue_design(law, parameters=parameters, **HERE).law
    made = queue_on_linux(found, "lo", 20e6)
    path = folder / "queue.tc"
    path.write_text(made.files["queue.tc"])
    return dict(found.parameters), path


def reported(folder: Path, *words: str) -> tuple[str, dict[int, bytes]]:
    """Kind and options of a queue as the kernel reports them."""
    folder.mkdir()
    ended = run_command([sys.executable, "-c", READ, *words], folder)
    assert ended.status == 0, ended.stderr
    kind, options = json.loads(ended.stdout.splitlines()[-1])
    return kind, attributes(bytes.fromhex(options))


def numbers(found: dict[int, bytes], kinds: tuple[int, ...]) -> list[int]:
    return [struct.unpack("=I", found[kind])[0] for kind in kinds]


@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc: `apt-get install iproute2`")
def test_pie_has_the_designs_times_and_sixteenths(tmp_path: Path) -> None:
    given, batch = designed("pie", tmp_path)
    kind, found = reported(tmp_path / "out", "batch", str(batch))
    target, update, alpha, beta, ecn = numbers(found, (1, 3, 4, 5, 6))
    assert (kind, ecn) == ("pie", 0)
    assert (alpha, beta) == (16.0 * given["alpha"], 16.0 * given["beta"])
    assert (target, update) == (15_000, round(1e6 * given["tupdate_s"]))
    law = PieLaw.sent(target_us=15_000, tupdate_us=update, alpha=alpha, beta=beta, ecn=True, hz=HZ)
    assert law.shown == {"target": target, "tupdate": update, "alpha": alpha, "beta": beta}


@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc: `apt-get install iproute2`")
def test_red_has_the_designs_thresholds_weight_and_probability(tmp_path: Path) -> None:
    given, batch = designed("red", tmp_path, min_bytes=30_000, ecn=True)
    kind, found = reported(tmp_path / "out", "batch", str(batch))
    limit, low, high, weight_log, _, cell, flags = struct.unpack("=IIIBBBB", found[1])
    sent = {name: given[name] for name in ("limit_bytes", "min_bytes", "max_bytes", "average_packet", "burst")}
    law = RedLaw.sent(**sent, probability=given["probability"], ecn=True)
    assert kind == "red"
    assert (limit, low, high) == (given["limit_bytes"], given["min_bytes"], given["max_bytes"])
    assert (weight_log, numbers(found, (3,))) == (law.weight_log, [law.max_probability])
    assert flags & 1
    # Sent by netlink, as scenarios send it, it is the same queue, with tc's cells of idle times.
    from netctrl.linux.kernel.queue_options import queue_options

    own = {"limit": limit, "min": low, "max": high, "weight_log": weight_log, "bandwidth": 20e6}
    options = queue_options("red", own | {"probability": given["probability"]}, given["average_packet"])
    _, again = reported(tmp_path / "again", "red", options.hex())
    assert struct.unpack("=IIIBBBB", again[1])[5] == cell
    assert again[3] == found[3]


@pytest.mark.skipif(shutil.which("tc") is None, reason="needs tc: `apt-get install iproute2`")
def test_fq_codel_and_cake_have_the_lines_times(tmp_path: Path) -> None:
    """In us; CAKE's bandwidth in bytes a second, and the target that tc makes of its rtt."""
    times = {"fq_codel": {"target_s": 0.02, "interval_s": 0.3}, "cake": {"target_s": 0.015, "rtt_s": 0.3}}
    found = {}
    for name, given in times.items():
        law = QueueLaw(name=name, implementation="", parameters=given, gains={})
        (tmp_path / name).write_text(queue_on_linux(law, "lo", 2e6).files["queue.tc"])
        kind, found[name] = reported(tmp_path / f"{name}-out", "batch", str(tmp_path / name))
        assert kind == name
    assert numbers(found["fq_codel"], (1, 3)) == pytest.approx([20_000, 300_000], abs=1)  # kept in 1.024 us
    assert numbers(found["fq_codel"], (6,)) == [300]
    assert (struct.unpack("=Q", found["cake"][2])[0], numbers(found["cake"], (7, 8))) == (250_000, [300_000, 15_000])


def test_dualpi2_has_the_designs_gains_as_the_kernel_keeps_them(tmp_path: Path) -> None:
    from netctrl.linux.kernel.queue_options import queue_options

    if "NET_SCH_DUALPI2" in chosen_kernel().absent:
        pytest.skip("dualpi2 needs Linux 6.17 or newer")
    given, batch = designed("dualpi2", tmp_path)
    words = batch.read_text().splitlines()[1].split()[5:]
    line = {name: value for name, value in pairwise(words) if value[0].isdigit()}
    times = {name: int(line[name].removesuffix("ms")) * 1e-3 for name in ("target", "tupdate", "step_thresh")}
    gains = {name: float(line[name]) for name in ("alpha", "beta")}
    more = {"coupling_factor": int(line["coupling_factor"]), "drop_enqueue": int(words[-1] == "drop_enqueue")}
    kind, found = reported(tmp_path / "out", "dualpi2", queue_options("dualpi2", times | gains | more, 1500).hex())
    assert kind == words[0] == "dualpi2"
    steps = [round(256.0 * given[name]) for name in ("alpha", "beta")]
    assert [dualpi2_sent(gains[name]) for name in ("alpha", "beta")] == steps  # as tc rounds its line
    assert numbers(found, (5, 6)) == [dualpi2_shown(n) for n in steps]
    assert numbers(found, (3, 4)) == [15_000, round(1e6 * given["tupdate_s"])]
    assert (found[10][0], found[12][0]) == (2, 0)
    assert numbers(found, (8,)) == [1000]
