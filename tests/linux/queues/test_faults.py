"""Whatever happens between plan and end, the earlier queues come back, and the log says what happened."""

from __future__ import annotations

import json
import os
import pty
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from linux_queues import ONE, PATIENCE_S, TWO, add_pairs, as_nobody, between, command, ip, pairs, queues, tc
from linux_support import eventually, kernel

from netctrl.core.errors import FileError, NetctrlError
from netctrl.linux.export.records import InterfaceQueue, QueuePlan, TokenBucket
from netctrl.linux.kernel.messages import ROOT
from netctrl.linux.kernel.netlink import KernelRefusal, RouteSocket
from netctrl.linux.kernel.objects import OWN_HANDLE
from netctrl.linux.namespace import inside, make_namespace, own_namespace
from netctrl.linux.queues.apply import RolledBack, applied
from netctrl.linux.queues.plan import plan_queues
from netctrl.linux.queues.record import Busy, OwnershipRecord, Store
from netctrl.linux.queues.restore import recover_stale, restore
from netctrl.linux.queues.watchdog import WATCHDOG_LOG

pytestmark = kernel

PHASES = (
    "checked",
    "watched",
    "recorded",
    "changed v0",
    "changed v1",
    "applied",
    "read back",
    "held",
    "restoring",
    "restored v1",
    "restored v0",
    "forgotten",
)


@pytest.fixture
def here():
    """A namespace with v0 and v1, and somebody's queues at v1."""
    with pairs(2):
        tc("qdisc add dev v1 root handle 1: htb default 20")
        tc("class add dev v1 parent 1: classid 1:1 htb rate 5mbit ceil 50gbit")
        tc("class add dev v1 parent 1:1 classid 1:20 htb rate 1mbit ceil 2mbit burst 3k prio 3")
        tc("qdisc add dev v1 parent 1:20 handle 20: pfifo limit 33")
        yield queues()


@pytest.fixture
def plan_file(tmp_path) -> Path:
    TWO.save(tmp_path / "plan.json")
    return tmp_path / "plan.json"


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "state"


def planned(desired: QueuePlan = TWO, replace: bool = True):
    with RouteSocket() as socket:
        return plan_queues(socket, desired, replace=replace)


def own() -> list[str]:
    """Interfaces whose root is netctrl's."""
    with RouteSocket() as socket:
        names = {link.index: link.name for link in socket.links()}
        return sorted(names[each.index] for each in socket.qdiscs() if each.handle == OWN_HANDLE)


def of(name: str, said: list[str]) -> list[str]:
    """What was said of one interface."""
    return [line for line in said if line.startswith(f"{name} ")]


def test_the_phases_are_those_that_are_tested(here, plan_file, folder) -> None:
    ran = between(plan_file, folder, watch=False, last=None)
    assert tuple(ran.stdout.splitlines()) == (*PHASES, "over")
    assert queues() == here


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_its_watchdog_puts_queues_back(phase, here, plan_file, folder) -> None:
    ran = between(plan_file, folder, watch=phase != "checked", last=phase)
    assert ran.stdout.splitlines()[-1] == phase
    eventually(lambda: queues() == here)
    eventually(lambda: Store(folder).read() is None)
    if PHASES.index("recorded") <= PHASES.index(phase) < PHASES.index("forgotten"):
        assert "event=owner-gone" in ran.stderr
        assert "event=found-stale" in ran.stderr
        assert "event=restored plan=two" in (folder / WATCHDOG_LOG).read_text()  # the terminal may be gone


@pytest.mark.parametrize("phase", PHASES)
def test_killed_in_any_phase_restore_puts_queues_back(phase, here, plan_file, folder) -> None:
    """As the watchdog may be killed too, or never have been."""
    between(plan_file, folder, watch=False, last=phase)
    changed = PHASES.index("changed v0") <= PHASES.index(phase) < PHASES.index("restored v0")
    assert bool(own()) == changed
    restore(folder)
    assert queues() == here
    assert Store(folder).read() is None
    assert restore(folder) is None


@pytest.mark.parametrize("phase", ["recorded", "changed v0", "held", "restored v1"])
def test_killed_in_any_phase_the_next_start_puts_queues_back(phase, here, plan_file, folder) -> None:
    between(plan_file, folder, watch=False, last=phase)
    ran = command("apply", plan_file, "--replace", "--state-dir", folder)
    assert ran.returncode == 0, ran.stderr
    assert "event=found-stale" in ran.stderr
    assert own() == ["v0", "v1"]
    restore(folder)
    assert queues() == here


