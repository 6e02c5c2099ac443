"""Every code block of docs/explanation runs in a fresh folder, as it stands there."""

from __future__ import annotations

import pytest
from doc_blocks import cases, run_apart


@pytest.mark.parametrize(("page", "needs"), cases("explanation"))
def test_page_runs(page, needs, tmp_path):
    assert run_apart(page, tmp_path, needs) == ""
