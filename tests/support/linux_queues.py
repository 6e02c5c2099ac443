"""What tests of queues share: a namespace with pairs of interfaces, `tc` as somebody else, a child that is killed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from linux_support import bare_namespace

from netctrl.linux.export.records import HtbClass, InterfaceQueue, QueuePlan, TcFifo, TokenBucket
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.namespace import inside

PATIENCE_S = 60.0
"""No program of these tests runs longer."""

TWO = QueuePlan(
    name="two",
    interfaces=(
        InterfaceQueue(interface="v0", queue=TokenBucket(rate=10e6, burst=3000, limit=100_000)),
        InterfaceQueue(interface="v1", queue=HtbClass(rate=20e6, burst=3000, limit=50_000)),
    ),
)
ONE = QueuePlan(interfaces=(InterfaceQueue(interface="v0", queue=TcFifo(limit=10, unit="packets")),))


@contextmanager
def pairs(count: int = 2) -> Iterator[None]:
    """This thread is in a namespace of its own with v0-p0, v1-p1, ..., all up, without addresses."""
    with bare_namespace() as namespace, inside(namespace):
        add_pairs(count)
        yield


def add_pairs(count: int) -> None:
    """Add v0-p0, v1-p1, ... to this thread's namespace."""
    for number in range(count):
        ip("link", "add", f"v{number}", "type", "veth", "peer", "name", f"p{number}")
        for end in "pv":
            # No IPv6 chatter that would fill queues by chance.
            ip("link", "set", f"{end}{number}", "addrgenmode", "none", "up")


def ip(*arguments: str) -> None:
    """`ip`, which has to succeed."""
    subprocess.run(["ip", *arguments], check=True, timeout=PATIENCE_S, capture_output=True)


def tc(line: str) -> str:
    """What `tc` says: somebody else with the right to change queues."""
    ran = subprocess.run(["tc", *line.split()], check=True, timeout=PATIENCE_S, capture_output=True, text=True)
    return ran.stdout


def queues() -> list[str]:
    """All queues and classes of v0, v1, ... as `tc` tells them, without counters; each begins with its interface."""
    with RouteSocket() as socket:
        names = sorted(link.name for link in socket.links() if link.name.startswith("v"))
    said = [(name, tc(f"-d {what} show dev {name}")) for name in names for what in ("qdisc", "class")]
    lines = [f"{name} {line.strip()}" for name, text in said for line in text.splitlines()]
    return sorted(re.sub(r" (refcnt|direct_packets_stat) \d+", "", line) for line in lines)


def command(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """`python -m netctrl linux ...` to its end."""
    line = [sys.executable, "-m", "netctrl", "linux", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)


NOBODY = """
import os, sys
from netctrl.cli.linux import main
import netctrl.linux.queues.apply, netctrl.linux.export.records
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(main(sys.argv[1:]))
"""


def as_nobody(plan: Path, verb: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command without any capability; the file, that it might not open itself, is handed over open."""
    with plan.open("rb") as file:
        line = [sys.executable, "-c", NOBODY, verb, "/dev/stdin", *map(str, arguments)]
        return subprocess.run(line, stdin=file, capture_output=True, text=True, timeout=PATIENCE_S)


APPLY = """
import os, signal, sys
from netctrl.linux.queues.apply import applied
from netctrl.linux.log import log_to
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.queues.plan import plan_queues
from netctrl.linux.export.records import read_queue_plan

path, folder, watch, last = sys.argv[1:]
log_to(None)

def step(phase):
    print(phase, flush=True)
    if phase == last:
        os.kill(os.getpid(), signal.SIGKILL)

wanted = read_queue_plan(path)
with RouteSocket() as socket:
    plan = plan_queues(socket, wanted, replace=True)
with applied(plan, folder=folder, replace=True, watch=watch == "watch", phases=step) as made:
    step("held")
step("over")
"""


def between(path: Path, folder: Path, watch: bool, last: str | None) -> subprocess.CompletedProcess[str]:
    """Apply and put back in a child that kills itself after one step (None: after none of them).

    It returns when the watchdog has ended too, which has the same stderr.

    The steps that it took are its stdout, what it and its watchdog logged its stderr.
    """
    line = [sys.executable, "-c", APPLY, str(path), str(folder), "watch" if watch else "alone", last or ""]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, env=os.environ)
    assert ran.returncode == (0 if last is None else -signal.SIGKILL), ran.stderr
    return ran
