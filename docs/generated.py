"""Pages that are made when the site is built: public names, command line, file formats, notebooks."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

GROUPS = {
    "designs": ("Designs", ("design", "checks.designs")),
    "margins": ("Margins of loops", ("frequency",)),
    "certificates": ("Certificates of queues", ("certificates", "checks")),
    "records": ("Networks, models and traces", ("model", "engines.reader")),
    "simulation": ("Scenarios, engines and simulation", ("scenario", "engines", "sim", "evaluation")),
    "identification": ("Identification", ("ident",)),
    "optimisation": ("Optimal control and programs", ("synthesis", "mpc", "plants")),
    "laws": ("Laws, sample by sample", ("laws",)),
    "errors": ("Errors", ("core",)),
}
"""Page -> its title, and the packages of netctrl whose public names stand on it."""


SOUGHT = """---
search:
  boost: 5
---
"""
"""Before a page that the search shows first."""


def api_pages(public: dict[str, str], inner: dict[str, str]) -> dict[str, str]:
    """Source of each page of public names, and of names that modules alone have; ValueError where one has no page."""
    pages: dict[str, str] = {}
    left = public | inner
    for page, (title, packages) in GROUPS.items():
        names = sorted(
            (name for name in left if left[name].removeprefix("netctrl.").startswith(packages)), key=str.lower
        )
        parts = [SOUGHT, f"# {title}\n", "Examples run as they stand.\n"]
        for name in names:
            # A heading of our own, since the name stands in netctrl and not in its module alone.
            shown = f"{inner[name]}.{name}" if name in inner else f"netctrl.{name}"
            options = f"    options:\n      heading: {shown}\n      toc_label: {name}\n"
            parts.append(f"::: {left.pop(name)}.{name}\n{options}")
        pages[f"reference/api/{page}.md"] = "\n".join(parts)
    if left:
        raise ValueError(f"docs/generated.py: GROUPS has no page for {', '.join(left)}")
    return pages


def _help(root: Path, *words: str) -> str:
    command = [sys.executable, "-m", "netctrl", *words, "--help-all" if words else "--help"]
    wide = os.environ | {"COLUMNS": "80"}  # the page is the same wherever it is made
    ran = subprocess.run(command, cwd=root, env=wide, capture_output=True, text=True, check=True, timeout=60)
    return ran.stdout


def _commands(text: str) -> list[str]:
    """The words that a help lists as `  WORD  what it does` before its examples."""
    return re.findall(r"^  ([a-z][\w-]*)  +\S", text.partition("\nexamples:")[0], flags=re.MULTILINE)


def command_line(root: Path) -> str:
    """Every help text of `netctrl`, as it is printed."""
    parts = ["# Command line", "What `--help-all` prints, for each verb and command."]
    verbs = _commands(_help(root))
    if not verbs:
        raise ValueError("netctrl --help lists no verb")
    for verb in verbs:
        text = _help(root, verb)
        parts += [f"## netctrl {verb}", f"```text\n{text}```"]
        if "COMMAND" in text.splitlines()[0]:
            for command in _commands(text):
                parts += [f"### netctrl {verb} {command}", f"```text\n{_help(root, verb, command)}```"]
    return "\n\n".join(parts) + "\n"


def _type(field: dict[str, Any]) -> str:
    """The type of a JSON Schema's field in words."""
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in field:
        return " or ".join(dict.fromkeys(_type(each) for each in field["anyOf"]))
    if "enum" in field:
        return " or ".join(f"`{json.dumps(each)}`" for each in field["enum"])
    kind = field.get("type", "any")
    if "prefixItems" in field:
        return f"list of {len(field['prefixItems'])}: {', '.join(map(_type, field['prefixItems']))}"
    if kind == "array":
        return f"list of {_type(field['items'])}" if field.get("items") else "list"
    return str(kind)


def file_formats(folder: Path) -> str:
    """Tables of the published JSON Schemas: a table a record."""
    parts = [
        "# File formats",
        "Designs and models are JSON. These tables are made from the schemas in `data/schema/`, which validators"
        " take; what each field means, and its unit, stands with the [records](api/records.md). [Scenarios and"
        " sweeps](scenario-files.md) are TOML; networks are node-link JSON, under"
        " [HFTraC](../explanation/hftrac.md#a-network-file).",
    ]
    for path in sorted(folder.glob("*.json")):
        schema = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"## {schema['$id']}")
        for name, record in schema["$defs"].items():
            parts += [f'### {name} {{ id="{name.lower()}" }}', record.get("description", "").partition("\n")[0]]
            rows = [
                f"| `{key}` | {_type(field)} | {'yes' if key in record.get('required', ()) else 'no'} |"
                for key, field in record.get("properties", {}).items()
            ]
            if rows:
                parts.append("\n".join(["| field | type | required |", "|---|---|---|", *rows]))
    return "\n\n".join(parts) + "\n"


NOT_EXECUTED = """

!!! warning "Not executed"

    This build of the site shows the cells without what they print and draw. Run the notebook, or build the site with
    `nox -s notebooks site`.
"""


def notebook_pages(root: Path) -> dict[str, str | bytes]:
    """Source of a page a notebook, and its pictures: with what its cells gave where `nox -s notebooks` has run.

    A notebook whose cells have changed since is shown as it is today, and its page says that it wasn't executed.
    """
    from nbconvert import MarkdownExporter

    pages: dict[str, str | bytes] = {}
    for source in sorted((root / "notebooks").glob("*.ipynb")):
        executed = root / ".nox" / "executed" / source.name
        current = executed.is_file() and _cells(executed) == _cells(source)
        text, found = MarkdownExporter().from_filename(executed if current else source)
        text = text.replace("](../docs/", "](../../")
        for name, content in found["outputs"].items():
            kept = f"{source.stem}-{name}"
            text = text.replace(f"]({name})", f"]({kept})")
            pages[f"tutorials/notebooks/{kept}"] = content
        title, _, rest = text.partition("\n")
        told = f"This is `notebooks/{source.name}`; its cells run from first to last."
        told += "" if current else NOT_EXECUTED
        pages[f"tutorials/notebooks/{source.stem}.md"] = f"{title}\n\n{told}\n{rest}"
    return pages


def _cells(path: Path) -> list[str]:
    """The sources of a notebook's cells."""
    return ["".join(cell["source"]) for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
