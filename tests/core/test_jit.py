"""Compiled kernels on disk: never used for other sources, wherever they are kept, and announced on a terminal."""

from __future__ import annotations

import ast
import fcntl
import importlib
import os
import pty
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

import netctrl
from netctrl.core import jit

PACKAGE = Path(netctrl.__file__).parent
KERNELS = sorted(
    path for path in PACKAGE.rglob("*.py") if "from netctrl.core.jit import" in path.read_text(encoding="utf-8")
)

# A step of `plants/window.py`, whose arithmetic stands in another file: a queue of 5, and 5 − 3 more.
PROBE = """
from netctrl.plants.window import window_course
print(window_course(lambda queue: queue, queue=5.0, fair_window=3.0, B=1.0, delay=0, steps=1)[0][-1])
"""
OLD, NEW = "7.0", "3.0"
SAYS = "netctrl: compiling kernels for this machine"


@pytest.fixture
def copied(tmp_path) -> Path:
    """The package, copied without what was compiled before."""
    copy = tmp_path / "site" / "netctrl"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "data", "*.json"))
    return copy


def change_the_step(package: Path) -> None:
    """Another step in the file that the kernel calls."""
    file = package / "laws" / "link.py"
    code = file.read_text(encoding="utf-8")
    assert "offered = backlog + arrivals" in code
    file.write_text(code.replace("backlog + arrivals", "backlog - arrivals"), encoding="utf-8")


def environment_of(package: Path, folder: Path) -> dict[str, str]:
    """This process's environment with a copy of the package, whose kernels aren't compiled, as users have it."""
    ours = ("NUMBA_", "XDG_", "PYTHON", "NETCTRL_QUIET")
    kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    return kept | {"PYTHONPATH": str(package.parent), "HOME": str(folder)}


def probe(package: Path, folder: Path, **more: str) -> tuple[str, str]:
    """What a fresh process prints, and what it says on a terminal, its standard error."""
    environment = environment_of(package, folder) | more
    terminal, end = pty.openpty()
    try:
        streams: dict = {"stdout": subprocess.PIPE, "stderr": end, "text": True}
        ran = subprocess.run([sys.executable, "-c", PROBE], cwd=folder, env=environment, timeout=300, **streams)
        os.write(end, b"\nend of what was said\n")
        said = b""
        while b"end of what was said" not in said:
            said += os.read(terminal, 65536)
    finally:
        os.close(terminal)
        os.close(end)
    assert ran.returncode == 0, said.decode()
    return ran.stdout.strip(), said.decode()


def said_in_a_log(package: Path, folder: Path, **more: str) -> str:
    """What a fresh process says on stderr where that is no terminal."""
    environment = environment_of(package, folder) | more
    command = [sys.executable, "-c", PROBE]
    return subprocess.run(command, cwd=folder, env=environment, timeout=300, capture_output=True, text=True).stderr


def compiled_under(folder: Path) -> set[str]:
    """Names of the folders in which a process has kept compiled code."""
    return {file.parent.name.partition("-")[0] for file in folder.rglob("*.nbc")}


@pytest.mark.slow
def test_a_changed_callee_runs_after_an_upgrade(copied, tmp_path):
    found, said = probe(copied, tmp_path)
    assert found == OLD
    assert said.count(SAYS) == 1
    assert "compiling kernels took" in said
    assert probe(copied, tmp_path) == (OLD, "\r\nend of what was said\r\n")
    change_the_step(copied)
    found, said = probe(copied, tmp_path)
    assert found == NEW
    assert said.count(SAYS) == 1
    assert compiled_under(copied / "__pycache__") == {"plants.window", "laws.link"}


@pytest.mark.slow
def test_a_log_has_one_line_on_what_is_compiled_or_none_where_none_is_wanted(copied, tmp_path):
    cache = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    said = said_in_a_log(copied, tmp_path, **cache)
    assert said.startswith(SAYS) and said.endswith("later runs start at once\n") and said.count("\n") == 1
    assert said_in_a_log(copied, tmp_path, **cache) == ""
    assert said_in_a_log(copied, tmp_path, NUMBA_CACHE_DIR=str(tmp_path / "other"), NETCTRL_QUIET="1") == ""


@pytest.mark.slow
def test_where_the_package_cannot_be_written_it_is_the_users_cache(copied, tmp_path):
    (copied / "__pycache__").write_text("a file, where a folder would have to be made", encoding="utf-8")
    cache = tmp_path / "cache"
    assert probe(copied, tmp_path, XDG_CACHE_HOME=str(cache))[0] == OLD
    change_the_step(copied)
    assert probe(copied, tmp_path, XDG_CACHE_HOME=str(cache))[0] == NEW
    assert compiled_under(cache / "netctrl") == {"plants.window", "laws.link"}


