"""Docstrings of the public names: their sections are there and true to the signature, and their examples run.

numpy style: a one-line summary, Parameters (or, of a record, a text under each field), Returns and Examples.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import docstring_parser
import pytest

import netctrl
from netctrl.laws.codegen import field_texts

# Records that users hold without building them: no example is asked for, since one is at the function that gives them.
HELD = {
    "netctrl.engines.compare": ("Compared", "Comparison"),
    "netctrl.frequency.certified.disk": ("LoopDiskMargin",),
    "netctrl.frequency.margins": ("GainBand", "Margins"),
    "netctrl.laws.pacing.pacing": ("PacingRun", "PacingSample"),
    "netctrl.model.design.arc": ("ArcCertificate", "ArcInputs"),
    "netctrl.model.design.base": ("Design",),
    "netctrl.model.design.connet": ("ConnetCertificate", "ConnetInputs"),
    "netctrl.model.design.hftrac": ("HftracCertificate", "HftracInputs"),
    "netctrl.model.design.mpcc": ("MpccCertificate", "MpccInputs"),
    "netctrl.model.design.pacing": ("PacingCertificate", "PacingInputs"),
    "netctrl.model.fit": ("IdentificationResult",),
    "netctrl.model.identified": ("Identification",),
    "netctrl.model.network": ("Demand", "Link", "Node"),
    "netctrl.mpc.plan": ("MpcPlan",),
    "netctrl.mpc.qp.program": ("QPSolution", "QuadraticProgram"),
    "netctrl.scenario.result": ("Result",),
    "netctrl.scenario.labelled": ("Labelled",),
}
DOCUMENTED = netctrl._PUBLIC | netctrl._INNER
HELD_NAMES = [(module, name) for module, names in HELD.items() for name in names]


@cache
def told(thing: Any) -> docstring_parser.Docstring:
    """The docstring as sections; a class does not inherit its parent's."""
    return docstring_parser.parse(thing.__doc__ or "", docstring_parser.DocstringStyle.NUMPYDOC)


def sections(thing: Any) -> set[str]:
    """Which sections there are: param, returns, raises, examples, notes, ..."""
    return {meta.args[0] for meta in told(thing).meta}


def taken(thing: Any) -> list[str]:
    """Names of the parameters of a signature."""
    try:
        found = inspect.signature(thing).parameters
    except ValueError:  # an exception without a constructor of its own
        return []
    return [name for name in found if name not in ("self", "cls")]


def parameters(thing: Any) -> list[str]:
    """Names in the Parameters section; `A, B : ...` are two."""
    found = [meta for meta in told(thing).meta if meta.args[0] == "param"]
    return [name.strip(" *") for meta in found for name in meta.args[1].split(",")]


def fields_with_text(kind: type) -> list[str]:
    """Fields of a record, and of the records that it derives from, with a text under them."""
    ours = [each for each in kind.__mro__ if each.__module__.startswith("netctrl.")]
    return list({name: text for each in ours for name, text in field_texts(each).items() if text})


def summary_complaints(thing: Any) -> Iterator[str]:
    """What is wrong with the first line."""
    lines = inspect.cleandoc(thing.__doc__ or "").splitlines() or [""]
    if lines[0][-1:] != "." or lines[0][0].islower() or lines[0].startswith("["):
        yield f"the summary is no sentence on one line: {lines[0]!r}"
    if "".join(lines[1:2]).strip():
        yield "no empty line below the summary"
    if " = " in lines[0]:
        yield "the summary is an equation, which belongs below it"


def parameter_complaints(thing: Any) -> Iterator[str]:
    """Parameters that are missing, made up, or documented twice."""
    named, takes = parameters(thing), taken(thing)
    texts = fields_with_text(thing) if inspect.isclass(thing) else []
    found = named + [name for name in texts if name in takes]
    for name in takes:
        if found.count(name) != 1:
            yield f"parameter {name} is documented {found.count(name)} times"
    for name in found:
        if name not in takes:
            yield f"there is no parameter {name}"


