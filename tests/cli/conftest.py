"""A command line in a folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_lines import Run, runner


@pytest.fixture
def run(
    request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Runs lines by the test file's `RUNS`, in a folder with its `FILES`: name -> text."""
    monkeypatch.chdir(tmp_path)
    for name, text in getattr(request.module, "FILES", {}).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return runner(request.module.RUNS, capsys)
