"""JSON against public YANG models in a folder, by yangson: both are installed by whoever runs these checks."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

_REVISION = re.compile(r'^\s*revision\s+"?(\d{4}-\d\d-\d\d)', re.MULTILINE)
_NAMESPACE = re.compile(r'^\s*namespace\s+"([^"]+)"', re.MULTILINE)
_IMPORT = re.compile(r"^\s*import\s+([\w-]+)", re.MULTILINE)
_INCLUDE = re.compile(r"^\s*include\s+([\w-]+)", re.MULTILINE)


def data_model(folder: Path, module: str) -> Any:
    """Model of a module with all that it imports."""
    from yangson import DataModel

    needed, texts = [module], {}
    while needed:
        name = needed.pop()
        if name not in texts:
            texts[name] = (folder / f"{name}.yang").read_text(encoding="utf-8")
            parts = [texts[name], *((folder / f"{each}.yang").read_text() for each in _INCLUDE.findall(texts[name]))]
            needed += [each for part in parts for each in _IMPORT.findall(part)]
    modules = [_entry(folder, name, text) for name, text in texts.items()]
    library = {"ietf-yang-library:modules-state": {"module-set-id": "netctrl", "module": modules}}
    return DataModel(json.dumps(library), (str(folder),))


def _entry(folder: Path, name: str, text: str) -> dict[str, Any]:
    entry = {
        "name": name,
        "revision": _revision(text),
        "namespace": _NAMESPACE.search(text)[1],
        "conformance-type": "implement",  # leafrefs lead into what is imported
    }
    parts = [
        {"name": each, "revision": _revision((folder / f"{each}.yang").read_text())} for each in _INCLUDE.findall(text)
    ]
    return entry | ({"submodule": parts} if parts else {})


def _revision(text: str) -> str:
    found = _REVISION.search(text)
    return found[1] if found else ""
