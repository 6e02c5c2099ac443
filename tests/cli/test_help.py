"""Help: every example runs, statuses are named, unknown words get the nearest; nothing heavy is loaded."""

from __future__ import annotations

import importlib
import json
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import pytest
from cyclopts import App, Token

import netctrl
import netctrl.scenario.network.sweep as sweeps
from netctrl.__main__ import EXAMPLES, main
from netctrl.cli import STATUSES
from netctrl.cli.help import MOST_OPTIONS, commands_of, examples_of, missing
from netctrl.core.register import VERB_HELPS, VERBS

# Start of an example -> why it is read only.
READ_ONLY = {
    "netctrl certify qdiscs.txt": "needs tc's output: tests/cli/test_certify_installed.py",
    "netctrl certify config_db.json": "needs a switch's file: tests/cli/test_certify_installed.py",
    "netctrl identify levels.csv": "needs a link's record: tests/cli/test_excite.py",
    "netctrl linux plan": "needs an eth0: tests/linux/queues/test_plan.py",
    "netctrl linux apply": "changes queues: tests/linux/queues/test_apply.py",
    "netctrl linux confirm": "waits for apply: tests/linux/queues",
    "netctrl linux restore": "needs the record of apply: tests/linux/queues",
    "netctrl linux agent": "needs an agent's file: tests/linux/agent/test_kernel.py",
    "netctrl linux mark": "needs an eth0: tests/linux/marking",
}


def apps() -> Iterator[App]:
    for verb in VERB_HELPS:
        app = importlib.import_module(VERBS.module_of(verb)).app
        yield app
        yield from (app[name] for name in commands_of(app))


ALL = [*EXAMPLES, *(line for app in apps() for line in examples_of(app))]
NEED_NS3 = [line for line in ALL if "--run" in line.split()]


def test_every_help_has_two_examples_and_the_statuses(capsys):
    for verb in VERB_HELPS:
        app = importlib.import_module(VERBS.module_of(verb)).app
        for words in [[verb], *([verb, name] for name in commands_of(app))]:
            assert main([*words, "--help"]) == 0
            said = capsys.readouterr().out
            assert said.count("\n  netctrl ") == 2, words
            assert STATUSES in said
    assert main(["--help"]) == main([]) == 0
    out = capsys.readouterr().out
    assert STATUSES in out
    assert all(f"\n  {verb} " in out for verb in VERB_HELPS)
    for words in (["--version"], ["design", "--version"]):
        assert main(words) == 0
        assert capsys.readouterr().out == f"netctrl {netctrl.__version__}\n"


def commands() -> Iterator[list[str]]:
    for verb in VERB_HELPS:
        app = importlib.import_module(VERBS.module_of(verb)).app
        yield from ([verb], *([verb, name] for name in commands_of(app)))


def options_in(said: str) -> int:
    return len(re.findall(r"^  --?\w", said, flags=re.MULTILINE))


