"""Source of the Linux kernel: where it is, which version, and unpacking it."""

from __future__ import annotations

import hashlib
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from netctrl.core.errors import NetctrlError

DEBIAN = Path("/usr/src")
REMEDY = "`apt-get install linux-source`, or `--source` with the tree or tarball of a kernel"
_SUFFIXES = (".tar.xz", ".tar.gz", ".tar.bz2", ".tar")
_MOST_BYTES, _MOST_FILES = 8 * 2**30, 500_000
_TCP, _SCHED = "net/ipv4", "net/sched"
_OPEN = (".", "net", _TCP, _SCHED)  # folders in which files can be added
_ADDED = re.compile(r"[A-Za-z]\w*\.[ch]")
_MOST_ADDED = 2**24
_NEEDED = ("Makefile", "arch/um/Makefile")
_OTHERS = re.compile(r"[^/]+/(arch/(?!um/|x86/)[^/]+/|Documentation/)(?!(.*/)?Kconfig[^/]*$)")


class Source(NamedTuple):
    """A kernel's source on this machine."""

    path: Path
    """Folder of the tree, or a tarball."""
    stamp: str
    """Changes when the source does."""


def find_source(given: str | os.PathLike[str] | None = None) -> Source:
    """The source at a path; without one, the newest of Debian's `linux-source` packages.

    Raises
    ------
    NetctrlError
        There is none; the message says how to install one.
    """
    if given is None:
        found = sorted(DEBIAN.glob("linux-source-*.tar.*"), key=_version_in_name)
        if not found:
            raise NetctrlError(f"no source of the Linux kernel is in {DEBIAN}: {REMEDY}")
        return _of_tarball(found[-1])
    path = Path(given).expanduser().absolute()
    if path.is_dir():
        for name in _NEEDED:
            if not (path / name).is_file():
                raise NetctrlError(f"{path} is not a tree of the Linux kernel: it has no {name}")
        if (path / ".config").exists():  # make would take its objects for ours
            raise NetctrlError(f"{path} was built in place: `make mrproper` there, or give a `git worktree` of it")
        return Source(path, _stamp_of_tree(path))
    if not path.is_file():
        raise NetctrlError(f"{path}: no such file or folder; takes the tree or tarball of a kernel")
    if not path.name.endswith(_SUFFIXES):
        raise NetctrlError(f"{path} is not a tarball: takes {', '.join(_SUFFIXES)}, or a folder")
    return _of_tarball(path)


def _version_in_name(path: Path) -> tuple[int, ...]:
    return tuple(int(each) for each in re.findall(r"\d+", path.name))


def _of_tarball(path: Path) -> Source:
    seen = path.stat()
    return Source(path, f"{path.name} {seen.st_size} {seen.st_mtime_ns}")


def _stamp_of_tree(tree: Path) -> str:
    """Hash of the names, sizes and times of all files, so that a change to a queue is seen."""
    digest = hashlib.sha256()
    for row in sorted(_files(tree)):
        digest.update(row.encode())
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if entry.name != ".git":
                    yield from _files(Path(entry.path))
            else:
                seen = entry.stat(follow_symlinks=False)
                yield f"{entry.path} {seen.st_size} {seen.st_mtime_ns}\n"


def read_added(paths: Iterable[str | os.PathLike[str]]) -> dict[str, bytes]:
    """Places in a tree of C files to add, with their contents: a queue's (`sch_*.c`) in net/sched, all others in
    net/ipv4; headers beside each.

    Raises
    ------
    NetctrlError
        No such file, no C file, two of one name, or more than 16 MiB.
    """
    given: dict[str, bytes] = {}
    for path in map(Path, paths):
        if not _ADDED.fullmatch(path.name) or path.name in given:
            raise NetctrlError(f"{path} can't be added: takes files NAME.c and NAME.h, each name once")
        if not path.is_file() or path.stat().st_size > _MOST_ADDED:
            raise NetctrlError(f"{path} can't be added: no file, or one of more than 16 MiB")
        given[path.name] = path.read_bytes()
    folders = {name: _SCHED if name.startswith("sch_") else _TCP for name in given if name.endswith(".c")}
    return {
        f"{folder}/{name}": content
        for name, content in given.items()
        for folder in ([folders[name]] if name in folders else sorted({*folders.values()}))
    }


