"""The skips and failures of `needs(...)` themselves, and one smoke test for each requirement."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from places import TESTS

CONFTEST = TESTS / "conftest.py"
# A requirement that no machine has, and one that every machine has.
INVENTED = """
REQUIREMENTS["unicorn"] = Requirement(lambda: "there is no unicorn", "buy a unicorn")
REQUIREMENTS["air"] = Requirement(lambda: None, "breathe")
"""
TESTS = """
import pytest

@pytest.mark.needs({names})
def test_it():
    pass
"""


@pytest.fixture
def run(pytester, monkeypatch):
    """Run a test that needs `names` under our conftest, with NETCTRL_REQUIRE set to `require`."""

    def run_pytest(names: str, require: str | None = None) -> pytest.RunResult:
        monkeypatch.delenv("NETCTRL_REQUIRE", raising=False)
        if require is not None:
            monkeypatch.setenv("NETCTRL_REQUIRE", require)
        pytester.makeini("[pytest]\nmarkers = needs(*names): of the machine\naddopts = --strict-markers")
        pytester.makeconftest(CONFTEST.read_text(encoding="utf-8") + INVENTED)
        pytester.makepyfile(TESTS.format(names=names))
        # In a process of its own, so that the outer run's modules are left alone.
        return pytester.runpytest_subprocess("-rs", timeout=120)

    return run_pytest


@pytest.mark.parametrize("require", [None, "", "air", " air , "])
def test_a_missing_requirement_skips_with_reason_and_remedy(run, require):
    result = run("'air', 'unicorn'", require)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*needs unicorn, but there is no unicorn; remedy: buy a unicorn*"])


def test_a_required_one_fails_with_the_same_sentence(run):
    result = run("'air', 'unicorn'", "unicorn,air")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*needs unicorn, but there is no unicorn; remedy: buy a unicorn*"])


@pytest.mark.parametrize("given", [None, "-O3"])
def test_programs_of_slow_tests_are_less_optimised_and_those_of_others_as_users_have_them(
    pytester, monkeypatch, given: str | None
) -> None:
    monkeypatch.delenv("NETCTRL_REQUIRE", raising=False)
    monkeypatch.delenv("CXXFLAGS", raising=False)
    if given is not None:
        monkeypatch.setenv("CXXFLAGS", given)
    pytester.makeini("[pytest]\nmarkers =\n    needs(*names): of the machine\n    slow: takes long")
    pytester.makeconftest(CONFTEST.read_text(encoding="utf-8"))
    pytester.makepyfile(f"""
        import os, pytest

        @pytest.fixture(scope="module")
        def flags():
            return os.environ.get("CXXFLAGS")

        @pytest.mark.slow
        def test_slow(flags):
            assert flags == {given or "-O1 -ffp-contract=off"!r}

        def test_quick():
            assert os.environ.get("CXXFLAGS") == {given!r}
        """)
    pytester.runpytest_subprocess(timeout=120).assert_outcomes(passed=2)


@pytest.mark.parametrize("require", [None, "unicorn,air"])
def test_what_the_machine_has_runs(run, require):
    run("'air'", require).assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("names", "require", "said_by"),
    [("'unicron'", None, "the marker needs"), ("'air'", "air,unicron", "NETCTRL_REQUIRE")],
)
def test_an_unknown_name_is_a_usage_error_that_lists_the_known(run, names, require, said_by):
    result = run(names, require)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = result.stdout.str() + result.stderr.str()
    assert f"{said_by}" in said
    assert (
        "'unicron'; known requirements: air, bpf, browser, compiler, kernel, lab, ns3, openconfig, site, syst" in said
    )


LOOPBACK = """
import socket

server = socket.create_server(("127.0.0.1", 0))
server.settimeout(20)
client = socket.create_connection(server.getsockname(), timeout=20)
peer, _ = server.accept()
client.sendall(b"through the namespace")
print(peer.recv(64).decode(), [name for _, name in socket.if_nameindex()])
"""


@pytest.fixture
def namespace():
    """A network namespace of this process's own, removed again whatever happens."""
    name = f"netctrl-smoke-{os.getpid()}"
    subprocess.run(["ip", "netns", "add", name], check=True, timeout=30)
    try:
        yield name
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True, timeout=30)


@pytest.mark.needs("kernel")
def test_a_network_namespace_carries_traffic_of_its_own(namespace):
    inside = ["ip", "netns", "exec", namespace]
    subprocess.run([*inside, "ip", "link", "set", "lo", "up"], check=True, timeout=30)
    talked = subprocess.run(
        [*inside, sys.executable, "-c", LOOPBACK], capture_output=True, text=True, timeout=60, check=False
    )
    assert (talked.returncode, talked.stdout.strip()) == (0, "through the namespace ['lo']"), talked.stderr
