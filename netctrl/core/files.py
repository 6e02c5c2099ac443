"""Safe reading and writing of files: bounded in size, and atomic."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netctrl.core.errors import FileError, InvalidValue

_FLAGS = ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY", "O_NOINHERIT")  # of POSIX and Windows
_READ = os.O_RDONLY | sum(getattr(os, name, 0) for name in _FLAGS)


def checked_path(path: object) -> Path:
    """The path of a file; InvalidValue for a value that isn't a path."""
    if not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes) or "\0" in os.fspath(path):
        raise InvalidValue("path", path, "the name of a file, as text or a pathlib.Path")
    return Path(path)


def beside(path: str | os.PathLike[str], name: str) -> Path:
    """Path of a file named in another file: relative to that file's folder unless absolute."""
    return Path(path).parent / name


def read_bounded(path: str | os.PathLike[str], most: int, too_large: str) -> bytes:
    """A file's content of at most `most` bytes; FileError with the text `too_large`, or why it can't be read."""
    with opened(checked_path(path)) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise FileError(path, too_large)
    return content


def sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's content; FileError where it can't be read."""
    with opened(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def opened(
    path: str | os.PathLike[str], buffer_bytes: int = io.DEFAULT_BUFFER_SIZE
) -> Generator[io.BufferedReader[Any]]:
    """A file open for reading, or a pipe such as /dev/stdin; never a file whose reading could block or never end.

    Raises
    ------
    FileError
        It can't be opened or read, or is a folder, device, socket or named pipe.
    """
    try:
        handle = os.open(path, _READ)  # O_NONBLOCK, since a named pipe would wait here for a writer
    except OSError as error:
        raise FileError(path, f"can't be read: {error.strerror}") from None
    except ValueError:  # a zero byte in the name
        raise FileError(repr(path), "can't be read: not a valid file name") from None
    try:
        with io.BufferedReader(io.FileIO(handle), buffer_bytes) as file:
            mode = os.fstat(handle).st_mode
            if stat.S_ISDIR(mode):
                raise FileError(path, "can't be read: Is a directory")
            named = os.path.lexists(os.path.realpath(path))  # the pipe behind /dev/stdin has no path
            if not stat.S_ISREG(mode) and not (stat.S_ISFIFO(mode) and not named):
                raise FileError(path, "can't be read: it is a named pipe, a socket or a device, not a file")
            if hasattr(os, "O_NONBLOCK"):
                os.set_blocking(handle, True)
            yield file
    except FileError:
        raise
    except OSError as error:
        raise FileError(path, f"can't be read: {error.strerror or error}") from None


def check_writable(path: str | os.PathLike[str]) -> None:
    """FileError where `write_atomically` could not write, as far as this is known without trying."""
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileError(path, "it is a folder")
    if not target.parent.is_dir():
        raise FileError(path, f"there is no folder {target.parent}")
    if not os.access(target.parent if target.is_file() or not target.exists() else target, os.W_OK):
        raise FileError(path, "permission denied")


def made_folder(field: str, path: str | os.PathLike[str]) -> Path:
    """A folder, made where it doesn't exist; InvalidValue names the field where it can't be."""
    from netctrl.core.errors import InvalidValue

    folder = Path(path).absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidValue(field, str(path), f"a folder that can be written (here: {error.strerror})") from None
    return folder


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Write to a temporary file in the same folder and rename it; an error leaves the old file and nothing else.

    Raises
    ------
    FileError
        The file can't be written.
    """
    target = Path(os.path.realpath(path))  # follow a symbolic link, which stays
    temporary = None
    try:
        if target.exists() and not target.is_file():  # never replace a folder or a device such as /dev/null
            target.write_bytes(content)
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(_rights(target))  # mkstemp creates private files
        Path(temporary).replace(target)
    except BaseException as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise FileError(path, f"can't be written: {error.strerror}") from None
        raise


def _rights(target: Path) -> int:
    """Permissions of the existing file, or those that open() would give a new one."""
    if target.exists():
        return stat.S_IMODE(target.stat().st_mode)
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def user_cache() -> Path | None:
    """netctrl's folder in the user's cache, after the XDG Base Directory Specification; None where there is none."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:  # no HOME, and the user has no entry in the password database
            return None
    return base / "netctrl"
