"""Numba's `njit` for netctrl's kernels: compiled code is kept on disk, and used only for the sources it was made from.

Numba's own cache looks at a kernel's file, not at the files whose functions and constants it has compiled in. Here a
kernel's folder is named after a hash of its file, of every file of netctrl that this one imports, directly or not, of
the laws in registries that it reads, other packages' among them, and of the versions of Python, NumPy, Numba and
llvmlite. The folders stand in the package's `__pycache__`; in the user's cache (XDG_CACHE_HOME) where that cannot be
written; or in NUMBA_CACHE_DIR where it is set.
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
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache

from netctrl.register import KERNEL_LAWS, Registry

__all__ = ["by_number", "key_of", "njit", "sources"]

PACKAGE = Path(__file__).parent
config: Any = numba_config  # its names are made when it is loaded, which type checkers don't see
KEPT = 3
"""Folders that are kept for each file of kernels: what was compiled for other sources or versions, oldest out."""

_VERSIONS = (platform.python_implementation(), sys.version, np.__version__, numba.__version__, llvmlite.__version__)
_REGISTERED = re.compile(rb"^from netctrl\.register import (\([^)]*\)|.*)", re.MULTILINE)
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+netctrl\.([\w.]+)", re.MULTILINE)


def njit(function: Any = None, *, cache: bool = False, **options: Any) -> Any:
    """`numba.njit`, whose `cache=True` sees when any function or constant that is compiled in has changed.

    Only functions of netctrl are kept on disk: what others import is not known here.
    """

    def compiled(function: FunctionType) -> Any:
        dispatcher = numba.njit(**options)(function)
        if cache and not config.DISABLE_JIT and _is_ours(function) and cache_root() is not None:
            dispatcher._cache = _Cache(function)
        return dispatcher

    return compiled if function is None else compiled(function)


def by_number(functions: Mapping[int, Any], arguments: str, **options: Any) -> Any:
    """f(number, ...) with these arguments, compiled: calls the compiled function of that number; for others nothing.

    Numba inlines no calls through a table of functions, so that the text of a chain of branches is made here.
    """
    lines = [f"def act(number, {arguments}):"]
    for number in functions:
        lines += [f"    if number == {number}:", f"        f{number}({arguments})", "        return"]
    names = {f"f{number}": function for number, function in functions.items()}
    exec("\n".join(lines), names)
    return njit(names["act"], **options)


def _is_ours(function: Any) -> bool:
    return Path(function.__code__.co_filename).is_relative_to(PACKAGE)


class _Source(NamedTuple):
    digest: bytes
    imports: frozenset[Path]
    laws: tuple[Registry, ...]
    """Registries that it reads, with laws of other packages."""


@cache
def _source(path: Path) -> _Source:
    """The hash of a file, and the files of netctrl that it imports anywhere. A package means all of its files."""
    code = path.read_bytes()
    imports: set[Path] = set()
    for name in set(_IMPORT.findall(code)):
        target = PACKAGE.joinpath(*name.decode().split("."))
        module = target.with_suffix(".py")
        imports.update([module] if module.is_file() else target.glob("*.py"))
    read = {name for names in _REGISTERED.findall(code) for name in re.findall(r"\w+", names.decode())}
    laws = tuple(registry for name, registry in KERNEL_LAWS.items() if name in read)
    for each in laws:
        imports.update(PACKAGE.parent / f"{name.replace('.', '/')}.py" for name in each.our_modules())
    return _Source(hashlib.sha256(code).digest(), frozenset(imports), laws)


def sources(path: Path) -> list[Path]:
    """A file of kernels and all files of netctrl that it imports, directly or through others, sorted."""
    found: set[Path] = set()
    ahead = {path}
    while ahead:
        found |= ahead
        ahead = {each for path in ahead for each in _source(path).imports} - found
    return sorted(found)


@cache
def key_of(path: Path) -> str:
    """What the compiled code of a file's kernels depends on, as a hash: its sources, and the compiler's versions."""
    digest = hashlib.sha256(repr(_VERSIONS).encode())
    for each in sources(path):
        digest.update(each.relative_to(PACKAGE).as_posix().encode() + b"\0" + _source(each).digest)
    for each in _outside(path):
        digest.update(str(each).encode() + b"\0" + _source(each).digest)
    return digest.hexdigest()[:16]


def _outside(path: Path) -> list[Path]:
    """Files of other packages whose laws are compiled into this file's kernels."""
    read = {laws for each in sources(path) for laws in _source(each).laws}
    return sorted({file for laws in read for file in laws.outside_files()})


