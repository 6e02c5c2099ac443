"""A law in integers: bits of hardware and of Python, in C and in the kernel, where it is loaded and taken out."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from importlib.resources import files
from math import log
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from linux.testbed import Testbed
from linux_support import absorbing, chain
from places import TESTS

import netctrl
from netctrl.__main__ import main
from netctrl.cli import FAILURE, GOOD, NO
from netctrl.core.errors import InvalidValue, NetctrlError
from netctrl.core.jit import njit
from netctrl.laws.codegen import Refused
from netctrl.laws.integers import law_in_integers
from netctrl.laws.pacing.own_rate import own_rate_step
from netctrl.laws.pacing.own_rate_state import OwnRateParameters, OwnRateState, own_rate_settings, own_rate_start
from netctrl.laws.record import row_names
from netctrl.linux.congestion import load
from netctrl.linux.congestion.text import congestion_text, law_text
from netctrl.linux.pacing.tcp import send_tcp
from netctrl.model.law import OwnRatePacer

LAW = OwnRatePacer()
PRELUDE = """
#include <stdbool.h>
#include <stdint.h>
typedef uint64_t u64;
typedef int64_t s64;
typedef uint32_t u32;
#define noinline __attribute__((noinline))
#define F64 static noinline
#define tcp_sk(sk) ((struct tcp_sock *)(sk))
struct sock { u64 sk_pacing_rate, sk_max_pacing_rate; u32 sk_pacing_status; };
struct tcp_sock { struct sock sk; u64 tcp_mstamp; u32 snd_cwnd, snd_cwnd_clamp, snd_ssthresh, mss_cache;
                  u32 packets_out, retrans_out, sacked_out, lost_out, delivered, delivered_ce, lost; };
