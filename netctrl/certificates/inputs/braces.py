"""Configurations of statements that end with ; and of blocks in braces, as Junos and the docsis tool print them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from netctrl.certificates.inputs.queue import Input
from netctrl.core.errors import FileError

_TOKEN = re.compile(r'[{};]|"[^"\n]*"|[^\s{};"\[\]]+')
_DEEPEST = 64


class Block(NamedTuple):
    """A statement, with those inside its braces."""

    words: list[str]
    inside: list[Block]

    def statements(self, above: tuple[str, ...] = ()) -> Iterator[list[str]]:
        """Words of each innermost statement behind those of the blocks around it, as `set` commands have them."""
        path = (*above, *self.words)
        if not self.inside:
            yield list(path)
        for each in self.inside:
            yield from each.statements(path)

    def find(self, name: str) -> Iterator[Block]:
        """Blocks with this name, in the order of the text."""
        if self.words[:1] == [name]:
            yield self
        for each in self.inside:
            yield from each.find(name)


def blocks(given: Input) -> Block:
    """The whole text as one block; braces that don't close end with the text.

    Parameters
    ----------
    given : Input
        With comments of /* */, and of # and // from the beginning of a line.

    Raises
    ------
    FileError
        Blocks nested too deeply.

    Examples
    --------
    >>> list(blocks(Input("", "a { b 1; c [ 2 3 ]; }")).statements())
    [['a', 'b', '1'], ['a', 'c', '2', '3']]
    """
    whole = Block([], [])
    stack, words = [whole], []
    for token in _TOKEN.findall(_without_comments(given.content)):
        if token == "{":
            stack[-1].inside.append(Block(words, []))
            stack.append(stack[-1].inside[-1])
            words = []
            if len(stack) > _DEEPEST:
                raise FileError(given.source, "nested too deeply")
        elif token in (";", "}"):
            if words:
                stack[-1].inside.append(Block(words, []))
            words = []
            if token == "}" and len(stack) > 1:
                stack.pop()
        else:
            words.append(token.strip('"'))
    if words:
        stack[-1].inside.append(Block(words, []))
    return whole


def _without_comments(text: str) -> str:
    """The text without comments, in one pass: a comment that doesn't close ends with the text."""
    kept, end = [], 0
    while (start := text.find("/*", end)) >= 0:
        kept.append(text[end:start])
        end = text.find("*/", start + 2) + 2
        if end < 2:
            break
    else:
        kept.append(text[end:])
    return "\n".join(line for line in " ".join(kept).splitlines() if not line.lstrip().startswith(("#", "//")))
