"""What all tests share: which netctrl is tested, Hypothesis without chance, and requirements of the machine.

`@pytest.mark.needs("ns3")` skips a test where ns-3 is missing, with the reason and the remedy.
`NETCTRL_REQUIRE=ns3,kernel` turns those skips into failures: a machine that promises them must have them.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import hypothesis
import pytest

hypothesis.settings.register_profile("netctrl", derandomize=True, deadline=None)
hypothesis.settings.load_profile("netctrl")

PROBE_SECONDS = 20.0


def bounded(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command of a probe, with its output, ended after a while."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)


@dataclass(frozen=True, slots=True)
class Ns3:
    """An ns-3 to compile against: Debian's libns3-dev, or the wheel of the extra `ns3`."""

    version: str
    compiler: str
    compile_flags: tuple[str, ...]
    link_flags: tuple[str, ...]
    library: str  # how a module's library is called: "ns3-{module}"

    def command(self, source: Path, output: Path, *modules: str) -> list[str]:
        """The command that compiles `source` and links it with ns-3's `modules`, such as "core"."""
        libraries = ["-l" + self.library.format(module=module) for module in modules]
        compile_part = [self.compiler, *self.compile_flags, str(source), "-o", str(output)]
        return [*compile_part, *self.link_flags, *libraries]


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something that a machine has or lacks: `missing` returns None, or what is lacking."""

    missing: Callable[[], str | None]
    remedy: str


@cache
def find_ns3() -> Ns3 | str:
    """The ns-3 of this machine, or a sentence about what is lacking. Compiles nothing."""
    compiler = shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        return "no C++ compiler (g++ or clang++) is on PATH"
    return ns3_of_wheel(compiler) or ns3_of_system(compiler) or "neither ns-3's headers nor its wheel were found"


def ns3_of_wheel(compiler: str) -> Ns3 | None:
    """The wheel's ns-3. It comes first: who installed the extra wants that one."""
    try:
        prefix = Path(str(importlib.metadata.distribution("ns3").locate_file("ns3")))
    except importlib.metadata.PackageNotFoundError:
        return None
    headers, folder = prefix / "include", prefix / "lib64"
    libraries = [re.fullmatch(r"libns(3\.\d+)-core\.so", path.name) for path in folder.glob("libns3.*-core.so")]
    versions = [match[1] for match in libraries if match]
    if len(versions) != 1 or not (headers / "ns3" / "core-module.h").is_file():
        return None
    return Ns3(
        version=versions[0],
        compiler=compiler,
        compile_flags=("-std=c++20", f"-I{headers}"),
        link_flags=(f"-L{folder}", f"-Wl,-rpath,{folder}"),
        library=f"ns{versions[0]}-{{module}}",
    )


def ns3_of_system(compiler: str) -> Ns3 | None:
    """The ns-3 of libns3-dev. Debian 12's pkg-config flags for it are broken: ask the compiler instead."""
    library = Path(bounded([compiler, "-print-file-name=libns3-core.so"]).stdout.strip())
    # A name without a folder is the compiler's way to say: not found.
    headers = [Path("/usr/include"), Path("/usr/local/include"), *sorted(Path("/usr/include").glob("ns3.*"))]
    found = [folder for folder in headers if (folder / "ns3" / "core-module.h").is_file()]
    if not library.is_absolute() or not library.exists() or not found:
        return None
    release = library.resolve().suffix
    return Ns3(
        version=f"3{release}" if release != ".so" else "of the system",
        compiler=compiler,
        compile_flags=("-std=c++17",) if found[0] in headers[:2] else ("-std=c++17", f"-I{found[0]}"),
        link_flags=(),
        library="ns3-{module}",
    )


def missing_ns3() -> str | None:
    """What ns-3 lacks here, if anything."""
    found = find_ns3()
    return found if isinstance(found, str) else None


@cache
def missing_kernel() -> str | None:
    """What keeps a test from making network namespaces, if anything: one is made and removed."""
    if os.geteuid() != 0:
        return "the tests do not run as root"
    if shutil.which("ip") is None:
        return "ip (iproute2) is not on PATH"
    name = f"netctrl-probe-{os.getpid()}"
    try:
        for action in ("add", "del"):
            made = bounded(["ip", "netns", action, name])
            if made.returncode != 0:
                return f"`ip netns {action}` says: {made.stderr.strip()}"
    except subprocess.TimeoutExpired:
        return f"`ip netns` did not answer in {PROBE_SECONDS:g} s"
    return None


REQUIREMENTS = {
    "ns3": Requirement(missing_ns3, "`apt-get install libns3-dev`, or g++ and `pip install 'netctrl[ns3]'`"),
    "kernel": Requirement(missing_kernel, "run as root where network namespaces are allowed, with iproute2"),
}


def known(names: Iterable[str], said_by: str) -> set[str]:
    """The names, all of them in the table; else a usage error that lists the known ones."""
    names = set(names)
    if unknown := sorted(names - REQUIREMENTS.keys()):
        listed = ", ".join(sorted(REQUIREMENTS))
        named = ", ".join(map(repr, unknown))
        raise pytest.UsageError(f"{said_by} names {named}; known requirements: {listed}")
    return names


def required() -> set[str]:
    """What this machine promised to have, from NETCTRL_REQUIRE."""
    entries = (entry.strip() for entry in os.environ.get("NETCTRL_REQUIRE", "").split(","))
    return known(filter(None, entries), "NETCTRL_REQUIRE")


def needs_of(item: pytest.Item) -> set[str]:
    """The requirements that a test's markers name."""
    names = {name for mark in item.iter_markers("needs") for name in mark.args}
    return known(names, f"the marker needs(...) of {item.nodeid}")


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Which netctrl is tested, and what a machine lacks is named before the first test."""
    try:
        import netctrl
    except ImportError as error:
        return [f"netctrl: cannot be imported ({error}); `nox -s tests` installs it and runs the tests"]
    folder = Path(netctrl.__file__).parent
    kind = "the checkout, not a wheel" if folder.parent == config.rootpath else "installed"
    found = find_ns3()
    ns3 = found if isinstance(found, str) else f"{found.version}, {found.compiler}"
    return [f"netctrl: {netctrl.__version__}, {kind}, {folder}", f"ns-3: {ns3}"]


def pytest_configure(config: pytest.Config) -> None:
    """A misspelt NETCTRL_REQUIRE would silently require nothing."""
    required()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A misspelt marker would silently need nothing."""
    for item in items:
        needs_of(item)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where the machine promised, a test whose requirement is missing."""
    for name in sorted(needs_of(item)):
        if (lacking := REQUIREMENTS[name].missing()) is not None:
            sentence = f"needs {name}, but {lacking}; remedy: {REQUIREMENTS[name].remedy}"
            if name in required():
                pytest.fail(f"{sentence} (NETCTRL_REQUIRE names {name})", pytrace=False)
            pytest.skip(sentence)


@pytest.fixture(scope="session")
def ns3() -> Ns3:
    """The ns-3 to compile against, for tests marked `needs("ns3")`."""
    found = find_ns3()
    if isinstance(found, str):
        pytest.fail(f"{found}; mark this test with @pytest.mark.needs('ns3')", pytrace=False)
    return found
