"""Rates of links whose agent is killed, hangs or starts again; and who may keep an agent out of a link."""

from __future__ import annotations

import mmap
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_support import BURST, LIMIT, NAMES, config, index_of, link, rate_of, veth
from linux_support import bare_namespace, eventually, kernel

from netctrl.core.errors import FileError
from netctrl.linux import namespace
from netctrl.linux.agent import dead_man
from netctrl.linux.agent import links as kernel_links
from netctrl.linux.agent.links import AgentHung, KernelLinks
from netctrl.linux.export.agent import AgentConfig
from netctrl.linux.export.records import HtbClass, InterfaceQueue, QueuePlan
from netctrl.linux.kernel.messages import classid
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.objects import OWN_HANDLE
from netctrl.linux.queues.apply import applied
from netctrl.linux.queues.plan import plan_queues
from netctrl.linux.queues.record import Store
from netctrl.linux.state_files import AgentLock

pytestmark = kernel

BASE = 23_214_664.0
PLAN = QueuePlan(
    name="S1",
    interfaces=tuple(
        InterfaceQueue(interface=name, queue=HtbClass(rate=BASE, burst=BURST, limit=LIMIT)) for name in NAMES
    ),
)
LINKS = tuple(link(name, handle="7c01:", kind="htb", greatest_rate=BASE, fallback_rate=BASE) for name in NAMES)


class Router:
    """A namespace with queues that were applied; agents and their folders."""

    def __init__(self, route: RouteSocket, folder: Path) -> None:
        self.route, self.folder = route, folder
        self.log = folder / "agent.log"
        self.config: AgentConfig = config(links=LINKS)
        self.config.save(folder / "S1.json")

    def folders(self) -> dict[str, Path]:
        return {"state_dir": self.folder / "state", "runtime_dir": self.folder / "agents"}

    def agent(self) -> subprocess.Popen:
        """One that has set all rates."""
        with self.log.open("a") as log:
            line = [sys.executable, "-m", "netctrl", "linux", "agent", self.folder / "S1.json"]
            folders = ["--state-dir", self.folder / "state", "--runtime-dir", self.folder / "agents"]
            child = subprocess.Popen([*map(str, [*line, *folders])], stderr=log)
        eventually(lambda: BASE not in self.rates() or child.poll() is not None, 60.0)
        assert child.poll() is None, self.log.read_text()
        return child

    def rates(self) -> list[float]:
        return [rate_of(self.route, name) for name in NAMES]

    def kill(self, agent: subprocess.Popen) -> None:
        agent.kill()
        agent.wait(30.0)

    def end(self, agent: subprocess.Popen) -> None:
        agent.send_signal(signal.SIGTERM)
        assert agent.wait(30.0) == 0, self.log.read_text()


@pytest.fixture
def router(tmp_path) -> Iterator[Router]:
    with bare_namespace() as space, namespace.inside(space):
        for name in NAMES:
            veth(name)
        with RouteSocket() as route:
            made = Router(route, tmp_path)
            with applied(plan_queues(route, PLAN), folder=tmp_path / "state", watch=False) as there:
                there.keep()
            yield made


@contextmanager
def watched(router: Router, **options: object) -> Iterator[KernelLinks]:
    with KernelLinks(router.config, **router.folders(), **options) as links:
        yield links


def test_an_agent_that_is_killed_leaves_the_rates_of_the_plan(router: Router) -> None:
    """And the next one ends with them too."""
    router.kill(router.agent())
    eventually(lambda: router.rates() == [BASE] * 3)
    router.end(router.agent())
    assert router.rates() == [BASE] * 3
    said = router.log.read_text()
    assert "event=agent-gone agent=S1" in said
    assert said.count("event=rate-put-back") == 3


def test_the_rate_of_an_agent_that_was_killed_is_not_taken_for_the_original(router: Router, caplog) -> None:
    """Where nothing put it back either: the plan's record says what it was."""
    with watched(router, watch=False) as links:
        for number in range(3):
            links.set_rate(number, 6e6)
    assert router.rates() == [6e6] * 3
    with watched(router, watch=False) as links:
        assert links.base_rates() == (BASE,) * 3
        links.restore()
    assert router.rates() == [BASE] * 3
    assert caplog.messages[0] == "event=rate-left-behind interface=a rate=6000000 base=23214664"


