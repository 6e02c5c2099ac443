"""Laws as C without floating point: doubles are their 64 bits, operations are calls of f64_add and the like.

For kernels and BPF, which have no floating point. The functions are those of netctrl/linux/congestion/float64.h; they
round as hardware does, so that a step gives the bits that it gives in Python, NaNs' payloads aside.
"""

from __future__ import annotations

import ast
import struct
from collections import Counter
from collections.abc import Mapping
from functools import reduce
from typing import Any

from netctrl.laws.codegen import field_texts, helpers
from netctrl.laws.cpp import camel
from netctrl.laws.printer import Printer
from netctrl.laws.record import field_types
from netctrl.laws.syntax import changes, plain, source

_OPERATORS: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
_COMPARED: dict[type, str] = {
    ast.Lt: "{0}lt({1}, {2})", ast.LtE: "{0}le({1}, {2})", ast.Gt: "{0}lt({2}, {1})", ast.GtE: "{0}le({2}, {1})",
    ast.Eq: "{0}eq({1}, {2})", ast.NotEq: "!{0}eq({1}, {2})",
}  # fmt: skip
_LIBRARY = ("sqrt", "floor", "isfinite", "isnan")
_REGISTERS = 5
"""Arguments of a BPF function."""


def bits(value: float) -> str:
    """The 64 bits of a double, with its value beside them."""
    return f"{struct.unpack('<Q', struct.pack('<d', value))[0]:#x}ull /* {float(value)!r} */"


class IntegerPrinter(Printer):
    """Printer of one function; parameters, of type `own`, are macros such as LAW_GAIN."""

    def __init__(self, function: Any, names: Mapping[str, str], own: Any) -> None:
        super().__init__(function, names)
        self.own = next((name for name, kind in self.kinds.items() if kind is own), None)

    def text(self, once: bool) -> str:
        """The function, inlined where BPF has too few registers for its arguments, or of numbers and called `once`.

        What takes a record is global (F64): BPF's verifier goes through it once, for any record and numbers, and not in
        each state of those who call it, of which there would be more than the million instructions that it allows. It
        asks for a test of each pointer, and that a number is returned.
        """
        takes = {name: kind for name, kind in self.kinds.items() if name != self.own}
        records = [camel(name) for name, kind in takes.items() if kind not in (float, int, bool)]
        signature = f"{self.names[self.function.__name__]}({self.signature(takes)})"
        many = len(takes) > _REGISTERS
        if many or not records:
            linked = "__always_inline" if many or once else "noinline"
            return self.printed(f"static {linked} {self.returned()}\n{signature}")
        kind = "int" if self.returns is type(None) else self.returned()
        head, body = self.printed(f"F64 {kind}\n{signature}").split("\n{\n", 1)
        if self.returns is type(None):
            body = body.replace("return;", "return 0;").removesuffix("}") + "    return 0;\n}"
        tests = "".join(f"    if (!{each})\n        return 0;\n" for each in records)
        return f"{head}\n{{\n{tests}{body}"

    def _passed(self, name: str, kind: Any) -> str:
        if kind in (float, int, bool):
            return super()._passed(name, kind)
        return f"{'' if changes(self.function, name) else 'const '}struct {self.names[kind.__name__]}*"

    def _statement(self, node: ast.stmt, indent: str, again: set[str]) -> list[str]:
        if isinstance(node, ast.AugAssign):
            value = ast.copy_location(ast.BinOp(node.target, node.op, node.value), node)
            node = ast.copy_location(ast.Assign([node.target], value), node)
        return super()._statement(node, indent, again)

    def _bound(self, node: ast.expr) -> tuple[str, int]:
        constants = self.function.__globals__
        match node:
            case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
                return bits(value), 9
            case ast.Name(id=name) if name not in self.kinds and type(constants.get(name)) in (float, int):
                return bits(constants[name]), 9
            case ast.Attribute(value=ast.Name(id=record), attr=field) if record == self.own:
                return f"LAW_{field.upper()}", 9
            case ast.Attribute(value=ast.Name(id=record), attr=field) if record in self.kinds:
                return f"{camel(record)}->{camel(field)}", 9
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                return f"f64_{_OPERATORS[type(op)]}({self._expression(left)}, {self._expression(right)})", 9
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"f64_neg({self._expression(operand)})", 9
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                return _COMPARED[type(op)].format("f64_", self._expression(left), self._expression(right)), 7
            case ast.BinOp() | ast.Subscript():
                raise self.refusal(node, f"{ast.unparse(node)} has no form in integers")
        return super()._bound(node)

    def _call(self, node: ast.expr, name: str, args: list[ast.expr]) -> str:
        if name in ("min", "max") and len(args) > 1:
            return reduce(lambda found, each: f"f64_{name}({found}, {each})", map(self._expression, args))
        if name in _LIBRARY and len(args) == 1:
            return f"f64_{name}({self._expression(args[0])})"
        if name not in self.names:
            raise self.refusal(node, f"{name} has no form in integers")
        return super()._call(node, name, args)


def law_in_integers(step: Any, parameters: Any, settings: Any, state: Any, start: Any) -> str:
    """A law's text in C: its parameters as macros, `struct law`, `law_start`, and its functions, last `law_step`.

    Parameters
    ----------
    step : function
        In the subset (`netctrl.laws.codegen`), of a state, parameters, and numbers.
    parameters, state : type
        Records of floats.
    settings, start : array_like
        Their values, those of the state before its first step.

    Raises
    ------
    Refused
        It takes what has no form in integers, such as a logarithm of the machine's library.
    """
    own, fields = plain(step), field_texts(state)
    functions = [*helpers(step).values(), own]
    names = {each.__name__: f"law_{each.__name__.lstrip('_')}" for each in functions}
    names |= {"float": "u64", state.__name__: "law", own.__name__: "law_step"}
    macros = [
        f"#define LAW_{name.upper()} {bits(float(value))}"
        for name, value in zip(field_types(parameters), settings, strict=True)
    ]
    record = [f"    u64 {camel(name)};{f' /* {text} */' if text else ''}" for name, text in fields.items()]
    first = [f"    {bits(float(value))}," for value in start]
    parts = ["\n".join(macros), "\n".join(["struct law {", *record, "};"])]
    parts.append("\n".join(["static const struct law law_start = {", *first, "};"]))
    calls = Counter(
        node.func.id
        for each in functions
        for node in ast.walk(source(each))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    for each in functions:
        parts.append(IntegerPrinter(each, names, parameters).text(calls[each.__name__] == 1))
    return "\n\n".join(parts) + "\n"