FORKING = """
import os, signal, sys, time
from netctrl.linux.queues.apply import applied
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.queues.plan import plan_queues
from netctrl.linux.queues.record import Store
from netctrl.linux.export.records import read_queue_plan

with RouteSocket() as socket:
    plan = plan_queues(socket, read_queue_plan(sys.argv[1]), replace=True)
with applied(plan, folder=sys.argv[2], replace=True) as made:
    made.hold()
    if os.fork():
        os.kill(os.getpid(), signal.SIGKILL)
    end = time.monotonic() + 40.0
    while made.store.read() is not None and time.monotonic() < end:
        time.sleep(0.05)
    print("put back" if made.store.read() is None else "not put back", flush=True)
    os._exit(0)
"""


def test_killed_while_a_forked_child_lives_on_its_watchdog_puts_queues_back(here, plan_file, folder) -> None:
    """The child has all of its parent's descriptors: pipe, lock and socket."""
    line = [sys.executable, "-c", FORKING, str(plan_file), str(folder)]
    ran = subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (ran.returncode, ran.stdout) == (-signal.SIGKILL, "put back\n"), ran.stderr
    assert queues() == here


def test_killed_between_a_root_and_its_classes_the_rest_is_put_back(here, plan_file, folder) -> None:
    """The one step of a restore that isn't whole in the kernel."""
    between(plan_file, folder, watch=False, last="restoring")
    record = Store(folder).read()
    assert record is not None
    entry = next(each for each in record.entries if each.interface == "v1")
    with RouteSocket() as socket:
        root, first = entry.before[:2]
        socket.add_qdisc(entry.index, ROOT, root.handle, root.kind, root.options, replace=True)
        socket.add_class(entry.index, first.parent, first.handle, first.kind, first.options)
    assert queues() != here
    done = restore(folder)
    assert done is not None
    assert dict(done.interfaces)["v1"] == "htb restored, 2 parts of it now"
    assert queues() == here


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_holding_and_puts_queues_back(number, here, plan_file, folder) -> None:
    line = [sys.executable, "-m", "netctrl", "linux", "apply", plan_file, "--replace", "--hold", "--state-dir", folder]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as holder:
        eventually(lambda: (record := Store(folder).read()) is not None and record.phase == "held")
        assert own() == ["v0", "v1"]
        with pytest.raises(Busy, match=str(holder.pid)):
            restore(folder)
        holder.send_signal(number)
        log = holder.communicate(timeout=PATIENCE_S)[1]
    assert holder.returncode == 0, log
    assert f"signal={int(number)}" in log
    assert queues() == here
    assert Store(folder).read() is None


def test_two_appliers_exclude_each_other(here, plan_file, folder) -> None:
    with applied(planned(), folder=folder, replace=True, watch=False):
        ran = command("apply", plan_file, "--replace", "--state-dir", folder)
        assert (ran.returncode, own()) == (1, ["v0", "v1"])
        assert f"process {os.getpid()} has the queues" in ran.stderr
        with pytest.raises(Busy, match="already"):
            restore(folder)
    assert queues() == here


def test_kept_queues_stay_until_restore(here, plan_file, folder) -> None:
    assert command("apply", plan_file, "--replace", "--state-dir", folder).returncode == 0
    assert own() == ["v0", "v1"]
    again = command("apply", plan_file, "--replace", "--state-dir", folder)
    assert again.returncode == 1
    assert "`python -m netctrl linux restore`" in again.stderr
    state = json.loads(command("status", "--json", "--state-dir", folder).stdout)
    assert (state["phase"], state["owner_alive"]) == ("kept", False)
    assert [each["differs"] for each in state["interfaces"]] == [[], []]
    assert command("restore", "--state-dir", folder).returncode == 0
    assert queues() == here


def test_a_reused_process_number_is_not_the_owner(here, plan_file, folder) -> None:
    """The record names this very process by its number, with another start: left behind, so put back."""
    between(plan_file, folder, watch=False, last="held")
    store = Store(folder)
    record = store.read()
    assert record is not None
    owner = json.loads(json.dumps({"pid": os.getpid(), "start": record.owner.start, "boot": record.owner.boot}))
    store.write(_with(record, owner=owner))
    reread = store.read()
    assert reread is not None
    assert not reread.owner.alive()
    assert reread.stale
    assert recover_stale(folder)
    assert queues() == here


def test_a_record_of_an_earlier_boot_is_forgotten(here, plan_file, folder) -> None:
    between(plan_file, folder, watch=False, last="recorded")
    store = Store(folder)
    record = store.read()
    assert record is not None
    store.write(_with(record, owner={"pid": 1, "start": 1, "boot": "another"}))
    assert recover_stale(folder)
    assert store.read() is None
    assert queues() == here


