"""Units: what they say, that systemd's own verifier takes them, and that what they run is there and may be read."""

from __future__ import annotations

import os
import pwd
import subprocess
from configparser import RawConfigParser
from pathlib import Path

import msgspec
import pytest
from unit_support import MARKING, PLAN, agent

from netctrl.cli.linux import main
from netctrl.core.errors import InvalidValue
from netctrl.linux.export.agent import Peer
from netctrl.linux.systemd import Program, agent_unit, apply_unit, mark_unit, unit_name

PYTHON = ("/usr/bin/python3", "-m", "netctrl", "linux")


def runs(file: str, **changes: object) -> Program:
    return Program(**{"command": PYTHON, "file": file, "user": "netctrl"} | changes)


def service(text: str) -> dict[str, str]:
    parser = RawConfigParser(strict=False, comment_prefixes=("#",))
    parser.optionxform = str
    parser.read_string(text)
    return dict(parser["Service"]) | {f"Unit.{key}": value for key, value in parser["Unit"].items()}


def test_an_agent_has_the_one_capability_that_it_needs_and_begins_after_its_queues() -> None:
    found = service(agent_unit(agent(), runs("/etc/netctrl/S1.agent.json", folder="/etc/netctrl")))
    folders = "--state-dir /run/netctrl --runtime-dir /run/netctrl-agents"
    assert found["ExecStart"] == f"/usr/bin/python3 -m netctrl linux agent {folders} /etc/netctrl/S1.agent.json"
    assert found["WorkingDirectory"] == "/etc/netctrl"
    assert found["CapabilityBoundingSet"] == found["AmbientCapabilities"] == "CAP_NET_ADMIN"
    assert (found["NoNewPrivileges"], found["ProtectSystem"]) == ("yes", "strict")
    assert (found["RuntimeDirectory"], found["RuntimeDirectoryMode"]) == ("netctrl-agents", "0755")
    assert "netctrl-apply-S1.service" in found["Unit.After"].split()
    assert (found["Restart"], found["Unit.StartLimitIntervalSec"]) == ("always", "0")


def test_a_controller_keeps_no_capability() -> None:
    central = agent(role="controller", links=(), peers=(Peer(name="S", address="::1", port=1, links=("a", "b", "c")),))
    found = service(agent_unit(central, runs("/etc/netctrl/C.json")))
    assert found["CapabilityBoundingSet"] == found["AmbientCapabilities"] == ""


def test_queues_are_applied_at_each_start_and_put_back_at_the_end() -> None:
    text = apply_unit(PLAN, runs("/etc/netctrl/S1.plan.json", user="root"), replace=True)
    found = service(text)
    assert text.startswith("# /etc/systemd/system/netctrl-apply-S1.service\n")
    assert found["ExecStart"].endswith("apply --replace --state-dir /run/netctrl /etc/netctrl/S1.plan.json")
    assert (
        found["ExecStop"]
        == found["ExecStartPre"]
        == "/usr/bin/python3 -m netctrl linux restore --state-dir /run/netctrl"
    )
    assert (found["Type"], found["RemainAfterExit"], found["RuntimeDirectoryPreserve"]) == ("oneshot", "yes", "yes")


def test_what_a_unit_would_hide_is_shown_where_it_is_needed() -> None:
    found = service(agent_unit(agent(), runs("/etc/a.json", reads=("/home/x/venv", "/var/tmp/key"))))
    assert (found["ProtectHome"], found["PrivateTmp"]) == ("read-only", "no")
    found = service(
        agent_unit(agent(metrics_socket="/srv/m/S1.sock"), runs("/etc/a.json", reads=("/homely", "/tmpfs")))
    )
    assert (found["ProtectHome"], found["PrivateTmp"], found["ReadWritePaths"]) == ("yes", "yes", "/srv/m")


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("S1", "S1"),
        ("two links", r"two\x20links"),
        ("br-lan", r"br\x2dlan"),
        (".x", r"\x2ex"),
        ("ö@1", r"\xc3\xb6\x401"),
    ],
)
def test_names_are_escaped_as_systemd_escape_does(name: str, escaped: str) -> None:
    """Its own output, version 252."""
    assert unit_name("agent", name) == f"netctrl-agent-{escaped}.service"


