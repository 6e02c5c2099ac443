"""systemd units that apply queues at each boot, and run agents and marking on them.

A reboot removes all queues. `apply_unit` creates them again, and stopping it runs `restore`; `agent_unit` and
`mark_unit` start after it, and are retried without limit. Each unit has only the rights that it needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from netctrl.errors import InvalidValue
from netctrl.linux.export.agent import AgentConfig
from netctrl.linux.export.records import QueuePlan
from netctrl.linux.export.shaper import MarkingConfig
from netctrl.linux.state_files import AGENT_FOLDER, STATE_FOLDER

__all__ = ["Program", "agent_unit", "apply_unit", "mark_unit", "unit_name"]

_RUN = PurePosixPath("/run")
_HIDDEN = {"ProtectHome": ("/home", "/root", "/run/user"), "PrivateTmp": ("/tmp", "/var/tmp")}
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_."
_LOCKED_DOWN = (
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "PrivateDevices=yes",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "ProtectProc=invisible",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "RestrictSUIDSGID=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "SystemCallArchitectures=native",
    "SystemCallFilter=@system-service",
    "SystemCallFilter=~@privileged @resources",
    "SystemCallErrorNumber=EPERM",  # NumPy's libraries try mbind(2) and similar calls, and work without them
    "Environment=OPENBLAS_NUM_THREADS=1",
    "UMask=0077",
    "MemoryMax=256M",
    "TasksMax=16",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Command of a unit, and its user."""

    command: tuple[str, ...]
    """Command without the verb, as in ("/usr/bin/python3", "-m", "netctrl.linux"); the first word is an absolute path.
    """
    file: str
    """Absolute path of the plan or configuration."""
    user: str
    folder: str | None = None
    """Folder of the file's relative paths; None without any."""
    reads: tuple[str, ...] = ()
    """Absolute paths of other files that are read: the interpreter's and netctrl's folders, the key."""

    def __post_init__(self) -> None:
        paths = {"command": self.command[:1] or ("",), "file": (self.file,), "reads": self.reads}
        for argument, each in paths.items():
            for path in each:
                if not path.startswith("/"):
                    raise InvalidValue(argument, path, "an absolute path")
        for each in (*self.command, self.file, *self.reads, *([] if self.folder is None else [self.folder])):
            _plain("command", each)
        if not self.user or not self.user.replace("-", "").replace("_", "").isalnum() or not self.user.isascii():
            raise InvalidValue("user", self.user, "a user's name of letters, digits, - and _")


def unit_name(kind: str, name: str) -> str:
    r"""File name of a unit, with special characters escaped as by systemd-escape(1).

    Examples
    --------
    >>> unit_name("agent", "S1"), unit_name("apply", "two links")
    ('netctrl-agent-S1.service', 'netctrl-apply-two\\x20links.service')
    """
    return f"netctrl-{kind}-{_escaped(name)}.service"


def apply_unit(plan: QueuePlan, program: Program, *, replace: bool = False, state_dir: str = STATE_FOLDER) -> str:
    """Unit for a plan's queues: applied at boot, and restored when the unit is stopped.

    It is retried every 2 s until the interfaces exist.

    Parameters
    ----------
    plan : QueuePlan
    program : Program
        Its user must be root, who owns the record.
    replace : bool
        As `netctrl.linux apply --replace`.
    state_dir : str
        Folder of the record.
    """
    options = [*(["--replace"] if replace else []), "--state-dir", state_dir]
    back = shlex.join([*program.command, "restore", "--state-dir", state_dir])
    lines = [
        *_head("apply", plan.name, f"queues of {plan.name}", ("After=network.target",)),
        "Type=oneshot",
        "RemainAfterExit=yes",
        f"ExecStartPre={back}",  # queues applied by hand before
        f"ExecStart={shlex.join([*program.command, 'apply', *options, program.file])}",
        f"ExecStop={back}",
        *_as_whom(program, "CAP_NET_ADMIN"),
        "Restart=on-failure",
        "RestartSec=2s",
        *_LOCKED_DOWN,
        "RestrictAddressFamilies=AF_NETLINK AF_UNIX",
        *_writable(state_dir),
    ]
    return _text(lines)


