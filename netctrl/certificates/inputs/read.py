"""Reading of files by their kind, which their content tells: each kind's name, how it is recognised, and its reader."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from netctrl.certificates.inputs.cisco import read_cisco
from netctrl.certificates.inputs.docsis import read_docsis
from netctrl.certificates.inputs.junos import read_junos
from netctrl.certificates.inputs.openconfig import has_profiles, read_openconfig
from netctrl.certificates.inputs.queue import MAX_BYTES, Input, InstalledQueue, checked_content
from netctrl.certificates.inputs.sonic import read_sonic
from netctrl.certificates.inputs.sqm import read_sqm
from netctrl.certificates.inputs.tc import as_json, read_tc
from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import read_bounded
from netctrl.laws.targets.jiffies import checked_hz
from netctrl.model.io.json_file import decoded


class Kind(NamedTuple):
    """A kind of file: its title, how text or JSON of it is recognised, and its reader."""

    title: str
    text: str | None
    """Pattern that is somewhere in it."""
    json: Callable[[Any], bool] | None
    read: Callable[[Input], tuple[InstalledQueue, ...]]

    def recognised(self, content: Any) -> bool:
        """Whether text or parsed JSON is of this kind."""
        if isinstance(content, str):
            return self.text is not None and re.search(self.text, content, re.MULTILINE) is not None
        return self.json is not None and self.json(content)


def _is_tc(content: Any) -> bool:
    return isinstance(content, list) and (not content or any("kind" in each for each in _tables(content)))


def _is_sonic(content: Any) -> bool:
    if isinstance(content, dict):
        return "WRED_PROFILE" in content
    return any("WRED_PROFILE" in str(each.get("path")) for each in _tables(content))


def _tables(content: Any) -> list[dict[str, Any]]:
    return [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []


KINDS = (
    Kind(
        "`tc qdisc show` with or without -j, -s, -d",
        r"^[ \t]*(?:(?:deleted|replaced|added) )?qdisc [a-z]",
        _is_tc,
        read_tc,
    ),
    Kind("SONiC's CONFIG_DB or a patch of it", None, _is_sonic, read_sonic),
    Kind("OpenConfig's queue-management-profiles in JSON", None, has_profiles, read_openconfig),
    Kind("OpenWrt's /etc/config/sqm", r"^[ \t]*config[ \t]{1,8}['\"]?queue\b", None, read_sqm),
    Kind("a cable modem's configuration as text", "[UD]sServiceFlow", None, read_docsis),
    Kind("Junos's drop-profiles", "drop-profiles", None, read_junos),
    Kind("random-detect of Cisco or Arista", "random-detect", None, read_cisco),
)
"""Kinds of files, in the order in which they are tried."""


def read_queues(
    path: str | os.PathLike[str] | None = None, *, text: str | bytes | None = None, hz: int | None = None
) -> tuple[InstalledQueue, ...]:
    """Queues of a file that another program has written: a kernel's, a router's, a switch's or a cable modem's.

    The content tells which kind it is: the output of `tc qdisc show` in words or JSON, OpenWrt's sqm configuration,
    SONiC's CONFIG_DB or a JSON patch of it, OpenConfig's queue management profiles, Cisco's or Arista's
    `random-detect`, Junos's drop profiles, or a cable modem's configuration as text. A queue that can't be read doesn't
    hide the others: its `reason` names the value.

    Parameters
    ----------
    path : path, optional
        The file, at most 16 MiB.
    text : str or bytes, optional
        Its content, in place of a path.
    hz : int, optional
        CONFIG_HZ of the kernel, by which pie's update interval is rounded: 100, 250, 300 or 1000; by default the one
        that the intervals of all pie and fq_pie tell.

    Returns
    -------
    tuple of InstalledQueue
        All that are in the file, in its order, for `netctrl.certify_queues`; one without a law has a `reason`.

    Raises
    ------
    FileError
        A file that can't be read, is of none of these kinds, or has no queue.
    InvalidValue
        An `hz` that no kernel has, or neither or both of `path` and `text`.

    Examples
    --------
    >>> import netctrl
    >>> shown = "qdisc pie 2: dev eth0 root refcnt 2 limit 1000p target 15ms tupdate 16ms alpha 2 beta 20"
    >>> queue, = netctrl.read_queues(text=shown)
    >>> queue.name, queue.law.hz, queue.law.update_s
    ('pie 2: on eth0, root', 250, 0.02)
    """
    source = "text"
    if path is not None and text is None:
        source = "standard input" if str(path) == "/dev/stdin" else str(path)
        text = read_bounded(path, MAX_BYTES, f"larger than the {MAX_BYTES // 2**20} MiB that netctrl reads")
    elif path is not None or text is None:
        raise InvalidValue("path", path, "the path of a file, or its content as `text`")
    clock = None if hz is None else checked_hz(hz)
    content = _content(source, checked_content(source, text))
    for kind in KINDS:
        if kind.recognised(content):
            return kind.read(Input(source, content, clock))
    known = "; ".join(kind.title for kind in KINDS)
    raise FileError(source, f"not a file that netctrl knows: {known}")


def _content(source: str, given: bytes) -> Any:
    """JSON where the text begins like it, else text."""
    if given.lstrip()[:1] in (b"[", b"{"):
        return decoded(source, as_json(given))
    return given.decode()
