"""Building the kernel as a program of the user, into the user's cache.

A kernel is kept in a folder named by its version and a hash of the source, the configuration and the compiler: `linux`,
its `config`, and `kernel.json` with the SHA-256 of the program. A build that fails or is killed leaves its objects, and
the next one of the same source, configuration and compiler goes on with them. Objects of an own tree, or with files
added, are kept, so that only what has changed is compiled again. The guest's first process, the program
that starts a kernel and the library loaded before it are compiled apart, in seconds.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from netctrl.core.errors import NetctrlError
from netctrl.core.files import sha256, user_cache
from netctrl.kernel.config import HZ, OPTIONAL, fragment, not_kept, read_config, root_kconfig
from netctrl.kernel.source import Source, find_source, overlay, read_added, read_version, unpack

CHOICE = "NETCTRL_KERNEL"
"""Environment variable: version or folder of the kernel to use, instead of the newest."""
_TOOLS = {"gcc": "gcc", "make": "make", "flex": "flex", "bison": "bison", "bc": "bc", "ld": "binutils"}
_HEADERS = {"libelf.h": "libelf-dev"}
_PROBE_S, _MAKE_S, _GUEST_S = 20.0, 4 * 3600.0, 300.0
_EXPECTED_STEPS = 800
_LAST_LINES = 12
_KEPT = 4  # kernels of one version with files added; folders of objects
_SHARE_UNPACKED = 0.1
_SETTINGS = {"LC_ALL": "C", "MAKEFLAGS": "", "KBUILD_BUILD_TIMESTAMP": "1970-01-01", "KBUILD_BUILD_USER": "netctrl"}
_SETTINGS |= {"KBUILD_BUILD_HOST": "netctrl", "KBUILD_BUILD_VERSION": "1"}  # of a resumed build too

Progress = Callable[[str, float], None]


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """A built kernel."""

    version: str
    """As `uname -r` says, and `+NAME` for each C file that was added."""
    sha256: str
    """Of the program."""
    source: str
    """Name of the tree or tarball, and of files that were added, with the beginnings of their SHA-256."""
    compiler: str
    """First line of what the compiler says of itself."""
    absent: tuple[str, ...]
    """Options of the configuration that this version doesn't have."""
    build_s: float
    """Wall time of the build [s]."""
    folder: str = ""
    """Where it is; not in the file."""

    @property
    def program(self) -> Path:
        """The kernel as a program."""
        return Path(self.folder) / "linux"


class Guest(NamedTuple):
    """Programs for the inside of a kernel, and for what it asks of the host."""

    first_process: Path
    """Carries out a plan; needs no library, so that nothing else of the machine decides what it does."""
    launcher: Path
    """Starts a kernel that ends with its parent, and sees the host's files read-only."""
    preload: Path
    """Library that answers getrandom(2) from a seed, and sets all of the host's registers by ptrace(2)."""


def missing_tools() -> str | None:
    """What a build lacks here, with the command that installs it; None: nothing."""
    packages = [package for tool, package in _TOOLS.items() if shutil.which(tool) is None]
    if "gcc" not in packages:
        packages += [package for header, package in _HEADERS.items() if not _has_header(header)]
    if not packages:
        return None
    return f"tools to build a kernel: `apt-get install {' '.join(packages)}`"


def _has_header(header: str) -> bool:
    made = subprocess.run(
        ["gcc", "-E", "-xc", "-"],
        input=f"#include <{header}>\n",
        capture_output=True,
        text=True,
        timeout=_PROBE_S,
        check=False,
    )
    return made.returncode == 0


def kernels() -> list[Kernel]:
    """Built kernels in the user's cache: first those with files added, then by version, then by when they were built or
    asked for."""
    found = []
    for folder in _cache("linux").glob("*/kernel.json"):
        try:
            kernel = msgspec.json.decode(folder.read_bytes(), type=Kernel)
        except (OSError, msgspec.MsgspecError):
            continue
        if (folder.parent / "linux").is_file():
            found.append((folder.stat().st_mtime_ns, msgspec.structs.replace(kernel, folder=str(folder.parent))))
    found.sort(key=lambda each: ("+" not in each[1].version, _numbers(each[1].version), each[0]))
    return [kernel for _, kernel in found]


def chosen_kernel(choice: str | None = None) -> Kernel:
    """The kernel to run: of this version or folder, or NETCTRL_KERNEL's, or the newest without files added.

    Raises
    ------
    NetctrlError
        None is built, or none of this version.
    """
    found = kernels()
    choice = choice or os.environ.get(CHOICE) or None
    if not found:
        raise NetctrlError("no kernel is built yet: `netctrl kernel build`")
    if choice is None:
        return found[-1]
    fitting = [each for each in found if choice in (each.version, each.folder) or each.version.startswith(f"{choice}.")]
    if not fitting:
        versions = ", ".join(each.version for each in found)
        raise NetctrlError(f"no kernel {choice} is built: there are {versions}; `netctrl kernel build` adds one")
    return fitting[-1]


