"""A systemd unit for an agent, with no right that it doesn't need."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from netctrl.errors import InvalidValue
from netctrl.export.agent import AgentConfig

__all__ = ["agent_unit"]


def agent_unit(config: AgentConfig, command: Sequence[str], *, config_file: str, user: str = "netctrl") -> str:
    """The text of `netctrl-agent.service`.

    Of the capabilities it keeps CAP_NET_ADMIN alone, which changing a queue takes; a controller, which sets no rate,
    keeps none. It sees no device, no home, no other process, and writes nothing but its metrics' socket.

    Parameters
    ----------
    config : AgentConfig
    command : sequence of str
        What runs an agent, such as ("/usr/bin/python3", "-m", "netctrl.linux", "agent").
    config_file : str
        Its file, as an absolute path.
    user : str
        Whom it runs as; the key must be this user's.

    Raises
    ------
    InvalidValue
        Paths that aren't absolute or that a unit can't name, or a user's name that is none.
    """
    for argument, path in (("command", command[0] if command else ""), ("config_file", config_file)):
        if not path.startswith("/"):
            raise InvalidValue(argument, path, "an absolute path")
    for each in (*command, config_file, config.metrics_socket or "", config.key_file or ""):
        if not each.isprintable() or set(each) & set("%$\"'\\"):
            raise InvalidValue("command", each, "text without quotes, %, $, backslashes and line breaks")
    if not user or not user.replace("-", "").replace("_", "").isalnum() or not user.isascii():
        raise InvalidValue("user", user, "a user's name of letters, digits, - and _")
    capabilities = "CAP_NET_ADMIN" if config.links else ""
    families = "AF_NETLINK AF_UNIX AF_INET AF_INET6" if config.peers else "AF_NETLINK AF_UNIX"
    lines = [
        "[Unit]",
        f"Description=netctrl agent {config.name}",
        "After=network-online.target",
        "Wants=network-online.target",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={shlex.join([*command, config_file])}",
        f"User={user}",
        "Restart=on-failure",
        "RestartSec=1s",
        "KillSignal=SIGTERM",
        "TimeoutStopSec=10s",
        f"CapabilityBoundingSet={capabilities}",
        f"AmbientCapabilities={capabilities}",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "ProtectHome=yes",
        "PrivateTmp=yes",
        "PrivateDevices=yes",
        "ProtectClock=yes",
        "ProtectControlGroups=yes",
        "ProtectHostname=yes",
        "ProtectKernelLogs=yes",
        "ProtectKernelModules=yes",
        "ProtectKernelTunables=yes",
        "ProtectProc=invisible",
        f"RestrictAddressFamilies={families}",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "MemoryDenyWriteExecute=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallFilter=~@privileged @resources",
        "UMask=0077",
        "MemoryMax=256M",
        "TasksMax=16",
    ]
    if config.metrics_socket is not None:
        folder = config.metrics_socket.rpartition("/")[0]
        if folder == "/run/netctrl":
            lines.append("RuntimeDirectory=netctrl")
        else:
            lines.append(f"ReadWritePaths={folder}")
    return "\n".join([*lines, "", "[Install]", "WantedBy=multi-user.target"]) + "\n"