"""
FLAGS = ("-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-shared", "-fPIC")
NAN = np.uint64(0xFFF << 51)
SIGN = np.uint64(1 << 63)
COMPETING, LIMIT, RATE, WINDOW = map(row_names(OwnRateState).index, ("competing", "limit", "rate", "window"))

pytestmark = pytest.mark.needs("compiler")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    folder = tmp_path_factory.mktemp("integers")
    oracle = (TESTS / "oracles" / "law_in_integers.c").read_text()
    flow = (files("netctrl.linux.congestion") / "flow.h").read_text()
    (folder / "law.c").write_text(PRELUDE + law_text(LAW) + flow + oracle)
    subprocess.run(["gcc", *FLAGS, "law.c", "-o", "law.so"], cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "law.so"))


def place(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def operated(library: ctypes.CDLL, operation: int, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    out = np.empty(len(a), dtype=np.uint64)
    library.operate(ctypes.c_uint64(operation), ctypes.c_uint64(len(a)), place(a), place(b), place(out))
    return out


def as_bits(values: np.ndarray) -> np.ndarray:
    """Bits, of a NaN those of all: hardware keeps what a NaN carries."""
    return np.where(np.isnan(values), NAN, values.view(np.uint64))


def drawn(random: np.random.Generator, count: int) -> np.ndarray:
    """Bits of doubles: any, near 1, subnormals, infinities and NaN; with fractions of few bits, or of the last ones."""
    pick = random.random(count)
    exponent = random.integers(0, 2048, count)
    exponent[pick < 0.4] = 1023 + random.integers(-60, 60, np.sum(pick < 0.4))
    exponent[pick > 0.85] = random.choice([0, 0, 1, 2, 2046, 2047], np.sum(pick > 0.85))
    fraction = random.integers(0, 2**52, count)
    few = random.choice([0, 1, 2, 3, 2**52 - 1, 2**51, 2**26, 2**52 - 2**26], count)
    fraction = np.where(random.random(count) < 0.4, few, fraction)
    return (random.integers(0, 2, count) << 63 | exponent << 52 | fraction).astype(np.uint64)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_is_that_of_hardware(library: ctypes.CDLL, seed: int) -> None:
    random, count = np.random.default_rng(seed), 400_000
    a, b = drawn(random, count), drawn(random, count)
    near = random.random(count)
    b = np.where(near < 0.1, a ^ SIGN, np.where(near < 0.2, (a ^ SIGN) + np.uint64(1), b))  # what nearly cancels
    x, y = a.view(float), b.view(float)
    with np.errstate(all="ignore"):
        wanted = [x + y, x - y, x * y, x / y, np.sqrt(x), np.floor(x)]
        least, most = np.where(y < x, y, x), np.where(y > x, y, x)  # Python's
    for operation, want in enumerate(wanted):
        assert np.array_equal(operated(library, operation, a, b), as_bits(want)), operation
    for operation, want in ((6, x < y), (7, x <= y), (8, x == y)):
        assert np.array_equal(operated(library, operation, a, b), want.astype(np.uint64)), operation
    assert np.array_equal(operated(library, 9, a, b), a.astype(float).view(np.uint64))
    for operation, want in ((11, least), (12, most)):
        assert np.array_equal(operated(library, operation, a, b), want.view(np.uint64)), operation
    whole = np.abs(x[np.abs(x) < 2.0**64])
    assert np.array_equal(operated(library, 10, whole.view(np.uint64), b), whole.astype(np.uint64))


BITS = st.integers(0, 2**64 - 1) | st.floats().map(lambda value: int(np.float64(value).view(np.uint64)))


@given(BITS, BITS)
def test_any_two_doubles(library: ctypes.CDLL, one: int, other: int) -> None:
    a, b = np.array([one], dtype=np.uint64), np.array([other], dtype=np.uint64)
    x, y = a.view(float), b.view(float)
    with np.errstate(all="ignore"):
        for operation, want in enumerate((x + y, x - y, x * y, x / y, np.sqrt(x), np.floor(x))):
            assert operated(library, operation, a, b)[0] == as_bits(want)[0], operation


Replay = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


@njit
def driven(state: Any, settings: Any, path: Any, draws: Any, samples: Any, rates: Any) -> Any:
    """Steps of a flow over a bottleneck: path = (RTT, capacity, buffer, loss, jitter, others' share of
    the buffer from 3 s on, share of it above which packets are marked)."""
    rtt, capacity, buffer, loss, jitter, others, marks = path
    packet, rate, queue, delivered, lost, marked = 1500.0, 1e6, 0.0, 0.0, 0.0, 0.0
    begun = time = 1.7e9 + draws[0, 0]
    competed = limited = 0
    for k in range(len(samples)):
        gap = 8.0 * packet / min(rate, 1.3 * capacity)
        foreign = others * buffer if time - begun > 3.0 else 0.0
        queue = max(queue + packet - gap * capacity / 8.0, foreign)
        if queue > buffer or draws[k, 0] < loss:
            lost += packet * (30.0 if draws[k, 1] < 0.01 else 1.0)
            queue = min(queue, buffer)
        else:
            delivered += packet
            marked += packet if queue > marks * buffer else 0.0
        time += gap
        now = rtt + 8.0 * queue / capacity + jitter * draws[k, 1]
        samples[k] = (time, now, delivered, min(rate, capacity) / 8.0 * now, lost, marked)
        rate = own_rate_step(state, settings, time, now, delivered, samples[k, 3], lost, marked)
        rates[k] = rate
        competed += state[COMPETING] > 0.0
        limited += state[LIMIT] < np.inf
    return competed, limited


@njit
def stepped(state: Any, settings: Any, samples: Any, rates: Any) -> None:
    for k in range(len(samples)):
        time, rtt, delivered, in_flight, lost, marked = samples[k]
        rates[k] = own_rate_step(state, settings, time, rtt, delivered, in_flight, lost, marked)


def compare(replay: Replay, samples: np.ndarray, rates: np.ndarray, state: np.ndarray) -> None:
    """The same rates at each step, and the same state at the end."""
    found, end = replay(samples)
    assert np.array_equal(as_bits(found), as_bits(rates))
    assert np.array_equal(as_bits(end), as_bits(state))


@pytest.fixture
def in_c(library: ctypes.CDLL) -> Replay:
    """Rates and the last state from the program in C."""

    def replay(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state, rates = np.empty_like(own_rate_start(LAW)), np.empty(len(samples))
        library.begin(place(state))
        library.replay(place(state), ctypes.c_uint64(len(samples)), place(samples), place(rates))
        return rates, state

    return replay


class TestRun(ctypes.Structure):
    """struct bpf_test_run_opts of libbpf; what isn't named here is 0."""

    __test__ = False
    _fields_ = (("size", ctypes.c_size_t), ("others", ctypes.c_uint64 * 10))