def _with(record: OwnershipRecord, **changes: object) -> OwnershipRecord:
    import msgspec

    return msgspec.convert({**msgspec.to_builtins(record), **changes}, OwnershipRecord)


def test_nothing_is_changed_where_nobody_confirms(here, plan_file, folder) -> None:
    ran = command("apply", plan_file, "--replace", "--confirm-within", "200ms", "--state-dir", folder)
    assert ran.returncode == 1
    assert "not confirmed within 0.2 s" in ran.stderr
    assert "event=read-back" in ran.stderr
    assert queues() == here


def test_a_confirmation_lets_queues_stay(here, plan_file, folder) -> None:
    line = [sys.executable, "-m", "netctrl", "linux", "apply", plan_file, "--replace", "--state-dir", folder]
    with subprocess.Popen([*line, "--confirm-within", "50s"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        eventually(lambda: (record := Store(folder).read()) is not None and record.phase == "unconfirmed")
        assert command("confirm", "--state-dir", folder).returncode == 0
        one.communicate(timeout=PATIENCE_S)
    assert one.returncode == 0
    assert own() == ["v0", "v1"]
    late = command("confirm", "--state-dir", folder)
    assert late.returncode == 1
    assert "nothing waits for a confirmation" in late.stderr
    restore(folder)
    assert queues() == here


def test_the_enter_key_confirms(here, plan_file, folder) -> None:
    keyboard, terminal = pty.openpty()
    line = [sys.executable, "-m", "netctrl", "linux", "apply", plan_file, "--replace", "--state-dir", folder]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*line, "--confirm-within", "50s"], stdin=terminal, **quiet) as one:
        eventually(lambda: (record := Store(folder).read()) is not None and record.phase == "unconfirmed")
        os.write(keyboard, b"\n")
        one.communicate(timeout=PATIENCE_S)
    os.close(keyboard)
    os.close(terminal)
    assert one.returncode == 0
    assert own() == ["v0", "v1"]
    restore(folder)
    assert queues() == here


def test_a_full_disk_changes_nothing(here, tmp_path) -> None:
    """The record doesn't fit, so the kernel isn't touched."""
    small = tmp_path / "small"
    small.mkdir(mode=0o700)
    plan = planned()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    earlier = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
    try:
        with (
            pytest.raises(FileError, match=r"can't be written"),
            applied(plan, folder=small, replace=True, watch=False),
        ):
            pytest.fail("it was applied")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, earlier)
    assert queues() == here
    assert [path.suffix for path in small.iterdir()] == [".lock"]


