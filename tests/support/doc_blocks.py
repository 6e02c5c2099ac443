"""Code blocks of Markdown pages: found with what is said of each, and run in a folder as a reader would run them.

Blocks run in order: `python` in one process a page, `console` in a shell, and a block with a `title` becomes a file of
that name. Text under a command that begins with `$ ` is what it prints, and a `text` block what the Python block before
it prints; `...` stands for anything, a number for what rounds to it. A command's exit status is 0, or the one that the
page tells behind it: `# exit status 3`. Comments before a fence, which readers don't see, say the rest:

    <!-- fragment: REASON -->               not run
    <!-- slow: tests/PATH: REASON -->       not run here, but there
    <!-- needs: ns3 -->                     run where the requirements of tests/conftest.py are met, by a test of their
                                            own, with the page's files but without its other blocks
    <!-- instead of `A`, `B`: REASON -->    B is run in place of A

CI names a folder in NETCTRL_PAGES, in which it keeps what ran as it stands: a page is not run again while it, the
package, its data, the versions of libraries and ns-3 are the same. What runs in a kernel is run each time.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import os
import re
import subprocess
import sys
import traceback
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from places import ROOT

from netctrl.core.files import sha256
from netctrl.ns3.program import find_ns3

COMMENT = r"<!-- (fragment|slow|needs|instead of) ?(.*?) -->\n+"
FENCE = re.compile(rf"^((?:{COMMENT})*)^```([^\n`]+)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SNIPPET = re.compile(r'^--8<-- "(.+)"$', re.MULTILINE)
STATUS = re.compile(r"# exit status (\d+)$")
NUMBER = re.compile(r"(?<![\w.])([-+−]?\d+(?:,\d{3})*(?:\.\d+)?(?:e[-+]?\d+)?)(?![\d])")
BESIDE = re.compile(r"^(\S.*?)  # (-?\d+\.\d+)(?:\.\.\.)?(?:,.*)?$", re.MULTILINE)
"""An expression, and the number that it gives."""

MINUTES_PER_COMMAND = 5
WRITTEN = ("toml", "json", "csv")


@dataclass(frozen=True, slots=True)
class Block:
    """A code block; `line` is that of its fence, and `said` what stands in the comments before it."""

    line: int
    kind: str
    title: str
    text: str
    said: tuple[tuple[str, str], ...]

    def reasons(self, kind: str) -> list[str]:
        """What comments of one kind say."""
        return [text for found, text in self.said if found == kind]

    @property
    def needs(self) -> set[str]:
        """Names of the requirements without which it does not run."""
        return {name for text in self.reasons("needs") for name in text.split(", ")}

    @property
    def runs(self) -> bool:
        """Whether it is to be run here."""
        return not self.reasons("fragment") and not self.reasons("slow")


def find_blocks(page: Path) -> list[Block]:
    """All code blocks of a page, in order, with snippets in their places."""
    source = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(source):
        comments, info, text = match[1], match[4] or "", match[5]
        said = tuple((kind, text.lstrip(": ")) for kind, text in re.findall(COMMENT, comments))
        title = re.search(r'title="(.+?)"', info)
        kind = re.search(r"[a-z]+", info)
        line = source.count("\n", 0, match.start(5))
        text = SNIPPET.sub(lambda at: (ROOT / at[1]).read_text(encoding="utf-8").rstrip(), text)
        found.append(Block(line, kind[0] if kind else "", title[1] if title else "", text, said))
    if len(found) * 2 != len(re.findall(r"^ *```", source, re.MULTILINE)):
        raise ValueError(f"{page}: a code block that is indented or not closed is not found")
    return found


def commands(text: str) -> list[tuple[str, str]]:
    """Each command of a console block with what the page shows under it; without prompts each line is one."""
    text = text.replace("\\\n", "")
    if not text.startswith("$ "):
        return [(line, "") for line in text.splitlines() if line]
    parts = re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def checked(code: str) -> str:
    """Python whose numbers beside expressions are compared by a function `same`."""
    return BESIDE.sub(r'same(\1, "\2")', code)


def same(value: float, said: str) -> None:
    """AssertionError unless a value is what a comment says, to the digits there."""
    assert abs(value - float(said)) <= unit(said), f"{said}: it is {value}"


def unit(number: str) -> float:
    """What the last digit of a number counts: 0.01 of 2.84, 1e-7 of 2.84e-5."""
    mantissa, _, exponent = number.partition("e")
    return 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))


def near(shown: str, got: str) -> bool:
    """Whether a number is what is shown, rounded to its digits; whole numbers are equal."""
    shown, got = (text.replace(",", "").replace("−", "-") for text in (shown, got))
    whole = "." not in got + shown and "e" not in got + shown
    return shown == got if whole else abs(float(shown) - float(got)) <= 1.001 * unit(shown)


def line_like(shown: str, got: str) -> bool:
    """Whether a line is what is shown, whatever the number of blanks."""
    words = NUMBER.split(" ".join(shown.split()))
    pattern = "".join(
        NUMBER.pattern if place % 2 else re.escape(part).replace(r"\.\.\.", ".*") for place, part in enumerate(words)
    )
    found = re.fullmatch(pattern, " ".join(got.split()))
    return found is not None and all(map(near, words[1::2], found.groups()))


def unlike(shown: str, got: str) -> str:
    """The first line that is shown and not there, or nothing; a line `...` stands for any number of lines."""
    left = [line for line in got.splitlines() if line.strip()]
    skip = False
    for line in (line for line in shown.splitlines() if line.strip()):
        if line.strip() == "...":
            skip = True
            continue
        while skip and left and not line_like(line, left[0]):
            left.pop(0)
        if not left or not line_like(line, left[0]):
            return f"shown {line.strip()!r}, got {left[0].strip() if left else 'no more'!r}"
        left.pop(0)
        skip = False
    return f"not shown: {left[0].strip()!r}" if left and not skip else ""


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """A command of a shell in which `python` and `netctrl` are those that run the tests, away from the checkout.

    `pip install ./PACKAGE` puts it into the folder, where these find it.
    """
    tools = folder.parent / f"{folder.name}-tools"
    tools.mkdir(exist_ok=True)
    installer = f'"{Path(__file__).with_name("packages.py")}" '
    for name, arguments in {"python": "", "netctrl": "-m netctrl ", "pip": installer}.items():
        tool = tools / name
        tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" {arguments}"$@"\n', encoding="utf-8")
        tool.chmod(0o755)
    environment = os.environ | {"MPLBACKEND": "agg", "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"}
    output, errors = subprocess.PIPE, subprocess.STDOUT
    return subprocess.run(
        ["sh", "-c", command],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        text=True,
        timeout=60 * MINUTES_PER_COMMAND,
        check=False,
    )


def run_console(block: Block, folder: Path) -> list[str]:
    """What is not as the page shows it."""
    failed = []
    for command, shown in commands(block.text):
        run = command
        for there, instead, _ in map(instead_of, block.reasons("instead of")):
            run = run.replace(there, instead)
        ran = shell(run, folder)
        status = STATUS.search(command)
        if ran.returncode != (int(status[1]) if status else 0):
            failed.append(f"`{run}`: exit status {ran.returncode}: {ran.stdout[-800:]}")
        elif shown.strip() and (difference := unlike(shown, ran.stdout)):
            failed.append(f"`{run}`: {difference}\n{ran.stdout}")
    return failed


def instead_of(text: str) -> tuple[str, str, str]:
    """What is replaced, by what, and why; ValueError where it is not told so."""
    if not (found := re.fullmatch(r"`(.+?)`, `(.*?)`: (.+)", text)):
        raise ValueError(f"instead of: got {text!r}, takes `A`, `B`: REASON")
    return found[1], found[2], found[3]


def run_page(page: Path, folder: Path, met: set[str]) -> list[str]:
    """What is not as a page says, of its blocks without needs, or of its files and those whose needs are `met`."""
    names: dict[str, Any] = {"__name__": "__main__", "same": same}
    failed, printed = [], ""
    for block in find_blocks(page):
        if not block.runs or not block.needs <= met or (met and not block.needs and not block.title):
            continue
        wrong: list[str] = []
        if block.title:
            (folder / block.title).parent.mkdir(parents=True, exist_ok=True)
            (folder / block.title).write_text(block.text, encoding="utf-8")
        elif block.kind == "console":
            wrong = run_console(block, folder)
        elif block.kind == "python":
            output = io.StringIO()
            code = "\n" * block.line + checked(block.text)  # so that tracebacks have the page's lines
            try:
                with contextlib.redirect_stdout(output):
                    exec(compile(code, str(page), "exec"), names)
            except BaseException:
                wrong = [traceback.format_exc(limit=-3)]
            printed = output.getvalue()
        elif block.kind == "text" and (difference := unlike(block.text, printed)):
            wrong = [f"{difference}\n{printed}"]
        failed += [f"{page.name}:{block.line}: {each}" for each in wrong]
    return failed


def pages(folder: str) -> list[Path]:
    """Pages of a folder of docs, and of those in it, that have code blocks."""
    found = (ROOT / "docs" / folder).rglob("*.md")
    return sorted(page for page in found if find_blocks(page))


def cases(folder: str) -> list[Any]:
    """Each page of a folder of docs, all of which take seconds; those with needs a second time, for these."""
    import pytest

    found = []
    for page in pages(folder):
        blocks = [block for block in find_blocks(page) if block.runs]
        needs = sorted(set().union(*(block.needs for block in blocks)))
        if any(not block.needs for block in blocks):
            found.append(pytest.param(page, [], id=page.stem, marks=pytest.mark.slow))
        if needs:
            name = f"{page.stem} with {', '.join(needs)}"
            found.append(pytest.param(page, needs, id=name, marks=[pytest.mark.needs(*needs), pytest.mark.slow]))
    return found


def run_apart(page: Path, folder: Path, met: Iterable[str]) -> str:
    """What a page's run in a process of its own finds wrong; skips where CI knows that nothing is."""
    mark = _mark(page, met)
    if mark is not None and mark.exists():
        import pytest

        pytest.skip("as it was when it ran as it stands")
    command = [sys.executable, "-W", "error", __file__, str(page), str(folder), *met]
    environment = os.environ | {"MPLBACKEND": "agg"}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if mark is not None and ran.returncode == 0 and not ran.stdout:
        mark.parent.mkdir(parents=True, exist_ok=True)
        mark.touch()
    return ran.stdout if ran.returncode == 0 else ran.stdout + ran.stderr


