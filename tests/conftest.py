"""What all tests share: which netctrl is tested, Hypothesis without chance, and requirements of the machine.

`@pytest.mark.needs("ns3")` skips a test where ns-3 is missing, with the reason and the remedy.
`NETCTRL_REQUIRE=ns3,kernel` turns those skips into failures: a machine that promises them must have them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import hypothesis
import pytest

os.environ["NETCTRL_QUIET"] = "1"  # what is compiled first isn't in what tests read of stderr
hypothesis.settings.register_profile("netctrl", derandomize=True, deadline=None)
hypothesis.settings.load_profile("netctrl")

PROBE_SECONDS = 20.0
LESS_OPTIMISED = "-O1 -ffp-contract=off"
"""Of slow tests' programs for ns-3, which run as fast and are compiled sooner; others have the flags of users."""


def bounded(command: list[str]) -> subprocess.CompletedProcess[str]:
    """A command of a probe, with its output, ended after a while."""
    return subprocess.run(command, capture_output=True, text=True, timeout=PROBE_SECONDS, check=False)


@dataclass(frozen=True, slots=True)
class Requirement:
    """Something that a machine has or lacks: `missing` returns None, or what is lacking."""

    missing: Callable[[], str | None]
    remedy: str


@cache
def missing_ns3() -> str | None:
    """What ns-3 lacks here, if anything."""
    try:
        from netctrl.ns3.program import find_ns3

        find_ns3()
    except Exception as error:  # a NetctrlError, or netctrl isn't there
        return str(error)
    return None


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


def missing_compiler() -> str | None:
    """What keeps a test from compiling C, if anything."""
    return None if shutil.which("gcc") else "gcc is not on PATH"


@cache
def missing_bpf() -> str | None:
    """What keeps a test from loading a congestion control by BPF, if anything."""
    import ctypes.util

    from netctrl.linux.congestion.load import lacks

    library = [] if ctypes.util.find_library("bpf") else ["no libbpf"]
    return "; ".join([*lacks("netctrl_test"), *library]) or None


def missing_systemd() -> str | None:
    """What keeps a test from asking systemd's verifier, if anything."""
    return None if shutil.which("systemd-analyze") else "systemd-analyze is not on PATH"


@cache
def missing_browser() -> str | None:
    """What keeps a test from opening a page in Chromium without a screen, if anything."""
    if find_spec("playwright") is None:
        return "playwright is not installed"
    return None if shutil.which("chromium") else "chromium is not on PATH"


def missing_site() -> str | None:
    """What the tests of the site lack, if anything: `NETCTRL_SITE` is its folder, site/ by default."""
    if find_spec("mkdocs") is None:
        return "mkdocs is not installed"
    from places import SITE

    return None if (SITE / "index.html").is_file() else f"there is no {SITE / 'index.html'}"


def missing_openconfig() -> str | None:
    """What OpenConfig's models lack here, if anything."""
    lacking = [name for name in ("ocbindings", "pyangbind", "lxml", "regex") if find_spec(name) is None]
    return f"{', '.join(lacking)} not installed" if lacking else None


@cache
def missing_lab() -> str | None:
    """What the kernel in virtual time lacks here, if anything; none is built for it."""
    try:
        from netctrl.kernel.scenarios.lacks import machine_lacks
    except ImportError as error:
        return str(error)
    return machine_lacks()


REQUIREMENTS = {
    "browser": Requirement(missing_browser, "`apt-get install chromium` and `pip install playwright`"),
    "bpf": Requirement(missing_bpf, "run as root where BPF is allowed, with `apt-get install clang bpftool libbpf1`"),
    "compiler": Requirement(missing_compiler, "`apt-get install gcc libc6-dev`"),
    "site": Requirement(missing_site, "`nox -s site`, which builds the site and tests it"),
    "ns3": Requirement(missing_ns3, "`apt-get install g++ make libns3-dev`, or g++, make and the extra `ns3`"),
    "kernel": Requirement(missing_kernel, "run as root where network namespaces are allowed, with iproute2"),
    "lab": Requirement(missing_lab, "`nox -s lab`, or `netctrl kernel build`, which says what it needs"),
    "openconfig": Requirement(missing_openconfig, "`pip install --no-deps ocbindings pyangbind` and the extra `test`"),
    "systemd": Requirement(missing_systemd, "`apt-get install systemd`, which need not run"),
}


SESSIONS = {"ns3": "engines", "lab": "lab", "kernel": "namespaces", "browser": "site", "site": "site"}
"""Requirement -> the marker of its tests, and the session of nox that has them; the session `tests` has the rest."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a screen, for one file: while it is open its event loop runs in this thread, and asyncio's other
    users would be refused theirs.
    """
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        found = play.chromium.launch(executable_path=shutil.which("chromium"))
        yield found
        found.close()


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
    return [f"netctrl: {netctrl.__version__}, {kind}, {folder}", f"ns-3: {missing_ns3() or 'is there'}"]


def pytest_configure(config: pytest.Config) -> None:
    """A misspelt NETCTRL_REQUIRE would silently require nothing."""
    required()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what other sessions have; files with slow tests come first, so that cores end together."""
    for item in items:
        for session in {SESSIONS[name] for name in needs_of(item) if name in SESSIONS}:
            item.add_marker(session)
    slow = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: item.path not in slow)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail where the machine promised, a test whose requirement is missing."""
    for name in sorted(needs_of(item)):
        if (lacking := REQUIREMENTS[name].missing()) is not None:
            sentence = f"needs {name}, but {lacking}; remedy: {REQUIREMENTS[name].remedy}"
            if name in required():
                pytest.fail(f"{sentence} (NETCTRL_REQUIRE names {name})", pytrace=False)
            pytest.skip(sentence)


BEGAN = pytest.StashKey[float]()
MOST_S = 2.0
"""Processor time of a test of the session `tests` [s]; one that takes more belongs to another session."""


def processor_time() -> float:
    """Of this process and of those that it waited for [s]."""
    return sum(os.times()[:4])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A report tells the processor time up to its end, fixtures made for it included."""
    report = yield
    report.user_properties.append(("processor_s", processor_time() - item.stash[BEGAN]))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Tests that take longer than the session `tests` is for, with their processor time."""
    reports = [*terminalreporter.stats.get("passed", ()), *terminalreporter.stats.get("failed", ())]
    others = {"slow", *SESSIONS.values()}
    found = [
        (dict(each.user_properties).get("processor_s", 0.0), each.nodeid)
        for each in reports
        if not others & set(each.keywords)
    ]
    if longest := sorted(((time, name) for time, name in found if time > MOST_S), reverse=True):
        terminalreporter.section(f"more than {MOST_S:g} s of processor time, first compilations included")
        for time, name in longest:
            terminalreporter.line(f"{time:6.1f} s  {name}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool | None, bool | None]:
    """Programs of slow tests for ns-3 are compiled with less optimisation, unless CXXFLAGS says how."""
    item.stash[BEGAN] = processor_time()
    with pytest.MonkeyPatch.context() as patch:
        if item.get_closest_marker("slow") and "CXXFLAGS" not in os.environ:
            patch.setenv("CXXFLAGS", LESS_OPTIMISED)
        return (yield)
