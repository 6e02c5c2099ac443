"""Translation of one Python function to C++; `netctrl.laws.codegen` describes the subset and assembles laws."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterable, Mapping
from functools import reduce
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from netctrl.core.errors import NetctrlError
from netctrl.laws.cpp import RESERVED, camel, comment, number, wrapped
from netctrl.laws.record import Grid, Matrix, Numbers, Vector, WholeGrid, WholeNumbers, field_types, is_record
from netctrl.laws.syntax import assigned, assigned_first, changes, named, plain, source

_CONDITIONS = ("isfinite", "isnan")
_LIBRARY = {"abs": "std::fabs"} | {
    name: f"std::{name}" for name in ("cos", "exp", "expm1", "floor", "log", "log1p", "sin", "sqrt", *_CONDITIONS)
}
SUBSET = (
    "assignments, if, while, for over a range, return, arithmetic, comparisons, min, max, int, float, len, round, "
    f"{', '.join(_LIBRARY)}, and functions of these"
)
"""What a law may use, in words."""
_OPERATORS: dict[type, tuple[str, int]] = {
    ast.Add: ("+", 5), ast.Sub: ("-", 5), ast.Mult: ("*", 6), ast.Div: ("/", 6), ast.MatMult: ("*", 6)
}  # fmt: skip
_COMPARED: dict[type, str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="
}  # fmt: skip


_WHOLE: dict[type, tuple[str, int]] = {
    ast.Add: ("+", 5), ast.Sub: ("-", 5), ast.Mult: ("*", 6), ast.Mod: ("%", 6), ast.FloorDiv: ("/", 6),
    ast.BitAnd: ("&", 3),
}  # fmt: skip
_CONVERSIONS = {"int": "int64_t", "len": "int64_t", "float": "double"}
_OF_ARRAYS = {"clip": "Clip", "concatenate": "Concatenate", "exp": "std::exp", "log": "std::log", "resize": "Resize"}
_OF_ARRAYS |= {"where": "Where"}
TYPES: dict[Any, str] = {
    float: "double", int: "int64_t", bool: "bool", np.ndarray: "std::vector<double>", type(None): "void",
    Vector: "Vector", Matrix: "Matrix", Numbers: "std::vector<double>", WholeNumbers: "std::vector<int64_t>",
    Grid: "Grid<double>", WholeGrid: "Grid<int64_t>",
}  # fmt: skip


class Refused(NetctrlError, ValueError):
    """Construct outside the subset; the message has the file and the line."""


def cpp_type(kind: Any, names: Mapping[str, str]) -> str:
    """C++ name of a type; `names` has those of records."""
    if kind in TYPES:
        return names.get("float", TYPES[kind]) if kind is float else TYPES[kind]
    if get_origin(kind) is tuple:
        first, *others = get_args(kind)
        return f"std::array<{cpp_type(first, names)}, {1 + len(others)}>"
    if get_origin(kind) is Annotated:
        return f"std::array<double, {get_args(kind)[1]}>"
    if getattr(kind, "__name__", None) not in names:
        raise Refused(f"{kind} isn't a type that this part of a law knows")
    return names[kind.__name__]


class Printer:
    """Printer of one function; `own` is the type of the argument whose fields become members of the struct."""

    def __init__(self, function: Any, names: Mapping[str, str], own: Any = None) -> None:
        self.function = plain(function)
        self.names = names
        self.tree = source(self.function)
        self.first = inspect.getsourcelines(self.function)[1]
        tree = self.tree
        if not isinstance(tree, ast.FunctionDef) or tree.args.kwonlyargs or tree.args.vararg or tree.args.defaults:
            raise self.refusal(tree, "takes a plain function")
        hints = get_type_hints(self.function, include_extras=True)
        self.takes = takes = [argument.arg for argument in tree.args.args]
        self.own = next((each for each in takes if own is not None and hints.get(each) is own), None)
        self.members = frozenset(map(camel, own._fields)) if own is not None else frozenset()
        self.kinds: dict[str, Any] = {each: hints.get(each, float) for each in takes}
        self.returns = hints.get("return", float)

    def returned(self) -> str:
        """Type that the function returns."""
        return cpp_type(self.returns, self.names)

    def signature(self, takes: Mapping[str, Any]) -> str:
        """Arguments with their types."""
        return ", ".join(f"{self._passed(each, kind)} {camel(each)}" for each, kind in takes.items())

    def _passed(self, name: str, kind: Any) -> str:
        text = cpp_type(kind, self.names)
        if kind in (float, int, bool):
            return text
        return f"{text}&" if changes(self.function, name) else f"const {text}&"

    def printed(self, signature: str, *, documented: bool = True) -> str:
        again = self._assigned_again()
        body = self._block(self._without_doc(self.tree.body), "    ", again)
        about = comment(inspect.getdoc(self.function) or "") if documented else []
        lines = [*about, *signature.split("\n"), "{", *body, "}"]
        return "\n".join(part for line in lines for part in wrapped(line))

    def uses(self, name: str) -> bool:
        """Whether the function reads an argument."""
        return any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(self.tree))

    def refusal(self, node: ast.AST, why: str) -> Refused:
        line = self.first + getattr(node, "lineno", 1) - 1
        return Refused(f"{inspect.getsourcefile(self.function)}, line {line}: {why}")

    @staticmethod
    def _without_doc(body: list[ast.stmt]) -> list[ast.stmt]:
        return body[1:] if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) else body

    def _assigned_again(self) -> set[str]:
        """Names that are assigned more than once, including arguments, or whose entries are; the others are const."""
        seen = [*self.takes]
        seen += [
            node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        return {name for name in seen if seen.count(name) > 1 or changes(self.function, name)}

    def _block(self, statements: Iterable[ast.stmt], indent: str, again: set[str]) -> list[str]:
        lines: list[str] = []
        for each in statements:
            lines += self._statement(each, indent, again)
        return lines

    def _braced(self, statements: Iterable[ast.stmt], indent: str, again: set[str]) -> list[str]:
        outside = dict(self.kinds)
        lines = [f"{indent}{{", *self._block(statements, indent + "    ", again), f"{indent}}}"]
        self.kinds = outside
        return lines

    def _statement(self, node: ast.stmt, indent: str, again: set[str]) -> list[str]:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                kind = self.kinds.get(name, self._kind(value))
                text = self._whole(value) if kind is int else self._expression(value)
                if name in RESERVED or (self.own is not None and camel(name) in self.members):
                    raise self.refusal(node, f"{name} is a word of C++, or a parameter of the law")
                if name in self.kinds:
                    if name in self.takes and kind not in (float, int, bool):
                        raise self.refusal(node, f"{name} is an argument and stays as it is")
                    return [f"{indent}{camel(name)} = {text};"]
                self.kinds[name] = kind
                if kind in (Grid, Numbers, WholeGrid, WholeNumbers) and isinstance(value, ast.Attribute | ast.Name):
                    if name in again:
                        raise self.refusal(node, f"{name} is another name for an array, and stays it")
                    return [f"{indent}auto& {camel(name)} = {text};"]
                return [
                    f"{indent}{'' if name in again else 'const '}{cpp_type(kind, self.names)} {camel(name)} = {text};"
                ]
            case ast.Assign(targets=[_, _, *_] as targets, value=ast.Name() | ast.Constant() as value):
                return self._block(
                    [ast.copy_location(ast.Assign([each], value), node) for each in targets], indent, again
                )
            case ast.Assign(targets=[ast.Subscript() | ast.Attribute() as place], value=value):
                text = self._whole(value) if self._kind(place) is int else self._expression(value)
                return [f"{indent}{self._expression(place)} = {text};"]
            case ast.AugAssign(target=place, op=op, value=value) if type(op) in _OPERATORS:
                text = self._whole(value) if self._kind(place) is int else self._expression(value)
                return [f"{indent}{self._expression(place)} {_OPERATORS[type(op)][0]}= {text};"]
            case ast.If(test=test, body=body, orelse=orelse):
                before = self._hoisted(node, indent)
                lines = [f"{indent}if ({self._expression(test)})", *self._braced(body, indent, again)]
                if len(orelse) == 1 and isinstance(orelse[0], ast.If):
                    first, *rest = self._statement(orelse[0], indent, again)
                    lines += [f"{indent}else {first.strip()}", *rest]
                elif orelse:
                    lines += [f"{indent}else", *self._braced(orelse, indent, again)]
                return [*before, *lines]
            case ast.While(test=test, body=body, orelse=[]):
                return [f"{indent}while ({self._expression(test)})", *self._braced(body, indent, again)]
            case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]) if (
                len(args) < 3 or ast.unparse(args[2]) == "-1"
            ):
                outside, count = dict(self.kinds), camel(name) if name != "_" else "turn"
                begin, end = map(self._whole, args[:2] if len(args) > 1 else (ast.Constant(0), args[0]))
                sign, next_one = ("<", "++") if len(args) < 3 else (">", "--")
                head = f"for (int64_t {count} = {begin}; {count} {sign} {end}; {next_one}{count})"
                self.kinds[name] = int
                lines = [f"{indent}{head}", *self._braced(node.body, indent, again)]
                self.kinds = outside
                return lines
            case ast.Break() | ast.Continue():
                return [f"{indent}{type(node).__name__.lower()};"]
            case ast.Expr(value=ast.Call() as call):
                return [f"{indent}{self._expression(call)};"]
            case ast.Return(value=None):
                return [f"{indent}return;"]
            case ast.Return(value=ast.expr() as value):
                text = self._whole(value) if self.returns is int else self._expression(value)
                return [f"{indent}return {text};"]
        raise self.refusal(node, f"{type(node).__name__} isn't in the subset for laws")

    def _hoisted(self, node: ast.If, indent: str) -> list[str]:
        """Declarations of names that several branches assign, placed before the branches."""
        lines = []
        for name in assigned(node.body) & assigned(node.orelse):
            if name not in self.kinds:
                self.kinds[name] = self._kind(assigned_first(node, name))
                lines.append(f"{indent}{cpp_type(self.kinds[name], self.names)} {camel(name)};")
        return sorted(lines)

    # --- types -------------------------------------------------------------------------------------------------------

    def _kind(self, node: ast.expr) -> Any:
        """Type of an expression, float by default."""
        match node:
            case ast.Name(id=name):
                constant = self.function.__globals__.get(name)
                return self.kinds.get(name, int if type(constant) is int else float)
            case ast.Attribute(value=value, attr=field):
                return field_types(self._kind(value)).get(field, float)
            case ast.Subscript(value=value):
                kind = self._kind(value)
                if kind in (WholeNumbers, WholeGrid):
                    return int
                return Vector if kind == Matrix else get_args(kind)[0] if get_origin(kind) is tuple else float
            case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()):
                return bool
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr="exp" | "log"), args=[value]):
                return self._kind(value)
            case ast.BinOp(op=ast.MatMult()) | ast.Call(func=ast.Attribute(value=ast.Name(id="np"))):
                return Vector
            case ast.UnaryOp(op=ast.USub(), operand=operand) if self._kind(operand) == Vector:
                return Vector
            case ast.BinOp(left=left, right=right) if Vector in (self._kind(left), self._kind(right)):
                return Vector
            case ast.BinOp(left=left, right=right):
                known = [self._kind(each) for each in (left, right) if not self._is_number(each)]
                return int if known and all(each is int for each in known) else float
            case ast.IfExp(body=body):
                return self._kind(body)
            case ast.Call(func=ast.Name(id="int" | "len" | "round")):
                return int
            case ast.Call(func=ast.Name(id=name)) if name in _CONDITIONS:
                return bool
            case ast.Call(func=ast.Name(id="min" | "max"), args=args):
                return int if any(self._kind(each) is int for each in args) else float
            case ast.Call(func=ast.Name(id=name)) if name in self.names:
                called = plain(self.function.__globals__.get(name))
                return (
                    called
                    if isinstance(called, type)
                    else get_type_hints(called, include_extras=True).get("return", float)
                )
        return float

    def _is_number(self, node: ast.expr) -> bool:
        """Whether a constant or literal's type depends on its neighbours."""
        if isinstance(node, ast.Name) and node.id not in self.kinds:
            return type(self.function.__globals__.get(node.id)) is int
        return isinstance(node, ast.Constant)

    def _whole(self, node: ast.expr) -> str:
        """Text of a whole number, whose literals have no point."""
        match node:
            case ast.Constant(value=int() as value):
                return str(value)
            case ast.Name(id=name) if name not in self.kinds and name in self.names:
                return self.names[name]
            case ast.Name(id=name) if name not in self.kinds and isinstance(self.function.__globals__.get(name), int):
                return str(self.function.__globals__[name])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _WHOLE:
                sign, binds = _WHOLE[type(op)]
                if sign == "&":  # which C++ takes after comparisons; compilers ask for parentheses
                    return f"{self._inner(left, 7)} & {self._inner(right, 7)}"
                return f"{self._inner(left, binds)} {sign} {self._inner(right, binds + 1)}"
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"({self._expression(test, 2)} ? {self._whole(body)} : {self._whole(orelse)})"
        if self._kind(node) is not int:
            raise self.refusal(node, f"{ast.unparse(node)} isn't a whole number; int(...) makes one")
        return self._expression(node)

    def _inner(self, node: ast.expr, within: int) -> str:
        lower = isinstance(node, ast.BinOp) and _WHOLE.get(type(node.op), ("", 9))[1] < within
        return f"({self._whole(node)})" if lower else self._whole(node)

    # --- expressions -------------------------------------------------------------------------------------------------

    def _expression(self, node: ast.expr, within: int = 0) -> str:
        """Text of an expression, in parentheses where its precedence requires."""
        text, binds = self._bound(node)
        return f"({text})" if binds < within else text

    def _bound(self, node: ast.expr) -> tuple[str, int]:
        constants = self.function.__globals__
        match node:
            case ast.Constant(value=float() | int() as value) if not isinstance(value, bool):
                return number(value), 9
            case ast.Constant(value=bool() as value):
                return str(value).lower(), 9
            case ast.Name(id=name) if name in self.kinds:
                return camel(name), 9
            case ast.Name(id=name) if type(constants.get(name)) in (float, int):
                return number(constants[name]), 9
            case ast.Attribute(value=ast.Name(id=record), attr=field) if record in self.kinds:
                if is_record(self.kinds[record]) and field not in field_types(self.kinds[record]):
                    raise self.refusal(node, f"{record} has no field {field}")
                return (camel(field) if record == self.own else f"{camel(record)}.{camel(field)}"), 9
            case ast.Attribute(value=value, attr=field) if isinstance(value, ast.Attribute | ast.Subscript | ast.Call):
                return f"{self._expression(value, 9)}.{camel(field)}", 9
            case ast.Subscript(value=value, slice=ast.Tuple(elts=[row, column])) if self._kind(value) in (
                Grid,
                WholeGrid,
            ):
                return f"{self._expression(value, 9)}({self._whole(row)}, {self._whole(column)})", 9
            case ast.Subscript(value=value, slice=place):
                return f"{self._expression(value, 9)}[{self._whole(place)}]", 9
            case ast.BinOp(op=ast.Pow(), right=ast.Constant(value=int())):
                raise self.refusal(node, "a whole power: write products, whose rounding is the same everywhere")
            case ast.BinOp(left=left, op=ast.Pow(), right=right):
                return f"std::pow({self._expression(left)}, {self._expression(right)})", 9
            case ast.BinOp(op=op) if self._kind(node) is int and type(op) in _WHOLE:
                return self._whole(node), _WHOLE[type(op)][1]
            case ast.BinOp(left=left, op=ast.MatMult(), right=right) if (
                self._kind(left) != Matrix or self._kind(right) != Vector
            ):
                raise self.refusal(node, f"{ast.unparse(node)}: @ is a Matrix times a Vector")
            case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATORS:
                sign, binds = _OPERATORS[type(op)]
                return f"{self._expression(left, binds)} {sign} {self._expression(right, binds + 1)}", binds
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._expression(operand, 8)}", 7
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return f"!{self._expression(operand, 8)}", 7
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARED:
                sign = _COMPARED[type(op)]
                if int in (self._kind(left), self._kind(right)):
                    return f"{self._inner(left, 5)} {sign} {self._inner(right, 5)}", 4
                return f"{self._expression(left, 5)} {sign} {self._expression(right, 5)}", 4
            case ast.Compare(left=left, ops=[one, two], comparators=[middle, right]):
                parts = ast.Compare(left, [one], [middle]), ast.Compare(middle, [two], [right])
                return " && ".join(self._expression(each, 4) for each in parts), 3
            case ast.BoolOp(op=op, values=values):
                sign, binds = ("&&", 3) if isinstance(op, ast.And) else ("||", 2)
                # Parentheses that C++ doesn't need, but asks for where both stand together.
                return f" {sign} ".join(self._expression(each, 4) for each in values), binds
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return f"{self._expression(test, 2)} ? {self._expression(body, 2)} : {self._expression(orelse, 2)}", 1
            case ast.Call(func=ast.Name(id=name), args=args, keywords=[]):
                return self._call(node, name, args), 9
            case ast.Call(func=ast.Attribute(value=ast.Name(id="np"), attr=name), args=args, keywords=[]) if (
                name in _OF_ARRAYS
            ):
                given = args[0].elts if isinstance(args[0], ast.Tuple) else args
                texts = (self._whole(each) if self._kind(each) is int else self._expression(each) for each in given)
                return f"{_OF_ARRAYS[name]}({', '.join(texts)})", 9
            case ast.Call(func=ast.Attribute(value=value, attr="min" | "max" as name), args=[], keywords=[]) if (
                self._kind(value) == Vector
            ):
                return f"{self._expression(value, 9)}.{name}()", 9
        raise self.refusal(node, f"{ast.unparse(node)} isn't in the subset for laws")

    def _call(self, node: ast.expr, name: str, args: list[ast.expr]) -> str:
        if name in ("min", "max") and len(args) > 1:
            whole = self._kind(node) is int
            called = f"std::{name}<int64_t>" if whole else f"std::{name}"
            texts = map(self._whole if whole else self._expression, args)
            return reduce(lambda found, each: f"{called}({found}, {each})", texts)
        if name in _CONVERSIONS and len(args) == 1:
            return f"static_cast<{_CONVERSIONS[name]}>({self._expression(args[0])}{'.size()' * (name == 'len')})"
        if name == "round" and len(args) == 1:
            return f"static_cast<int64_t>(std::nearbyint({self._expression(args[0])}))"
        if name in _LIBRARY and len(args) == 1:
            return f"{_LIBRARY[name]}({self._expression(args[0])})"
        called = plain(self.function.__globals__.get(name))
        if name in self.names and isinstance(called, type) and issubclass(called, tuple):
            kinds = field_types(called).values()
            self._check_count(node, name, args, len(kinds))
            return f"{self.names[name]}{{{', '.join(self._given(args, kinds))}}}"
        if name in self.names:
            kinds = get_type_hints(called, include_extras=True)
            takes = [kinds.get(each, float) for each in inspect.signature(called).parameters]
            self._check_count(node, name, args, len(takes))
            given = [
                text
                for each, text in zip(args, self._given(args, takes), strict=True)
                if self.own is None or named(each) != self.own
            ]
            return f"{self.names[name]}({', '.join(given)})"
        raise self.refusal(node, f"{name} isn't in the subset for laws")

    def _given(self, args: Iterable[ast.expr], kinds: Iterable[Any]) -> list[str]:
        pairs = zip(args, kinds, strict=True)
        return [self._whole(each) if kind is int else self._expression(each) for each, kind in pairs]

    def _check_count(self, node: ast.expr, name: str, args: list[ast.expr], count: int) -> None:
        if len(args) != count:
            raise self.refusal(node, f"{name} takes {count} values, got {len(args)}")
