"""systemd units that apply queues at each boot, and run agents and marking on them.

A reboot removes all queues. `apply_unit` creates them again, and stopping it runs `restore`; `agent_unit` and
`mark_unit` start after it, and are retried without limit. Each unit has only the rights that it needs.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from netctrl.core.errors import InvalidValue
from netctrl.linux.export.agent import AgentConfig
from netctrl.linux.export.records import QueuePlan
from netctrl.linux.export.shaper import MarkingConfig
from netctrl.linux.state_files import AGENT_FOLDER, STATE_FOLDER

_RUN = PurePosixPath("/run")
_HIDDEN = {"ProtectHome": ("/home", "/root", "/run/user"), "PrivateTmp": ("/tmp", "/var/tmp")}
_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789:_."
_FOR_EVER = ("Type=exec", "Restart=always", "RestartSec=2s", "KillSignal=SIGTERM", "TimeoutStopSec=10s")
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
    """Command without the verb, as in ("/usr/bin/python3", "-m", "netctrl", "linux"), with an absolute path first.
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
    escaped = "".join(
        "-" if each == "/" else each if each in _PLAIN else "".join(f"\\x{byte:02x}" for byte in each.encode())
        for each in name
    )
    if escaped.startswith("."):
        escaped = f"\\x2e{escaped[1:]}"
    return f"netctrl-{kind}-{escaped}.service"


def apply_unit(plan: QueuePlan, program: Program, *, replace: bool = False, state_dir: str = STATE_FOLDER) -> str:
    """Unit for a plan's queues: applied at boot, and restored when the unit is stopped.

    It is retried every 2 s until the interfaces exist.

    Parameters
    ----------
    plan : QueuePlan
    program : Program
        Its user must be root, who owns the record.
    replace : bool
        As `netctrl linux apply --replace`.
    state_dir : str
        Folder of the record.
    """
    options = [*(["--replace"] if replace else []), "--state-dir", state_dir]
    back = shlex.join([*program.command, "restore", "--state-dir", state_dir])
    service = ("Type=oneshot", "RemainAfterExit=yes", "Restart=on-failure", "RestartSec=2s")
    around = (f"ExecStartPre={back}", f"ExecStop={back}")  # queues applied by hand before, and these
    return _unit(
        *("apply", plan.name, f"queues of {plan.name}", "After=network.target", program, options, "CAP_NET_ADMIN"),
        own=(*service, *around, "RestrictAddressFamilies=AF_NETLINK AF_UNIX", *_writable(state_dir)),
    )


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
    own = [f"RestrictAddressFamilies=AF_NETLINK AF_UNIX{' AF_INET AF_INET6' if config.peers else ''}"]
    if realtime:  # set by systemd; the agent itself may not raise it
        own += ["CPUSchedulingPolicy=fifo", "CPUSchedulingPriority=10"]
    after = _after(unit_name("apply", config.name), "network-online.target")
    options = ("--state-dir", state_dir, "--runtime-dir", runtime_dir)
    capabilities = "CAP_NET_ADMIN" if config.links else ""
    return _unit(
        *("agent", config.name, f"agent {config.name}", after, program, options, capabilities),
        own=(*_FOR_EVER, *own, *_writable(*folders)),
    )


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
    own = (
        "SystemCallFilter=bpf",
        "LimitMEMLOCK=infinity",  # before Linux 5.11 maps count as locked memory
        "RestrictAddressFamilies=AF_NETLINK AF_UNIX",
    )
    after, capabilities = _after(unit_name("apply", plan)), "CAP_NET_ADMIN CAP_BPF CAP_PERFMON"
    about = f"marking on {config.interface}"
    return _unit("mark", config.interface, about, after, program, (), capabilities, own=(*_FOR_EVER, *own))


def _unit(
    kind: str,
    name: str,
    about: str,
    order: str,
    program: Program,
    options: Sequence[str],
    capabilities: str,
    *,
    own: Sequence[str],
) -> str:
    """Text of a unit; its own lines come last, as a later SystemCallFilter adds to an earlier one."""
    folder = [] if program.folder is None else [program.folder]
    lines = [
        f"# /etc/systemd/system/{unit_name(kind, name)}",
        "[Unit]",
        f"Description=netctrl {about.replace('%', '%%')}",
        order,
        "StartLimitIntervalSec=0",  # retried without limit
        "",
        "[Service]",
        f"ExecStart={shlex.join([*program.command, kind, *options, program.file])}",
        f"User={program.user}",
        *(f"WorkingDirectory={each}" for each in folder),
    ]
    files = [program.command[0], program.file, *program.reads, *folder]
    for setting, places in _HIDDEN.items():
        seen = any(each == place or each.startswith(f"{place}/") for each in files for place in places)
        weak = "read-only" if setting == "ProtectHome" else "no"
        lines.append(f"{setting}={weak if seen else 'yes'}")
    lines += [f"CapabilityBoundingSet={capabilities}", f"AmbientCapabilities={capabilities}", *_LOCKED_DOWN, *own]
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target"]) + "\n"


def _after(*units: str) -> str:
    return f"Wants={' '.join(units)}\nAfter={' '.join(units)}"


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
