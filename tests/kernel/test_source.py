"""Source, configuration and tools: what is found, what is refused, and what an error says."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from netctrl.core.errors import NetctrlError
from netctrl.kernel import build, source
from netctrl.kernel.config import HZ, OPTIONS, fragment, not_kept, read_config


def tree_at(folder: Path) -> Path:
    (folder / "arch/um").mkdir(parents=True)
    (folder / "arch/um/Makefile").write_text("")
    for part in ("ipv4", "sched"):
        (folder / "net" / part).mkdir(parents=True)
        (folder / "net" / part / "Makefile").write_text("obj-y := tcp_cubic.o\n")
    (folder / "Makefile").write_text("VERSION = 6\nPATCHLEVEL = 1\nSUBLEVEL = 192\nEXTRAVERSION = -rc1\nNAME = x\n")
    return folder


def tarball_of(path: Path, members: dict[str, str]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name, text in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def test_a_tree_has_a_version_and_a_stamp_of_its_files(tmp_path) -> None:
    tree = tree_at(tmp_path / "linux")
    assert source.read_version(tree) == "6.1.192-rc1"
    before = source.find_source(tree).stamp
    assert source.find_source(tree).stamp == before
    (tree / "arch/um/new.c").write_text("int x;")
    assert source.find_source(tree).stamp != before


def test_a_tarball_is_unpacked_without_what_isn_t_needed(tmp_path) -> None:
    files = {
        "linux/Makefile": "VERSION = 6\nPATCHLEVEL = 1\n",
        "linux/arch/um/Makefile": "",
        "linux/arch/arm/Kconfig": "",
        "linux/arch/arm/kernel.c": "",
        "linux/Documentation/Kconfig": "",
        "linux/Documentation/text.rst": "",
    }
    tarball = tarball_of(tmp_path / "linux.tar.gz", files)
    out = tmp_path / "out"
    out.mkdir()
    tree = source.unpack(source.find_source(tarball).path, out, lambda _: None)
    there = {str(path.relative_to(out)) for path in tree.rglob("*") if path.is_file()}
    assert there == set(files) - {"linux/arch/arm/kernel.c", "linux/Documentation/text.rst"}


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("kind", [tarfile.REGTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_a_member_outside_of_the_folder_or_no_file_is_refused(tmp_path, monkeypatch, old, kind) -> None:
    """By Python's own filter, and by ours before Python 3.11.4, which has none."""
    if old:
        monkeypatch.delattr(tarfile, "data_filter", raising=False)
    member = tarfile.TarInfo("../outside" if kind == tarfile.REGTYPE else "linux/inside")
    member.type, member.linkname = kind, "../../outside"
    tarball, out = tmp_path / "bad.tar.gz", tmp_path / "out"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.addfile(member)
    out.mkdir()
    with pytest.raises(NetctrlError, match="can't be unpacked"):
        source.unpack(tarball, out, lambda _: None)
    assert not (tmp_path / "outside").exists()
    assert not list(out.rglob("*inside"))


def test_what_isn_t_a_kernel_is_said(tmp_path, monkeypatch) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(NetctrlError, match="has no Makefile"):
        source.find_source(tmp_path / "folder")
    with pytest.raises(NetctrlError, match="no such file"):
        source.find_source(tmp_path / "none")
    (tmp_path / "linux.zip").write_text("")
    with pytest.raises(NetctrlError, match=r"takes \.tar\.xz"):
        source.find_source(tmp_path / "linux.zip")
    tarball = tarball_of(tmp_path / "other.tar.gz", {"other/Makefile": ""})
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(NetctrlError, match="not the source of a Linux kernel"):
        source.unpack(tarball, out, lambda _: None)
    (tmp_path / "broken.tar.xz").write_bytes(b"no tarball")
    with pytest.raises(NetctrlError, match="can't be unpacked"):
        source.unpack(tmp_path / "broken.tar.xz", out, lambda _: None)
    monkeypatch.setattr(source, "DEBIAN", tmp_path)
    with pytest.raises(NetctrlError, match="apt-get install linux-source"):
        source.find_source()


