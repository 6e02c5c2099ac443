"""Files of networks and of traffic matrices in any format that netctrl reads; their content tells which one it is."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import checked_path, read_bounded
from netctrl.model.io.json_file import decoded
from netctrl.model.networks.containerlab import containerlab_draft
from netctrl.model.networks.draft import Draft, demand_records, limited
from netctrl.model.networks.graphs import gml_draft, graphml_draft
from netctrl.model.networks.markup import gml_tree, xml_tree, yaml_tree
from netctrl.model.networks.nodelink import nodelink_draft
from netctrl.model.networks.records import Node
from netctrl.model.networks.repetita import repetita_draft
from netctrl.model.networks.sndlib import NATIVE, native_draft, sndlib_draft
from netctrl.model.networks.tables import Table, frame_table, is_demands, links_draft, matrices_drafts, text_table

SUFFIXES = (".json", ".graphml", ".gml", ".xml", ".graph", ".demands", ".yml", ".yaml", ".csv", ".tsv", ".txt")
FORMATS = "node-link JSON, TopoHub, GraphML, GML, SNDlib, REPETITA, containerlab or CSV"
NO_NETWORK = 'not a network: node-link JSON has "nodes", "edges" and optionally "demands"'
_MAX_BYTES = 256 * 2**20
_MAX_FILES = 100_000
_MAX_CELLS = 2**27
_REPETITA = re.compile(r"(NODES|EDGES|DEMANDS)\s+\d+\s*$", re.MULTILINE)
_GML = re.compile(r"(?m)^\s*graph\s*\[")
_CLAB = re.compile(r"(?m)^topology\s*:")
_HEAD = 2**16


def content_of(source: Any) -> Draft | dict[str, Any]:
    """The draft of a network's file or DataFrame of links, or the content of node-link JSON as it is.

    Raises
    ------
    FileError
        The file can't be read or is none of the formats, which the message lists.
    InvalidValue
        A DataFrame without columns of sources and targets.
    """
    if is_frame(source):
        return links_draft(frame_table(source))
    found = _parsed(source, _text(source))
    if isinstance(found, Table):
        if is_demands(found):
            raise FileError(source, "a table of demands; give it as `demands` (--demands) beside a network's file")
        try:
            found = links_draft(found)
        except InvalidValue as error:
            why = f"{error.got!r} as columns, takes {error.takes}"
            raise FileError(source, f"not a network in {FORMATS}: got {why}") from None
    if isinstance(found, Draft) and not found.links:
        raise FileError(source, f"not a network in {FORMATS}: it has no links")
    if isinstance(found, dict) and not isinstance(found.get("edges", found.get("links")), list):
        raise FileError(source, NO_NETWORK)
    return found


def is_frame(source: Any) -> bool:
    """Whether this is a pandas DataFrame."""
    return hasattr(source, "columns") and hasattr(source, "to_numpy")


class Matrices(NamedTuple):
    """Traffic matrices over time: T times and D demands."""

    ends: tuple[tuple[str, str], ...]
    """Source and target of each demand."""
    rates: np.ndarray
    """(T, D) rate of each demand [bit/s]."""
    times: tuple[Any, ...]
    """Time of each matrix as the file gives it, or the file's name."""
    notes: tuple[str, ...]
    """What was left out."""
    mean: np.ndarray
    """(D,) mean of each demand [bit/s]."""
    std: np.ndarray
    """(D,) standard deviation of each demand; of a single matrix as it gives it, else 0 [bit/s]."""