def complaints(thing: Any) -> list[str]:
    """What is wrong with the docstring of a public function or class."""
    found = [*summary_complaints(thing), *parameter_complaints(thing)]
    gives = not inspect.isclass(thing) and inspect.signature(thing).return_annotation not in (None, "None")
    if gives and "returns" not in sections(thing):
        found.append("no section Returns")
    if not doctest.DocTestParser().get_examples(thing.__doc__ or ""):
        found.append("no example")
    if "examples" not in sections(thing):
        found.append("no section Examples")
    return found


def methods(kind: type) -> Iterator[tuple[str, Callable]]:
    """Public methods and properties of a class of ours, with those that it inherits from ours."""
    for name in filter(lambda name: not name.startswith("_"), dir(kind)):
        raw = inspect.getattr_static(kind, name)
        function = getattr(raw, "fget", None) or getattr(raw, "__func__", raw)
        of_class = inspect.isfunction(function) and "." in function.__qualname__
        if of_class and function.__module__.startswith("netctrl."):
            yield name, function


def held_complaints(kind: type) -> list[str]:
    """What is wrong with the docstring of a record and with those of its methods."""
    found = [*summary_complaints(kind), *parameter_complaints(kind)]
    for name, method in methods(kind):
        found += [f"{name}: {said}" for said in (*summary_complaints(method), *parameter_complaints(method))]
    return found


@pytest.mark.parametrize("name", DOCUMENTED)
def test_the_sections_are_there_and_the_parameters_are_those_of_the_signature(name: str) -> None:
    thing = getattr(importlib.import_module(DOCUMENTED[name]), name)
    assert complaints(thing) == []
    if inspect.isclass(thing):
        assert held_complaints(thing) == []


@pytest.mark.parametrize(("module", "name"), HELD_NAMES)
def test_records_that_users_hold_document_their_fields_and_methods(module: str, name: str) -> None:
    assert held_complaints(getattr(importlib.import_module(module), name)) == []


@pytest.mark.slow
@pytest.mark.parametrize(("module", "name"), [*((module, name) for name, module in DOCUMENTED.items()), *HELD_NAMES])
def test_examples_run_as_a_reader_runs_them(module: str, name: str, tmp_path, monkeypatch) -> None:
    """In an empty folder, with nothing imported but what the example imports."""
    monkeypatch.chdir(tmp_path)
    thing = getattr(importlib.import_module(module), name)
    said: list[str] = []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for test in doctest.DocTestFinder().find(thing, name, module=False, globs={}):
        runner.run(test, out=said.append)
    assert "".join(said) == ""


def good(flows: float) -> float:
    """Twice the flows.

    Parameters
    ----------
    flows : float

    Returns
    -------
    float

    Examples
    --------
    >>> 1 + 1
    2
    """
    return 2.0 * flows


def changed(before: str, after: str) -> Callable:
    """`good` with another docstring."""

    def function(flows: float) -> float:
        return 2.0 * flows

    assert before in good.__doc__
    function.__doc__ = good.__doc__.replace(before, after)
    return function


def test_a_good_docstring_has_no_complaints():
    assert complaints(good) == []


@pytest.mark.parametrize(
    ("before", "after", "complaint"),
    [
        ("flows : float", "flow : float", "parameter flows is documented 0 times"),
        ("flows : float", "flow : float", "there is no parameter flow"),
        ("flows : float", "flows, flows : float", "parameter flows is documented 2 times"),
        ("flows : float", "flows, rtt_s : float", "there is no parameter rtt_s"),
        ("Returns\n    -------", "Gives\n    -----", "no section Returns"),
        (">>> 1 + 1\n    2", "2", "no example"),
        ("Examples\n    --------\n", "\n", "no section Examples"),
        ("Twice the flows.", "Twice the flows", "the summary is no sentence on one line: 'Twice the flows'"),
        ("Twice the flows.", "y = 2 x.", "the summary is an equation, which belongs below it"),
        ("Twice the flows.", "Twice.\n    The flows.", "no empty line below the summary"),
    ],
)
def test_a_docstring_that_lacks_something_is_found(before: str, after: str, complaint: str):
    assert complaint in complaints(changed(before, after))
