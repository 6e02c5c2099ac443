"""Laws as C++: prints a step in Python, on named numbers, as a readable struct.

The subset: a function with one line of text or more, whose arguments have types: float, int, records of floats and
conditions, tuples of records, arrays and tables of `netctrl.laws.record`. A record is a NamedTuple, or a class of
fields that a function may change (`netctrl.laws.record`). Assignments to names, also += and the like, to places of an
array and fields of a record; if, while, for over a range up or down, break, continue, return; + - * / and ** of floats,
+ - * & of whole numbers, // and % where neither is negative, + - * / and @ of vectors; comparisons, and, or, not,
conditional expressions; min, max, abs, sqrt, exp, expm1, log, log1p, sin, cos, isfinite, isnan, int, float, len, round;
of vectors numpy's clip, concatenate of two, exp, log, resize, where, and .min() and .max(); numbers of the module, inf;
calls of functions in the subset, compiled or not; a NamedTuple built from its fields in order. Everything else is
refused with its line.

Operations, their order and their rounding are those of Python: compiled without contraction and without -ffast-math a
step gives the same bits, as long as both use one library for exp, log and powers.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable, Mapping
from types import FunctionType
from typing import Any, get_args, get_origin, get_type_hints

from netctrl.laws.cpp import camel, comment
from netctrl.laws.printer import SUBSET, Printer, cpp_type
from netctrl.laws.printer import Refused as Refused
from netctrl.laws.record import field_types, is_record
from netctrl.laws.syntax import plain as plain
from netctrl.laws.syntax import source


def field_texts(record: Any) -> dict[str, str]:
    """Fields of a record with their docstrings, "" where there is none."""
    texts: dict[str, str] = dict.fromkeys(field_types(record), "")
    last = ""
    for part in source(record).body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            last = part.target.id
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and last:
            texts[last] = str(part.value.value)
    return texts


def cpp_record(name: str, record: Any, *, zeros: bool = False, indent: str = "", names: Mapping[str, str] = {}) -> str:
    """Struct with the fields of a record, each with its text."""
    texts, lines = field_texts(record), []
    for field, kind in field_types(record).items():
        ends = (" = 0.0" if kind is float else "{}") if zeros else ""
        lines.append((f"{cpp_type(kind, names)} {camel(field)}{ends};", texts[field]))
    width = max((len(line) for line, _ in lines), default=0)
    body = [f"{indent}    {f'{line:<{width}} ///< {text}' if text else line}" for line, text in lines]
    return "\n".join([f"{indent}struct {name}", f"{indent}{{", *body, f"{indent}}};"])


def cpp_function(function: Any, names: Mapping[str, str]) -> str:
    """Inline C++ function from a Python function of the subset.

    Parameters
    ----------
    function : function
    names : dict
        Names of records and functions that it uses, and its own -> what they are called in C++.

    Raises
    ------
    Refused
        It isn't in the subset.
    """
    printer = Printer(function, names)
    name = names[printer.function.__name__]
    return printer.printed(f"inline {printer.returned()}\n{name}({printer.signature(printer.kinds)})")


def cpp_law(
    name: str,
    methods: Mapping[str, tuple[FunctionType, Mapping[str, str]]],
    parameters: Any,
    state: Any,
    names: Mapping[str, str],
) -> str:
    """Struct of a law: parameters, its `State`, and methods.

    Parameters
    ----------
    name : str
        Of the struct.
    methods : dict
        Name of a method -> the function, of which the argument of the parameters' type is the struct itself, and the
        method's arguments: their names in the function, in any order, with their types in C++. What the function
        doesn't take stands without a name.
    parameters, state : type
        NamedTuples.
    names : dict
        As for `cpp_function`.
    """
    fields = cpp_record(name, parameters, names=names).split("\n")
    own = {parameters.__name__: name, state.__name__: "State"}
    own |= {function.__name__: method for method, (function, _) in methods.items()}
    (first, _), *_ = methods.values()
    lines = [*comment(inspect.getdoc(first) or ""), *fields[:-1], *([""] if len(fields) > 3 else [])]
    lines.append(cpp_record("State", state, zeros=True, indent="    ", names=names))
    for method, (function, takes) in methods.items():
        printer = Printer(function, {**names, **own}, parameters)
        given = ", ".join(f"{kind} {camel(each)}" if printer.uses(each) else kind for each, kind in takes.items())
        body = printer.printed(f"State {method}({given}) const", documented=function is not first)
        lines += ["", textwrap.indent(body, "    ")]
    return "\n".join([*lines, fields[-1]])


def helpers(function: Any) -> dict[str, FunctionType]:
    """Functions of the subset called by a law, by name, each after those that it calls."""
    found: dict[str, FunctionType] = {}
    function = plain(function)
    for node in (each for part in source(function).body for each in ast.walk(part)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = plain(function.__globals__.get(node.func.id))
            if isinstance(called, FunctionType):
                found |= helpers(called) | {node.func.id: called}
    return found


def whole_constants(functions: Iterable[Any]) -> dict[str, int]:
    """Whole-number constants of their modules that functions use, by name."""
    found: dict[str, int] = {}
    for function in map(plain, functions):
        for node in ast.walk(source(function)):
            if isinstance(node, ast.Name) and type(function.__globals__.get(node.id)) is int:
                found[node.id] = function.__globals__[node.id]
    return dict(sorted(found.items(), key=lambda item: item[1]))


def records_of(functions: Iterable[Any]) -> dict[str, Any]:
    """Records that functions take, build or return, by name, each after those in its fields."""
    found: dict[str, Any] = {}

    def add(kind: Any) -> None:
        if get_origin(kind) is tuple:
            add(get_args(kind)[0])
        elif is_record(kind):
            for each in field_types(kind).values():
                add(each)
            found[kind.__name__] = kind

    for function in map(plain, functions):
        for kind in get_type_hints(function).values():
            add(kind)
        for node in ast.walk(source(function)):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                add(function.__globals__.get(node.func.id))
    return found


_STEPS = {"step": 3, "fluid": 3, "sent": 3, "grow": 2, "cut": 1, "mark": 1, "echo": 2}
"""Functions of a law that are in the subset, and how many arguments they take at least."""


def check_law(name: str, law: Any, kind: type) -> None:
    """Check that an entry of another package is a law of this kind and name, whose functions are in the subset.

    Raises
    ------
    Refused
        It isn't; the message has the file, the line and what a law may use.
    """
    if not isinstance(law, kind):
        raise Refused(f"{law!r} isn't a {kind.__name__}")
    called = law.name if hasattr(law, "name") else law.record.__struct_config__.tag
    if called != name:
        raise Refused(f"the law's own name is {called}: the entry point takes that name")
    for step, count in _STEPS.items():
        function = getattr(law, step, None)
        if function is None:
            continue
        if not inspect.isfunction(plain(function)) or len(inspect.signature(plain(function)).parameters) < count:
            raise Refused(f"{step} is {function!r}; it takes a function of {count} arguments or more")
        used = [*helpers(function).values(), plain(function)]
        names = {each.__name__: each.__name__ for each in used}
        names |= dict.fromkeys((*records_of(used), *whole_constants(used)), "")
        try:
            for each in used:
                cpp_function(each, names)
        except Refused as error:
            raise Refused(f"{error}; a law may use {SUBSET}") from None