def test_without_a_record_the_log_says_that_the_rate_that_was_found_comes_back(router: Router, caplog) -> None:
    caplog.set_level("INFO", "netctrl.linux")
    with watched(router, watch=False) as links:
        assert links.base_rates() == (BASE,) * 3
    assert not caplog.messages
    Store(router.folder / "state").remove()
    router.route.change_htb_class(index_of(router.route, "b"), OWN_HANDLE, classid(OWN_HANDLE, 1), 6e6, BURST)
    with watched(router, watch=False) as links:
        assert links.base_rates() == (BASE, 6e6, BASE)
    assert ["event=base-rate-unknown interfaces=a,b,c" in line for line in caplog.messages] == [True]


def test_an_agent_that_hangs_has_its_rates_put_back_and_ends(router: Router, monkeypatch) -> None:
    monkeypatch.setattr(kernel_links, "_STILL_S", 0.2)
    with watched(router) as links:
        links.read()
        links.set_rate(0, 6e6)
        assert router.rates() == [6e6, BASE, BASE]
        eventually(lambda: router.rates() == [BASE] * 3)
        with pytest.raises(AgentHung, match="agent S1 read nothing for so long"):
            links.read()
        links.restore()
        assert router.rates() == [BASE] * 3


def test_a_count_that_moves_is_a_sign_of_life(monkeypatch) -> None:
    now = [100.0]
    monkeypatch.setattr(dead_man.time, "monotonic", lambda: now[0])
    with mmap.mmap(-1, 16) as memory:
        still = dead_man._Stillness(memory, 5.0)
        for count in range(1, 4):
            memory[0:8] = count.to_bytes(8, sys.byteorder)
            now[0] += 60.0
            assert not still()
        now[0] += 5.0
        assert not still()
        now[0] += 0.1
        assert still()


def test_a_rate_that_somebody_else_set_is_not_put_back(router: Router) -> None:
    agent = router.agent()
    agent.send_signal(signal.SIGSTOP)
    router.route.change_htb_class(index_of(router.route, "b"), OWN_HANDLE, classid(OWN_HANDLE, 1), 5e6, BURST)
    router.kill(agent)
    eventually(lambda: router.rates() == [BASE, 5e6, BASE])
    eventually(lambda: "event=rate-not-touched" in router.log.read_text())


def test_a_folder_of_locks_where_others_may_write_is_refused(tmp_path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(FileError, match="others may write there and could block agents"):
        AgentLock(folder)
    folder.chmod(0o755)
    os.chown(folder, 65534, 65534)  # in a folder that only root writes: root gave it away
    lock = AgentLock(folder)
    assert os.fstat(lock.descriptor).st_uid == 65534
    lock.close()
    (found,) = folder.iterdir()
    assert found.stat().st_mode & 0o777 == 0o600
    found.unlink()
    os.mkfifo(found)
    with pytest.raises(FileError, match="is not a regular file"):
        AgentLock(folder)


def test_an_agent_has_all_its_links_or_none(tmp_path) -> None:
    first, second, third = (AgentLock(tmp_path) for _ in range(3))
    assert first.take([(3, 1), (4, 1)]) is None
    assert second.take([(5, 1), (4, 1)]) == 1
    assert third.take([(5, 1), (4, 2)]) is None
    first.close()
    assert second.take([(4, 1)]) is None
    for each in (second, third):
        each.close()


def test_an_agent_whose_watch_is_killed_says_so_once(router: Router, caplog) -> None:
    with watched(router) as links:
        found = [int(each) for each in children(os.getpid())]
        for child in found:
            os.kill(child, signal.SIGKILL)
        eventually(lambda: links.read() and any("event=dead-man-gone" in line for line in caplog.messages))
        links.read()
    assert sum("event=dead-man-gone" in line for line in caplog.messages) == 1


def children(pid: int) -> list[str]:
    """Of this thread, those that watch."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
            if int(fields[1]) == pid and b"netctrl.linux.agent.dead_man" in (place / "cmdline").read_bytes():
                found.append(place.name)
        except (OSError, IndexError):
            continue
    return found
