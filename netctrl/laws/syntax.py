"""Analysis of a law's syntax tree: assigned names, changed arguments."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterable
from typing import Any


def plain(thing: Any) -> Any:
    """Python function behind numba's compilation or a decorator, or the object itself."""
    return inspect.unwrap(getattr(thing, "py_func", thing))


def source(thing: Any) -> Any:
    """Syntax tree of one function or class."""
    return ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]


def named(node: ast.expr) -> str:
    """Name in an expression, or ""."""
    return node.id if isinstance(node, ast.Name) else ""


def changes(function: Any, name: str) -> bool:
    """Whether a function changes a field or an entry of its argument, itself or through a callee."""
    for node in ast.walk(source(function)):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            root = node.value
            while isinstance(root, ast.Attribute | ast.Subscript):
                root = root.value
            if named(root) == name:
                return True
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = plain(function.__globals__.get(node.func.id))
            for place, each in enumerate(node.args):
                takes = list(inspect.signature(called).parameters) if inspect.isfunction(called) else []
                if named(each) == name and takes and changes(called, takes[place]):
                    return True
    return False


def assigned(statements: Iterable[ast.stmt]) -> set[str]:
    """Names that are assigned on all paths."""
    found: set[str] = set()
    for each in statements:
        if isinstance(each, ast.Assign):
            found.update(map(named, each.targets))
        elif isinstance(each, ast.If):
            found |= assigned(each.body) & assigned(each.orelse)
    return found - {""}


def assigned_first(node: ast.If, name: str) -> ast.expr:
    """First value assigned to a name."""
    found = (each for each in ast.walk(node) if isinstance(each, ast.Assign) and named(each.targets[0]) == name)
    return next(found).value