def test_the_newest_package_is_taken(tmp_path, monkeypatch) -> None:
    for version in ("5.10", "6.1", "6.12"):
        (tmp_path / f"linux-source-{version}.tar.xz").write_bytes(b"")
    monkeypatch.setattr(source, "DEBIAN", tmp_path)
    assert source.find_source().path.name == "linux-source-6.12.tar.xz"


def test_an_option_that_is_dropped_is_seen() -> None:
    assert not not_kept(read_config(fragment()))
    assert not_kept(read_config(fragment().replace("CONFIG_HOSTFS=y", "# CONFIG_HOSTFS is not set"))) == ["HOSTFS"]
    assert not_kept(read_config(fragment() + "CONFIG_MODULES=y\n")) == ["MODULES"]
    assert OPTIONS["UML_TIME_TRAVEL_SUPPORT"]


def test_missing_tools_are_named_with_their_packages(monkeypatch) -> None:
    found = build.shutil.which
    monkeypatch.setattr(build.shutil, "which", lambda tool: None if tool in ("flex", "ld") else found(tool))
    monkeypatch.setattr(build, "_has_header", lambda header: False)
    assert build.missing_tools() == "tools to build a kernel: `apt-get install flex binutils libelf-dev`"


def test_without_a_kernel_the_command_is_named(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert build.kernels() == []
    with pytest.raises(NetctrlError, match="netctrl kernel build"):
        build.chosen_kernel()


def test_the_chosen_version_is_found(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delenv("NETCTRL_KERNEL", raising=False)
    for version in ("6.1.192", "7.2.13", "6.12.1"):
        kernel = build.Kernel(version=version, sha256="0", source="s", compiler="c", absent=(), build_s=1.0)
        folder = tmp_path / "netctrl/linux" / f"{version}-key"
        folder.mkdir(parents=True)
        (folder / "kernel.json").write_bytes(build.msgspec.json.encode(kernel))
        (folder / "linux").write_text("")
    assert build.chosen_kernel().version == "7.2.13"
    assert build.chosen_kernel("6.1").version == "6.1.192"
    monkeypatch.setenv("NETCTRL_KERNEL", "6.12")
    assert build.chosen_kernel().version == "6.12.1"
    with pytest.raises(NetctrlError, match=r"there are 6\.1\.192, 6\.12\.1, 7\.2\.13"):
        build.chosen_kernel("5.10")


FAKE = """VERSION = 6
PATCHLEVEL = 1
tinyconfig olddefconfig:
\t@test $@ = olddefconfig || cp $(CURDIR)/config $(O)/.config
linux: $(O)/one.o
\t@test ! -e $(CURDIR)/broken
\t@echo program > $(O)/linux
$(O)/one.o: $(CURDIR)/one.c
\t@echo '  CC      one.o'; echo compiled >> $(CURDIR)/log; cp $< $@
"""


def fake_tree(folder: Path, log: Path, broken: Path) -> Path:
    tree = tree_at(folder)
    (tree / "Makefile").write_text(FAKE.replace("$(CURDIR)/log", str(log)).replace("$(CURDIR)/broken", str(broken)))
    (tree / "Kconfig").write_text('mainmenu "x"\n')
    (tree / "config").write_text(fragment() + f"CONFIG_HZ={HZ}\n")
    (tree / "one.c").write_text("")
    return tree


def own(folder: Path, *texts: tuple[str, str]) -> list[Path]:
    folder.mkdir(exist_ok=True)
    for name, text in texts:
        (folder / name).write_text(text)
    return [folder / name for name, _ in texts]


def test_added_files_are_built_in_and_the_tree_stays(tmp_path) -> None:
    tree, place, made = tree_at(tmp_path / "linux"), tmp_path / "with", tmp_path / "made"
    (tree / "net/ipv4/tcp_cubic.c").write_text("theirs")
    before = source.find_source(tree).stamp
    mine = own(
        tmp_path / "own", ("tcp_mine.c", "mine"), ("sch_mine.c", "queue"), ("mine.h", "both"), ("tcp_cubic.c", "my")
    )
    source.overlay(tree, place, source.read_added(mine), made)
    read = {str(path.relative_to(place)): path.read_text() for path in place.rglob("*") if path.is_file()}
    assert read["net/ipv4/Makefile"].split() == ["obj-y", ":=", "tcp_cubic.o", "obj-y", "+=", "tcp_mine.o"]
    assert read["net/sched/Makefile"].split() == ["obj-y", ":=", "tcp_cubic.o", "obj-y", "+=", "sch_mine.o"]
    assert (read["net/ipv4/tcp_mine.c"], read["net/sched/sch_mine.c"], read["net/ipv4/tcp_cubic.c"]) == (
        "mine",
        "queue",
        "my",
    )
    assert read["net/ipv4/mine.h"] == read["net/sched/mine.h"] == "both"
    assert read["Makefile"] == (tree / "Makefile").read_text()
    assert source.find_source(tree).stamp == before
    times = {path: path.stat().st_mtime_ns for path in place.rglob("*.c")}
    source.overlay(tree, place, source.read_added(mine), made)
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*.c")} == times
    (made / "net/ipv4").mkdir(parents=True)
    (made / "net/ipv4/tcp_cubic.o").write_text("of my")
    source.overlay(tree, place, {}, made)
    assert (place / "net/ipv4/tcp_cubic.c").read_text() == "theirs"
    assert not (made / "net/ipv4/tcp_cubic.o").exists()
    assert not (place / "net/ipv4/tcp_mine.c").exists()


def test_what_can_t_be_added_is_said(tmp_path) -> None:
    (first,) = own(tmp_path / "a", ("tcp_mine.c", ""))
    (second,) = own(tmp_path / "b", ("tcp_mine.c", ""))
    for given in (
        [first, second],
        [tmp_path / "x.c"],
        own(tmp_path / "c", ("a b.c", "")),
        own(tmp_path / "d", ("x.S", "")),
    ):
        with pytest.raises(NetctrlError, match="can't be added"):
            source.read_added(given)
    tree = tree_at(tmp_path / "linux")
    (tree / ".config").write_text("")
    with pytest.raises(NetctrlError, match="make mrproper"):
        source.find_source(tree)


@pytest.mark.needs("compiler")
def test_a_tree_is_built_again_from_its_objects(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("NETCTRL_KERNEL", raising=False)
    monkeypatch.setattr(build, "missing_tools", lambda: None)
    log = tmp_path / "log"
    tree = fake_tree(tmp_path / "linux", log, tmp_path / "broken")
    plain = build.build_kernel(tree)
    (mine,) = own(tmp_path / "own", ("tcp_mine.c", "1"))
    added = build.build_kernel(tree, add=[mine])
    mine.write_text("2")
    changed = build.build_kernel(tree, add=[mine])
    assert log.read_text() == "compiled\n"
    assert added.version == changed.version == f"{plain.version}+tcp_mine"
    assert added.source != changed.source
    assert len({plain.folder, added.folder, changed.folder}) == 3
    assert build.chosen_kernel() == plain  # only by its name
    assert build.chosen_kernel(added.version) == changed
    mine.write_text("1")
    assert build.build_kernel(tree, add=[mine]) == added == build.chosen_kernel(added.version)
    (tree / "one.c").write_text("int x;")
    build.build_kernel(tree)
    assert log.read_text() == "compiled\n" * 2


@pytest.mark.needs("compiler")
def test_a_build_goes_on_with_the_objects_of_one_that_failed(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(build, "missing_tools", lambda: None)
    packed, log = tmp_path / "packed", tmp_path / "log"
    fake_tree(packed / "linux", log, tmp_path / "broken")
    with tarfile.open(tmp_path / "linux.tar", "w") as archive:
        archive.add(packed / "linux", "linux")
    (tmp_path / "broken").write_text("")
    with pytest.raises(NetctrlError, match=r"`make -C ... linux` failed"):
        build.build_kernel(tmp_path / "linux.tar")
    (tmp_path / "broken").unlink()
    kernel = build.build_kernel(tmp_path / "linux.tar")
    assert log.read_text() == "compiled\n"
    assert kernel.program.read_text() == "program\n"
    assert [each.name for each in (tmp_path / "cache/netctrl/linux").glob("building-*")] == []


def test_a_compiler_s_error_is_shown() -> None:
    lines = ["  CC a.o", "a.c:1: error: no", "  note", "make: *** [x] Error 1"]
    assert build._errors(lines) == ["  a.c:1: error: no", "    note", "  make: *** [x] Error 1"]
