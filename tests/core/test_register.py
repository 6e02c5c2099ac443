"""Entry points of other packages: those that are broken are named in one line, and hide nothing else."""

from __future__ import annotations

import importlib
import json
import shutil
import sys
from importlib.metadata import EntryPoint
from math import sqrt
from pathlib import Path

import pytest
from packages import installed, ran
from places import ROOT

import netctrl
from netctrl.cli.certify import main as certify_main
from netctrl.cli.export import main as export_main
from netctrl.cli.list import main as list_main
from netctrl.cli.simulate import main as simulate_main
from netctrl.core.errors import NetctrlError, Unusable
from netctrl.core.jit import njit
from netctrl.core.register import QUEUE_LAWS, TCP_SENDERS, Registry
from netctrl.laws.codegen import check_law
from netctrl.laws.tcp.sender import Acked, TcpSender, TcpWindow
from netctrl.scenario.links import Link

BLUE = ROOT / "examples" / "blue"
STEP = "    return BlueState(clip(state.probability + change), 0.0)"
BROKEN = {
    "tanh": (STEP, STEP.replace("state.probability + change", "math.tanh(change)"), "math.tanh(change) isn't in the"),
    "field": (STEP, STEP.replace("state.probability", "seen.delay"), "seen has no field delay"),
    "count": (STEP, STEP.replace(", 0.0", ""), "BlueState takes 2 values, got 1"),
    "text": (STEP, STEP.replace("0.0", "'none'"), "'none' isn't in the subset"),
    "syntax": (STEP, f"    return return{STEP}", "SyntaxError: invalid syntax"),
    "import": ("from typing", "import no_such_library\nfrom typing", "ModuleNotFoundError: No module named"),
    "division": ("class BlueState", "1 / 0\n\n\nclass BlueState", "ZeroDivisionError: division by zero"),
    "exit": ("class BlueState", "raise SystemExit(3)\n\n\nclass BlueState", "SystemExit: 3"),
}


def broken(how: str, folder: Path) -> tuple[Path, int]:
    """examples/blue with a fault, and the line at which it is."""
    package = folder / "package"
    shutil.copytree(BLUE, package)
    old, new, _ = BROKEN[how]
    module = package / "netctrl_blue.py"
    text = module.read_text().replace(old, new, 1)
    module.write_text(text)
    word = new.split("\n", maxsplit=1)[0].strip()
    return package, next(k for k, line in enumerate(text.splitlines(), 1) if word in line)


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_law_is_named_with_file_line_and_fault(how, tmp_path, monkeypatch):
    package, line = broken(how, tmp_path)
    monkeypatch.syspath_prepend(package)
    monkeypatch.delitem(sys.modules, "netctrl_blue", raising=False)
    importlib.invalidate_caches()
    registry = Registry("queue", "netctrl.laws", {"pi": "netctrl.laws.aqm.pi:PI"}, "netctrl.laws.aqm.law:QueueLaw")
    registry._others = {"blue": EntryPoint("blue", "netctrl_blue:BLUE", "netctrl.laws")}
    assert registry.usable() == ("pi",)
    with pytest.raises(Unusable) as refused:
        registry["blue"]
    said = str(refused.value)
    assert said.startswith(f"queue blue can't be used: {package / 'netctrl_blue.py'}, line {line}: ")
    assert BROKEN[how][2] in said
    assert "\n" not in said
    assert ("a law may use assignments" in said) == (how in ("tanh", "field", "count", "text"))
    assert registry["pi"].name == "pi"


@pytest.mark.parametrize(
    ("value", "name", "says"),
    [
        ("netctrl.core.errors:any_of", "any", "isn't a QueueLaw"),
        ("netctrl.laws.aqm.pi:PI", "other", "the law's own name is pi"),
        ("netctrl.laws.aqm.pi:NOTHING", "pie2", "AttributeError"),
        ("netctrl.no_such_module:LAW", "none", "No module named 'netctrl.no_such_module'"),
    ],
)
def test_what_is_no_law_of_this_name_is_refused(value, name, says):
    registry = Registry("queue", "netctrl.laws", {}, "netctrl.laws.aqm.law:QueueLaw")
    registry._others = {name: EntryPoint(name, value, "netctrl.laws")}
    assert says in str(registry.lack(name))


