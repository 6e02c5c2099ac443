"""Numba's `njit` with a disk cache that is invalidated when any source compiled into a kernel changes.

Numba's own cache checks only the kernel's file, not the files whose functions and constants are compiled into it. Here
the name of a kernel's folder contains a hash of all that the compiled code depends on: the kernel's file, every netctrl
file that it imports, directly or not, the laws in the registries that it reads (those of other packages too), and the
versions of Python, NumPy, Numba and llvmlite. The folders are in NUMBA_CACHE_DIR if it is set, else in the package's
`__pycache__`; if that cannot be written, in the user's cache (XDG_CACHE_HOME). Where neither can be written, code that
is already in the first is used.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import re
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from types import FunctionType
from typing import IO, Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.compiler_lock import global_compiler_lock

from netctrl.core.errors import NetctrlError
from netctrl.core.files import user_cache
from netctrl.core.register import KERNEL_LAWS, Registry

PACKAGE = Path(__file__).parents[1]
config: Any = numba_config  # type checkers don't see attributes that are set on loading
KEPT = 6
"""Number of folders kept for each file of kernels; older sources or versions are removed first."""
LONGEST_WAIT, LOOK_AGAIN = 300.0, 0.05
"""How long a process waits for another one to compile a kernel, and the time between two looks [s]."""

INSIDE: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of a part of a kernel that allocates nothing and that only compiled code calls.

Without reference counts: with them each table is counted up and down wherever a function takes it out of its tuple,
which made kernels some 50 times slower. Without the wrappers through which Python would call it: unpacking a kernel's
tables in each of them took 30 % of compiling.
"""
INLINED: dict[str, Any] = INSIDE | {"forceinline": True}
"""The same, of a part that LLVM puts in place of each call."""

_VERSIONS = (platform.python_implementation(), sys.version, np.__version__, numba.__version__, llvmlite.__version__)
_REFUSED = re.compile(r"\x1b\[[0-9;]*m|^.*Failed in \w+ mode pipeline.*$", re.MULTILINE)
_REGISTERED = re.compile(rb"^from netctrl\.core\.register import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+netctrl\.([\w.]+)", re.MULTILINE)


def njit(function: Any = None, *, cache: bool = False, **options: Any) -> Any:
    """`numba.njit`; with `cache=True` a change of any function or constant that is compiled in is noticed.

    Only functions of netctrl are kept on disk: the imports of other packages are not tracked.
    """

    def compiled(function: FunctionType) -> Any:
        dispatcher = numba.njit(**options)(function)
        if not config.DISABLE_JIT and not _is_ours(function) and Path(function.__code__.co_filename).is_file():
            _refuse_in_a_line(dispatcher, function)
        if options.get("no_cpython_wrapper") and not config.DISABLE_JIT:
            _keep_from_python(dispatcher)
        if cache and not config.DISABLE_JIT and _is_ours(function) and cache_root() is not None:
            dispatcher._cache = _Cache(function)
            _compile_once(dispatcher)
        return dispatcher

    return compiled if function is None else compiled(function)


def _refuse_in_a_line(dispatcher: Any, function: FunctionType) -> None:
    """What Numba can't compile of another package, such as its law, is one line with the file, not pages."""
    compile_ = dispatcher.compile

    def compile_or_refuse(signature: Any) -> Any:
        try:
            return compile_(signature)
        except NetctrlError:
            raise  # of a function that it calls
        except Exception as error:  # Numba raises others than its own, without a line
            said = _REFUSED.sub("", str(error)).strip()
        file, first = function.__code__.co_filename, function.__code__.co_firstlineno
        line = re.search(rf" at {re.escape(file)} \((\d+)\)", said)
        laws = [f"{each.what} {name}" for each in KERNEL_LAWS.values() for name in each.outside_in(Path(file))]
        where = f"{file}, line {line[1] if line else first}, in {function.__name__}: {said.partition(chr(10))[0]}"
        raise NetctrlError(f"{', '.join(laws) or 'code of another package'} can't be compiled: {where}")

    dispatcher.compile = compile_or_refuse


def _keep_from_python(dispatcher: Any) -> None:
    """A call from Python is an error; Numba would jump to a wrapper that isn't there."""

    def add_overload(compiled: Any) -> None:
        dispatcher.overloads[tuple(compiled.signature.args)] = compiled

    def refuse(*_: Any, **__: Any) -> None:
        raise TypeError(f"{dispatcher.__name__}() is a part of a kernel, which only compiled code calls")

    dispatcher.add_overload, dispatcher._compile_for_args = add_overload, refuse


