"""Shared part of the options `--unit`: the program of a unit, checked to be runnable by its user."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import netctrl
from netctrl.cli.options import option
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.linux.systemd import Program

__all__ = ["UNIT", "USER", "program"]

UNIT = option("", "print a systemd unit for it instead", "--unit")
USER = option("NAME", "user of the unit")


def program(file: str, user: str, *, key: str | None = None) -> Program:
    """This interpreter with this netctrl, as the program of a unit.

    Parameters
    ----------
    file : str
        Path of the plan or configuration.
    user : str
        Name of a user of this machine.
    key : str, optional
        Path of the key from the configuration; relative to the current folder.

    Raises
    ------
    InvalidValue
        No such user, or the user can't read a needed file.
    FileError
        The key doesn't exist, or others than this user can read it.
    """
    from netctrl.linux.systemd import Program

    try:
        person = pwd.getpwnam(user)
    except KeyError:
        takes = f"a user of this machine; `useradd --system {user}` makes one"
        raise InvalidValue("user", user, takes) from None
    package = Path(netctrl.__file__).resolve().parent
    reads = [Path(sys.prefix), Path(sys.base_prefix), package, *([] if key is None else [Path(key).absolute()])]
    absolute = Path(file).absolute()
    if key is not None:
        _check_key(Path(key).absolute(), person)
    for each in (Path(sys.executable), absolute, *reads):
        _check_readable(each, person)
    relative = key is not None and not Path(key).is_absolute()
    return Program(
        command=(sys.executable, "-m", "netctrl.linux"),
        file=str(absolute),
        user=user,
        folder=str(Path.cwd()) if relative else None,
        reads=tuple(dict.fromkeys(map(str, reads))),
    )


def _check_key(path: Path, person: pwd.struct_passwd) -> None:
    """Check the key as `netctrl.linux.agent.message.read_key` will."""
    try:
        found = path.stat()
    except OSError as error:
        raise FileError(path, f"the key can't be read: {error.strerror}") from None
    if found.st_uid != person.pw_uid or stat.S_IMODE(found.st_mode) & 0o177:
        whose = f"user {found.st_uid}'s with mode {stat.S_IMODE(found.st_mode):04o}"
        raise FileError(path, f"the key is {whose}; it must belong to user {person.pw_name}, with mode 0600")


def _check_readable(path: Path, person: pwd.struct_passwd) -> None:
    """Check that a user without capabilities can read a path; access lists aren't considered."""
    groups = set(os.getgrouplist(person.pw_name, person.pw_gid))
    for each in dict.fromkeys((path, path.resolve())):
        for place in (*reversed(each.parents), each):
            try:
                found = place.stat()
            except OSError as error:
                raise FileError(place, f"can't be read: {error.strerror}") from None
            needed = 0o5 if place == each and place.is_dir() else 0o1 if place.is_dir() else 0o4
            shift = 6 if found.st_uid == person.pw_uid else 3 if found.st_gid in groups else 0
            if found.st_mode >> shift & needed != needed:
                mode = f"{stat.S_IMODE(found.st_mode):04o}"
                takes = f"a user who can read {path}; {place} has mode {mode} and belongs to user {found.st_uid}"
                raise InvalidValue("user", person.pw_name, takes)
