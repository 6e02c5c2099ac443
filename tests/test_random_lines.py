"""Whatever stands on the command line, a command ends with a status of its own, and an error is one that it explains.

`NETCTRL_RANDOM_LINES=1500 python -m pytest tests/test_random_lines.py` tries that many. `python -m netctrl linux` acts
on the machine and is left out; its lines are tried in test_linux_fuzz.py.
"""

from __future__ import annotations

import json
import os
import signal
import warnings
from pathlib import Path

import numpy as np
import pytest

import netctrl
from netctrl.__main__ import main

LINES = int(os.environ.get("NETCTRL_RANDOM_LINES", "96"))
PARTS = 8
PATIENCE_S = 120
"""For one line on a busy machine; those that are right take seconds."""

WORDS = ["", " ", "1 ns", "a" * 5000, "x", "0", "1", "-1", "2", "3", "7", "0.5", "1.5", "nan", "inf", "-inf", "1e400"]
WORDS += ["1e-320", "auto", "--", "5ms", "10Mbit", "10kB", "5packets", "1:2", "2:1", ":", "a,b", ",", "=", "é"]
WORDS += ["/nonexistent/file.json", "/", "/dev/null", "/proc/self/mem", "--json", "--help", "--nonsense", "-o", "-x"]
WORDS += ["--output=", "--N=3", "god", "n4sid", "paper", "lqi", "own-rate", "{folder}", "{folder}/design.json"]
WORDS += [f"{{folder}}/{name}" for name in ("text.toml", "net.json", "trace.csv", "out.json", "out.svg", "bytes")]

SCENARIO = """schema = "netctrl.scenario/3"
name = "short"
duration = "2s"
packet_size = "1000B"

[[links]]
id = "link"
source = "a"
target = "b"
capacity = "1Mbit"
buffer = "100kB"
queue = { kind = "droptail" }

[[flows]]
id = "tcp"
path = ["link"]
rtt = ["50ms", "50ms"]
count = 2
"""
SWEEP = """
name = "short"
runs = 1

[scenario]
network = { kind = "routed", graph = "net.json" }
interval = "10ms"
duration = "100ms"
control = { kind = "fifo" }
"""
NETWORK = {
    "links": [{"id": "ab", "source": "A", "target": "B", "capacity": "10Mbit"}],
    "demands": [{"source": "A", "target": "B", "mean": "8Mbit"}],
}
USUAL = {
    "design": [
        "arc --N 50 --no-simulation",
        "arc --N 50 --rtt 200ms --epoch 20ms --capacity 10Mbit --json --no-simulation",
        "arc --N 5 --utilization 0.9 --target-queue 5 --plant phys -o {folder}/out.json",
        "hftrac --network {folder}/net.json --mu 1 --interval 10ms --std 10%",
        "connet --model {folder}/model.json --method lqi --accept stable --json",
        "mpcc --flows 4 --rate 1Gbit --rtt 100us --horizon 5",
        "pacing --mode own-rate --rtt 20ms --bottleneck 10Mbit --buffer 50kB",
    ],
    "simulate": ["{folder}/text.toml --seed 3 --json", "{folder}/text.toml -o {folder}/out.csv"],
    "sweep": ["{folder}/sweep.toml --n-jobs 1 -o {folder}/out.parquet"],
    "identify": [
        "{folder}/trace.csv --inputs u --outputs y --order 1 --horizon 5",
        "{folder}/trace.csv --inputs u --outputs y --held-out 0.3 --no-feedthrough --json",
    ],
    "export": ["ns3 {folder}/text.toml -o {folder}/ns3", "tc {folder}/design.json --interfaces eth0 -o {folder}/tc"],
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One of each file that a command reads."""
    made = tmp_path_factory.mktemp("lines")
    (made / "text.toml").write_text(SCENARIO)
    (made / "sweep.toml").write_text(SWEEP)
    (made / "net.json").write_text(json.dumps(NETWORK))
    (made / "bytes").write_bytes(bytes(range(256)))
    netctrl.arc(50.0, simulation=False).save(made / "design.json")
    random = np.random.default_rng(1)
    u, y = random.normal(size=300), np.zeros(300)
    for k in range(299):
        y[k + 1] = 0.8 * y[k] + u[k] + 0.1 * random.normal()
    rows = "\n".join(f"{0.1 * k:.1f},{u[k]:.6f},{y[k]:.6f}" for k in range(300))
    (made / "trace.csv").write_text(f"time_s,u,y\n{rows}\n")
    trace = netctrl.SignalTrace(interval_s=0.1, input_values=u[:, None], output_values=y[:, None])
    netctrl.identify(trace, order=1).model.save(made / "model.json")
    return made


def changed(line: list[str], random: np.random.Generator) -> list[str]:
    """A word or two put in, taken out, or exchanged."""
    line = list(line)
    for _ in range(int(random.integers(1, 3))):
        word, place = WORDS[random.integers(len(WORDS))], int(random.integers(len(line) + 1))
        match random.integers(4):
            case 0:
                line.insert(place, word)
            case 1:
                del line[place : place + 1]
            case _:
                line[place : place + 1] = [word]
    return line


def run(verb: str, line: list[str], capsys: pytest.CaptureFixture[str]) -> str | None:
    """What is wrong with how it ends; None where nothing is."""

    def late(*_: object) -> None:
        raise AssertionError(f"not done after {PATIENCE_S} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(PATIENCE_S)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            status = main([verb, *line])
    except BaseException as error:
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    said = capsys.readouterr()
    if status not in range(5) or "Traceback" in said.err:
        return f"status {status}, {said.err}"
    if status in (1, 2) and not said.err.strip():
        return f"status {status} without a word"
    return None


@pytest.mark.slow
@pytest.mark.parametrize("verb", list(USUAL))
def test_the_usual_lines_are_answered(verb: str, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """Otherwise odd words would never be reached."""
    monkeypatch.chdir(folder)
    for line in USUAL[verb]:
        status = main([verb, *(word.replace("{folder}", str(folder)) for word in line.split())])
        assert status == 0, (line, capsys.readouterr().err)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_random_lines_end_with_a_status_and_an_explanation(
    part: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    random = np.random.default_rng([12, part])
    wrong = []
    for _ in range(-(-LINES // PARTS)):
        verb = str(random.choice(list(USUAL), p=[0.5, 0.1, 0.05, 0.15, 0.2]))
        usual = USUAL[verb][random.integers(len(USUAL[verb]))]
        line = [word.replace("{folder}", str(folder)) for word in changed(usual.split(), random)]
        if said := run(verb, line, capsys):
            wrong.append(f"{verb} {line}: {said}")
    assert not wrong, "\n".join(wrong)
