"""Entries of `netctrl list`: names in registries and of bundled files, each with a one-line description."""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from netctrl.core.register import (
    CERTIFIED,
    DESIGN_COMMANDS,
    DESIGNED_QUEUES,
    ENGINES,
    QUEUE_LAWS,
    RATE_SENDERS,
    TCP_SENDERS,
    WINDOW_LAWS,
    Registry,
)
from netctrl.model import datasets

LAWS = {"queue": QUEUE_LAWS, "TCP sender": TCP_SENDERS, "rate sender": RATE_SENDERS, "data-centre sender": WINDOW_LAWS}
"""Kind of a law -> its registry; link rates are set by the records of `netctrl.scenario.network.policy`."""


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry that can be named on a command line or in a file."""

    name: str
    what: str
    kind: str | None = None
    """Kind of a law: a key of LAWS, or "link rate"."""
    engines: tuple[str, ...] | None = None
    """Engines that run a law; None where that was not asked or can't be determined."""
    verbs: tuple[str, ...] | None = None
    """Commands that take a queue: certify, design or both."""


def entries(kind: str) -> list[Entry]:
    """All entries of one of KINDS; of the laws, engines and techniques only those of link rates are imported."""
    return list(_LISTS[kind].entries())


def unusable(kind: str) -> list[str]:
    """Why entries of other packages are left out of a list, one line each."""
    known = {"queues": [CERTIFIED], "designs": [DESIGN_COMMANDS], "laws": LAWS.values(), "engines": [ENGINES]}
    lacks = (registry.lack(name) for registry in known.get(kind, ()) for name in registry)
    return [lack for lack in lacks if lack is not None]


def _queues() -> Iterator[Entry]:
    from netctrl.cli.certify import app

    commands, certified = set(app), CERTIFIED.usable()
    for name in dict.fromkeys((*DESIGNED_QUEUES, *certified)):
        verbs = {"certify": name in certified, "design": name in DESIGN_COMMANDS}
        if name in commands:
            what = _first_line(app[name].help)
        elif verbs["design"]:
            what = _first_line(inspect.getdoc(DESIGN_COMMANDS[name]))
        else:
            what = documented(CERTIFIED, name)
        yield Entry(name, _first_sentence(what), verbs=tuple(verb for verb, takes in verbs.items() if takes))


def _designs() -> Iterator[Entry]:
    for name in DESIGN_COMMANDS.usable():
        yield Entry(name, _first_line(inspect.getdoc(DESIGN_COMMANDS[name])))


def _engines() -> Iterator[Entry]:
    for name in ENGINES.usable():
        yield Entry(name, documented(ENGINES, name))


def _laws() -> Iterator[Entry]:
    from netctrl.scenario.network.policy import POLICIES

    yield Entry("droptail", "First in, first out; packets that do not fit are lost.", "queue")
    for kind, registry in LAWS.items():
        for name in registry.usable():
            yield Entry(name, documented(registry, name), kind)
    for policy in POLICIES:
        yield Entry(str(policy.__struct_config__.tag), _first_line(inspect.getdoc(policy)), "link rate")


def _toml(names: Callable[[], tuple[str, ...]], path: Callable[[str], Path]) -> Iterator[Entry]:
    """Entries of TOML files, each described by the comment in its first line."""
    for name in names():
        with path(name).open(encoding="utf-8") as file:
            first = file.readline()
        yield Entry(name, _first_sentence(first.lstrip("# ")))


def _networks() -> Iterator[Entry]:
    for name in datasets.networks():
        content = json.loads(datasets.network_path(name).read_text(encoding="utf-8"))
        counts = f"{len(content['nodes'])} nodes, {len(content['edges'])} links"
        yield Entry(name, f"{counts}: {_first_sentence(content['graph'].get('source', ''))}")


def _models() -> Iterator[Entry]:
    for name in datasets.models():
        content = json.loads(datasets.model_path(name).read_text(encoding="utf-8"))
        signals = f"{', '.join(content['inputs'])} -> {', '.join(content['outputs'])}"
        yield Entry(name, f"{signals}; {len(content['A'])} states, every {content['dt']:g} s")


def _traces() -> Iterator[Entry]:
    for name in datasets.traces():
        with datasets.trace_path(name).open(encoding="utf-8") as file:
            columns, rows = file.readline().strip(), sum(1 for _ in file)
        yield Entry(name, f"{rows} rows of {columns.replace(',', ', ')}")


class _List(NamedTuple):
    entries: Callable[[], Iterator[Entry]]
    heading: str


_LISTS: dict[str, _List] = {
    "queues": _List(_queues, "queues that people run: netctrl certify NAME, netctrl design NAME"),
    "designs": _List(_designs, "designs: netctrl design NAME"),
    "scenarios": _List(lambda: _toml(datasets.scenarios, datasets.scenario_path), "scenarios: netctrl simulate NAME"),
    "networks": _List(_networks, "networks: netctrl design hftrac --network NAME"),
    "laws": _List(_laws, "laws of queues, senders and links: in a scenario's file, or netctrl evaluate NAME"),
    "engines": _List(_engines, "engines: netctrl simulate SCENARIO --engine NAME"),
    "models": _List(_models, "models: netctrl design connet --model NAME"),
    "problems": _List(lambda: _toml(datasets.problems, datasets.problem_path), "problems: netctrl design mpc NAME"),
    "traces": _List(_traces, "traces: netctrl identify NAME"),
    "sweeps": _List(lambda: _toml(datasets.sweeps, datasets.sweep_path), "sweeps: netctrl sweep NAME"),
}
KINDS = tuple(_LISTS)
if TYPE_CHECKING:
    KindName = str
else:  # any text is taken, and a shell completes these
    KindName = str | Literal[KINDS]


def heading(kind: str) -> str:
    """Heading of one of KINDS: what its entries are, and which commands take them."""
    return _LISTS[kind].heading


def documented(registry: Registry, name: str) -> str:
    """First line of the docstring of an entry's module, read from the file without an import."""
    top, *rest = registry.module_of(name).split(".")
    spec = find_spec(top)
    if spec is None or spec.origin is None:
        return ""
    path = Path(spec.origin)
    if rest:
        path = path.parent.joinpath(*rest).with_suffix(".py")
    if path.with_suffix("").is_dir():
        path = path.with_suffix("") / "__init__.py"
    try:
        return _first_line(ast.get_docstring(ast.parse(path.read_bytes())))
    except (OSError, SyntaxError):
        return ""


def _first_sentence(text: str) -> str:
    return re.split(r"(?:\.|;|, which) (?=[A-Za-z`])", text.strip().rstrip("."))[0]


def _first_line(text: str | None) -> str:
    """A docstring's summary without its source reference."""
    return " ".join((text or "").partition("\n\n")[0].split()).partition(" Source: ")[0]