def _compile_once(dispatcher: Any) -> None:
    """Of several processes that need a kernel one compiles it; the others wait, then load what it kept."""
    load_or_compile, folder = dispatcher.compile, Path(dispatcher._cache.cache_path)

    def compile_alone(signature: Any) -> Any:
        # One thread of a process at a time, so that the processes' locks are taken in the order of imports, which form
        # no circle: none waits for another one that waits for it.
        with global_compiler_lock:
            if folder in _locked:
                return load_or_compile(signature)
            lock = _lock(folder)
            _locked.add(folder)
            try:
                return load_or_compile(signature)
            finally:
                _locked.remove(folder)
                if lock is not None:
                    lock.close()

    dispatcher.compile = compile_alone


_locked: set[Path] = set()
"""Folders of kernels for which this process has the lock."""


def _lock(folder: Path) -> IO[str] | None:
    """Lock of a folder of kernels, which ends when it is closed or its process ends.

    None, so that this process compiles for itself: where files can't be locked, as on Windows or in a folder that can
    only be read, and after `LONGEST_WAIT`.
    """
    try:
        flock, file = import_module("fcntl"), folder.with_name(f"{folder.name}.lock").open("w")
    except (ImportError, OSError):
        return None
    until = time.monotonic() + LONGEST_WAIT
    while True:
        try:
            flock.flock(file, flock.LOCK_EX | flock.LOCK_NB)
            return file
        except BlockingIOError:
            if time.monotonic() > until:
                break
            time.sleep(LOOK_AGAIN)
        except OSError:
            break
    file.close()
    return None


def by_number(functions: Mapping[int, Any], arguments: str, otherwise: str = "None", **options: Any) -> Any:
    """Compiled f(number, *arguments): what the function of that number returns, and `otherwise` for other numbers.

    Numba does not inline calls through a table of functions, so the source of a chain of branches is generated here.
    """
    lines = [f"def act(number, {arguments}):"]
    for number in functions:
        lines += [f"    if number == {number}:", f"        return f{number}({arguments})"]
    names = {f"f{number}": function for number, function in functions.items()}
    exec("\n".join([*lines, f"    return {otherwise}"]), names)
    return njit(names["act"], **options)


def _is_ours(function: Any) -> bool:
    return Path(function.__code__.co_filename).is_relative_to(PACKAGE)


class _Source(NamedTuple):
    digest: bytes
    imports: frozenset[Path]
    laws: tuple[str, ...]
    """Registries that the file reads, with laws of other packages: keys of KERNEL_LAWS."""


@cache
def _source(path: Path) -> _Source:
    """Hash of a file, and the netctrl files that it imports anywhere. Importing a package counts all of its files."""
    code = path.read_bytes()
    imports: set[Path] = set()
    for name in set(_IMPORT.findall(code)):
        target = PACKAGE.joinpath(*name.decode().split("."))
        module = target.with_suffix(".py")
        imports.update([module] if module.is_file() else target.glob("*.py"))
    read = {name for names in _REGISTERED.findall(code) for name in re.findall(r"\w+", names.decode())}
    laws = tuple(name for name in KERNEL_LAWS if name in read)
    for each in laws:
        imports.update(PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in KERNEL_LAWS[each].our_modules())
    return _Source(hashlib.sha256(code).digest(), frozenset(imports), laws)


def sources(path: Path) -> list[Path]:
    """A file of kernels and all netctrl files that it imports, directly or through others, sorted."""
    found: set[Path] = set()
    ahead = {path}
    while ahead:
        found |= ahead
        ahead = {each for path in ahead for each in _source(path).imports} - found
    return sorted(found)


@cache
def key_of(path: Path) -> str:
    """Hash of what the compiled code of a file's kernels depends on: its sources and the compiler's versions."""
    digest = hashlib.sha256(repr(_VERSIONS).encode())
    for each in sources(path):
        digest.update(each.relative_to(PACKAGE).as_posix().encode() + b"\0" + _source(each).digest)
    for each in _outside(path):
        # Without its folder: an installation elsewhere compiles to the same code.
        digest.update(each.name.encode() + b"\0" + _source(each).digest)
    digest.update(repr([laws.usable() for laws in _read(path)]).encode())  # only these have numbers in a kernel
    return digest.hexdigest()[:16]


def _outside(path: Path) -> list[Path]:
    """Files of other packages whose laws are compiled into this file's kernels."""
    return sorted({file for laws in _read(path) for file in laws.outside_files()})


def _read(path: Path) -> list[Registry]:
    """Registries that this file's kernels read."""
    return [KERNEL_LAWS[name] for name in sorted({name for each in sources(path) for name in _source(each).laws})]


def _unchanged(path: Path) -> bool:
    """Whether the files on disk are still those from which the key was computed."""
    files = (*sources(path), *_outside(path))
    return all(hashlib.sha256(each.read_bytes()).digest() == _source(each).digest for each in files)


def places() -> list[Path]:
    """Folders in which compiled code may be kept, in order of preference; none is created."""
    own = Path(config.CACHE_DIR) / "netctrl" if config.CACHE_DIR else PACKAGE / "__pycache__" / "kernels"
    user = user_cache()
    return [own] if user is None else [own, user / "kernels"]


