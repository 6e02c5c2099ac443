"""What command lines share, on a small one of its own: help, errors, the progress bar, files written all or none."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import pytest
from command_lines import Terminal, runner, the_error
from matplotlib.figure import Figure

from netctrl.cli import app as cli
from netctrl.cli.app import check_files, check_places, invocation, new_app, picture, progress_bar, report, write_all
from netctrl.cli.options import option, positional
from netctrl.core.errors import FileError, InvalidValue, NetctrlError, NoAdmissibleDesign

app = new_app("python -m tool", "Does one thing.")
RAISED: list[Exception | type[BaseException]] = []


@app.default
def command(
    name: Annotated[str | None, positional("NAME", "what it is called")] = None,
    /,
    *,
    size: Annotated[str, option("SIZE", "how large it is, with its unit")] = "5kB",
    output: Annotated[str | None, option("FILE", "a file for it", "--output", "-o")] = None,
    loud: Annotated[bool, option("", "say it twice")] = False,
) -> int:
    """Say what came."""
    if RAISED:
        raise RAISED[0]
    return cli.say(f"{name} {size} {output} {loud}\n{' '.join(invocation())}\n")


@pytest.fixture
def run(capsys):
    """Run the command line, with an exception in it if one is given."""

    tool = runner(lambda words: cli.run(app, words, {"output": "-o"}), capsys)

    def run_tool(line: str, raised: Exception | type[BaseException] | None = None) -> tuple[int, str, str]:
        RAISED[:] = [] if raised is None else [raised]
        return tool(line)

    return run_tool


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("a", "a 5kB None False"),
        ("a --size 6kB", "a 6kB None False"),
        ("--size=-6 a", "a -6 None False"),
        ("--size -6 a", "a -6 None False"),
        ("a -o x --loud", "a 5kB x True"),
        ("--output x", "None 5kB x False"),
        ("'a b'", "a b 5kB None False"),
    ],
)
def test_options_and_positional_arguments_are_text(line, says, run) -> None:
    status, out, err = run(line)
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == says
    assert out.splitlines()[1] == " ".join(["python -m tool", *shlex.split(line)])


@pytest.mark.parametrize(
    ("line", "pieces"),
    [
        ("--bogus", ["--bogus", "--help"]),
        ("--bogus 5", ["--bogus", "--help"]),
        ("a --bogus", ["--bogus", "--help"]),
        ("-x", ["-x", "--help"]),
        ("a b", ["'b'", "--help"]),
        ("a --size", ["--size is missing: how large it is"]),
        ("a --no-loud", ["--no-loud", "--help"]),
    ],
)
def test_wrong_use_is_one_line(line, pieces, run) -> None:
    err = the_error(run(line))
    assert [piece for piece in pieces if piece not in err] == [], err


@pytest.mark.parametrize(
    ("raised", "status", "line"),
    [
        (InvalidValue("size", "5x", "a size"), 2, "--size: got '5x', takes a size"),
        (InvalidValue("output", "x", "a file"), 2, "-o: got 'x', takes a file"),
        (InvalidValue("some_thing", None, "a thing"), 2, "--some-thing is missing: a thing"),
        (FileError("s.toml", "is no TOML\nat all"), 2, "s.toml: is no TOML at all"),
        (NoAdmissibleDesign("there is none"), 3, "there is none"),
        (NetctrlError("g++ says:\n  line 1"), 1, "g++ says:\n  line 1"),
        (OSError(28, "No space left on device"), 1, "output can't be written: No space left on device"),
        (KeyboardInterrupt, 130, "stopped"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_what_is_raised_is_a_line_and_a_status(raised, status, line, run) -> None:
    assert run("a", raised) == (status, "", f"error: {line}\n")


def test_what_nobody_foresaw_is_not_hidden(run) -> None:
    with pytest.raises(ZeroDivisionError):
        run("a", ZeroDivisionError())


def test_help_shows_positional_arguments_before_options(run) -> None:
    status, out, err = run("--help")
    assert (status, err) == (0, "")
    assert out.splitlines()[0] == "usage: python -m tool [NAME] [OPTIONS]"
    rows = [line.split("  ", 2)[1].strip() for line in out.splitlines() if line.startswith("  ")]
    assert rows == ["NAME", "--size SIZE", "--output, -o FILE", "--loud"]
    for text in ("what it is called", "how large it is, with its unit [5kB]", "say it twice", "Does one thing."):
        assert text in out
    assert max(map(len, out.splitlines())) <= 110
    assert run("") == run("-h") == run("a --help") == (status, out, err)


def test_a_required_positional_argument_is_shown_as_such(capsys) -> None:
    other = new_app("other", "Needs it.")

    @other.default
    def needs(name: Annotated[str, positional("NAME", "what it is called")], /) -> int:
        return 0

    assert cli.run(other, ["--help"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0] == "usage: other NAME [OPTIONS]"
    assert "what it is called [required]" in out
    assert cli.run(other, ["a"]) == 0


def test_a_report_is_aligned() -> None:
    rows = [("short", "1"), ("somewhat longer", "2")]
    assert report("title", rows) == "title\n\n  short            1\n  somewhat longer  2\n"
    assert report("title", rows, ["a note"]).endswith("  somewhat longer  2\n\n  a note\n")


@pytest.mark.parametrize(
    ("plot", "output"), [(None, None), (None, "x.png"), ("x.png", None), ("x.SVG", "x.svg"), ("x.pdf", "x")]
)
def test_a_picture_has_a_name_of_its_own_with_its_kind(plot, output) -> None:
    check_files({"output": output, "plot": plot})


@pytest.mark.parametrize(("name", "starts"), [("x.png", b"\x89PNG"), ("a.SVG", b"<?xml"), ("x.pdf", b"%PDF")])
def test_a_picture_is_of_the_kind_in_its_name(name, starts, tmp_path) -> None:
    write_all({"plot": picture(Figure, str(tmp_path / name))})
    assert (tmp_path / name).read_bytes().startswith(starts)


def test_a_file_that_nobody_wants_is_not_made(tmp_path) -> None:
    write_all({"plot": picture(lambda: pytest.fail("was drawn"), None), "output": (None, lambda: pytest.fail("made"))})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("plot", ["x", "png", ".png", "x.gif", "x.png.gz", ""])
def test_a_picture_of_no_kind_is_refused(plot) -> None:
    with pytest.raises(InvalidValue, match=r"plot: .*\.png or \.svg or \.pdf"):
        check_files({"plot": plot})


@pytest.mark.parametrize(
    ("files", "read"), [({"output": "x.png", "plot": "./x.png"}, ()), ({"plot": "x.png"}, ("./x.png",))]
)
def test_a_picture_over_another_file_is_refused(files, read) -> None:
    with pytest.raises(InvalidValue, match=r"^plot: .*a file that no other option names"):
        check_files(files, *read, endings={})


def test_all_files_are_written(tmp_path) -> None:
    places = {"plot": str(tmp_path / "a"), "output": str(tmp_path / "b")}
    check_places({**places, "other": None})
    write_all({"plot": (places["plot"], lambda: b"A"), "output": (places["output"], lambda: b"B")})
    assert [(path.name, path.read_bytes()) for path in sorted(tmp_path.iterdir())] == [("a", b"A"), ("b", b"B")]


@pytest.mark.parametrize(("bad", "why"), [("missing/b", "no folder"), (".", "folder")])
def test_none_is_written_where_one_cannot_be(bad, why, tmp_path) -> None:
    made: list[str] = []
    (tmp_path / "a").write_bytes(b"old")
    bad_path = str(tmp_path / bad)

    def make(name: str) -> Callable[[], bytes]:
        return lambda: made.append(name) or b"new"

    for attempt in (
        lambda: check_places({"plot": str(tmp_path / "a"), "output": bad_path}),
        lambda: write_all({"plot": (str(tmp_path / "a"), make("a")), "output": (bad_path, make("b"))}),
    ):
        with pytest.raises(InvalidValue, match=why) as refusal:
            attempt()
        assert (refusal.value.argument, refusal.value.got) == ("output", bad_path)
    assert made == []
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_bytes() == b"old"


def test_none_is_written_where_one_cannot_be_made(tmp_path) -> None:
    def broken() -> bytes:
        raise InvalidValue("plot", 1, "something to draw")

    with pytest.raises(InvalidValue, match="something to draw"):
        write_all({"output": (str(tmp_path / "a"), lambda: b"A"), "plot": (str(tmp_path / "b"), broken)})
    assert list(tmp_path.iterdir()) == []


def test_no_progress_without_a_terminal(capsys) -> None:
    with progress_bar("working") as progress:
        assert progress is None
    assert capsys.readouterr() == ("", "")


def test_progress_on_a_terminal_is_drawn_and_wiped(monkeypatch, capsys) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress_bar("working") as progress:
        assert progress is not None
        for share in (0.0, 0.25, 0.5, 1.0):
            progress(share)
    assert "working:   0%" in terminal.getvalue()
    assert terminal.left == ""
    assert capsys.readouterr().out == ""


def test_progress_is_wiped_when_it_is_interrupted(monkeypatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with pytest.raises(KeyboardInterrupt), progress_bar("working"):
        raise KeyboardInterrupt
    assert terminal.left == ""


def test_files_are_named_as_they_were_given(tmp_path, monkeypatch) -> None:
    """Not with the folder that they were resolved to."""
    monkeypatch.chdir(tmp_path)
    Path("there").mkdir()
    with pytest.raises(InvalidValue) as refusal:
        check_places({"output": "there"})
    assert refusal.value.got == "there"