def build_kernel(
    given: str | os.PathLike[str] | None = None,
    *,
    add: Iterable[str | os.PathLike[str]] = (),
    jobs: int = 1,
    progress: Progress | None = None,
) -> Kernel:
    """Build a kernel, or find the one that was built of the same source, configuration and compiler.

    Parameters
    ----------
    given : path, optional
        Tree or tarball; by default the newest of Debian's `linux-source` packages. A tree is not written to.
    add : iterable of path, optional
        Own C files that are built in, such as a congestion control or a queueing discipline, and their headers
        (`netctrl.kernel.source.read_added`).
    jobs : int
        How many processes compile; -1: one for each core.
    progress : callable, optional
        Called with what is being done and the share done, from 0 to 1.

    Raises
    ------
    NetctrlError
        No source, a missing tool, or a build that fails, with the compiler's last lines.
    """
    source, added = find_source(given), read_added(add)
    missing = missing_tools()
    if missing is not None:
        raise NetctrlError(f"this machine has no {missing}")
    compiler = _first_line(["gcc", "--version"])
    settings = fragment() + str(HZ), compiler
    key = _key(source.stamp, *settings, *(f"{name} {_sha256(content)}" for name, content in added.items()))
    cache, tree = _cache("linux"), source.path.is_dir()
    objects = cache / f"objects-{_key(str(source.path) if tree else source.stamp, *settings)}"
    work = objects if added or tree else cache / f"building-{key}"
    with _alone(cache):
        for left in set(cache.glob("building-*")) - {work}:
            shutil.rmtree(left, ignore_errors=True)
        for kernel in kernels():
            if kernel.folder.endswith(key):
                os.utime(Path(kernel.folder) / "kernel.json")
                return kernel
        count = len(os.sched_getaffinity(0)) if jobs == -1 else jobs
        kernel = _built(source, added, compiler, key, work, count, progress or (lambda *_: None))
        if work == objects:
            os.utime(work)
            _keep_newest(cache.glob("objects-*"))
            _keep_newest(Path(each.folder) for each in kernels() if added and each.version == kernel.version)
        else:
            shutil.rmtree(work, ignore_errors=True)
        return kernel


def _keep_newest(folders: Iterable[Path]) -> None:
    for each in sorted(folders, key=lambda folder: folder.stat().st_mtime_ns)[:-_KEPT]:
        shutil.rmtree(each, ignore_errors=True)


def _built(
    source: Source, added: Mapping[str, bytes], compiler: str, key: str, work: Path, jobs: int, progress: Progress
) -> Kernel:
    """In a folder, with the objects that an earlier build has left there."""
    begin = time.monotonic()
    made = work / "made"
    made.mkdir(parents=True, exist_ok=True)
    tree = source.path
    if not tree.is_dir():
        tree = _unpacked(tree, work, progress)
    if work.name.startswith("objects-"):
        overlay(tree, work / "with", added, made)
        tree = work / "with"
    version = read_version(tree) + "".join(f"+{Path(name).stem}" for name in added if name.endswith(".c"))
    (made / "Kconfig.netctrl").write_text(root_kconfig((tree / "Kconfig").read_text(encoding="utf-8")))
    make = ["make", "-C", str(tree), "ARCH=um", f"O={made}", f"KBUILD_KCONFIG={made / 'Kconfig.netctrl'}"]
    if not (made / "linux").exists():  # else it has these options already
        _make([*make, "tinyconfig"])
        with (made / ".config").open("a", encoding="utf-8") as file:
            file.write(fragment())
    _make([*make, "olddefconfig"])
    config = (made / ".config").read_text(encoding="utf-8")
    on = read_config(config)
    lost = not_kept(on) + ([] if f"CONFIG_HZ={HZ}\n" in config else ["HZ"])
    if lost:
        raise NetctrlError(f"Linux {version} doesn't take these options: {', '.join(lost)}; use 6.1 to 7.2")
    steps = sum(1 for _ in made.rglob("*.o"))

    def step(line: str) -> None:
        nonlocal steps
        steps += line.startswith("  CC")
        share = min(steps / _EXPECTED_STEPS, 1.0)
        progress(f"compiling Linux {version}", _SHARE_UNPACKED + (1.0 - _SHARE_UNPACKED) * share)

    _make([*make, f"-j{jobs}", "linux"], step)
    kept = work / "kept"
    kept.mkdir(exist_ok=True)
    shutil.copyfile(made / "linux", kept / "linux")
    (kept / "linux").chmod(0o755)
    shutil.copyfile(made / ".config", kept / "config")
    kernel = Kernel(
        version=version,
        sha256=sha256(kept / "linux"),
        source=" + ".join((source.path.name, *(f"{Path(n).name} {_sha256(c)[:8]}" for n, c in added.items()))),
        compiler=compiler,
        absent=tuple(name for name in OPTIONAL if name not in on),
        build_s=time.monotonic() - begin,
    )
    (kept / "kernel.json").write_bytes(msgspec.json.format(msgspec.json.encode(kernel)))
    place = work.parent / f"{version}-{key}"
    kept.rename(place)
    progress(f"built Linux {version}", 1.0)
    return msgspec.structs.replace(kernel, folder=str(place))