@pytest.mark.parametrize(
    ("command", "file", "user"),
    [
        (("python3",), "/etc/a", "netctrl"),
        (("/python3",), "a", "netctrl"),
        (("/python3",), "/etc/a", "a b"),
        (("/p\n",), "/a", "u"),
    ],
)
def test_a_unit_that_could_say_something_else_is_refused(command: tuple[str, ...], file: str, user: str) -> None:
    with pytest.raises(InvalidValue):
        runs(file, command=command, user=user)
    with pytest.raises(InvalidValue):
        agent_unit(agent(metrics_socket="/srv/a b/m"), runs("/etc/a"))


# --- as the commands print them --------------------------------------------------------------------------------------


@pytest.fixture
def router(tmp_path, monkeypatch) -> Path:
    """A folder with an export in a folder of it, and the key beside."""
    folder = tmp_path / "router"
    folder.mkdir()
    (tmp_path / "agents.key").write_bytes(os.urandom(32))
    (tmp_path / "agents.key").chmod(0o600)
    agent().save(folder / "S1.agent.json")
    PLAN.save(folder / "S1.plan.json")
    MARKING.save(folder / "arc.marking.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def printed(capsys, *arguments: str) -> str:
    me = pwd.getpwuid(os.geteuid()).pw_name
    requested = [*arguments, "--unit", *([] if arguments[0] == "apply" else ["--user", me])]
    assert main(requested) == 0, capsys.readouterr().err
    return capsys.readouterr().out


UNITS = (("agent", "router/S1.agent.json"), ("apply", "router/S1.plan.json"), ("mark", "router/arc.marking.json"))


@pytest.mark.needs("systemd")
def test_systemd_s_own_verifier_takes_all_units(router: Path, tmp_path, capsys) -> None:
    """That their settings are known, that commands are there, and that orders have no circle."""
    made = []
    for arguments in UNITS:
        text = printed(capsys, *arguments)
        made.append(tmp_path / text.splitlines()[0].rpartition("/")[2])
        made[-1].write_text(text)
    assert [each.name for each in made] == [
        "netctrl-agent-S1.service",
        "netctrl-apply-S1.service",
        "netctrl-mark-a.service",
    ]
    ran = subprocess.run(["systemd-analyze", "verify", *made], capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_unit_begins_where_its_relative_key_is(router: Path, capsys) -> None:
    found = service(printed(capsys, *UNITS[0]))
    assert found["WorkingDirectory"] == str(router)
    assert found["ExecStart"].split()[-1] == str(router / "router" / "S1.agent.json")
    config = msgspec.structs.replace(agent(), key_file=str(router / "agents.key"))
    config.save(router / "router" / "S1.agent.json")
    assert "WorkingDirectory" not in service(printed(capsys, *UNITS[0]))


def test_a_realtime_agent_has_its_priority_from_systemd(router: Path, capsys) -> None:
    assert "CPUSchedulingPolicy" not in service(printed(capsys, *UNITS[0]))
    assert service(printed(capsys, *UNITS[0], "--realtime"))["CPUSchedulingPolicy"] == "fifo"


@pytest.mark.parametrize(
    ("spoil", "user", "says"),
    [
        (lambda _: None, "nosuchuser", "--user: got 'nosuchuser', takes a user of this machine; `useradd"),
        (lambda folder: (folder / "agents.key").unlink(), None, "agents.key: the key can't be read: No such file"),
        (lambda folder: (folder / "agents.key").chmod(0o644), None, "it must belong to user"),
        (lambda folder: folder.chmod(0o700), "nobody", "agents.key: the key is user"),
    ],
)
def test_a_unit_that_could_not_start_is_not_printed(spoil, user, says, router: Path, capsys) -> None:
    spoil(router)
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert main(["agent", "router/S1.agent.json", "--unit", "--user", user or me]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert not said.out


@pytest.mark.needs("kernel")
def test_a_user_who_may_not_read_the_file_is_refused(router: Path, capsys) -> None:
    router.chmod(0o700)
    assert main(["mark", "router/arc.marking.json", "--unit", "--user", "nobody"]) == 2
    assert "takes a user who can read" in capsys.readouterr().err


def test_marking_has_the_capabilities_of_bpf() -> None:
    found = service(mark_unit(MARKING, runs("/etc/netctrl/arc.marking.json")))
    assert found["AmbientCapabilities"] == "CAP_NET_ADMIN CAP_BPF CAP_PERFMON"
    assert "netctrl-apply-arc.service" in found["Unit.After"]
