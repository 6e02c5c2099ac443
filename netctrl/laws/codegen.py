"""Laws as C++: a step in Python, of named numbers, printed as a struct that stands in a program like hand-written code.

The subset: a function with one line of text or more, whose arguments are NamedTuples of floats or floats; assignments
to names, if, return; + - * / and ** of floats, comparisons, and, or, not, conditional expressions; min and max of two,
abs, sqrt, exp, expm1, log, log1p, sin, cos; floats of the module; calls of functions in the subset, compiled or not; a
record built from its fields in order. Everything else is refused with its line.

Operations, their order and their rounding are those of Python: compiled without contraction and without -ffast-math a
step gives the same bits, as long as both use one library for exp, log and powers.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from types import FunctionType
from typing import Any

__all__ = ["Refused", "camel", "cpp_function", "cpp_law", "cpp_record", "field_texts", "helpers", "plain"]

_LIBRARY = {"abs": "std::fabs"} | {
    name: f"std::{name}" for name in ("cos", "exp", "expm1", "log", "log1p", "sin", "sqrt")
}
_OPERATORS: dict[type, tuple[str, int]] = {ast.Add: ("+", 5), ast.Sub: ("-", 5), ast.Mult: ("*", 6), ast.Div: ("/", 6)}
_COMPARED: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip


_RESERVED = """auto bool break case catch char class const continue default delete do double else enum explicit export
extern false float for friend goto if inline int long mutable namespace new operator private protected public register
return short signed sizeof static struct switch template this throw true try typedef typename union unsigned using
virtual void volatile while"""


class Refused(ValueError):
    """Something outside the subset; the message has the file and the line."""


def field_texts(record: Any) -> dict[str, str]:
    """Fields of a NamedTuple with the text behind each, "" where there is none."""
    texts: dict[str, str] = dict.fromkeys(record._fields, "")
    last = ""
    for part in _source(record).body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            last = part.target.id
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant) and last:
            texts[last] = str(part.value.value)
    return texts


def plain(thing: Any) -> Any:
    """The Python function that numba has compiled, or the thing itself."""
    return getattr(thing, "py_func", thing)


def _source(thing: Any) -> Any:
    """The syntax tree of one function or class."""
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def cpp_record(name: str, record: Any, *, zeros: bool = False, indent: str = "") -> str:
    """A struct with the fields of a NamedTuple, each with its text."""
    ends = " = 0.0" if zeros else ""
    lines = [(f"double {camel(field)}{ends};", text) for field, text in field_texts(record).items()]
    width = max(len(line) for line, _ in lines)
    body = [f"{indent}    {f'{line:<{width}} ///< {text}' if text else line}" for line, text in lines]
    return "\n".join([f"{indent}struct {name}", f"{indent}{{", *body, f"{indent}}};"])


def cpp_function(function: Any, names: dict[str, str], *, name: str, signature: str) -> str:
    """A function of the subset.

    Parameters
    ----------
    function : function
    names : dict
        Names of records and functions that it uses -> what they are called in C++.
    name, signature : str
        Its own in C++: "State Next(const State& state, const Seen& seen) const", of which `name` is a part.

    Raises
    ------
    Refused
        It isn't in the subset.
    """
    return _Printer(function, names).printed(name, signature)


def cpp_law(
    name: str, step: FunctionType, parameters: Any, state: Any, names: dict[str, str], *, seen: str = "Seen"
) -> str:
    """A law as a struct: its parameters, its `State`, and `Next(state, seen)`."""
    fields = cpp_record(name, parameters).split("\n")
    names = names | {parameters.__name__: name, state.__name__: "State"}
    printer = _Printer(step, names, own=_argument(step, 2), members=frozenset(map(camel, parameters._fields)))
    before, now = (f" {name}" if printer.uses(name) else "" for name in list(inspect.signature(step).parameters)[:2])
    body = printer.printed("Next", f"State Next(const State&{before}, const {seen}&{now}) const", documented=False)
    return "\n".join(
        [
            *_comment(inspect.getdoc(step) or "", ""),
            *fields[:-1],
            "",
            cpp_record("State", state, zeros=True, indent="    "),
            "",
            textwrap.indent(body, "    "),
            fields[-1],
        ]
    )


def helpers(function: Any) -> dict[str, FunctionType]:
    """Functions of the subset that a law calls, by name, each behind those that it calls itself."""
    found: dict[str, FunctionType] = {}
    function = plain(function)
    for node in (each for part in _source(function).body for each in ast.walk(part)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = plain(function.__globals__.get(node.func.id))
            if isinstance(called, FunctionType):
                found |= helpers(called) | {node.func.id: called}
    return found


def camel(name: str) -> str:
    """target_queue -> targetQueue."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _argument(function: FunctionType, place: int) -> str:
    return list(inspect.signature(function).parameters)[place]


def _comment(text: str, indent: str) -> list[str]:
    return [f"{indent}/// {line}".rstrip() for line in text.split("\n")]