def agent_unit(
    config: AgentConfig,
    program: Program,
    *,
    realtime: bool = False,
    state_dir: str = STATE_FOLDER,
    runtime_dir: str = AGENT_FOLDER,
) -> str:
    """Unit for an agent, or a central controller, that starts after the queues of the plan with its name.

    It keeps only the capability CAP_NET_ADMIN, which changing a queue needs; a controller, which sets no rate, keeps
    none. It sees no device and no other process, and writes only its locks and its metrics' socket.

    Parameters
    ----------
    config : AgentConfig
    program : Program
        Its user must own the key.
    realtime : bool
        Whether it gets a real-time priority, which keeps its deadlines on a busy machine.
    state_dir, runtime_dir : str
        Folders of the record of applied queues, and of the locks (`netctrl.linux.state_files`).
    """
    folders = [runtime_dir]
    if config.metrics_socket is not None:
        folders.append(str(PurePosixPath(config.metrics_socket).parent))
    after = unit_name("apply", config.name)
    options = ("--state-dir", state_dir, "--runtime-dir", runtime_dir)
    lines = [
        *_head("agent", config.name, f"agent {config.name}", _after(after, "network-online.target")),
        "Type=exec",
        f"ExecStart={shlex.join([*program.command, 'agent', *options, program.file])}",
        *_as_whom(program, "CAP_NET_ADMIN" if config.links else ""),
        *_FOR_EVER,
        *_LOCKED_DOWN,
        f"RestrictAddressFamilies=AF_NETLINK AF_UNIX{' AF_INET AF_INET6' if config.peers else ''}",
    ]
    if realtime:  # set by systemd; the agent itself may not raise it
        lines += ["CPUSchedulingPolicy=fifo", "CPUSchedulingPriority=10"]
    return _text([*lines, *_writable(*folders)])


def mark_unit(config: MarkingConfig, program: Program, *, plan: str = "arc") -> str:
    """Unit for ARC's marking, after the queues of a plan, with the three capabilities that it needs from Linux 5.8 on.

    Without CAP_PERFMON the kernel rewrites programs against speculation, and rejects this one (Linux 6.18: EFAULT).

    Parameters
    ----------
    config : MarkingConfig
    program : Program
    plan : str
        The plan's name, as from `export tc`.
    """
    capabilities = "CAP_NET_ADMIN CAP_BPF CAP_PERFMON"
    lines = [
        *_head("mark", config.interface, f"marking on {config.interface}", _after(unit_name("apply", plan))),
        "Type=exec",
        f"ExecStart={shlex.join([*program.command, 'mark', program.file])}",
        *_as_whom(program, capabilities),
        *_FOR_EVER,
        *_LOCKED_DOWN,
        "SystemCallFilter=bpf",
        "LimitMEMLOCK=infinity",  # before Linux 5.11 maps count as locked memory
        "RestrictAddressFamilies=AF_NETLINK AF_UNIX",
    ]
    return _text(lines)


_FOR_EVER = ("Restart=always", "RestartSec=2s", "KillSignal=SIGTERM", "TimeoutStopSec=10s")


def _head(kind: str, name: str, description: str, order: Sequence[str]) -> list[str]:
    file = unit_name(kind, name)
    return [
        f"# /etc/systemd/system/{file}",
        "[Unit]",
        f"Description=netctrl {description.replace('%', '%%')}",
        *order,
        "StartLimitIntervalSec=0",  # retried without limit
        "",
        "[Service]",
    ]


def _after(*units: str) -> tuple[str, str]:
    return f"Wants={' '.join(units)}", f"After={' '.join(units)}"


def _as_whom(program: Program, capabilities: str) -> list[str]:
    lines = [f"User={program.user}"]
    if program.folder is not None:
        lines.append(f"WorkingDirectory={program.folder}")
    files = [program.command[0], program.file, *program.reads, *([] if program.folder is None else [program.folder])]
    for setting, places in _HIDDEN.items():
        seen = any(each == place or each.startswith(f"{place}/") for each in files for place in places)
        weak = "read-only" if setting == "ProtectHome" else "no"
        lines.append(f"{setting}={weak if seen else 'yes'}")
    return [*lines, f"CapabilityBoundingSet={capabilities}", f"AmbientCapabilities={capabilities}"]


def _writable(*folders: str) -> list[str]:
    """Folders that the unit may write; systemd creates those of /run, keeps them, and gives them to the user."""
    for each in folders:
        if _plain("folder", each) and (not each.startswith("/") or " " in each):
            raise InvalidValue("folder", each, "an absolute path without blanks")
    runtime = [PurePosixPath(each).name for each in folders if PurePosixPath(each).parent == _RUN]
    others = [each for each in folders if PurePosixPath(each).parent != _RUN]
    lines = []
    if runtime:
        lines.append(f"RuntimeDirectory={' '.join(dict.fromkeys(runtime))}")
        lines += ["RuntimeDirectoryMode=0755", "RuntimeDirectoryPreserve=yes"]
    if others:
        lines.append(f"ReadWritePaths={' '.join(dict.fromkeys(others))}")
    return lines


def _plain(argument: str, text: str) -> bool:
    """True; raises InvalidValue for text with a special meaning in a unit."""
    if not text.isprintable() or set(text) & set("%$\"'\\"):
        raise InvalidValue(argument, text, "text without quotes, %, $, backslashes and line breaks")
    return True


def _text(lines: Sequence[str]) -> str:
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target"]) + "\n"


def _escaped(name: str) -> str:
    """Text escaped as by systemd-escape(1): "/" as "-", and other special characters as hexadecimal bytes."""
    found = "".join(
        "-" if each == "/" else each if each in _PLAIN else "".join(f"\\x{byte:02x}" for byte in each.encode())
        for each in name
    )
    return f"\\x2e{found[1:]}" if found.startswith(".") else found