def test_all_of_netctrls_printed_laws_would_pass():
    """But for those that ns-3 has itself, whose powers round in its own way."""
    for name in set(TCP_SENDERS) - {"cubic"}:
        check_law(name, TCP_SENDERS[name], TcpSender)


def test_a_function_with_too_few_arguments_is_refused():
    with pytest.raises(NetctrlError, match=r"grow is .*; it takes a function of 2 arguments or more"):
        check_law("short", TcpSender("short", TcpWindow, grow_alone, grow_alone), TcpSender)


def grow_alone(state: TcpWindow) -> None:
    state.window += 1.0


@pytest.fixture
def fault(tmp_path, monkeypatch) -> str:
    """A package with `math.tanh` in its law beside netctrl, and what is said of it."""
    package, line = broken("tanh", tmp_path)
    monkeypatch.syspath_prepend(package)
    monkeypatch.delitem(sys.modules, "netctrl_blue", raising=False)
    importlib.invalidate_caches()
    monkeypatch.setattr(QUEUE_LAWS, "_others", {"blue": EntryPoint("blue", "netctrl_blue:BLUE", "netctrl.laws")})
    monkeypatch.setattr(QUEUE_LAWS, "_lacks", {})
    return (
        f"queue blue can't be used: {package / 'netctrl_blue.py'}, line {line}: math.tanh(change) isn't in the subset"
    )


def test_a_list_names_what_is_broken_and_has_the_rest(fault, capsys):
    assert list_main(["laws", "--json"]) == 1
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"error: {fault}")
    names = {law["name"] for law in json.loads(said.out)["laws"]}
    assert {"pi", "reno", "hpcc", "bbr"} <= names
    assert "blue" not in names
    assert list_main(["engines"]) == 0


@pytest.mark.parametrize(
    ("main", "argv"), [(simulate_main, ["SCENARIO"]), (export_main, ["ns3", "--scenario", "SCENARIO", "-o", "out"])]
)
def test_a_command_that_uses_it_says_so_in_a_line(main, argv, fault, capsys):
    assert main([str(BLUE / "blue.toml") if each == "SCENARIO" else each for each in argv]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert fault in said


def test_so_does_its_certificate(fault, capsys):
    assert certify_main(["blue", "--rtt", "50ms", "--window", "20"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert said.startswith(f"error: {fault}")


def test_so_does_python(fault):
    with pytest.raises(netctrl.NetctrlError) as refused:
        netctrl.read(str(BLUE / "blue.toml"))
    assert fault in str(refused.value)
    from netctrl_blue import BlueQueue

    with pytest.raises(netctrl.NetctrlError) as refused:
        Link(id="line", source="a", target="b", capacity=1e7, queue=BlueQueue())
    assert str(refused.value).startswith(fault)


def test_a_process_that_starts_beside_a_broken_package_is_netctrl(tmp_path):
    """A package that doesn't even compile: what doesn't use it works."""
    site = installed(broken("syntax", tmp_path)[0], tmp_path / "site")
    done = ran(site, "-c", "import netctrl; print(netctrl.read('arc-staircase-bulk').links[0].queue)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ArcQueue(")


def root_of(x):
    return sqrt(x.nothing)


def part_of(x):
    return Acked(x)


@pytest.mark.parametrize("function", [root_of, part_of])
def test_what_numba_cannot_compile_of_others_is_one_line(function):
    """Functions of this file are another package's to netctrl. Numba's own text is 20 lines and more, in colours."""
    inner = njit(function)

    def outer(x):
        return inner(x)

    with pytest.raises(NetctrlError) as refused:
        njit(outer)(1.0)
    said = str(refused.value)
    line = function.__code__.co_firstlineno + (function is root_of)  # the other is an error of Python's, without a line
    where = f"{__file__}, line {line}, in {function.__name__}"
    assert said.startswith(f"code of another package can't be compiled: {where}: ")
    assert "\n" not in said
    assert "\x1b" not in said