def compiled_files() -> dict[str, bool]:
    """Files with cached kernels -> whether code compiled from today's sources is on disk."""
    kept = {folder.name for place in places() for folder in place.glob("*") if any(folder.glob("*.nbi"))}
    files = {path: path.read_bytes() for path in sorted(PACKAGE.rglob("*.py"))}
    kernels = [
        path for path, code in files.items() if b"from netctrl.core.jit import" in code and b"cache=True" in code
    ]
    names = {path: ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in kernels}
    return {name: f"{name}-{key_of(path)}" in kept for path, name in names.items()}


@cache
def cache_root() -> Path | None:
    """Folder of compiled code: the first that can be written; else one that can only be read, as inside netctrl's
    kernel; None: each process compiles anew."""
    own, *others = places()
    if _can_be_written(own):
        return own
    user = others[0] if others else None
    if user is not None and _can_be_written(user) and _is_own(user):
        return user
    return own if own.is_dir() and (_is_own(own) or _is_packages(own)) else None


def _is_own(folder: Path) -> bool:
    """Whether a folder belongs to this user, since its code is executed; on Windows user folders are private anyway."""
    return not hasattr(os, "geteuid") or folder.stat().st_uid == os.geteuid()


def _is_packages(folder: Path) -> bool:
    """Whether a folder belongs to the owner of the package, whose code is executed anyway."""
    return folder.stat().st_uid == PACKAGE.stat().st_uid


def _can_be_written(folder: Path) -> bool:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


class _Folder:
    """Folder of the kernels of one file: what Numba calls a cache locator."""

    def __init__(self, function: FunctionType, root: Path) -> None:
        self._py_file = function.__code__.co_filename  # named by Numba's warnings
        self.source = Path(self._py_file)
        self.module = ".".join(self.source.relative_to(PACKAGE).with_suffix("").parts)
        self.path = root / f"{self.module}-{key_of(self.source)}"

    def get_cache_path(self) -> str:
        return str(self.path)

    def get_source_stamp(self) -> str:
        return key_of(self.source)

    def ensure_cache_path(self) -> None:
        """Create the folder; the process that creates it removes this file's oldest folders."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            return
        folders = (each for each in self.path.parent.glob(f"{self.module}-*") if each.is_dir())
        for old in sorted(folders, key=lambda each: each.stat().st_mtime_ns)[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)
            old.with_name(f"{old.name}.lock").unlink(missing_ok=True)


class _Files(CompileResultCacheImpl):
    """Names and content of a kernel's cache files: Numba's, in another folder."""

    def __init__(self, function: FunctionType) -> None:
        root = cache_root()
        if root is None:
            raise ValueError("cache_root() is None: this kernel cannot be kept")
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Folder(function, root)
        self._filename_base = f"{function.__qualname__}-{self._lineno}"


class _Cache(FunctionCache):
    """Numba's cache of a kernel; a disk error makes it compile the kernel instead of failing."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Compiled code for this signature, or None where no readable file exists."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file cut short by a crash or a full disk can make pickle raise anything
            shutil.rmtree(self.cache_path, ignore_errors=True)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save compiled code, unless an upgrade or an edit has changed its source files in the meantime."""
        with suppress(OSError):
            if _unchanged(self._impl.locator.source):
                super().save_overload(sig, data)


class _Announcement(event.Listener):
    """Says once on stderr that kernels are being compiled, and on a terminal at exit how long that took."""

    def __init__(self) -> None:
        self.depth = self.kernels = 0
        self.began = self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        """A compilation begins, possibly inside another one."""
        if self.depth == 0 and _is_ours(event.data["dispatcher"].py_func):
            if self.kernels == 0 and _speaks():
                if sys.stderr.isatty():
                    atexit.register(self.conclude)
                sys.stderr.write(
                    "netctrl: compiling kernels for this machine, once after an installation or upgrade: some 12 s "
                    "for a fluid, a minute or two for packets; later runs start at once\n"
                )
                sys.stderr.flush()
            self.kernels += 1
            self.began = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """A compilation has ended or failed."""
        self.depth -= 1
        if self.depth == 0 and _is_ours(event.data["dispatcher"].py_func):
            self.seconds += time.perf_counter() - self.began

    def conclude(self) -> None:
        """Print the last line: how long compiling took, and where the result is kept."""
        root = cache_root()
        kept = f"kept in {root}" if root else "not kept: set NUMBA_CACHE_DIR to a folder that can be written"
        sys.stderr.write(f"netctrl: compiling kernels took {self.seconds:.1f} s; {kept}\n")


def _speaks() -> bool:
    """Whether this process says it: the main one or its first worker does, unless NETCTRL_QUIET is set."""
    from multiprocessing import current_process

    name = current_process().name
    first = name == "MainProcess" or name.endswith("-1")
    return first and sys.stderr is not None and not os.environ.get("NETCTRL_QUIET")


event.register("numba:compile", _Announcement())
