"""What the options `--unit` share: the program that a unit runs, checked to be one that its user can run."""

from __future__ import annotations

import os
import pwd
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import netctrl
from netctrl.cli.app import option
from netctrl.errors import FileError, InvalidValue

if TYPE_CHECKING:
    from netctrl.linux.systemd import Program

__all__ = ["UNIT", "USER", "program"]

UNIT = option("", "print a systemd unit for it instead", "--unit")
USER = option("NAME", "whom the unit runs it as")


def program(file: str, user: str, *, key: str | None = None) -> Program:
    """This interpreter with this netctrl, for a unit.

    Parameters
    ----------
    file : str
        Of the plan or config.
    user : str
        A user of this machine.
    key : str, optional
        As the config has it; a relative path begins where this process is.

    Raises
    ------
    InvalidValue
        No such user, or one who can't read what has to be read.
    FileError
        The key isn't there, or isn't this user's alone.
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
    """As `netctrl.linux.agent.message.read_key` will find it."""
    try:
        found = path.stat()
    except OSError as error:
        raise FileError(path, f"the key can't be read: {error.strerror}") from None
    if found.st_uid != person.pw_uid or stat.S_IMODE(found.st_mode) & 0o177:
        whose = f"user {found.st_uid}'s with mode {stat.S_IMODE(found.st_mode):04o}"
        raise FileError(path, f"the key is {whose}; takes one of user {person.pw_name} alone, with mode 0600")


def _check_readable(path: Path, person: pwd.struct_passwd) -> None:
    """By a user without capabilities to pass over modes; access lists aren't looked at."""
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
                takes = f"a user who may read {path}; {place} has mode {mode} and belongs to user {found.st_uid}"
                raise InvalidValue("user", person.pw_name, takes)