def test_a_disk_that_fills_up_later_rolls_back(here, folder, caplog) -> None:
    """No record says that the queues may stay, so they don't."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    earlier = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with (
            pytest.raises(FileError, match=r"can't be written"),
            applied(planned(), folder=folder, replace=True, watch=False) as made,
        ):
            resource.setrlimit(resource.RLIMIT_FSIZE, (512, hard))
            made.keep()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, earlier)
    assert queues() == here
    assert "event=record-not-updated" in caplog.text
    assert Store(folder).read() is None


def test_a_watchdog_that_is_killed_is_missed(here, plan_file, folder, tmp_path) -> None:
    log = tmp_path / "log"
    line = [sys.executable, "-m", "netctrl", "linux", "apply", plan_file, "--replace", "--hold", "--state-dir", folder]
    with subprocess.Popen([*line, "--log", log], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as holder:
        eventually(lambda: (record := Store(folder).read()) is not None and record.phase == "held")
        children = Path(f"/proc/{holder.pid}/task/{holder.pid}/children").read_text().split()
        (watchdog,) = map(int, children)
        os.kill(watchdog, signal.SIGKILL)
        eventually(lambda: "event=watchdog-gone" in log.read_text())
        holder.terminate()
        holder.communicate(timeout=PATIENCE_S)
    assert holder.returncode == 0
    assert queues() == here


def test_an_interface_deleted_under_it_is_said_and_the_others_are_put_back(here, folder, caplog) -> None:
    with caplog.at_level("INFO", "netctrl.linux"), applied(planned(), folder=folder, replace=True, watch=False):
        ip("link", "del", "v0")
    assert "event=gone interface=v0" in caplog.text
    assert "event=put-back interface=v1" in caplog.text
    assert of("v1", here) == of("v1", queues())
    assert Store(folder).read() is None


def test_an_interface_deleted_while_it_is_applied_rolls_back(here, folder) -> None:
    def cut(phase: str) -> None:
        if phase == "changed v0":
            ip("link", "del", "v1")

    with (
        pytest.raises(RolledBack, match="No such device"),
        applied(planned(), folder=folder, replace=True, watch=False, phases=cut),
    ):
        pytest.fail("it was applied")
    assert own() == []
    assert Store(folder).read() is None


@pytest.mark.parametrize(
    "change",
    [
        "qdisc replace dev v0 root handle 9: pfifo limit 7",
        "qdisc del dev v1 root",
        "qdisc change dev v1 parent 1:20 handle 20: pfifo limit 34",
        "class change dev v1 parent 1:1 classid 1:20 htb rate 2mbit ceil 2mbit burst 3k prio 3",
    ],
)
def test_what_changed_between_plan_and_apply_is_refused(change, here, folder) -> None:
    plan = planned()
    tc(change)
    changed = queues()
    with (
        pytest.raises(NetctrlError, match=r"v[01] was changed since it was planned"),
        applied(plan, folder=folder, replace=True, watch=False),
    ):
        pytest.fail("it was applied")
    assert queues() == changed
    assert Store(folder).read() is None


def test_somebody_who_comes_between_the_last_look_and_the_change_is_not_overridden(here, folder) -> None:
    """Where the default was, the kernel itself refuses."""

    def come(phase: str) -> None:
        if phase == "recorded":
            tc("qdisc add dev v0 root handle 9: pfifo limit 7")

    with (
        pytest.raises(RolledBack, match="EEXIST"),
        applied(planned(), folder=folder, replace=True, watch=False, phases=come),
    ):
        pytest.fail("it was applied")
    assert of("v0", queues()) == ["v0 qdisc pfifo 9: root limit 7p"]
    tc("qdisc del dev v0 root")
    assert queues() == here


def test_what_changed_between_apply_and_restore_is_left_alone(here, folder, caplog) -> None:
    with caplog.at_level("INFO", "netctrl.linux"), applied(planned(), folder=folder, replace=True, watch=False):
        tc("qdisc replace dev v0 root handle 9: pfifo limit 7")
    assert 'event=not-touched interface=v0 why="another program has put pfifo 9: there since"' in caplog.text
    assert of("v1", here) == of("v1", queues())
    assert of("v0", queues()) == ["v0 qdisc pfifo 9: root limit 7p"]
    assert Store(folder).read() is None


def test_a_rate_that_a_control_loop_changed_is_its_own(here, folder) -> None:
    with applied(planned(), folder=folder, replace=True, watch=False) as made:
        index = made.plan.entries[0].index
        made.socket.change_tbf(index, ROOT, OWN_HANDLE, 5e6, 3000, 100_000)
    assert queues() == here


def test_what_reads_back_differently_is_rolled_back(here, folder) -> None:
    def spoil(phase: str) -> None:
        if phase == "applied":
            tc("qdisc change dev v0 root handle 7c01: tbf rate 9mbit burst 3000 limit 100000")

    with (
        pytest.raises(RolledBack, match="tbf qdisc 7c01: has rate 9 Mbit/s, applied with 10 Mbit/s"),
        applied(planned(), folder=folder, replace=True, watch=False, phases=spoil),
    ):
        pytest.fail("it was applied")
    assert queues() == here


def test_an_error_in_the_block_puts_queues_back(here, folder) -> None:
    with pytest.raises(ZeroDivisionError), applied(planned(), folder=folder, replace=True, watch=False):
        _ = 1 / 0
    assert queues() == here
    assert Store(folder).read() is None


def test_a_query_that_fails_is_not_taken_for_nothing_there(here, folder, monkeypatch) -> None:
    """A dump that ends in an error: neither plan nor restore go on."""
    with applied(planned(), folder=folder, replace=True, watch=False) as made:
        made.keep()

    def fail(*_: object, **__: object) -> None:
        raise KernelRefusal("list queues", 105)

    with monkeypatch.context() as patched:
        patched.setattr(RouteSocket, "qdiscs", fail)
        with pytest.raises(KernelRefusal, match="ENOBUFS"):
            planned()
        with pytest.raises(NetctrlError, match=r"some queues were not restored.*ENOBUFS"):
            restore(folder)
        assert Store(folder).read() is not None
    restore(folder)
    assert queues() == here


@pytest.mark.parametrize("place", ["nonesuch/log", "."])
def test_a_log_that_cannot_be_written_is_refused(place, here, plan_file, folder, tmp_path) -> None:
    ran = command("apply", plan_file, "--replace", "--state-dir", folder, "--log", tmp_path / place)
    assert ran.returncode == 2
    assert "--log: got" in ran.stderr
    assert queues() == here


def test_a_record_that_cannot_be_read_stops_everything(here, plan_file, folder) -> None:
    with applied(planned(), folder=folder, replace=True, watch=False) as made:
        made.keep()
    store = Store(folder)
    good = store.path.read_bytes()
    for bad in (b"", b"{", good[:-20], good.replace(b'"kept"', b'"lost"')):
        store.path.write_bytes(bad)
        for verb in (["restore"], ["status"], ["apply", plan_file, "--replace"]):
            ran = command(*verb, "--state-dir", folder)
            assert ran.returncode == 2, ran.stderr
            assert "is not a record of netctrl" in ran.stderr
    store.path.write_bytes(good)
    restore(folder)
    assert queues() == here


@pytest.mark.parametrize("verb", ["restore", "status", "confirm"])
def test_a_fifo_in_place_of_a_record_is_refused_and_not_waited_for(verb, here, folder) -> None:
    folder.mkdir()
    os.mkfifo(Store(folder).path)
    ran = command(verb, "--state-dir", folder)
    assert ran.returncode == 2
    assert "is not a regular file, as a record must be" in ran.stderr


def test_what_stands_in_place_of_a_record_is_not_followed(here, folder, tmp_path) -> None:
    folder.mkdir()
    path = Store(folder).path
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileError, match="can't be read"):
        Store(folder).read()
    path.unlink()
    path.write_bytes(b"{}")
    os.chown(path, 65534, 65534)
    with pytest.raises(FileError, match="belongs to user 65534"):
        Store(folder).read()
    path.unlink()
    os.mkfifo(Store(folder).confirmation)
    assert not Store(folder).confirmed("token")
    os.mkfifo(folder / f"{path.stem}.lock")
    with pytest.raises(FileError, match="is not a regular file"), Store(folder).lock():
        pass


def test_everybody_may_read_the_record_and_nobody_else_write_it(here, folder) -> None:
    before = os.umask(0o077)
    try:
        with applied(planned(), folder=folder, replace=True, watch=False):
            modes = [each.stat().st_mode & 0o777 for each in (folder, Store(folder).path)]
    finally:
        os.umask(before)
    assert modes == [0o755, 0o644]


def test_a_later_namespace_with_the_same_inode_is_another_one(folder) -> None:
    """The kernel gives inodes of namespaces that are gone to new ones."""
    with pairs(1):
        inode, name = Path("/proc/thread-self/ns/net").stat().st_ino, own_namespace()
        with applied(planned(ONE, replace=False), folder=folder, watch=False) as made:
            made.keep()

    others: list[int] = []

    def again() -> bool:
        others.append(make_namespace())  # held, as the kernel gives the lowest free inode
        if len(others) > 200:
            os.close(others.pop(0))
        return os.fstat(others[-1]).st_ino == inode

    try:
        eventually(again)
        with inside(others[-1]):
            add_pairs(1)
            assert own_namespace() != name
            assert Store(folder).read() is None
            assert restore(folder) is None
    finally:
        for each in others:
            os.close(each)


def test_a_folder_that_others_may_write_is_refused(here, plan_file, tmp_path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    ran = command("apply", plan_file, "--replace", "--state-dir", shared)
    assert ran.returncode == 2
    assert "others may write there" in ran.stderr
    assert queues() == here


def test_without_the_capability_it_says_which(here, plan_file, folder) -> None:
    ran = as_nobody(plan_file, "apply", "--replace", "--state-dir", folder)
    assert ran.returncode == 1, ran.stderr
    assert "CAP_NET_ADMIN" in ran.stderr
    assert "Traceback" not in ran.stderr
    assert queues() == here
    assert not folder.exists()


def test_a_watchdog_that_cannot_start_changes_nothing(here, folder, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent")
    with (
        pytest.raises(NetctrlError, match="no watchdog could be started, nothing was changed"),
        applied(planned(), folder=folder, replace=True),
    ):
        pytest.fail("it was applied")
    assert queues() == here
    assert Store(folder).read() is None


def test_a_burst_below_a_frame_is_refused(here) -> None:
    short = QueuePlan(interfaces=(InterfaceQueue(interface="v0", queue=TokenBucket(rate=1e6, burst=1513, limit=9000)),))
    with pytest.raises(NetctrlError, match="burst: got 1513, takes at least 1514 bytes on v0"):
        planned(short)