@pytest.fixture(scope="module")
def in_bpf(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replay]:
    """The same from the kernel, a thousand steps a run."""
    folder, batch, key = tmp_path_factory.mktemp("bpf"), 1000, ctypes.c_uint32(0)
    prelude = congestion_text(LAW).partition("/*\n * IEEE 754")[0]
    (folder / "law.c").write_text(prelude + law_text(LAW) + (TESTS / "oracles" / "law_by_bpf.c").read_text())
    subprocess.run(["clang", "-O2", "-g", "-target", "bpf", "-c", "law.c", "-o", "law.o"], cwd=folder, check=True)
    libbpf = ctypes.CDLL("libbpf.so.1", use_errno=True)
    for name in ("object__open_file", "object__find_program_by_name", "object__find_map_by_name"):
        getattr(libbpf, f"bpf_{name}").restype = ctypes.c_void_p
    loaded = ctypes.c_void_p(libbpf.bpf_object__open_file(str(folder / "law.o").encode(), None))
    assert loaded.value and libbpf.bpf_object__load(loaded) == 0
    program = libbpf.bpf_program__fd(ctypes.c_void_p(libbpf.bpf_object__find_program_by_name(loaded, b"replay")))
    memory = libbpf.bpf_map__fd(ctypes.c_void_p(libbpf.bpf_object__find_map_by_name(loaded, b".bss")))

    def replay(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        state, rates = own_rate_start(LAW), np.empty(len(samples))
        for first in range(0, len(samples), batch):
            now = slice(first, first + batch)
            row = np.concatenate([[0.0], samples[now].ravel(), rates[now], state])
            assert libbpf.bpf_map_update_elem(memory, ctypes.byref(key), place(row), ctypes.c_uint64(0)) == 0
            assert libbpf.bpf_prog_test_run_opts(program, ctypes.byref(TestRun(ctypes.sizeof(TestRun)))) == 0
            assert libbpf.bpf_map_lookup_elem(memory, ctypes.byref(key), place(row)) == 0
            rates[now], state = row[1 + 6 * batch :][:batch], row[1 + 7 * batch :]
        return rates, state

    yield replay
    libbpf.bpf_object__close(loaded)


PATHS = {
    (0.04, 2e7, 2e5, 0.0, 0.0, 0.0, 1.0): (False, False),
    (0.02, 1e8, 5e4, 0.01, 2e-3, 0.0, 1.0): (False, True),
    (0.2, 1e6, 1e4, 0.05, 0.05, 0.3, 0.5): (False, True),
    (0.04, 5e7, 5e5, 0.0, 0.0, 0.5, 1.0): (True, False),
    (0.02, 2e7, 1e5, 0.0, 0.0, 0.0, 0.02): (False, True),
}
"""A path -> whether its flow competes, and whether significant losses or marks limit it."""


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("where", ["in_c", pytest.param("in_bpf", marks=pytest.mark.needs("bpf"))])
def test_a_million_steps_are_those_of_python(
    where: str, path: tuple[float, ...], request: pytest.FixtureRequest
) -> None:
    count = 250_000
    samples, rates = np.empty((count, 6)), np.empty(count)
    state = own_rate_start(LAW)
    draws = np.random.default_rng(7).random((count, 2))
    competed, limited = driven(state, own_rate_settings(LAW), path, draws, samples, rates)
    assert (competed > 1000, limited > 1000) == PATHS[path], (competed, limited)
    compare(request.getfixturevalue(where), samples, rates, state)


def test_absurd_samples_too(in_c: Replay) -> None:
    random, count = np.random.default_rng(5), 250_000
    powers = ((-6.0, 1.0), (-6.0, 2.0), (0.0, 7.0), (0.0, 8.0), (-9.0, 6.0), (-9.0, 6.0))
    samples = np.stack([10.0 ** random.uniform(*each, count) for each in powers], axis=1)
    sums = [0, 2, 4, 5]
    samples[:, sums] = np.cumsum(samples[:, sums] * (random.random((count, 4)) < 0.9), axis=0)
    odd = random.random(samples.shape) < 0.02
    samples[odd] = random.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 5e-324, 1e-310], int(odd.sum()))
    rates, state = np.empty(count), own_rate_start(LAW)
    stepped(state, own_rate_settings(LAW), samples, rates)
    compare(in_c, samples, rates, state)


