"""XML, GML and YAML as plain nested dicts, in bounded time, size and depth; no entity is ever expanded."""

from __future__ import annotations

import re
from typing import Any
from xml.parsers import expat

from netctrl.core.errors import FileError, optional_import
from netctrl.model.io.validation_errors import shorten

_DEPTH = 60
_ALIASES = 200
_MAX_YAML = 2**20
_MAX_MERGED = 10_000
_GML = re.compile(r'"([^"]*)"|([^\s\[\]"#]+)|(\[)|(\])|#[^\n]*')
_ENTITY = re.compile(r"&#(\d{1,7});|&(amp|quot|lt|gt|apos);")
_NAMED = {"amp": "&", "quot": '"', "lt": "<", "gt": ">", "apos": "'"}

Tree = dict[str, Any]


def xml_tree(path: object, text: bytes) -> Tree:
    """An XML document: {root: element}; an element is its text, or a dict of attributes, children and `#text`.

    Children of one name are a list where there are several. A document type, and with it every entity, is refused.

    Raises
    ------
    FileError
        Not well-formed, nested too deeply, or with a document type.
    """
    parser = expat.ParserCreate()
    parser.buffer_text = True
    root: Tree = {}
    stack: list[tuple[Tree, list[str]]] = [(root, [])]

    def refuse(*_: Any) -> None:
        raise FileError(path, "XML with a document type (DOCTYPE), which is refused for its entities: remove it")

    def start(tag: str, attributes: dict[str, str]) -> None:
        if len(stack) > _DEPTH:
            raise FileError(path, "nested too deeply")
        stack.append((dict(attributes), []))

    def end(tag: str) -> None:
        element, said = stack.pop()
        words = "".join(said).strip()
        value: Any = element | ({"#text": words} if words else {}) if element else words
        _add(stack[-1][0], tag.rpartition(":")[2], value)

    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler = lambda data: stack[-1][1].append(data)  # noqa: PLW0108  the stack grows
    try:
        parser.Parse(text, True)
    except (expat.ExpatError, ValueError, LookupError) as error:  # also an unknown encoding
        raise FileError(path, f"not valid XML: {shorten(str(error))}") from None
    return root


def gml_tree(path: object, text: str) -> Tree:
    """A GML document: keys with numbers, texts or dicts; of keys that occur several times, a list.

    Raises
    ------
    FileError
        A key without a value, or brackets that don't match.
    """
    root: Tree = {}
    stack, key = [root], None
    for found in _GML.finditer(text):
        quoted, word, opens, closes = found.groups()
        if closes:
            if len(stack) == 1 or key is not None:
                raise FileError(path, f"not valid GML: an unexpected ] at character {found.start()}")
            stack.pop()
        elif opens:
            if key is None or len(stack) > _DEPTH:
                raise FileError(path, f"not valid GML: an unexpected [ at character {found.start()}")
            inner: Tree = {}
            _add(stack[-1], key, inner)
            stack.append(inner)
            key = None
        elif key is not None and (quoted is not None or word is not None):
            _add(stack[-1], key, _ENTITY.sub(_letter, quoted) if quoted is not None else _number(word))
            key = None
        elif word is not None:
            key = word
        elif quoted is not None:
            raise FileError(path, f"not valid GML: text without a key at character {found.start()}")
    if len(stack) > 1 or key is not None:
        raise FileError(path, "not valid GML: it ends within a value")
    return root


def yaml_tree(path: object, text: bytes) -> Any:
    """Content of a YAML document of at most 1 MiB, with few aliases.

    Raises
    ------
    FileError
        Not YAML, too large, nested too deeply, or with many aliases.
    MissingLibrary
        PyYAML isn't installed.
    """
    with optional_import():
        import yaml

    class Loader(yaml.SafeLoader):
        def flatten_mapping(self, node: Any) -> None:
            super().flatten_mapping(node)
            if len(node.value) > _MAX_MERGED:
                raise yaml.YAMLError("merged keys")

    if len(text) > _MAX_YAML:
        raise FileError(path, f"larger than the {_MAX_YAML // 2**20} MiB allowed for YAML")
    try:
        depth = aliases = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            aliases += isinstance(event, yaml.AliasEvent)
            if depth > _DEPTH or aliases > _ALIASES:
                raise FileError(path, "nested too deeply" if depth > _DEPTH else f"more than {_ALIASES} aliases")
        return yaml.load(text, Loader=Loader)
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as error:
        raise FileError(path, f"not valid YAML: {shorten(' '.join(str(error).split()), 120)}") from None


def items(tree: Any, *keys: str) -> list[Any]:
    """What stands at keys one below the other, as a list: one, several or none; "@id" stands for "id" as well."""
    for key in keys:
        tree = tree.get(key, tree.get(f"@{key}")) if isinstance(tree, dict) else None
    return [] if tree is None or tree == "" else tree if isinstance(tree, list) else [tree]


def elements(tree: Any, *keys: str) -> list[Tree]:
    """Those of `items` that have attributes or children."""
    return [each for each in items(tree, *keys) if isinstance(each, dict)]


def item(tree: Any, *keys: str) -> Any:
    """The first of `items`, or None; of an element with attributes, its text."""
    found = items(tree, *keys)
    value = found[0] if found else None
    return value["#text"] if isinstance(value, dict) and "#text" in value else value


def _add(above: Tree, key: str, value: Any) -> None:
    if key in above:
        there = above[key]
        above[key] = there if isinstance(there, list) else [there]
        above[key].append(value)
    else:
        above[key] = value


def _letter(found: re.Match[str]) -> str:
    number = int(found[1]) if found[1] else 0
    return _NAMED[found[2]] if found[2] else chr(number) if 0 < number < 0x110000 else ""


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word) if len(word) < 100 else word
        except ValueError:
            continue
    return word
