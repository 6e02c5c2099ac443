"""Pages of the records that public functions return, and of those in them: fields with shapes and units, and methods.

The sources are read, not imported, so that the site is built without the numerical libraries.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import griffe
from generated import GROUPS

MIXINS = {f"netctrl.model.io.{name}" for name in ("display.Plotted", "display.Reported", "record_file.Record")}
"""What records can do beside what they are."""
SECTIONS = griffe.DocstringSectionKind


class Results:
    """The records that netctrl's public functions lead to."""

    def __init__(self, root: Path, public: dict[str, str]) -> None:
        self._package = griffe.load("netctrl", search_paths=[str(root)], docstring_parser="numpy")
        self.known = {f"{module}.{name}" for name, module in public.items()}
        """Paths of the classes that have a place in the reference."""
        self.groups: dict[str, dict[str, Any]] = {page: {} for page in GROUPS}
        """Page -> path of a record -> its class."""
        for name, module in sorted(public.items()):
            function = self._found(f"{module}.{name}")
            page = next(page for page, (_, packages) in GROUPS.items() if module.split(".")[1] in packages)
            if function is not None and function.is_function:
                for each in (function, *(function.overloads or ())):
                    self._follow(each.returns, page)

    def _found(self, path: str) -> Any:
        """What stands at a path, wherever it is defined; None where netctrl has nothing there."""
        try:
            found = self._package[path.removeprefix("netctrl.")]
            return found.final_target if found.is_alias else found
        except (KeyError, griffe.AliasResolutionError):
            return None

    def _follow(self, annotation: Any, page: str) -> None:
        """Keep the classes that an annotation names, and those that their fields name."""
        for path in _names(annotation):
            found = self._found(path) if path.startswith("netctrl.") else None
            if found is None or found.canonical_path in self.known:
                continue
            if found.is_attribute:  # a union with a name of its own
                self._follow(found.annotation, page)
                self._follow(found.value, page)
            elif found.is_class and not found.name.startswith("_") and path not in MIXINS:
                self.groups[page][found.canonical_path] = found
                self.known.add(found.canonical_path)
                for base in found.bases:
                    self._follow(base, page)
                for field in fields(found).values():
                    self._follow(field.annotation, page)

    def pages(self) -> dict[str, str]:
        """Source of each page; ValueError where a field's meaning isn't told."""
        found = {}
        for page, (title, _) in GROUPS.items():
            records = sorted(self.groups[page].items(), key=lambda each: each[1].name.lower())
            if records:
                told = f"What the functions under [{title.lower()}]({page}.md) return, and the records in it."
                sections = [text for path, record in records for text in self._section(path, record)]
                found[f"reference/api/results-{page}.md"] = "\n\n".join(
                    [f"# Results: {title.lower()}", told, *sections, ""]
                )
        return found

    def _section(self, path: str, record: Any) -> list[str]:
        sections = record.docstring.parsed if record.docstring else []
        told = [html.escape(each.value, quote=False) for each in sections if each.kind is SECTIONS.text]
        rows, known = [], meanings(record)
        for name, field in fields(record).items():
            if name not in known:
                raise ValueError(f"{path}.{name} has no docstring")
            kind = self._kind(field.annotation) + (f" {shape}" if (shape := known[name].shape) else "")
            rows.append(f"| `{name}` | {kind} | {_cell(known[name].text)} |")
        methods = [f"| `{name}` | {_cell(each)} |" for name, each in _methods(record)]
        parts = [f"## {record.name} {{ #{path} }}", f"`{path}`", *told]
        values = [f"| `{each.value}` | {_cell(each.docstring.value)} |" for each in _values(record)]
        parts += ["\n".join(["| value | meaning |", "|---|---|", *values])] if values else []
        parts += ["\n".join(["| field | type | meaning |", "|---|---|---|", *rows])] if rows else []
        parts += ["\n".join(["| method | what it gives |", "|---|---|", *methods])] if methods else []
        return parts

    def _kind(self, annotation: Any) -> str:
        """A type, with links to the records that have a place here."""
        parts = annotation.iterate(flat=True) if isinstance(annotation, griffe.Expr) else [str(annotation)]
        return "".join(self._part(each) for each in parts).replace(" | ", " or ").replace("np.ndarray", "array")

    def _part(self, part: Any) -> str:
        found = self._found(part.canonical_path) if isinstance(part, griffe.ExprName) else None
        if found is not None and found.canonical_path in self.known:
            return f"[{found.name}][{found.canonical_path}]"
        return re.sub(r"([\[\]*])", r"\\\1", str(part))


def _names(annotation: Any) -> Iterator[str]:
    if isinstance(annotation, griffe.Expr):
        yield from (each.canonical_path for each in annotation.iterate(flat=True) if isinstance(each, griffe.ExprName))


def _kinds(record: Any) -> list[Any]:
    """A class behind those that it comes from."""
    return [*reversed(record.mro()), record]


def fields(record: Any) -> dict[str, Any]:
    """A class's fields with those that it inherits."""
    every = {name: each for kind in _kinds(record) for name, each in kind.attributes.items()}
    return {name: each for name, each in every.items() if not name.startswith("_") and _is_field(each)}


def _values(record: Any) -> Iterator[Any]:
    """What an enumeration may be, where it tells more of it than the name."""
    return (each for each in record.attributes.values() if each.docstring and each.annotation is None)


def _is_field(attribute: Any) -> bool:
    return (
        "property" not in attribute.labels
        and attribute.annotation is not None
        and "ClassVar" not in str(attribute.annotation)
    )


class Meaning(NamedTuple):
    """What a field is, and the shape of an array."""

    text: str
    shape: str


def meanings(record: Any) -> dict[str, Meaning]:
    """Of each field, from the text under it or from the class's Parameters."""
    found: dict[str, Meaning] = {}
    for kind in _kinds(record):
        sections = kind.docstring.parsed if kind.docstring else []
        for section in (each for each in sections if each.kind is SECTIONS.parameters):
            for each in section.value:
                shape = re.search(r"shape ?(\(.*?\))", str(each.annotation or ""))
                found[each.name] = Meaning(each.description, shape[1] if shape else "")
        told = {name: each.docstring.value for name, each in kind.attributes.items() if each.docstring}
        found |= {name: Meaning(text, "") for name, text in told.items()}
    return found


def _methods(record: Any) -> Iterator[tuple[str, str]]:
    """Public methods and properties, with their first lines."""
    every = {name: each for kind in _kinds(record) for name, each in kind.members.items() if not name.startswith("_")}
    for name, each in every.items():
        if each.is_function and each.docstring:
            arguments = ", ".join(argument.name for argument in each.parameters if argument.name not in ("self", "cls"))
            yield f"{name}({arguments})", each.docstring.value.partition("\n\n")[0]
        elif each.is_attribute and "property" in each.labels and each.docstring:
            yield name, each.docstring.value.partition("\n\n")[0]


def _cell(text: str) -> str:
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")