def overlay(tree: Path, place: Path, added: Mapping[str, bytes], made: Path) -> None:
    """A tree of links to another one, with files added and built in; neither the other one nor what is unchanged here
    is written to, so that make sees what is new.

    Parameters
    ----------
    tree, place : Path
        The other tree, and this one.
    added : mapping
        From `read_added`; a file of the tree with the same place gives way.
    made : Path
        Folder of the objects, from which that of a file goes which is no longer added.
    """
    files = dict(added)
    for folder in (_TCP, _SCHED):
        text = (tree / folder / "Makefile").read_text(encoding="utf-8")
        objects = [f"{Path(name).stem}.o" for name in added if name.startswith(folder) and name.endswith(".c")]
        lines = [f"obj-y += {each}" for each in objects if not re.search(rf"\b{re.escape(each)}\b", text)]
        files[f"{folder}/Makefile"] = "\n".join((text, *lines, "")).encode()
    for folder in _OPEN:
        (place / folder).mkdir(parents=True, exist_ok=True)
        for old in (place / folder).iterdir():
            name = os.path.normpath(old.relative_to(place))
            if old.is_symlink():
                old.unlink()
            elif name not in files and name not in _OPEN:
                old.unlink()
                (made / name).with_suffix(".o").unlink(missing_ok=True)
        for each in (tree / folder).iterdir():
            name = os.path.normpath(each.relative_to(tree))
            if name not in files and name not in _OPEN:
                (place / name).symlink_to(each)
    for name, content in files.items():
        file = place / name
        if not file.is_file() or file.read_bytes() != content:
            file.write_bytes(content)


def read_version(tree: Path) -> str:
    """Version of a tree, such as 6.1.192, from its Makefile."""
    text = (tree / "Makefile").read_text(encoding="utf-8", errors="replace")[:4096]
    found = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(\S*)", text, re.MULTILINE))
    if "VERSION" not in found or "PATCHLEVEL" not in found:
        raise NetctrlError(f"{tree / 'Makefile'} says no version of the kernel")
    numbers = ".".join(found[name] for name in ("VERSION", "PATCHLEVEL", "SUBLEVEL") if found.get(name))
    return numbers + found.get("EXTRAVERSION", "")


def unpack(tarball: Path, folder: Path, progress: Callable[[float], None]) -> Path:
    """Unpack a tarball of a kernel, but for other processors' code and the documentation; returns the tree.

    Raises
    ------
    NetctrlError
        Not the source of a kernel, more than 8 GiB or 500,000 files, or a member outside of the folder.
    """
    total = count = 0
    size = max(tarball.stat().st_size, 1)
    try:
        with tarball.open("rb") as raw, tarfile.open(fileobj=raw, mode="r:*") as archive:
            for member in archive:
                total, count = total + member.size, count + 1
                if total > _MOST_BYTES or count > _MOST_FILES:
                    raise NetctrlError(f"{tarball}: more than 8 GiB or {_MOST_FILES} files")
                if _OTHERS.match(member.name):
                    continue
                _extract(archive, member, folder)
                if count % 500 == 0:
                    progress(raw.tell() / size)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise NetctrlError(f"{tarball} can't be unpacked: {error}") from None
    trees = [each for each in folder.iterdir() if all((each / name).is_file() for name in _NEEDED)]
    if len(trees) != 1:
        raise NetctrlError(
            f"{tarball} is not the source of a Linux kernel: no folder in it has {' and '.join(_NEEDED)}"
        )
    return trees[0]


def _extract(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """A member below the folder; TarError for one that would be, or would link, outside of it, or that is a device."""
    if hasattr(tarfile, "data_filter"):
        archive.extract(member, folder, filter="data")
        return
    root = folder.resolve()  # Python before 3.11.4, as Debian 12's
    reached = [root / member.name]
    if member.issym():
        reached.append((root / member.name).parent / member.linkname)
    elif member.islnk():
        reached.append(root / member.linkname)
    elif not (member.isfile() or member.isdir()):
        raise tarfile.TarError(f"{member.name!r} is neither a file, a folder nor a link")
    if not all(each.resolve().is_relative_to(root) for each in reached):
        raise tarfile.TarError(f"{member.name!r} would be outside of the folder")
    member.mode &= 0o755
    archive.extract(member, folder)