def read_matrices(
    source: Any, nodes: Sequence[Node], unit: float | None, keys: Mapping[str, str] = MappingProxyType({})
) -> Matrices:
    """Traffic matrices of a file, or of all files in a folder, in the order of their times or names.

    Parameters
    ----------
    source : path or DataFrame
        REPETITA `.demands`, SNDlib, TopoHub, or a table in one of the forms of
        `netctrl.model.networks.tables.DEMANDS_TAKE`.
    nodes : sequence of Node
        The network's nodes.
    unit : float or None
        Rate for which 1 stands in a file without units [bit/s].
    keys : mapping, optional
        Keys of nodes in the network's file -> ids.

    Raises
    ------
    FileError
        A file can't be read or has no demand between nodes of the network.
    InvalidValue
        Rates without a unit.
    """
    found: list[tuple[Any, list[dict[str, Any]]]] = []
    places = {str(row): node.id for row, node in enumerate(nodes)}
    names = {node.name: node.id for node in reversed(nodes) if node.name} | dict(keys)
    names |= {node.id: node.id for node in nodes}  # an id comes before others' keys, and these before names
    notes: list[str] = []
    path = "the table of demands" if is_frame(source) else source
    for file in [source] if is_frame(source) else _files(checked_path(source)):
        for time, draft in _drafts(file, names):
            records = demand_records(draft, places if draft.indexed else names, unit, mirrored=draft.mirrored)
            found.append((getattr(file, "stem", "") if time is None else time, records))
            notes += draft.notes
    ends = tuple(dict.fromkeys((each["source"], each["target"]) for _, records in found for each in records))
    if not ends and unit != 0.0:
        raise FileError(path, "no demand between two nodes of the network" + "".join(f"; {n}" for n in notes[:1]))
    if len(ends) * len(found) > _MAX_CELLS:
        raise FileError(path, f"more than the {_MAX_CELLS} rates allowed")
    place = {pair: column for column, pair in enumerate(ends)}
    rates, std = np.zeros((len(found), len(ends))), np.zeros(len(ends))
    for row, (_, records) in enumerate(found):
        for each in records:
            column = place[each["source"], each["target"]]
            rates[row, column] += each["mean"]
            std[column] = np.hypot(std[column], each["std"])
    if len(rates) > 1:
        std = rates.std(axis=0, ddof=1)
    told = tuple(limited(notes, "demands are left out"))
    return Matrices(ends, rates, tuple(time for time, _ in found), told, rates.mean(axis=0), std)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(each for each in path.iterdir() if each.is_file() and each.suffix.lower() in SUFFIXES)
    if not 0 < len(files) <= _MAX_FILES:
        raise FileError(path, f"a folder of {len(files)} matrices, takes 1 to {_MAX_FILES} files")
    return files


def _drafts(source: Any, names: Mapping[str, str]) -> list[tuple[Any, Draft]]:
    if is_frame(source):
        return matrices_drafts(frame_table(source), names)
    found = _parsed(source, _text(source))
    if isinstance(found, Draft):
        return [(None, found)]
    if isinstance(found, Table):
        try:
            return matrices_drafts(found, names)
        except InvalidValue as error:
            raise FileError(source, f"{error.argument}: got {error.got}, takes {error.takes}") from None
    draft = nodelink_draft(found)
    if not draft.demands:
        raise FileError(source, "no table of demands in `graph.demands`, as in TopoHub's files")
    return [(None, draft)]


def _text(path: str | os.PathLike[str]) -> bytes:
    most = f"larger than the {_MAX_BYTES // 2**20} MiB allowed for a network of a million links"
    return read_bounded(path, _MAX_BYTES, most)


def _parsed(path: str | os.PathLike[str], text: bytes) -> Draft | Table | dict[str, Any]:
    """The draft of a file of any format but these: the content of node-link JSON, the table of another text."""
    head = text[:_HEAD].lstrip(b"\xef\xbb\xbf \t\r\n")
    if Path(path).suffix.lower() == ".json" or head[:1] in (b"{", b"["):
        return _json(path, decoded(path, text))
    if head[:1] == b"<" or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        tree = xml_tree(path, text)
        if "graphml" in tree:
            return graphml_draft(tree)
        if "network" in tree:
            return sndlib_draft(tree)
        raise FileError(path, f"XML of another kind, {next(iter(tree), '')!r}; takes GraphML or SNDlib's network")
    begin = head.decode("utf-8", errors="replace")
    whole = text.decode("utf-8-sig", errors="replace")
    if head.startswith(NATIVE):
        return native_draft(whole)
    if _REPETITA.match(begin):
        return repetita_draft(whole)
    if _GML.search(begin):
        return gml_draft(gml_tree(path, whole))
    if _CLAB.search(begin) or Path(path).suffix.lower() in (".yml", ".yaml"):
        tree = yaml_tree(path, text)
        if not isinstance(tree, dict) or "topology" not in tree:
            raise FileError(path, "YAML of another kind; takes a topology of containerlab: `topology` with `links`")
        return containerlab_draft(tree)
    return text_table(path, whole)


def _json(path: str | os.PathLike[str], parsed: Any) -> Draft | dict[str, Any]:
    if isinstance(parsed, dict):
        if isinstance(parsed.get("topology"), dict):
            return containerlab_draft(parsed)
        if "networkStructure" in parsed or isinstance(parsed.get("network"), dict):
            return sndlib_draft(parsed)
        if isinstance(parsed.get("edges", parsed.get("links")), list) or isinstance(parsed.get("graph"), dict):
            return parsed
    raise FileError(path, NO_NETWORK)
