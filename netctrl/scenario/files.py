"""Content of scenario files: schema, and the files, graphs and traces that they name."""

from __future__ import annotations

import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import msgspec

from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.files import beside
from netctrl.model.io.toml import toml_record
from netctrl.model.io.validation_errors import shown
from netctrl.model.link_trace import mean_rate, read_trace_of_link
from netctrl.model.network import read_network
from netctrl.model.trace import read_trace
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow

SCHEMA = "netctrl.scenario/3"
GRAPH = "network.graph"
_FILES = (
    "control.file",
    "links.*.trace",
    "flows.*.sender.file",
    "network.spread.file",
    "flows.*.expected.spread.file",
    "flows.*.offers.spread.file",
    "flows.*.offers.rates",
)
"""Keys whose value may be a file's name."""


def scenario_of(
    path: str | os.PathLike[str], content: dict[str, Any], network_path: Callable[[str], Path] = Path
) -> Scenario:
    """The scenario of a file; graphs, traces and Designs that it names are looked up beside the file.

    Raises
    ------
    FileError
        Another schema, or a key that is unknown, missing or unusable, which the message names.
    """
    content = with_files(without_schema(path, content), path, network_path)
    return toml_record(path, with_traces(content), Scenario)


def scenario_from(content: dict[str, Any]) -> Scenario:
    """The scenario from plain dicts and lists; msgspec.ValidationError names the key."""
    content = {name: value for name, value in content.items() if name != "schema"}
    return msgspec.convert(_with_kinds(content), Scenario)


def without_schema(path: str | os.PathLike[str], content: dict[str, Any]) -> dict[str, Any]:
    """A file's content without its schema; FileError for another schema."""
    schema = content.get("schema", SCHEMA)
    if schema != SCHEMA:
        raise FileError(path, f'unknown schema {schema!r}; expected schema = "{SCHEMA}"')
    return {name: value for name, value in content.items() if name != "schema"}


def with_names(place: str, value: Any, change: Callable[[str, str], Any]) -> Any:
    """The value at a place of a scenario ("" is all of it), with each name of a file or graph changed.

    Parameters
    ----------
    place : str
        Path of the value, as in "flows.web.sender".
    value : plain data
    change : callable
        Function of (place, name) that returns the new value.
    """
    if isinstance(value, dict):
        dot = f"{place}." if place else ""
        return {key: with_names(f"{dot}{key}", each, change) for key, each in value.items()}
    if isinstance(value, list):
        return [with_names(f"{place}.*", each, change) for each in value]
    named = place == GRAPH or any(fnmatchcase(place, each) for each in _FILES)
    return change(place, value) if named and isinstance(value, str) and value else value


def with_files(
    value: Any, path: str | os.PathLike[str], network_path: Callable[[str], Path] = Path, place: str = ""
) -> Any:
    """The value at a place of a scenario, with its graph read and its file names made relative to `path`'s folder.

    Raises
    ------
    FileError
        A graph can't be read or doesn't exist.
    """

    def found(place: str, name: str) -> Any:
        file = beside(path, name)
        if place != GRAPH:
            return str(file)
        try:
            return read_network(file if file.is_file() else network_path(name))
        except InvalidValue as error:
            raise FileError(path, f"{place}: got {shown(name)}, takes {error.takes}") from None

    return with_names(place, value, found)


def with_traces(content: dict[str, Any]) -> dict[str, Any]:
    """A scenario's content after reading the traces of its links and the rates of its flows from their files.

    Raises
    ------
    FileError
        A file can't be read or contains no rates.
    """
    found = _with_kinds(content)
    for name, read in (("links", _with_trace), ("flows", _with_rates)):
        if isinstance(found.get(name), list):
            found[name] = [read(each) for each in found[name]]
    return found


def _with_kinds(content: dict[str, Any]) -> dict[str, Any]:
    """Flows, which have no `kind` of their own in a file, with it."""
    flows = content.get("flows")
    if not isinstance(flows, list | tuple):
        return dict(content)
    named = {"kind": Flow.__struct_config__.tag}
    return content | {"flows": [named | each if isinstance(each, dict) else each for each in flows]}


def _with_rates(flow: Any) -> Any:
    offers = flow.get("offers") if isinstance(flow, dict) else None
    if not isinstance(offers, dict) or not isinstance(offers.get("rates"), str):
        return flow
    try:
        return flow | {"offers": offers | {"rates": read_trace(offers["rates"])}}
    except InvalidValue as error:  # for a capture
        raise FileError(offers["rates"], f"needs an interval; use a spread of kind trace with one ({error})") from None


def _with_trace(link: Any) -> Any:
    if not isinstance(link, dict) or not isinstance(link.get("trace"), str):
        return link
    trace = read_trace_of_link(link["trace"])
    return {"capacity": f"{mean_rate(trace)!r}bit"} | link | {"trace": trace}
