"""Edits of a file's content, for tests of what its reader refuses."""

from __future__ import annotations

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
