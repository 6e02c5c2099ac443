"""How code blocks of the docs are found, run and compared; and that each block is run or says why not."""

from __future__ import annotations

from pathlib import Path

import pytest
from doc_blocks import WRITTEN, commands, find_blocks, line_like, pages, run_apart, run_page, unlike
from places import ROOT

PAGES = pages(".")
FOLDERS = {"tutorials", "how-to", "explanation"}
"""Those whose pages run, each by a test file beside this one."""
SHARE_OF_FRAGMENTS = 0.2


def test_every_page_whose_blocks_run_is_in_a_folder_that_a_test_runs():
    running = [page for page in PAGES if any(block.runs for block in find_blocks(page))]
    assert len(running) > 20
    assert {page.relative_to(ROOT / "docs").parts[0] for page in running} == FOLDERS
    for folder in FOLDERS:
        assert f'cases("{folder}")' in Path(__file__).with_name(f"test_{folder.replace('-', '_')}.py").read_text(
            "utf-8"
        )


def test_every_block_is_run_or_says_why_not():
    wrong, fragments, total = [], 0, 0
    for page in PAGES:
        blocks = find_blocks(page)
        ran = "".join(block.text for block in blocks if block.runs and block.kind in ("console", "python", "toml"))
        for block in blocks:
            total += 1
            fragments += not block.runs
            place = f"{page.name}:{block.line}"
            for kind in ("fragment", "slow"):
                wrong += [f"{place}: {kind} without a reason" for text in block.reasons(kind) if len(text.split()) < 3]
            for text in block.reasons("slow"):
                if not (ROOT / text.partition(":")[0]).is_file():
                    wrong.append(f"{place}: {text} is not where it is tested")
            if not block.runs:
                continue
            if block.title and (block.title.rpartition("/")[0] or block.title) not in ran:
                wrong.append(f"{place}: nothing on the page uses {block.title}")
            if not block.title and block.kind not in ("console", "python", "text"):
                written = f"a title, if it is {', '.join(WRITTEN)}" if block.kind in WRITTEN else "a kind"
                wrong.append(f"{place}: {block.kind or 'a block'} without {written}, or a fragment's reason")
    assert wrong == []
    assert 0 < fragments <= SHARE_OF_FRAGMENTS * total


def written(folder, text: str):
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return page


def test_blocks_run_in_order_and_share_a_folder(tmp_path):
    blocks = (
        '```toml title="a.toml"\nx = 1\n```',
        "```console\n$ cat a.toml  # with cat\nx = 1\n```",
        "```python\nfrom pathlib import Path\n\nx = Path('a.toml').read_text()\nlen(x) / 3  # 2.0\n```",
        "```python\nprint(x)\n```",
        "```text\nx = 1\n```",
    )
    page = written(tmp_path, "\n\n".join(blocks) + "\n")
    assert [block.kind for block in find_blocks(page)] == ["toml", "console", "python", "python", "text"]
    assert run_apart(page, tmp_path, []) == ""


def test_a_page_that_ran_is_left_out_until_it_or_the_package_changes(tmp_path, monkeypatch):
    monkeypatch.setenv("NETCTRL_PAGES", str(tmp_path / "kept"))
    page = written(tmp_path, "```console\n$ echo 1\n1\n```\n")
    assert run_apart(page, tmp_path, []) == ""
    with pytest.raises(pytest.skip.Exception):
        run_apart(page, tmp_path, [])
    assert run_apart(page, tmp_path, ["kernel"]) == ""
    monkeypatch.setattr("doc_blocks._sources", lambda: "others")
    assert run_apart(page, tmp_path, []) == ""
    wrong = written(tmp_path, "```console\n$ echo 2\n1\n```\n")
    assert [run_apart(wrong, tmp_path, []) != "" for _ in range(2)] == [True, True]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("```console\n$ echo 1.26\n1.24\n```\n", "shown '1.24', got '1.26'"),
        ("```console\n$ echo ab; echo c\nab\n```\n", "not shown: 'c'"),
        ("```console\n$ echo ab\nab\nc\n```\n", "got 'no more'"),
        ("```console\n$ false\n```\n", "exit status 1"),
        ("```console\n$ true  # exit status 3\n```\n", "exit status 0"),
        ("```console\ntrue\nfalse\n```\n", "`false`"),
        ("```python\n1 / 3  # 0.35, a third\n```\n", "0.35: it is 0.333"),
        ("\n\n```python\n1\n1 / 0\n```\n", "line 5"),
        ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "shown '2', got '1'"),
        ("<!-- instead of `a`, `b`: shorter -->\n```console\n$ echo a\na\n```\n", "got 'b'"),
    ],
)
def test_what_is_not_as_shown_is_found(tmp_path, text, says):
    (wrong,) = run_page(written(tmp_path, text), tmp_path, set())
    assert says in wrong


def test_marked_blocks_do_not_run_and_needs_are_asked_for(tmp_path):
    comments = "<!-- fragment: needs a router -->", "<!-- slow: tests/x.py: an hour -->", "<!-- needs: ns3 -->"
    page = written(tmp_path, "\n".join(f"{comment}\n\n```python\n1 / 0\n```\n" for comment in comments))
    assert run_page(page, tmp_path, set()) == []
    (wrong,) = run_page(page, tmp_path, {"ns3"})
    assert "page.md:15" in wrong


def test_blocks_with_needs_run_with_the_files_of_the_page_and_without_its_other_blocks(tmp_path):
    blocks = (
        '```json title="a.json"\n1\n```\n',
        "```console\ntouch other\n```\n",
        "<!-- needs: ns3 -->\n```console\n$ cat a.json\n1\n$ touch needy\n```\n",
    )
    page = written(tmp_path, "\n".join(blocks))
    for met, made in (set(), "other"), ({"ns3"}, "needy"):
        assert run_page(page, tmp_path, met) == []
        assert [path.name for path in sorted(tmp_path.iterdir()) if path.suffix == "" and path.is_file()] == [made]
        (tmp_path / made).unlink()


def test_a_block_that_would_be_overlooked_is_refused(tmp_path):
    with pytest.raises(ValueError, match="indented or not closed"):
        find_blocks(written(tmp_path, "- item\n\n  ```python\n  1 / 0\n  ```\n"))


def test_commands_have_their_output_and_continue_on_the_next_line():
    assert commands("$ a \\\n  b\nout\n\nmore\n$ c\n") == [("a   b", "out\n\nmore\n"), ("c", "")]
    assert commands("a\n\nb\n") == [("a", ""), ("b", "")]


@pytest.mark.parametrize(
    ("shown", "got", "same"),
    [
        ("at 1.25 s", "at 1.2513  s", True),
        ("at 1.25 s", "at 1.27 s", False),
        ("6.5e-08 of", "6.52e-08 of", True),
        ("6.5e-08 of", "6.52e-07 of", False),
        ("50 flows", "51 flows", False),
        ("−3 dB", "-3 dB", True),
        ("file ... written", "file /tmp/x 12 written", True),
        ("L1 is up", "L2 is up", False),
    ],
)
def test_numbers_are_compared_as_they_are_rounded(shown, got, same):
    assert line_like(shown, got) == same


def test_three_dots_stand_for_lines():
    assert unlike("a\n...\nd\n", "a\nb\nc\nd\n") == ""
    assert unlike("...\n", "") == ""
    assert unlike("a\n...\n", "a\nb\n") == ""
    assert "no more" in unlike("a\n...\ne\n", "a\nb\n")
