"""Pages of notebooks: executed, changed since they were executed, or never executed; each says which it is."""

from __future__ import annotations

import importlib
import json

import pytest
from places import ROOT

pytestmark = pytest.mark.needs("site")

SAID = "Not executed"


@pytest.fixture
def generated(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    return importlib.import_module("generated")


def notebook(code: str, printed: str | None = None) -> str:
    outputs = [] if printed is None else [{"output_type": "stream", "name": "stdout", "text": [printed]}]
    title = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": ["# A notebook"]}
    cell = {
        "cell_type": "code",
        "id": "b",
        "metadata": {},
        "execution_count": None,
        "outputs": outputs,
        "source": [code],
    }
    return json.dumps({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [title, cell]})


@pytest.mark.parametrize(
    ("executed", "shown", "said"),
    [(None, False, True), ("print('four')", True, False), ("print('five')", False, True)],
    ids=["never executed", "executed", "changed since"],
)
def test_a_page_shows_what_this_notebook_gave_or_says_that_it_was_not_executed(
    generated, tmp_path, executed, shown, said
) -> None:
    for folder in ("notebooks", ".nox/executed"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "notebooks" / "a.ipynb").write_text(notebook("print('four')"), encoding="utf-8")
    if executed is not None:
        (tmp_path / ".nox" / "executed" / "a.ipynb").write_text(notebook(executed, "OUTPUT"), encoding="utf-8")
    (page,) = generated.notebook_pages(tmp_path).values()
    assert page.startswith("# A notebook\n\n")
    assert "print('four')" in page
    assert ("OUTPUT" in page, SAID in page) == (shown, said)


def test_every_notebook_has_its_page(site) -> None:
    names = {path.stem for path in (ROOT / "notebooks").glob("*.ipynb")}
    assert len(names) > 5
    for name in names:
        text = (site / "tutorials" / "notebooks" / name / "index.html").read_text(encoding="utf-8")
        executed = (ROOT / ".nox" / "executed" / f"{name}.ipynb").is_file()
        assert executed or SAID in text
