"""The start of a kernel: what runs inside can't write to the host's files, and it ends with the one that started it."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from linux_support import eventually

from netctrl.kernel.build import build_guest

pytestmark = pytest.mark.needs("compiler")

NOBODY = 65534
ATTACK = """
mount -o remount,rw /
echo inside > {victim}; rm {victim}; chmod 777 {victim}; echo new > {folder}/new
mkdir /run/h; mount -t hostfs none /run/h -o {folder}
echo inside > /run/h/{name}; rm /run/h/{name}; chmod 777 /run/h/{name}; echo new > /run/h/new
echo done
"""


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of the user's, in a folder that anybody may write to, and read by the path to it."""
    folder = tmp_path / "files"
    folder.mkdir()
    for place in (folder, *list(folder.parents)[:-1]):
        if place.stat().st_uid == os.geteuid() and not place.stat().st_mode & 1:
            place.chmod(place.stat().st_mode | 0o011)
    folder.chmod(0o777)
    made = folder / "victim"
    made.write_text("outside\n")
    made.chmod(0o666)
    return made


def _as_it_was(victim: Path) -> None:
    assert [each.name for each in victim.parent.iterdir()] == ["victim"]
    assert victim.read_text() == "outside\n"
    assert stat.S_IMODE(victim.stat().st_mode) == 0o666


def _without_namespaces() -> None:
    """Refuse unshare(2) to this process, by seccomp: x86-64's number 272."""
    rows = ((0x20, 0, 0, 0), (0x15, 0, 1, 272), (0x06, 0, 0, 0x00050001), (0x06, 0, 0, 0x7FFF0000))
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *row) for row in rows))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(rows), ctypes.addressof(code)))
    library = ctypes.CDLL(None, use_errno=True)
    assert library.prctl(38, 1, 0, 0, 0) == 0
    assert library.prctl(22, 2, program, 0, 0) == 0


@pytest.mark.parametrize("user", [{}, {"user": NOBODY, "group": NOBODY, "extra_groups": []}], ids=["self", "nobody"])
@pytest.mark.parametrize("by", ["namespace", "landlock"])
def test_the_launcher_lets_write_to_the_working_folder_only(victim: Path, tmp_path: Path, by: str, user) -> None:
    if user and os.geteuid() != 0:
        pytest.skip("needs root, to become somebody else")
    own = tmp_path / "own"
    own.mkdir()
    own.chmod(0o777)
    launcher = tmp_path / "launch"
    launcher.write_bytes(build_guest().launcher.read_bytes())
    launcher.chmod(0o755)
    code = f"echo own > own; echo memory > /dev/shm/$$ && rm /dev/shm/$$; echo x > {victim}; rm {victim}; "
    code += f"echo new > {victim.parent}/new; [ {by} = landlock ] || chmod 777 {victim}; echo done"
    made = subprocess.run(
        [launcher, str(os.getpid()), "must", "/bin/sh", "-c", code],
        cwd=own,
        capture_output=True,
        text=True,
        preexec_fn=_without_namespaces if by == "landlock" else None,
        timeout=60,
        **user,
    )
    if "can't be made read-only" in made.stderr:
        pytest.skip(f"this machine refuses: {made.stderr.strip()}")
    assert (made.returncode, made.stdout) == (0, "done\n")
    assert (own / "own").read_text() == "own\n"
    assert "/dev/shm" not in made.stderr
    _as_it_was(victim)


def test_what_is_launched_ends_with_its_parent(tmp_path: Path) -> None:
    launcher = build_guest().launcher
    code = (
        f"import os, subprocess; words = [{str(launcher)!r}, str(os.getpid()), 'may', '/bin/sleep', '1000']\n"
        f"print(subprocess.Popen(words, cwd={str(tmp_path)!r}).pid, flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        eventually(lambda: _words(child)[:1] == ["/bin/sleep"])
        parent.kill()
    eventually(lambda: not _words(child))


def _words(pid: int) -> list[str]:
    """Command line of a process; empty once it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")[:-1]
    except (FileNotFoundError, ProcessLookupError):
        return []


@pytest.mark.needs("lab")
def test_root_inside_can_t_write_to_the_host_s_files(victim: Path, tmp_path: Path) -> None:
    from netctrl.kernel.command import run_command

    out = tmp_path / "out"
    out.mkdir()
    attack = ATTACK.format(victim=victim, folder=victim.parent, name=victim.name)
    ended = run_command(["sh", "-c", attack], out)
    assert ended.stdout == "done\n"
    _as_it_was(victim)
    assert {each.name for each in out.iterdir()} == {"plan", "results", "console", "stdout", "stderr"}


@pytest.mark.needs("lab")
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_a_runner_that_is_killed_leaves_no_process(tmp_path: Path, by: int) -> None:
    """The kernel is the leader of a session, of which its helpers and the processes inside are too."""
    code = "echo begun; while :; do :; done"
    runner = subprocess.Popen(
        [sys.executable, "-m", "netctrl", "kernel", "run", "-o", tmp_path, "--", "sh", "-c", code]
    )
    begun = tmp_path / "stdout"
    try:
        eventually(lambda: begun.is_file() and begun.read_text() == "begun\n")
        sessions = {session for parent, session in _processes() if parent == runner.pid}
        assert len(sessions) == 1
        assert sum(session in sessions for _, session in _processes()) >= 2
    finally:
        runner.send_signal(by)
        runner.wait()
    eventually(lambda: not any(session in sessions for _, session in _processes()))


def _processes() -> list[tuple[int, int]]:
    """Parent and session of each process of this machine that hasn't ended."""
    found = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent, _, session = each.read_text().rpartition(")")[2].split()[:4]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if state != "Z":
            found.append((int(parent), int(session)))
    return found
