"""Edits of a file's content, for tests of what its reader refuses, and what two of them have alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Edit = Callable[[dict[str, Any]], Any]
"""Changes the content in place."""


def put(*keys: str | int, value: Any) -> Edit:
    def edit(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return edit


def drop(*keys: str | int) -> Edit:
    def edit(content: Any) -> None:
        for key in keys[:-1]:
            content = content[key]
        del content[keys[-1]]

    return edit


def in_any_order(tree: Any) -> Any:
    """A JSON schema's alternatives have no order, and versions of msgspec write them in different ones."""
    if isinstance(tree, dict):
        return {key: in_any_order(value) for key, value in tree.items()}
    return sorted(map(in_any_order, tree), key=json.dumps) if isinstance(tree, list) else tree
