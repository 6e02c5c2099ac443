"""The doctor tells what is there and what is missing, also where tools are; completion is a script that shells read."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import get_args

import pytest

import netctrl
from netctrl.__main__ import main
from netctrl.cli.app import colored, quiet, waiting
from netctrl.cli.catalogue import KINDS
from netctrl.cli.doctor import checks as doctor
from netctrl.cli.doctor.checks import State
from netctrl.core import names
from netctrl.linux import namespace
from netctrl.model import datasets


def checks(capsys) -> dict[str, dict]:
    said = json.loads(capsys.readouterr().out)
    return {each["name"]: each for each in said["checks"]} | {"verdict": said["verdict"]}


def test_versions_are_those_that_are_imported(capsys):
    import numba

    assert main(["doctor", "--json"]) == 0
    found = checks(capsys)
    assert found["numba"]["found"] == numba.__version__
    assert found["netctrl"]["found"] == f"{netctrl.__version__}, {Path(netctrl.__file__).parent}"
    assert found["verdict"].startswith("netctrl works here")
    assert all(each["remedy"] for each in found.values() if isinstance(each, dict) and each["state"] == "missing")


def test_without_tools_it_names_what_installs_them(capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    assert main(["doctor", "--json"]) == 0
    found = checks(capsys)
    assert [found[name]["state"] for name in ("g++", "make", "ip", "ns-3")] == ["missing"] * 4
    assert found["g++"]["remedy"] == "apt-get install g++"
    assert "libns3-dev" in found["ns-3"]["remedy"]


def test_status_1_where_an_essential_library_is_broken(capsys, monkeypatch):
    real = importlib.import_module

    def broken(name, *more):
        if name == "scipy":
            raise ImportError("libgfortran.so.5: cannot open shared object file")
        return real(name, *more)

    monkeypatch.setattr(doctor.importlib, "import_module", broken)
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("netctrl does not work here: scipy\n")
    assert "pip install --force-reinstall scipy" in " ".join(out.split())


@pytest.mark.parametrize(("value", "state"), [("y", State.OK), ("m", State.UNKNOWN), (None, State.MISSING)])
def test_a_qdisc_is_as_the_kernel_was_built(value, state, monkeypatch):
    monkeypatch.setattr(doctor, "_config", lambda: {} if value is None else {"NET_SCH_PIE": value})
    monkeypatch.setattr(doctor.platform, "release", lambda: "0.0-none")
    monkeypatch.setattr(doctor.sys, "platform", "linux")
    assert next(each for each in doctor.kernel() if each.name == "qdisc pie").state is state


def test_missing_rights_are_named_with_the_remedy(monkeypatch, tmp_path):
    status = tmp_path / "status"
    monkeypatch.setattr(namespace, "_STATUS", status)

    def found() -> tuple[State, str, str | None]:
        check = next(each for each in doctor.kernel() if each.name == "rights")
        return check.state, check.found, check.remedy

    status.write_text("Name:\tpython\nCapEff:\t0000000000001000\n")
    assert found() == (State.MISSING, "no CAP_SYS_ADMIN", "run as root")
    status.write_text("CapEff:\t000001ffffffffff\n")
    assert found() == (State.OK, "CAP_NET_ADMIN, CAP_SYS_ADMIN", None)


def test_on_another_system_linux_is_what_is_missing(monkeypatch):
    monkeypatch.setattr(doctor.sys, "platform", "darwin")
    (only,) = doctor.kernel()
    assert (only.name, only.state) == ("Linux", State.MISSING)


def test_compiled_code_is_seen_and_no_folder_is_made(tmp_path):
    code = (
        "from netctrl.core import jit; import sys; jit.config.CACHE_DIR = sys.argv[1]\n"
        "before = sum(jit.compiled_files().values())\n"
        "name = 'laws.tcp.reno'; path = jit.PACKAGE / 'laws/tcp/reno.py'\n"
        "made = jit.places()[0] / f'{name}-{jit.key_of(path)}'\n"
        "print(before, made.parent.exists()); made.mkdir(parents=True); (made / 'x.nbi').touch()\n"
        "print([each for each, there in jit.compiled_files().items() if there])"
    )
    environment = {"HOME": str(tmp_path), "PYTHONPATH": ":".join(sys.path)}
    command = [sys.executable, "-c", code, str(tmp_path / "kept")]
    ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == ["0 False", "['laws.tcp.reno']"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_bash_completes_verbs_and_options(capsys, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = Path(tmp_path / "netctrl.bash")
    script.write_text(capsys.readouterr().out)

    def offered(*words: str) -> set[str]:
        line = " ".join(map(repr, words))
        ask = f"source {script}; COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _netctrl; echo ${{COMPREPLY[@]}}"
        return set(subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout.split())

    assert {"design", "doctor"} <= offered("netctrl", "d")
    assert {"arc"} == offered("netctrl", "design", "ar")
    assert "--capacity" in offered("netctrl", "design", "arc", "--ca")
    assert offered("netctrl", "simulate", "") == set(datasets.scenarios())
    assert offered("netctrl", "simulate", "three") == {"three-links"}
    assert offered("netctrl", "sweep", "") == set(datasets.sweeps())
    assert offered("netctrl", "identify", "") == set(datasets.traces())
    assert offered("netctrl", "design", "hftrac", "--network", "") == set(datasets.networks())
    assert offered("netctrl", "design", "connet", "--model", "") == set(datasets.models())
    assert offered("netctrl", "export", "ns3", "--scenario", "arc-c") == {"arc-capacity"}
    for command in (("certify", "pie"), ("certify", "fq_codel"), ("design", "pie")):
        assert offered("netctrl", *command, "--sender", "linux-c") == {"linux-creno", "linux-creno-noecn"}
    assert offered("netctrl", "certify", "pie", "--check", "") == set(get_args(names.CheckName))
    assert offered("netctrl", "evaluate", "pi") == {"pie", "pi", "pi2"}
    assert offered("netctrl", "evaluate", "pie", "--engine", "") == set(get_args(names.EvaluationEngine))
    for command in (("simulate", "arc-capacity"), ("sweep", "hftrac-testbed")):
        assert offered("netctrl", *command, "--engine", "") == set(get_args(names.EngineName))
    assert offered("netctrl", "identify", "connet-link", "--method", "n") == {"n4sid"}
    assert offered("netctrl", "list", "") == set(KINDS)
    ask = f"source {script}; complete -p netctrl"
    told = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True).stdout
    assert "-o default" in told  # a file where no name fits


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_other_shells_scripts_have_the_names(capsys, shell):
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    bundled = (datasets.scenarios, datasets.sweeps, datasets.traces, datasets.networks, datasets.models)
    assert all(name in script for names in bundled for name in names())


def test_a_shell_that_is_not_known_is_refused(capsys, monkeypatch):
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert main(["completion"]) == 2
    assert "netctrl completion bash" in capsys.readouterr().err


def test_colour_is_for_terminals_that_want_it(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert colored("ok", "green") == "ok"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert colored("ok", "green") == "\033[32mok\033[0m"
    monkeypatch.setenv("NO_COLOR", "1")
    assert colored("ok", "green") == "ok"


def test_a_wait_is_shown_on_a_terminal_and_wiped_before_the_result(monkeypatch, capsys):
    with waiting("designing", 0.01):
        time.sleep(0.05)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with waiting("designing", 0.01):
        said, deadline = "", time.monotonic() + 60.0
        while not said and time.monotonic() < deadline:
            time.sleep(0.01)
            said = capsys.readouterr().err
        quiet()
        said += capsys.readouterr().err
        time.sleep(0.05)
    assert said.startswith("\rdesigning, 0 s")
    assert said.endswith("\r\033[K")
    assert capsys.readouterr().err == ""
