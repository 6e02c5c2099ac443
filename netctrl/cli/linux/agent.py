"""`netctrl linux agent`: the control loop of one agent or of a central controller."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Annotated

from netctrl.cli.app import GOOD, report, say
from netctrl.cli.linux.common import LOG, RUNTIME_DIR, STATE_DIR, UNIT, USER, logged, stoppable
from netctrl.cli.options import TIME, option, positional
from netctrl.core.errors import FileError, InvalidValue
from netctrl.core.units import format_quantity
from netctrl.linux.state_files import AGENT_FOLDER, STATE_FOLDER

if TYPE_CHECKING:
    from netctrl.linux.export.agent import AgentConfig


def agent(
    config: Annotated[str, positional("CONFIG", "an agent's file, as netctrl export tc writes it (netctrl.agent/1)")],
    /,
    *,
    duration_s: Annotated[float | None, TIME("stop after this time, as in 60s; by default at SIGTERM")] = None,
    dry_run: Annotated[bool, option("", "check file, key, rights and queues; change nothing", "--dry-run")] = False,
    unit: Annotated[bool, UNIT] = False,
    realtime: Annotated[bool, option("", "with --unit: real-time priority, for busy machines")] = False,
    user: Annotated[str, USER] = "netctrl",
    state_dir: Annotated[str, STATE_DIR] = STATE_FOLDER,
    runtime_dir: Annotated[str, RUNTIME_DIR] = AGENT_FOLDER,
    log: Annotated[str | None, LOG] = None,
) -> int:
    """Reads and checks the configuration, then runs the agent.

    Examples
    --------
    netctrl linux agent router/left.agent.json --dry-run
    netctrl linux agent router/left.agent.json --duration 60s
    """
    from netctrl.linux.export.agent import read_agent_config

    found = read_agent_config(config)
    if unit:
        from netctrl.cli.linux.common import program
        from netctrl.linux.systemd import agent_unit

        runs = program(config, user, key=found.key_file)
        return say(agent_unit(found, runs, realtime=realtime, state_dir=state_dir, runtime_dir=runtime_dir))
    try:
        return _run(found, duration_s, dry_run, log, {"state_dir": state_dir, "runtime_dir": runtime_dir})
    except InvalidValue as error:  # the file does not fit this machine
        raise FileError(config, str(error)) from None


def _run(config: AgentConfig, seconds: float | None, dry_run: bool, log: str | None, folders: dict[str, str]) -> int:
    from netctrl.linux.agent.links import KernelLinks
    from netctrl.linux.agent.loop import run_agent
    from netctrl.linux.agent.message import read_key
    from netctrl.linux.agent.sockets import AgentSockets
    from netctrl.linux.agent.state import plan
    from netctrl.linux.log import AgentLog

    made = plan(config, b"" if config.key_file is None else read_key(config.key_file))
    with stoppable() as stop, logged(log), KernelLinks(config, **folders, watch=not dry_run) as links:
        if dry_run:
            return say(_shown(config, links.base_rates()))
        gc.collect()
        gc.freeze()  # present objects stay: later collections skip them
        with AgentSockets(config) as sockets:
            run_agent(made, links, sockets, AgentLog(), stop=lambda: stop.number != 0, duration_s=seconds)
    return GOOD


def _shown(config: AgentConfig, base_rates: tuple[float, ...]) -> str:
    rows = [("interval", format_quantity(config.interval_s, "s")), ("law", str(type(config.law).__struct_config__.tag))]
    for link, base in zip(config.links, base_rates, strict=True):
        limits = f"{format_quantity(link.least_rate, 'bit/s')} to {format_quantity(link.greatest_rate, 'bit/s')}"
        limits += f", at the end {format_quantity(base, 'bit/s')}"
        rows.append((f"link {link.id}", f"{link.kind} {link.handle} at {link.parent} of {link.interface}, {limits}"))
    rows += [
        (f"peer {peer.name}", f"{peer.address} port {peer.port}: {', '.join(peer.links)}") for peer in config.peers
    ]
    return report(f"Agent {config.name} could start", rows, [f"as user {os.geteuid()}; nothing was changed"])
