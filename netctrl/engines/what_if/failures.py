"""Failures of links and nodes: each alone, or groups from a file."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from typing import NamedTuple

from netctrl.core.errors import FileError, InvalidValue, checked_kind, did_you_mean
from netctrl.core.files import read_bounded
from netctrl.model.network import Network, Node
from netctrl.model.networks.tables import parted

INTACT = "intact"
EACH = ("each-link", "each-node")
FAIL_TAKES = "each-link, each-node, or a file with a failure a line: ids of links or nodes, as in `cut: a->b, c`"
_MAX_BYTES = 16 * 2**20


class Failure(NamedTuple):
    """What fails together."""

    name: str
    links: tuple[int, ...]
    """Indices of the links."""
    nodes: tuple[str, ...] = ()
    """Ids of the nodes, whose links fail as well, and whose own traffic ends."""


def failures(network: Network, fail: str | os.PathLike[str] | None) -> list[Failure]:
    """The network without failures, then each failure.

    Parameters
    ----------
    network : Network
    fail : str, path or None
        "each-link": each line, with its links in both directions; "each-node"; a file; None: no failure.

    Raises
    ------
    FileError, InvalidValue
        Not such a file, or an unknown link or node.
    """
    intact = Failure(INTACT, ())
    if fail is None:
        return [intact]
    checked_kind("fail", fail, str | os.PathLike)
    if fail == "each-link":
        return [intact, *_each_line(network)]
    if fail == "each-node":
        return [intact, *(_of(network, _readable(node), [node.id], fail) for node in network.nodes)]
    if not os.path.exists(fail):  # noqa: PTH110  False for a name that is too long
        raise InvalidValue("fail", os.fspath(fail), f"{FAIL_TAKES}{did_you_mean(os.fspath(fail), EACH)}")
    text = read_bounded(fail, _MAX_BYTES, f"larger than the {_MAX_BYTES // 2**20} MiB allowed for failures")
    found, known = [intact], {each.id for each in (*network.links, *network.nodes)}
    for number, line in enumerate(text.decode("utf-8-sig", errors="replace").splitlines(), 1):
        words = line.partition("#")[0].strip()
        if words:
            name, colon, rest = words.partition(":")
            if words in known or not colon or name + colon + rest in known:
                name, rest = words, words
            items = [rest.strip()] if rest.strip() in known else re.split(r"\s*[,;]\s*|\s{2,}|\t", rest.strip())
            try:
                found.append(_of(network, name.strip(), [each for each in items if each], fail))
            except InvalidValue as error:
                raise FileError(fail, f"line {number}: {error}") from None
    if len(found) == 1:
        raise FileError(fail, f"no failures; takes {FAIL_TAKES}")
    return found


def lines_of(network: Network) -> dict[str, tuple[int, ...]]:
    """Each line between two nodes with its links in both directions, the first with the first of the other way."""
    ways: dict[tuple[str, str], list[int]] = defaultdict(list)
    for row, link in enumerate(network.links):
        ways[link.source, link.target].append(row)
    found, done = {}, set()
    for row, link in enumerate(network.links):
        if row not in done:
            here, back = ways[link.source, link.target], ways.get((link.target, link.source), [])
            place = here.index(row)
            rows = (row, back[place]) if place < len(back) else (row,)
            done.update(rows)
            found[link.id] = rows
    return found


def _each_line(network: Network) -> list[Failure]:
    """The lines by the names of their ends, and by an id too where several have these."""
    names, lines = {node.id: _readable(node) for node in network.nodes}, lines_of(network)
    first = [network.links[rows[0]] for rows in lines.values()]
    ends = [(names[link.source], names[link.target]) for link in first]
    count = Counter(frozenset(each) for each in ends)
    return [
        Failure(" - ".join(pair) + (f" ({name})" if count[frozenset(pair)] > 1 else ""), rows)
        for pair, (name, rows) in zip(ends, lines.items(), strict=True)
    ]


def _readable(node: Node) -> str:
    return node.name if node.name and node.id.isdigit() else node.id


def _of(network: Network, name: str, items: list[str], fail: str | os.PathLike[str]) -> Failure:
    nodes = {node.id: "" for node in network.nodes}
    links = {link.id: row for row, link in enumerate(network.links)}
    lines = {row: rows for rows in lines_of(network).values() for row in rows}
    rows: dict[int, None] = {}
    for each in items:
        if each in links and each not in nodes:  # in one direction only
            rows[links[each]] = None
            continue
        pair = parted(each, nodes)
        ways = ((row, (link.source, link.target)) for row, link in enumerate(network.links))
        found = [way for row, ends in ways if pair == ends or each in ends for way in lines[row]]
        if not found:
            takes = f"the id of a link or a node, or two nodes as a-b{did_you_mean(each, [*links, *nodes])}"
            raise InvalidValue("fail", each, takes)
        rows |= dict.fromkeys(found)
    return Failure(name, tuple(rows), tuple(each for each in items if each in nodes))
