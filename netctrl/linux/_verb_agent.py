"""`linux agent`: the control loop of one agent, or of a central controller."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from netctrl.cli import GOOD, option, positional, report, say
from netctrl.errors import FileError, InvalidValue
from netctrl.linux._verb import LOG, logged, stoppable
from netctrl.units import DURATION_TAKES, format_quantity, parse_duration

if TYPE_CHECKING:
    from netctrl.export.agent import AgentConfig

__all__ = ["agent"]


def agent(
    config: Annotated[str, positional("CONFIG", "an agent's file, as netctrl export tc writes it (netctrl.agent/1)")],
    /,
    *,
    duration: Annotated[str | None, option("TIME", "stop then, as in 60s; by default at SIGTERM")] = None,
    dry_run: Annotated[bool, option("", "check file, key, rights and queues; change nothing", "--dry-run")] = False,
    unit: Annotated[bool, option("", "print a systemd unit for it instead", "--unit")] = False,
    realtime: Annotated[bool, option("", "the unit gives it a real-time priority, for busy machines")] = False,
    user: Annotated[str, option("NAME", "whom the unit runs it as")] = "netctrl",
    log: Annotated[str | None, LOG] = None,
) -> int:
    """Read, check, run."""
    from netctrl.export.agent import read_agent_config

    seconds = None if duration is None else _duration(duration)
    found = read_agent_config(config)
    if unit:
        from netctrl.linux.systemd import agent_unit

        command = (sys.executable, "-m", "netctrl.linux", "agent")
        return say(agent_unit(found, command, config_file=str(Path(config).absolute()), user=user, realtime=realtime))
    try:
        return _run(found, seconds, dry_run, log)
    except InvalidValue as error:  # found out when the file was held against this machine
        raise FileError(config, str(error)) from None


def _run(config: AgentConfig, seconds: float | None, dry_run: bool, log: str | None) -> int:
    from netctrl.linux.agent import run_agent
    from netctrl.linux.agent_log import AgentLog
    from netctrl.linux.agent_sockets import AgentSockets
    from netctrl.linux.agent_state import plan
    from netctrl.linux.kernel_links import KernelLinks
    from netctrl.linux.message import read_key

    made = plan(config, b"" if config.key_file is None else read_key(config.key_file))
    with stoppable() as stop, logged(log), KernelLinks(config) as links:
        if dry_run:
            return say(_shown(config))
        gc.collect()
        gc.freeze()  # what is here stays: no later collection looks through it
        with AgentSockets(config) as sockets:
            run_agent(made, links, sockets, AgentLog(), stop=lambda: stop.number != 0, duration_s=seconds)
    return GOOD


def _shown(config: AgentConfig) -> str:
    rows = [("interval", format_quantity(config.interval_s, "s")), ("law", str(type(config.law).__struct_config__.tag))]
    for link in config.links:
        limits = f"{format_quantity(link.least_rate, 'bit/s')} to {format_quantity(link.greatest_rate, 'bit/s')}"
        rows.append((f"link {link.id}", f"{link.kind} {link.handle} at {link.parent} of {link.interface}, {limits}"))
    rows += [
        (f"peer {peer.name}", f"{peer.address} port {peer.port}: {', '.join(peer.links)}") for peer in config.peers
    ]
    return report(f"Agent {config.name} could start", rows, [f"as user {os.geteuid()}; nothing was changed"])


def _duration(text: str) -> float:
    try:
        return parse_duration(text)
    except ValueError:
        raise InvalidValue("duration", text, DURATION_TAKES) from None