def test_the_text_has_no_floating_point_and_is_the_same_for_both_kernels() -> None:
    law = law_text(LAW)
    for text in (congestion_text(LAW), congestion_text(LAW, in_tree=True)):
        code = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.DOTALL)
        assert not re.search(r"\b(float|double|\d+\.\d+)\b", code)
        assert law in text


class Socket(ctypes.Structure):
    """The kernel's, of which a flow reads and writes these."""

    _fields_ = (
        *((name, ctypes.c_uint64) for name in ("pacing_rate", "max_pacing_rate", "pacing_status", "mstamp")),
        *((name, ctypes.c_uint32) for name in ("cwnd", "clamp", "ssthresh", "mss")),
        *((name, ctypes.c_uint32) for name in ("out", "again", "sacked", "lost_out", "delivered", "marked", "lost")),
    )


def test_a_flow_hears_what_the_kernel_counts(library: ctypes.CDLL) -> None:
    """Counts that wrap, a clock that stops while the program limits the rate, and bounds that a user has set."""
    flow, first, before = (ctypes.c_char * library.flow_size())(), 2**32 - 5, 3_000_000
    socket = Socket(max_pacing_rate=2**64 - 1, mstamp=before, clamp=2**32 - 1, mss=1448, delivered=first, lost=first)
    library.flow_begin(ctypes.byref(socket), flow, ctypes.c_uint64(1_700_000_000_000_000), ctypes.c_uint64(before))
    assert (socket.pacing_status, socket.pacing_rate) == (1, int(1e6 / 8.0 / 1500.0 * 1448.0))
    state, settings = own_rate_start(LAW), own_rate_settings(LAW)
    socket.marked = first
    library.flow_begin(ctypes.byref(socket), flow, ctypes.c_uint64(1_700_000_000_000_000), ctypes.c_uint64(before))
    now, idle, delivered, lost, marked, skipped = before, 0, 0, 0, 0, 0
    for k in range(400):
        limited = 100 <= k < 150
        now += 4000
        delivered, skipped = delivered + 2 * (not limited), skipped + 2 * limited
        idle += 4000 * limited
        lost += k % 50 == 49
        marked += k % 60 == 59
        socket.mstamp, socket.delivered = now, (first + delivered + skipped) % 2**32
        socket.lost, socket.out, socket.sacked, socket.lost_out, socket.again = (first + lost) % 2**32, 20, 3, 2, 1
        socket.marked = (first + marked) % 2**32
        rtt_us = -1 if k % 7 == 6 else 40_000 + 100 * (k % 5)
        library.flow_acked(ctypes.byref(socket), flow, ctypes.c_int64(rtt_us), ctypes.c_bool(limited))
        if rtt_us > 0 and not limited:
            time = float(1_700_000_000_000_000 + now - before - idle) * 1e-6
            seen = (time, float(rtt_us) * 1e-6, 1500.0 * delivered, 1500.0 * 16, 1500.0 * lost, 1500.0 * marked)
            own_rate_step(state, settings, *seen)
        found = np.frombuffer(flow, dtype=float, count=len(state))
        assert np.array_equal(as_bits(found), as_bits(state)), k
        assert socket.cwnd == int(max(state[WINDOW], 1.0))
        assert socket.pacing_rate == int(state[RATE] / (1500.0 * 8.0) * 1448.0)
    socket.max_pacing_rate, socket.clamp = 1000, 2
    for _ in range(200):
        socket.mstamp, socket.delivered = socket.mstamp + 4000, (socket.delivered + 2) % 2**32
        library.flow_acked(ctypes.byref(socket), flow, ctypes.c_int64(40_000), ctypes.c_bool(False))
    assert (socket.pacing_rate, socket.cwnd) == (1000, 2)