def _mark(page: Path, met: Iterable[str]) -> Path | None:
    """File that is there once a page ran as it stands; None where nothing is kept."""
    kept = os.environ.get("NETCTRL_PAGES")
    if not kept or "lab" in met:
        return None
    blocks = "".join(f"{block.line} {block.text}" for block in find_blocks(page))
    with_ns3 = repr(find_ns3()) if "ns3" in met else ""
    key = "\0".join([page.read_text(encoding="utf-8"), blocks, *sorted(met), with_ns3, _sources()])
    return Path(kept) / hashlib.sha256(key.encode()).hexdigest()


@cache
def _sources() -> str:
    """Hash of all that a page may run, or be run by."""
    files = [ROOT / "constraints.txt", Path(__file__)]
    files += [path for folder in ("netctrl", "data", "examples") for path in sorted((ROOT / folder).rglob("*"))]
    there = (path for path in files if path.is_file() and "__pycache__" not in path.parts)
    each = [f"{path.relative_to(ROOT)} {sha256(path)}" for path in there]
    return hashlib.sha256("\n".join([sys.version, *each]).encode()).hexdigest()


if __name__ == "__main__":
    sys.stdout.write("\n".join(run_page(Path(sys.argv[1]), Path(sys.argv[2]), set(sys.argv[3:]))))