def _unpacked(tarball: Path, work: Path, progress: Progress) -> Path:
    """The tree of a tarball, which an earlier build may have unpacked."""
    place, part = work / "tree", work / "unpacking"
    if not place.is_dir():
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir()
        tree = unpack(tarball, part, lambda share: progress("unpacking", _SHARE_UNPACKED * share))
        tree.rename(place)
        part.rmdir()
    return place


def _make(command: list[str], step: Callable[[str], None] = lambda _: None) -> None:
    """Run make; its error is the last lines of what it said."""
    last: deque[str] = deque(maxlen=400)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=os.environ | _SETTINGS,
    )
    with child:
        for line in child.stdout or ():
            last.append(line.rstrip())
            step(line)
    if child.returncode != 0:
        raise NetctrlError(f"`{' '.join(command[:2])} ... {command[-1]}` failed:\n" + "\n".join(_errors(last)))


def _errors(lines: Iterable[str]) -> list[str]:
    kept = list(lines)
    first = next(
        (number for number, line in enumerate(kept) if re.search(r"error:|not found|can't|No such", line)), None
    )
    shown = kept[-_LAST_LINES:] if first is None else kept[first : first + _LAST_LINES]
    return [f"  {line}" for line in shown]


def build_guest() -> Guest:
    """Compile the guest's programs, or find those compiled of the same source.

    Raises
    ------
    NetctrlError
        No compiler, or it fails.
    """
    return Guest(
        first_process=build_program("guest.c", ("-static", "-pthread")),
        launcher=build_program("launch.c", ("-static",)),
        preload=build_program("preload.c", ("-shared", "-fPIC")),
    )


def toolchain(kernel: Kernel) -> dict[str, str]:
    """What decides on a run's bytes, beside its plan and seed: the kernel, and what compiled it and the guest."""
    return {
        "linux": kernel.version,
        "linux sha256": kernel.sha256,
        "linux source": kernel.source,
        "compiler": kernel.compiler,
        "libc": _first_line(["ldd", "--version"]) if shutil.which("ldd") else "unknown",
        "guest sha256": sha256(build_guest().first_process),
    }


def build_program(source: str, flags: Sequence[str], others: Mapping[str, str] = MappingProxyType({})) -> Path:
    """Compile a program of the guest, or find the one compiled of the same text by the same compiler.

    Parameters
    ----------
    source : str
        File in C or C++, in `netctrl/kernel/guest`.
    flags : sequence of str
        The compiler's.
    others : mapping, optional
        Texts that it includes, by name.

    Raises
    ------
    NetctrlError
        No compiler, or it fails.
    """
    compiler, package = ("gcc", "gcc libc6-dev") if source.endswith(".c") else ("g++", "g++")
    if shutil.which(compiler) is None:
        raise NetctrlError(f"this machine has no {compiler}: `apt-get install {package}`")
    texts = {source: files("netctrl.kernel").joinpath("guest", source).read_text(encoding="utf-8"), **others}
    key = _key(*texts, *texts.values(), *flags, _first_line([compiler, "--version"]))
    place = _cache("guests") / f"{Path(source).stem}-{key}"
    if place.is_file():
        return place
    with tempfile.TemporaryDirectory(prefix="building-", dir=place.parent) as name:
        for file, text in texts.items():
            (Path(name) / file).write_text(text, encoding="utf-8")
        command = [compiler, "-O2", "-Wall", *flags, "-o", "program", source, "-ldl"]
        made = subprocess.run(command, capture_output=True, text=True, timeout=_GUEST_S, check=False, cwd=name)
        if made.returncode != 0:
            said = "\n".join(_errors(made.stderr.splitlines()))
            raise NetctrlError(f"{source} does not compile:\n{said}")
        (Path(name) / "program").rename(place)
    return place


def _first_line(command: list[str]) -> str:
    made = subprocess.run(command, capture_output=True, text=True, timeout=_PROBE_S, check=False)
    return made.stdout.partition("\n")[0]


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _key(*parts: str) -> str:
    return _sha256("\0".join(parts).encode())[:16]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", version))


def _cache(name: str) -> Path:
    """Folder of the user's cache, which only the user can write."""
    base = user_cache()
    if base is None:
        raise NetctrlError("there is no home folder for the cache: set XDG_CACHE_HOME")
    place = base / name
    try:
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NetctrlError(f"{place} can't be made: {error.strerror}; set XDG_CACHE_HOME") from None
    return place


@contextmanager
def _alone(folder: Path) -> Generator[None]:
    """Context that one process has at a time; its lock ends with the process."""
    import fcntl  # of POSIX; where it isn't, the other functions say that there is no kernel

    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