@pytest.mark.slow
def test_numbas_own_variable_is_followed_and_broken_files_are_made_again(copied, tmp_path):
    cache = tmp_path / "chosen"
    assert probe(copied, tmp_path, NUMBA_CACHE_DIR=str(cache))[0] == OLD
    assert compiled_under(cache / "netctrl") == {"plants.window", "laws.link"}
    assert not (copied / "__pycache__").exists() or compiled_under(copied / "__pycache__") == set()
    for file in cache.rglob("*.nb?"):
        file.write_bytes(file.read_bytes()[:40])
    found, said = probe(copied, tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert found == OLD
    assert said.count(SAYS) == 1


@pytest.mark.slow
def test_a_process_waits_for_another_that_compiles_the_same_kernels(copied, tmp_path):
    """Another process, here this one, has the lock while it compiles: then its code is loaded, not compiled again."""
    done, waiting = tmp_path / "done", tmp_path / "waiting"
    probe(copied, tmp_path, NUMBA_CACHE_DIR=str(done))
    (compiled,) = {file.parent for file in done.rglob("*.nbi") if file.parent.name.startswith("plants.window-")}
    folder = waiting / compiled.relative_to(done)
    folder.parent.mkdir(parents=True)
    lock = folder.with_name(f"{folder.name}.lock")
    with lock.open("w") as mine, ThreadPoolExecutor(1) as pool:
        fcntl.flock(mine, fcntl.LOCK_EX)
        found = pool.submit(probe, copied, tmp_path, NUMBA_CACHE_DIR=str(waiting))
        while not found.done() and opened_by_others(lock) == 0:
            time.sleep(0.05)
        shutil.copytree(done, waiting, dirs_exist_ok=True)
        fcntl.flock(mine, fcntl.LOCK_UN)
        assert found.result() == (OLD, "\r\nend of what was said\r\n")


def opened_by_others(file: Path) -> int:
    """In how many other processes of this user a file is open."""
    count = 0
    for link in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):
            count += link.parts[2] != str(os.getpid()) and link.readlink() == file
    return count


def test_laws_of_another_package_are_known_by_their_content(tmp_path, monkeypatch):
    """Wherever a package is installed, its kernels have the same key; a changed law gives another."""
    kernels = next(path for path in KERNELS if jit._source(path).laws)
    keys = []
    for place, text in (("one", "a = 1"), ("other", "a = 1"), ("changed", "a = 2")):
        law = tmp_path / place / "law.py"
        law.parent.mkdir()
        law.write_text(text, encoding="utf-8")
        monkeypatch.setattr(jit.Registry, "outside_files", lambda _, law=law: [law])
        keys.append(jit.key_of.__wrapped__(kernels))
    assert keys[0] == keys[1] != keys[2]


@pytest.mark.slow
def test_where_nothing_can_be_written_each_process_compiles(copied, tmp_path):
    (copied / "__pycache__").write_text("", encoding="utf-8")
    (tmp_path / ".cache").write_text("", encoding="utf-8")
    found, said = probe(copied, tmp_path)
    assert found == OLD
    assert "NUMBA_CACHE_DIR" in said


def test_a_folder_that_can_only_be_read_is_used(monkeypatch, tmp_path):
    own, user = tmp_path / "own", tmp_path / "user"
    monkeypatch.setattr(jit, "places", lambda: [own, user])
    monkeypatch.setattr(jit, "_can_be_written", lambda _: False)
    assert jit.cache_root.__wrapped__() is None
    own.mkdir()
    assert jit.cache_root.__wrapped__() == own


def test_old_folders_go(tmp_path):
    function = importlib.import_module("netctrl.laws.link").backlog_step.py_func
    for number in range(jit.KEPT + 2):
        (tmp_path / f"laws.link-{number}.lock").touch()
        old = tmp_path / f"laws.link-{number}"
        old.mkdir()
        os.utime(old, (number, number))
    (tmp_path / "laws.link_other-0").mkdir()
    jit._Folder(function, tmp_path).ensure_cache_path()
    old = {f"laws.link-{number}" for number in range(3, jit.KEPT + 2)}
    kept = old | {f"laws.link-{jit.key_of(Path(function.__code__.co_filename))}", "laws.link_other-0"}
    assert {path.name for path in tmp_path.iterdir()} == kept | {f"{name}.lock" for name in old}


def test_every_kernel_is_compiled_by_netctrls_own_decorator():
    using = (path for path in PACKAGE.rglob("*.py") if "from numba" in path.read_text(encoding="utf-8"))
    direct = [path for path in using if "njit" in numba_names(path)]
    assert direct == []
    assert len(KERNELS) > 30


def numba_names(path: Path) -> set[str]:
    """What a file imports from numba."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    imports = (node for node in nodes if isinstance(node, ast.ImportFrom) and node.module == "numba")
    return {alias.name for node in imports for alias in node.names}


@pytest.mark.slow
def test_a_key_sees_all_that_a_kernel_imports():
    """The library finds imports by a pattern; here by Python's own parser."""
    missed = []
    for path in KERNELS:
        missed += [f"{path}: {each}" for each in imported(path) - set(jit.sources(path))]
    assert missed == []


def imported(path: Path) -> set[Path]:
    """A file, and all of netctrl's that it imports at module level, directly or through others."""
    found: set[Path] = set()
    ahead = [path]
    while ahead:
        file = ahead.pop()
        if file in found:
            continue
        found.add(file)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            match node:
                case ast.Import(names=names):
                    said = [alias.name for alias in names]
                case ast.ImportFrom(module=str(module), names=names, level=0):
                    said = [module, *(f"{module}.{alias.name}" for alias in names)]
                case ast.ImportFrom():
                    pytest.fail(f"{file}, line {node.lineno}: a relative import, which keys of kernels do not see")
                case _:
                    said = []
            ahead += [each for name in said if (each := file_of(name)) is not None]
    return found


def file_of(name: str) -> Path | None:
    """The file of a module of netctrl; None for others, and for names in a module."""
    if not name.startswith("netctrl."):
        return None
    file = PACKAGE.joinpath(*name.split(".")[1:]).with_suffix(".py")
    return file if file.is_file() else None


def test_a_part_of_a_kernel_is_called_from_compiled_code_only():
    """A call from Python would end the process: Numba jumps to a wrapper that was not compiled."""

    @jit.njit(**jit.INSIDE)
    def double(x):
        return 2.0 * x

    @jit.njit
    def kernel(x):
        return double(x)

    for _ in range(2):
        assert kernel(3.0) == 6.0
        with pytest.raises(TypeError, match=r"double\(\) is a part of a kernel"):
            double(3.0)
