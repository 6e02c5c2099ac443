"""What every Design's file keeps."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from netctrl.model.design.design import Design, design_json_schema, read_design


def comes_back(design: Design, folder: Path, accept: str = "admissible") -> Design:
    """The Design from the file that it was saved to: the same, and as the schema says."""
    path = folder / "design.json"
    design.save(path, accept=accept)
    again = read_design(path)
    assert type(again.law) is type(design.law)
    assert again.method == design.method
    assert again.to_json() == design.to_json() == path.read_text(encoding="utf-8")
    jsonschema.validate(json.loads(path.read_bytes()), design_json_schema())
    return again