def _unchanged(path: Path) -> bool:
    """Whether the files on disk still are those that the key was made from."""
    files = (*sources(path), *_outside(path))
    return all(hashlib.sha256(each.read_bytes()).digest() == _source(each).digest for each in files)


@cache
def cache_root() -> Path | None:
    """Where compiled code is kept: the first folder that can be written; None: nowhere, each process compiles."""
    own = Path(config.CACHE_DIR) / "netctrl" if config.CACHE_DIR else PACKAGE / "__pycache__" / "kernels"
    if _can_be_written(own):
        return own
    user = _user_cache()
    # Compiled code is run: a folder that belongs to somebody else is left alone.
    if user is not None and _can_be_written(user) and user.stat().st_uid == os.geteuid():
        return user
    return None


def _user_cache() -> Path | None:
    """The user's folder for netctrl's kernels, after the XDG Base Directory Specification."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # no HOME, and the user has no entry in the password database
            return None
    return base / "netctrl" / "kernels"


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
        """Make the folder; whoever makes it removes the oldest ones of this file."""
        try:
            self.path.mkdir(parents=True)
        except FileExistsError:
            return
        made = sorted(self.path.parent.glob(f"{self.module}-*"), key=lambda each: each.stat().st_mtime_ns)
        for old in made[:-KEPT]:
            shutil.rmtree(old, ignore_errors=True)


class _Files(CompileResultCacheImpl):
    """Names and content of a kernel's files: Numba's, but for the folder."""

    def __init__(self, function: FunctionType) -> None:
        root = cache_root()
        if root is None:
            raise ValueError("cache_root() is None: this kernel cannot be kept")
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Folder(function, root)
        self._filename_base = f"{function.__qualname__}-{self._lineno}"


class _Cache(FunctionCache):
    """Numba's cache of a kernel. Where the disk fails it costs time: the kernel is compiled."""

    _impl_class = _Files

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What was compiled for this signature; None where there is nothing that can be read."""
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a file that a crash or a full disk has cut short: whatever its content makes pickle raise
            shutil.rmtree(self.cache_path, ignore_errors=True)
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, unless an upgrade or an edit has meanwhile changed the files that it came from."""
        with suppress(OSError):
            if _unchanged(self._impl.locator.source):
                super().save_overload(sig, data)


class _Announcement(event.Listener):
    """Says on a terminal, once, that kernels are compiled, and when the process ends how long that took."""

    def __init__(self) -> None:
        self.depth = self.kernels = 0
        self.began = self.seconds = 0.0

    def on_start(self, event: Any) -> None:
        """A compilation begins, maybe inside another one."""
        if self.depth == 0 and _is_ours(event.data["dispatcher"].py_func):
            if self.kernels == 0 and _speaks():
                atexit.register(self.conclude)
                sys.stderr.write(
                    "netctrl: compiling kernels for this machine, once after an installation or upgrade; "
                    "this takes up to a minute\n"
                )
            self.kernels += 1
            self.began = time.perf_counter()
        self.depth += 1

    def on_end(self, event: Any) -> None:
        """A compilation has ended, or failed."""
        self.depth -= 1
        if self.depth == 0 and _is_ours(event.data["dispatcher"].py_func):
            self.seconds += time.perf_counter() - self.began

    def conclude(self) -> None:
        """The last line: how long it took, and where the result is kept."""
        root = cache_root()
        kept = f"kept in {root}" if root else "not kept: set NUMBA_CACHE_DIR to a folder that can be written"
        sys.stderr.write(f"netctrl: compiling kernels took {self.seconds:.1f} s; {kept}\n")


def _speaks() -> bool:
    """Whether a user would read it: on a terminal, from the process itself or the first of its workers."""
    from multiprocessing import current_process

    name = current_process().name
    return sys.stderr is not None and sys.stderr.isatty() and (name == "MainProcess" or name.endswith("-1"))


event.register("numba:compile", _Announcement())