def by_libm(state: OwnRateState, x: float) -> float:
    return log(x)


def test_other_laws_and_names_are_refused() -> None:
    with pytest.raises(InvalidValue, match="own-rate law"):
        congestion_text(netctrl.pacing().law)
    for name in ("", "Own", "a b", "a" * 13, '"', "9a"):
        with pytest.raises(InvalidValue, match="name of 1 to 12"):
            congestion_text(LAW, name)
    with pytest.raises(Refused, match=r"test_congestion.py, line \d+: log has no form in integers"):
        law_in_integers(by_libm, OwnRateParameters, own_rate_settings(LAW), OwnRateState, own_rate_start(LAW))


@pytest.mark.needs("bpf")
@pytest.mark.needs("kernel")
def test_a_congestion_control_comes_is_used_and_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    netctrl.pacing(mode="own-rate").save("own.json")
    name = f"nc{os.getpid()}"
    options = ["--name", name, "--state-dir", str(tmp_path / "state")]
    (tmp_path / "state").mkdir(mode=0o755)
    assert name not in load.known()
    try:
        assert main(["linux", "cc", "load", "own.json", *options]) == GOOD
        assert name in load.known()
        assert main(["linux", "cc", "load", "own.json", *options]) == FAILURE
        assert f"the name {name} is taken" in capsys.readouterr().err
        assert main(["linux", "cc", "status", *options[2:]]) == GOOD
        assert f"{name}  since " in capsys.readouterr().out
        with Testbed(chain("a", "r", "b", capacity=20e6)) as bed, absorbing(bed):
            run = bed.run("a", send_tcp, bed.address("b"), 5001, 2.0, congestion=name, every_s=0.01)
        assert run.column("arrived_bytes")[-1] > 1e5
        paced, window = run.column("pacing_rate"), run.column("snd_cwnd")
        assert len(set(paced)) > 3 and len(set(window)) > 3  # the law's, which the kernel's own wouldn't be
        assert np.all(paced < 1e11 / 8.0)
    finally:
        assert main(["linux", "cc", "unload", *options]) == GOOD
    assert name not in load.known()
    assert main(["linux", "cc", "unload", *options]) == FAILURE
    assert "nothing was changed" in capsys.readouterr().err


@pytest.mark.needs("bpf")
def test_what_the_kernel_refuses_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = congestion_text(LAW, "refused").replace("(void *)107", "(void *)9999")
    monkeypatch.setattr(load, "congestion_text", lambda *_: text)
    tmp_path.chmod(0o755)
    with pytest.raises(NetctrlError, match="bpftool struct_ops failed: "):
        load.load(LAW, "refused", str(tmp_path))
    assert load.records(str(tmp_path)) == []
    assert "refused" not in load.known()


def test_a_record_without_its_congestion_control_is_told_and_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tmp_path.chmod(0o755)
    record = {"schema": "netctrl.congestion/1", "name": "gone", "owner": {"pid": 1, "start": 1, "boot": "earlier"}}
    (tmp_path / "cc-gone.json").write_bytes(msgspec.json.encode(record | {"since": "2026-01-01 00:00:00"}))
    options = ["--state-dir", str(tmp_path)]
    assert main(["linux", "cc", "status", *options]) == NO
    assert "gone: `unload` removes its record" in capsys.readouterr().out
    assert main(["linux", "cc", "unload", "--name", "gone", *options]) == GOOD
    assert load.records(str(tmp_path)) == []


def test_a_dry_run_says_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(load, "_path", lambda _: None)
    netctrl.pacing(mode="own-rate").save(tmp_path / "own.json")
    assert main(["linux", "cc", "load", str(tmp_path / "own.json"), "--name", "cubic", "--dry-run"]) == GOOD
    said = " ".join(capsys.readouterr().out.split())
    assert "no clang on PATH: `apt-get install clang`; no bpftool on PATH" in said
    assert ("cubic" in load.known()) == ("the name cubic is taken" in said)