def test_a_help_fits_80_columns_and_shows_12_options_and_help_all_the_others(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["--help"]) == 0
    said = [capsys.readouterr().out]
    for words in commands():
        assert main([*words, "--help"]) == 0
        first = capsys.readouterr().out
        assert options_in(first) <= MOST_OPTIONS == 12, words
        assert main([*words, "--help-all"]) == 0
        whole = capsys.readouterr().out
        left_out = re.search(r"^(\d+) more options?: netctrl .+ --help-all$", first, re.MULTILINE)
        assert options_in(whole) == options_in(first) + int(left_out[1] if left_out else 0), words
        assert "more option" not in whole
        said += [first, whole]
    assert [line for text in said for line in text.splitlines() if len(line) > 80] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "line",
    [pytest.param(line, marks=pytest.mark.needs("ns3")) if line in NEED_NS3 else line for line in sorted({*ALL})],
)
def test_every_example_runs(line, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    whole = sweeps.read_sweep
    monkeypatch.setattr(sweeps, "read_sweep", lambda *a: _small(whole(*a)))
    for command in line.split(" && "):
        name, *words = shlex.split(command)
        assert name == "netctrl"
        if command.startswith(tuple(READ_ONLY)):
            app = importlib.import_module(VERBS.module_of(words[0])).app
            named = ["file"] if words[0] == "certify" else []  # as the command line itself reads a FILE
            app.parse_args([*named, *words[1:]], exit_on_error=False, print_error=False)
            continue
        assert main(words) == 0, capsys.readouterr().err
        assert capsys.readouterr().out != ""


def _small(spec):
    """One grid and one run of it."""
    import msgspec

    return msgspec.structs.replace(spec, runs=1, grid=spec.grid[:1], scenario=spec.scenario | {"duration": "12s"})


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("desing arc", "'design'"),
        ("design acr", "'arc'"),
        ("linux staus", "'status'"),
        ("design arc --N 50 --capcity 1Mbit", "'--capacity'"),
        ("design arc --n 50", "'--N'"),
        ("design hftrac --network abiline --mu 1", "'abilene'"),
        ("design hftrac --network tandem --mu 1 --architecture myopc", "'myopic'"),
        ("design connet --model conet-paper", "'connet-paper'"),
        ("simulate arc-staircas", "'arc-staircase'"),
        ("simulate arc-staircase-bulk --engine fluod", "'fluid'"),
        ("simulate arc-staircase-bulk --compare fluid,paket", "'packet'"),
        ("identify connet-link --inputs r --outputs delay", "'R'"),
        ("identify connet-link --inputs R --outputs delay --method n4sd", "'n4sid'"),
        ("sweep hftrac-testbd", "'hftrac-testbed'"),
        ("list law", "'laws'"),
        ("completion bsh", "'bash'"),
    ],
)
def test_an_unknown_word_is_answered_with_the_nearest(line, meant, capsys):
    assert main(shlex.split(line)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert f"did you mean {meant}?" in err
    assert err.count("\n") == 1


def test_a_missing_option_is_named_with_what_it_is_and_an_example_that_its_command_takes(capsys):
    found = 0
    for words in commands():
        app = importlib.import_module(VERBS.module_of(words[0])).app
        command = app[words[1]] if words[1:] else app
        for argument in command.assemble_argument_collection() if command.default_command else ():
            name, text = argument.names[0], (argument.parameter.help or "").partition(": ")[2]
            if argument.required and text and name.startswith("-"):
                said = re.fullmatch(rf"{name} is missing: [\w' -]{{5,70}}, as in {name} (\S+)", missing(name, text))
                assert said, (words, missing(name, text))
                convert = argument.parameter.converter
                assert not callable(convert) or convert(None, [Token(value=said[1])]) is not None
                found += 1
    assert found > 30
    assert main(["certify", "pie", "--N", "5"]) == 2
    said = "error: --rtt is missing: the round-trip time without queueing, as in --rtt 100ms\n"
    assert capsys.readouterr().err == said


def test_a_word_that_is_near_to_none_gets_no_guess(capsys):
    assert main(["qqq"]) == 2
    assert capsys.readouterr().err == "error: unknown verb 'qqq' (netctrl --help lists them)\n"


def test_help_and_lists_load_no_library_of_numbers():
    heavy = {"numpy", "scipy", "numba", "pandas", "pyarrow", "matplotlib", "control", "joblib", "distributed", "tqdm"}
    code = "import sys; from netctrl.__main__ import main; main({}); print([*{} & {{*sys.modules}}])"
    verbs = ("simulate", "sweep", "doctor", "evaluate", "certify")
    for words in (["list", "scenarios"], ["design", "arc", "--help"], *([verb, "--help"] for verb in verbs)):
        banned = heavy if words[0] in ("list", "doctor") else heavy | {"msgspec"}
        command = [sys.executable, "-c", code.format(words, banned)]
        ran = subprocess.run(command, capture_output=True, text=True, check=True)
        assert ran.stdout.splitlines()[-1] == "[]", words


def test_list_names_what_is_registered_and_bundled(capsys):
    from netctrl.core import register
    from netctrl.model import datasets

    assert main(["list", "--json"]) == 0
    found = {kind: [each["name"] for each in all_] for kind, all_ in json.loads(capsys.readouterr().out).items()}
    assert set(found["queues"]) == {*register.CERTIFIED, *register.DESIGNED_QUEUES}
    assert found["designs"] == list(register.DESIGN_COMMANDS)
    assert found["engines"] == list(register.ENGINES)
    assert found["scenarios"] == list(datasets.scenarios())
    assert set(found["laws"]) >= {*register.QUEUE_LAWS, *register.TCP_SENDERS, *register.WINDOW_LAWS}


def test_list_begins_with_the_queues_that_people_run_and_names_the_command_of_each_group(capsys):
    assert main(["list"]) == 0
    groups = dict(each.split("\n", 1) for each in capsys.readouterr().out.split("\n\n"))
    names = {title.partition(":")[0]: re.findall(r"^  ([\w-]+)  ", text, re.M) for title, text in groups.items()}
    assert next(iter(names)) == "queues that people run"
    assert {"pie", "fq_pie", "dctcp", "ecn"} <= set(names["queues that people run"])
    assert names["research designs"] == ["arc", "hftrac", "connet", "mpc", "mpcc", "pacing"]
    assert all(": netctrl " in title or "netctrl evaluate NAME" in title for title in groups)
    assert main(["list", "queues", "--json"]) == 0
    verbs = {each["name"]: each["verbs"] for each in json.loads(capsys.readouterr().out)["queues"]}
    assert (verbs["pie"], verbs["fq_pie"], verbs["ecn"]) == (["certify", "design"], ["certify"], ["design"])


def test_list_says_which_engines_have_a_law(capsys):
    assert main(["list", "laws", "--json"]) == 0
    laws = {(each["kind"], each["name"]): each for each in json.loads(capsys.readouterr().out)["laws"]}
    assert laws["queue", "red"]["engines"] == ["fluid", "packet", "ns3"]
    assert laws["data-centre sender", "hpcc"]["engines"] == ["packet", "ns3"]
    assert laws["link rate", "credit"]["engines"] == ["fluid", "packet", "ns3", "kernel"]
    assert laws["link rate", "backpressure"]["engines"] == ["fluid", "ns3"]
    assert all(each["engines"] and each["what"] for each in laws.values())
