"""One rule of exit statuses: 0 the answer is yes or the work is done, 3 it is no; the same verdict in every verb."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from installed import PIE, entry, sonic, wred_profile

import netctrl
from netctrl.__main__ import VERBS, main
from netctrl.cli import FAILURE, GOOD, NO, STATUSES, WRONG_USE
from netctrl.core.errors import NoAdmissibleDesign, Status
from netctrl.core.register import DESIGN_COMMANDS

LINKS = [
    {"id": "L1", "source": "A", "target": "B", "capacity": "40Mbit", "delay": "10ms", "buffer": "25kB"},
    {"id": "L2", "source": "B", "target": "C", "capacity": "20Mbit", "delay": "10ms", "buffer": "25kB"},
]
QUEUES = [entry("pie", PIE)]
BOX = "--rtt 20ms --N 4 --capacity 20Mbit"

DESIGNED = {
    "arc --N 50 --no-simulation": Status.ADMISSIBLE,
    "arc --N 50 --no-simulation --alpha 1.4e-5": Status.STABLE,
    "arc --N 50 --no-simulation --alpha 1e-3": Status.UNSTABLE,
    "arc --N 800 --no-simulation": Status.INFEASIBLE,
    "connet --model connet-paper --track delay": Status.ADMISSIBLE,
    "connet --model connet-paper --track jitter --method paper": Status.STABLE,
    "hftrac --network merge --mu 1": Status.ADMISSIBLE,
    "hftrac --network over.json --mu 1": Status.STABLE,
    "mpc uplink": Status.ADMISSIBLE,
    "mpcc --N 4 --rate 1Gbit --rtt 35us --delayed": Status.ADMISSIBLE,
    "mpcc --N 4 --rate 100Gbit --rtt 8us --window-weight 0.1": Status.STABLE,
    "pacing --mode own-rate --rtt 20ms --bottleneck 100Mbit": Status.ADMISSIBLE,
    "pacing": Status.STABLE,
    "pacing --replay rtts.csv": Status.STABLE,
    "pacing --estimator sgd": Status.UNSTABLE,
    "ecn --rtt 100us --N 2:40 --capacity 10Gbit": Status.ADMISSIBLE,
    "pie --rtt 20ms --window 10": Status.ADMISSIBLE,
}
"""A design -> its status; without a file, and with `--accept`."""

ANSWERED = {
    "design docsis-pie --rtt 20ms --window 10": GOOD,
    "design dualpi2 --rtt 20ms --window 10": GOOD,
    "design pi2 --rtt 20ms --window 10": GOOD,
    "design pie --rtt 1s --N 1 --capacity 1kbit": NO,
    "design red --min 30kB --rtt 50ms --N 20 --capacity 20Mbit --ecn": GOOD,
    "design wred --min 30kB --rtt 50us --N 8 --capacity 10Gbit": GOOD,
    "design codel --rtt 20ms --window 10": WRONG_USE,
    "design fq_codel --rtt 20ms --window 10": WRONG_USE,
    "design cake --rtt 20ms --window 10": WRONG_USE,
    "design hftrac --network still.json --mu 1": WRONG_USE,
    "design pacing --replay rtts.csv --worst-network 1ms": WRONG_USE,
    "design pacing --worst-losses 2%": WRONG_USE,
    "design pacing --worst-bursts 30kB": WRONG_USE,
    "design pacing --mode own-rate --worst-network 1ms --worst-bursts 1GB": WRONG_USE,
    "design pacing --mode own-rate --worst-network 1ms --worst-queue 0": WRONG_USE,
    "design pacing --mode own-rate --worst-network 1s": WRONG_USE,
    f"certify pie {BOX}": GOOD,
    "certify pie --rtt 100ms --window 30": NO,
    f"certify docsis-pie {BOX}": GOOD,
    f"certify dualpi2 {BOX}": GOOD,
    "certify dualpi2 --rtt 100ms --window 50": NO,
    f"certify fq_pie {BOX}": GOOD,
    f"certify pi2 {BOX}": GOOD,
    "certify red --limit 400kB --min 30kB --max 90kB --burst 55 --rtt 50ms --N 25 --capacity 20Mbit": NO,
    "certify wred --min 30kB --max 31kB --probability 1 --rtt 50ms --N 20 --capacity 20Mbit": NO,
    "certify codel --rtt 20ms --N 1 --capacity 20Mbit": GOOD,
    "certify fq_codel --rtt 20ms --N 1 --capacity 20Mbit": GOOD,
    "certify cake --rtt 100ms --N 1 --capacity 20Mbit": NO,
    "certify dctcp --K 65 --rtt 100us --N 10 --capacity 10Gbit": GOOD,
    "certify dcqcn --rtt 50us --N 10 --capacity 40Gbit --packet-size 1000": NO,
    "certify hpcc --rtt 50us --N 4 --capacity 100Gbit": GOOD,
    "certify network parking-lot": GOOD,
    f"certify file queues.json {BOX}": GOOD,
    "certify file queues.json --rtt 100ms --window 30": NO,
    "certify file config_db.json --rtt 100us --N 8:32 --capacity 100Gbit --sender dctcp": GOOD,
    f"certify shipped linux-pie {BOX}": GOOD,
    "certify shipped linux-pie --rtt 300ms --window 30": NO,
    "export tc mpcc.json -o none": NO,
    "evaluate pie --list": GOOD,
    "linux status --state-dir none": GOOD,
    "linux cc status --state-dir none": GOOD,
    "linux cc unload --state-dir none": FAILURE,
    "linux cc load own.json --dry-run": GOOD,
    "export bpf own.json -o own.c": GOOD,
    "export bpf paper.json -o paper.c": WRONG_USE,
    "list laws": GOOD,
    "kernel list": GOOD,
    "completion bash": GOOD,
    "sweep --help": GOOD,
    "what-if abilene --fail none": GOOD,
    "simulate --help": GOOD,
    "excite --range 5Mbit:90Mbit": GOOD,
    "identify --help": GOOD,
    "doctor --help": GOOD,
}
"""A command line -> its status; of the last four verbs none has a verdict."""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, demand in (("over", {"mean": "30Mbit", "std": "2Mbit"}), ("still", {"mean": "10Mbit"})):
        network = {"edges": LINKS, "demands": [{"source": "A", "target": "C", **demand}]}
        (tmp_path / f"{name}.json").write_text(json.dumps(network))
    (tmp_path / "queues.json").write_text(json.dumps(QUEUES))
    (tmp_path / "config_db.json").write_text(sonic(AZURE_LOSSLESS=wred_profile()))
    rows = "".join(f"{k * 4e-3},{4e-3 + 1e-5 * (k % 5)}\n" for k in range(50))
    (tmp_path / "rtts.csv").write_text(f"time_s,rtt_s\n{rows}")
    return tmp_path


def test_the_table_has_every_verb_and_every_design() -> None:
    words = [line.split() for line in (*ANSWERED, *(f"design {line}" for line in DESIGNED))]
    assert {verb for verb, *_ in words} == set(VERBS)
    assert {second for verb, second, *_ in words if verb == "design"} == set(DESIGN_COMMANDS) - {"buffer"}
    from netctrl.cli.certify import _NAMES

    assert {second for verb, second, *_ in words if verb == "certify"} == set(_NAMES)


@pytest.mark.parametrize("line", ANSWERED)
def test_the_same_verdict_has_the_same_status(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    if "mpcc.json" in line:
        netctrl.mpcc(4, 1e9, 35e-6, delayed=True).save("mpcc.json")
    if "own.json" in line:
        netctrl.pacing(mode="own-rate").save("own.json")
    if "paper.json" in line:
        netctrl.pacing().save("paper.json", "stable")
    assert main(shlex.split(line)) == ANSWERED[line], capsys.readouterr()
    said = capsys.readouterr()
    assert said.err.count("error: ") == (ANSWERED[line] != GOOD)
    if "--help" in line:
        assert STATUSES in said.out


@pytest.mark.slow
@pytest.mark.parametrize("line", DESIGNED)
def test_a_design_is_saved_where_the_answer_is_yes(
    line: str, folder: Path, capsys: pytest.CaptureFixture[str], saved: Callable[[], bool]
) -> None:
    status = DESIGNED[line]
    for accept, yes in (("admissible", {Status.ADMISSIBLE}), ("stable", {Status.ADMISSIBLE, Status.STABLE})):
        no = status not in yes
        assert main(shlex.split(f"design {line} --accept {accept} -o saved.json")) == (NO if no else GOOD)
        out = capsys.readouterr().out
        assert status.upper() in out
        assert saved() is not no


@pytest.fixture
def saved(folder: Path) -> Callable[[], bool]:
    """Whether a file was saved; it is removed."""

    def was() -> bool:
        file = folder / "saved.json"
        return file.exists() and (file.unlink() or True)

    return was


@pytest.mark.parametrize(("alpha", "accepts"), [(2e-6, "admissible"), (1.4e-5, "stable"), (1e-3, None)])
def test_python_saves_by_the_same_rule(alpha: float, accepts: str | None, saved: Callable[[], bool]) -> None:
    design = netctrl.arc(50, alpha_per_packet=alpha, simulation=False)
    for accept, yes in (("admissible", accepts == "admissible"), ("stable", accepts is not None)):
        refused = design.refusal(accept)
        assert (refused is None) is yes
        if yes:
            design.save("saved.json", accept)
        else:
            with pytest.raises(NoAdmissibleDesign, match="Safe for 50 flows at 500 ms: no") as error:
                design.save("saved.json", accept)
            assert error.value.design is design
        assert saved() is yes
    with pytest.raises(netctrl.NetctrlError, match="accept: got 'any', takes admissible or stable"):
        design.save("saved.json", "any")