class _Printer:
    """Prints one function; `own` is the argument whose fields are members of the struct around it."""

    def __init__(
        self,
        function: Any,
        names: dict[str, str],
        own: str | None = None,
        members: frozenset[str] = frozenset(),
    ) -> None:
        self.function = plain(function)
        self.names = names
        self.own = own
        self.tree = _source(self.function)
        self.first = inspect.getsourcelines(self.function)[1]
        self.declared: set[str] = set()
        self.members = members

    def printed(self, name: str, signature: str, *, documented: bool = True) -> str:
        tree = self.tree
        if not isinstance(tree, ast.FunctionDef) or tree.args.kwonlyargs or tree.args.vararg or tree.args.defaults:
            raise self.refusal(tree, f"takes a plain function for {name}")
        self.declared = {argument.arg for argument in tree.args.args}
        again = self._assigned_again(tree)
        body = self._block(self._without_doc(tree.body), "    ", again)
        about = _comment(inspect.getdoc(self.function) or "", "") if documented else []
        return "\n".join([*about, signature, "{", *body, "}"])

    def uses(self, name: str) -> bool:
        """Whether an argument is read."""
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(self.tree))

    def refusal(self, node: ast.AST, why: str) -> Refused:
        line = self.first + getattr(node, "lineno", 1) - 1
        return Refused(f"{inspect.getsourcefile(self.function)}, line {line}: {why}")

    @staticmethod
    def _without_doc(body: list[ast.stmt]) -> list[ast.stmt]:
        return body[1:] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body

    @staticmethod
    def _assigned_again(tree: ast.FunctionDef) -> set[str]:
        """Names that are assigned more than once: the others are const."""
        seen: list[str] = [argument.arg for argument in tree.args.args]
        seen += [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        return {name for name in seen if seen.count(name) > 1}

    def _block(self, statements: Iterable[ast.stmt], indent: str, again: set[str]) -> list[str]:
        lines: list[str] = []
        for each in statements:
            lines += self._statement(each, indent, again)
        return lines

    def _statement(self, node: ast.stmt, indent: str, again: set[str]) -> list[str]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                text = self._expression(value)
                if name in _RESERVED.split() or (self.own is not None and camel(name) in self.members):
                    raise self.refusal(node, f"{name} is a word of C++, or a parameter of the law")
                if name in self.declared:
                    return [f"{indent}{camel(name)} = {text};"]
                self.declared.add(name)
                kind = "bool" if self._is_condition(value) else "double"
                return [f"{indent}{'' if name in again else 'const '}{kind} {camel(name)} = {text};"]
            case ast.If(test=test, body=body, orelse=orelse):
                before = self._hoisted(node, indent)
                lines = [f"{indent}if ({self._expression(test)})", f"{indent}{{"]
                lines += [*self._block(body, indent + "    ", again), f"{indent}}}"]
                if len(orelse) == 1 and isinstance(orelse[0], ast.If):
                    first, *rest = self._statement(orelse[0], indent, again)
                    lines += [f"{indent}else {first.strip()}", *rest]
                elif orelse:
                    lines += [
                        f"{indent}else",
                        f"{indent}{{",
                        *self._block(orelse, indent + "    ", again),
                        f"{indent}}}",
                    ]
                return [*before, *lines]
            case ast.Return(value=ast.expr() as value):
                return [f"{indent}return {self._expression(value)};"]
        raise self.refusal(node, f"{type(node).__name__} isn't in the subset for laws")

    def _hoisted(self, node: ast.If, indent: str) -> list[str]:
        """Declarations of names that only branches assign: C++ would forget them behind the branch."""
        names = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        new = [name for name in dict.fromkeys(names) if name not in self.declared]
        self.declared |= set(new)
        return [f"{indent}double {camel(name)} = 0.0;" for name in new]

    @staticmethod
    def _is_condition(node: ast.expr) -> bool:
        return isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        )

    def _expression(self, node: ast.expr, within: int = 0) -> str:
        """Text of an expression; in parentheses where it binds less than what is around it."""
        text, binds = self._bound(node)
        return f"({text})" if binds < within else text

    def _bound(self, node: ast.expr) -> tuple[str, int]:
        match node:
            case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
                return repr(float(value)), 9
            case ast.Name(id=name) if name in self.declared:
                return camel(name), 9
            case ast.Name(id=name) if isinstance(self.function.__globals__.get(name), float):
                return self._bound(ast.Constant(self.function.__globals__[name]))
            case ast.Attribute(value=ast.Name(id=record), attr=field) if record in self.declared:
                return (camel(field) if record == self.own else f"{camel(record)}.{camel(field)}"), 9
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())):
                raise self.refusal(node, "a whole power: write products, whose rounding is the same everywhere")
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"std::pow({self._expression(left)}, {self._expression(right)})", 9
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                sign, binds = _OPERATORS[type(op)]
                return f"{self._expression(left, binds)} {sign} {self._expression(right, binds + 1)}", binds
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._expression(operand, 8)}", 7
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self._expression(operand, 8)}", 7
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return f"{self._expression(left, 5)} {_COMPARED[type(op)]} {self._expression(right, 5)}", 4
            case ast.BoolOp(op=op, values=values):
                sign, binds = ("&&", 3) if isinstance(op, ast.And) else ("||", 2)
                # Parentheses that C++ doesn't need, but asks for where both stand together.
                return f" {sign} ".join(self._expression(each, 4) for each in values), binds
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"{self._expression(test, 2)} ? {self._expression(body, 2)} : {self._expression(orelse, 2)}", 1
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(node, name, [self._expression(each) for each in args]), 9
        raise self.refusal(node, f"{ast.unparse(node)} isn't in the subset for laws")

    def _call(self, node: ast.expr, name: str, arguments: list[str]) -> str:
        given = ", ".join(arguments)
        if name in ("min", "max") and len(arguments) == 2:
            return f"std::{name}({given})"
        if name in _LIBRARY and len(arguments) == 1:
            return f"{_LIBRARY[name]}({given})"
        if name in self.names:
            record = self.function.__globals__.get(name)
            if isinstance(record, type):
                return f"{self.names[name]}{{{given}}}"
            return f"{self.names[name]}({given})"
        raise self.refusal(node, f"{name} isn't in the subset for laws")
