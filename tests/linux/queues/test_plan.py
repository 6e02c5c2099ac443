"""Wanted queues: their file, what they would change, and what was there before, made again exactly."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from linux_queues import ONE, TWO, as_nobody, command, ip, pairs, queues, tc
from linux_support import kernel

from netctrl.core.errors import FileError, InvalidValue
from netctrl.linux.export.records import InterfaceQueue, QueuePlan, TcFifo, TokenBucket, read_queue_plan
from netctrl.linux.kernel.messages import INGRESS, ROOT, Counters, Qdisc, classid
from netctrl.linux.kernel.netlink import RouteSocket
from netctrl.linux.kernel.objects import OWN_HANDLE, Unrestorable, alike, as_desired, desired_objects, make, saved
from netctrl.linux.kernel.qdisc import FifoOptions, HtbClassOptions, HtbOptions, TbfOptions
from netctrl.linux.queues.apply import applied
from netctrl.linux.queues.plan import plan_queues
from netctrl.linux.queues.record import Store

# The file


def test_a_plan_comes_back_from_its_file(tmp_path) -> None:
    for plan in (TWO, ONE):
        plan.save(tmp_path / "plan.json")
        assert read_queue_plan(tmp_path / "plan.json") == plan


def test_a_file_may_have_units(tmp_path) -> None:
    queue = {"kind": "tbf", "rate": "10Mbit", "burst": "3kB", "limit": "100kB"}
    content = {"schema": "netctrl.linux/1", "name": "two", "interfaces": [{"interface": "v0", "queue": queue}]}
    (tmp_path / "plan.json").write_text(json.dumps(content))
    assert read_queue_plan(tmp_path / "plan.json").interfaces == TWO.interfaces[:1]


TBF = {"kind": "tbf", "rate": 9, "burst": 3, "limit": 3}
GOOD = {"interface": "v0", "queue": {"kind": "fifo", "limit": 3}}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ({"interfaces": []}, "interfaces: got 'none', takes at least one"),
        ({"interfaces": [GOOD, GOOD]}, "v0 more than once"),
        ({"schema": "netctrl.linux/2"}, '"schema": "netctrl.linux/1"'),
        ({"bogus": 1}, "unknown key `bogus`"),
        ({"interfaces": [GOOD | {"interface": "a/b"}]}, "interfaces[0].interface: got 'a/b'"),
        ({"interfaces": [GOOD | {"interface": "a" * 16}]}, "1 to 15 characters"),
        ({"interfaces": [GOOD | {"interface": ".."}]}, "interface: got '..'"),
        ({"interfaces": [GOOD | {"address": "02:00"}]}, "takes a link-layer address"),
        ({"interfaces": [GOOD | {"queue": {"kind": "red"}}]}, "takes one of tbf, htb, fifo"),
        ({"interfaces": [GOOD | {"queue": {"kind": "fifo", "limit": 0}}]}, "queue.limit: got 0"),
        ({"interfaces": [GOOD | {"queue": {"kind": "fifo", "limit": 2**32}}]}, "queue.limit: got 4294967296"),
        ({"interfaces": [GOOD | {"queue": {"kind": "fifo", "limit": "3kB", "unit": "packets"}}]}, "got '3kB'"),
        (
            {"interfaces": [GOOD | {"queue": {"kind": "tbf", "rate": "9", "burst": 3, "limit": 3}}]},
            "queue.rate: got '9'",
        ),
        (
            {"interfaces": [GOOD | {"queue": {"kind": "tbf", "rate": 9, "burst": 1.5, "limit": 3}}]},
            "queue.burst: got 1.5",
        ),
        ({"interfaces": [GOOD | {"queue": {"kind": "htb", "rate": 9, "burst": True, "limit": 3}}]}, "queue.burst"),
    ],
)
def test_a_wrong_file_is_said_in_words(content, says, tmp_path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({"schema": "netctrl.linux/1", "interfaces": [GOOD]} | content))
    with pytest.raises(FileError) as refusal:
        read_queue_plan(tmp_path / "plan.json")
    assert says in str(refusal.value)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\xff"])
def test_what_is_no_plan_at_all_is_refused(text, tmp_path) -> None:
    (tmp_path / "plan.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=r"plan.json: not "):
        read_queue_plan(tmp_path / "plan.json")


# What makes a wanted queue


def test_a_token_bucket_is_a_tbf_with_its_burst_in_bytes() -> None:
    (root,) = desired_objects(TWO.interfaces[0])
    assert (root.kind, root.handle, root.parent) == ("tbf", OWN_HANDLE, ROOT)
    assert TbfOptions.decode(root.options) == TbfOptions(1_250_000, 37_500, 100_000)  # 3000 B: 2.4 ms: 37500 ticks


def test_an_htb_has_one_class_and_a_bfifo_in_it() -> None:
    root, only, leaf = desired_objects(TWO.interfaces[1])
    assert HtbOptions.decode(root.options).default_class == only.handle & 0xFFFF == 1
    assert HtbClassOptions.decode(only.options).rate == HtbClassOptions.decode(only.options).ceil == 2_500_000
    assert (only.parent, leaf.parent, leaf.kind) == (root.handle, only.handle, "bfifo")
    assert FifoOptions.decode(leaf.options) == FifoOptions(50_000)


# What was there before: from a socket that only tells

COUNTERS = Counters(0, 0, 0, 0, 0, 0, 0)


class Telling:
    """Queues, classes and filters as a test has them."""

    def __init__(self, queues=(), classes=(), filters=()) -> None:
        self._queues, self._classes, self._filters = tuple(queues), tuple(classes), dict(filters)

    def qdiscs(self, index):
        return self._queues

    def classes(self, index):
        return self._classes

    def filters(self, index, parent):
        return self._filters.get(parent, 0)


def queue(kind, handle, parent=ROOT, options=b"", **rest) -> Qdisc:
    return Qdisc(1, handle, parent, kind, options, COUNTERS, **rest)


@pytest.mark.parametrize(
    ("queues", "kind"),
    [
        ([], ""),
        ([queue("noqueue", 0)], "noqueue"),
        ([queue("mq", 0), queue("fq_codel", 0, 1), queue("fq_codel", 0, 2)], "mq"),
        ([queue("pfifo_fast", 0), queue("clsact", 0xFFFF0000, INGRESS)], "pfifo_fast"),
    ],
)
def test_defaults_and_what_comes_in_are_nobodys(queues, kind) -> None:
    assert saved(Telling(queues), 1) == ((), kind)


FIFO = FifoOptions(9).encode()


@pytest.mark.parametrize(
    ("telling", "says"),
    [
        (Telling([queue("fq_codel", 0x80010000)]), "fq_codel 8001: can't be restored exactly; netctrl can restore tbf"),
        (Telling([queue("mq", 0), queue("pfifo", 0x50000, 1, FIFO)]), "pfifo 5: is below a default queue"),
        (Telling([queue("pfifo", 0x50000, ROOT, FIFO, extras=("a size table",))]), "pfifo 5: has a size table"),
        (Telling([queue("htb", 0x10000)], filters={0x10000: 2}), "htb 1: has 2 filter(s)"),
        (
            Telling([queue("htb", 0x10000, ROOT, HtbOptions(1).encode() + bytes([4, 0, 9, 0]))]),
            "htb 1: has options that netctrl doesn't know (attributes [9])",
        ),
        (Telling([queue("tbf", 0x10000, ROOT, TbfOptions(9, 9, 9, link_layer=2).encode())]), "tbf 1: counts ATM cells"),
    ],
)
def test_what_cannot_be_put_back_exactly_is_not_replaced(telling, says) -> None:
    with pytest.raises(Unrestorable) as refusal:
        saved(telling, 1)
    assert says in str(refusal.value)


# The kernel


@pytest.fixture
def here():
    with pairs(2), RouteSocket() as route:
        yield route, {link.name: link.index for link in route.links()}


THEIRS = {
    "bfifo": ["qdisc add dev v0 root handle 5: bfifo limit 7000"],
    "pfifo": ["qdisc add dev v0 root handle 5: pfifo limit 7"],
    "pfifo_head_drop": ["qdisc add dev v0 root handle 5: pfifo_head_drop limit 7"],
    "tbf": ["qdisc add dev v0 root handle 5: tbf rate 3mbit burst 1514 limit 30kb"],
    "fast tbf": ["qdisc add dev v0 root handle 5: tbf rate 60gbit burst 65kb limit 300kb"],
    "peaked tbf": [
        "qdisc add dev v0 root handle 5: tbf rate 3mbit burst 5kb limit 30kb peakrate 4mbit mtu 1540 mpu 64"
    ],
    "tbf with a child": [
        "qdisc add dev v0 root handle 5: tbf rate 3mbit burst 5kb limit 30kb overhead 24",
        "qdisc add dev v0 parent 5:1 handle 6: pfifo limit 8",
    ],
    "htb": ["qdisc add dev v0 root handle 1: htb default 30 r2q 7 direct_qlen 44"],
    "htb with classes": [
        "qdisc add dev v0 root handle 1: htb default 20",
        "class add dev v0 parent 1: classid 1:9 htb rate 5mbit ceil 50gbit",
        "class add dev v0 parent 1:9 classid 1:3 htb rate 1mbit ceil 2mbit burst 3k prio 3 quantum 3000",
        "class add dev v0 parent 1:9 classid 1:20 htb rate 2mbit overhead 20 mpu 64",
        "qdisc add dev v0 parent 1:20 handle 20: tbf rate 1mbit burst 3k limit 9k",
        "qdisc add dev v0 parent 20:1 handle 30: htb default 1",
        "class add dev v0 parent 30: classid 30:1 htb rate 900kbit",
    ],
}


@kernel
@pytest.mark.parametrize("theirs", THEIRS)
def test_somebodys_queue_is_put_back_as_it_was(theirs, here, tmp_path) -> None:
    route, index = here
    tc("qdisc add dev v0 clsact")
    tc("filter add dev v0 egress protocol ip u32 match ip dst 192.0.2.0/24 classid 1:1")
    for line in THEIRS[theirs]:
        tc(line)
    before, objects = queues(), saved(route, index["v0"])
    with pytest.raises(InvalidValue, match=r"but it has .*--replace replaces it"):
        plan_queues(route, ONE)
    plan = plan_queues(route, ONE, replace=True)
    with applied(plan, folder=tmp_path / "state", replace=True, watch=False):
        assert as_desired(route, index["v0"], plan.entries[0].desired) == []
        assert not any(line in before for line in queues() if line.startswith("v0") and "clsact" not in line)
    assert queues() == before
    assert alike(saved(route, index["v0"])[0], objects[0])
    assert "match c0000200/ffffff00 at 16" in tc("filter show dev v0 egress")


@kernel
@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (["qdisc add dev v0 root estimator 1sec 4sec pfifo limit 7"], "a rate estimator"),
        (
            ["qdisc add dev v0 root stab overhead 20 mtu 1500 tsize 64 tbf rate 3mbit burst 5kb limit 30kb"],
            "a size table",
        ),
        (
            [
                "qdisc add dev v0 root handle 1: htb",
                "filter add dev v0 parent 1: protocol ip u32 match ip dst 192.0.2.0/24 classid 1:1",
            ],
            "filter(s), which can't be restored exactly",
        ),
        (
            [
                "qdisc add dev v0 root handle 1: htb",
                "class add dev v0 parent 1: classid 1:1 htb rate 1mbit",
                "filter add dev v0 parent 1:1 protocol ip u32 match ip dst 192.0.2.0/24 classid 1:1",
            ],
            "htb 1:1 has",
        ),
        (["qdisc add dev v0 root handle 7c01: pfifo"], "`tc qdisc del dev v0 root`"),
        (
            [
                "qdisc add dev v0 root handle 5: htb",
                "class add dev v0 parent 5: classid 5:1 htb rate 1mbit",
                "qdisc add dev v0 parent 5:1 handle 7c02: pfifo",
            ],
            "pfifo 7c02:, which has netctrl's handle",
        ),
    ],
    ids=["estimator", "size table", "filter", "filter of a class", "our handle", "our leaf's handle"],
)
def test_somebodys_queue_that_cannot_be_put_back_is_refused(lines, says, here) -> None:
    route, _ = here
    for line in lines:
        tc(line)
    before = queues()
    with pytest.raises(InvalidValue) as refusal:
        plan_queues(route, ONE, replace=True)
    assert says in str(refusal.value)
    assert refusal.value.got == "v0"
    assert queues() == before


RATE = st.floats(8e3, 1e12)
TBF_LIKE = st.tuples(RATE, st.integers(1514, 10**6), st.integers(1, 10**7)).filter(lambda each: each[1] / each[0] < 30)


@kernel
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(TBF_LIKE, st.booleans()), min_size=1, max_size=4))
def test_whatever_is_saved_is_made_again_the_same(here, branches) -> None:
    """An HTB with a branch for each, some with a TBF as leaf: saved, removed, made from what was saved, saved again."""
    route, index = here
    v0 = index["v0"]
    route.add_qdisc(v0, ROOT, 0x10000, "htb", HtbOptions(1).encode())
    for number, ((rate, burst, limit), leaf) in enumerate(branches, start=1):
        minor = classid(0x10000, number)
        route.add_class(v0, 0x10000, minor, "htb", HtbClassOptions.desired(rate, burst).encode())
        if leaf:
            options = TbfOptions.desired(rate, burst, limit).encode(burst)
            route.add_qdisc(v0, minor, 0x100000 * number, "tbf", options)
    before, _ = saved(route, v0)
    route.delete_qdisc(v0, ROOT, 0x10000)
    make(route, v0, before, replace=False)
    after, _ = saved(route, v0)
    route.delete_qdisc(v0, ROOT, 0x10000)
    assert len(before) == 1 + len(branches) + sum(leaf for _, leaf in branches)
    assert alike(before, after)


@kernel
def test_a_plan_names_what_is_here(here) -> None:
    route, _ = here
    with pytest.raises(InvalidValue, match=r"got 'v00', takes one of lo, p0, p1, v0, v1; did you mean .v0"):
        plan_queues(route, QueuePlan(interfaces=(InterfaceQueue(interface="v00", queue=TcFifo(limit=9)),)))


@kernel
def test_a_plan_for_another_machine_is_refused(here) -> None:
    route, _ = here
    ip("link", "set", "v0", "address", "02:00:00:00:00:aa")
    fifo = TcFifo(limit=9000)
    right = InterfaceQueue(interface="v0", queue=fifo, address="02:00:00:00:00:AA")
    assert plan_queues(route, QueuePlan(interfaces=(right,))).entries[0].address == "02:00:00:00:00:aa"
    wrong = InterfaceQueue(interface="v0", queue=fifo, address="02:00:00:00:00:ab")
    with pytest.raises(InvalidValue, match=r"takes the one with address 02:00:00:00:00:ab \(here: 02:00:00:00:00:aa\)"):
        plan_queues(route, QueuePlan(interfaces=(wrong,)))


@kernel
def test_a_plan_is_shown(here) -> None:
    route, _ = here
    tc("qdisc add dev v1 root handle 1: htb")
    rows = dict(plan_queues(route, TWO, replace=True).rows())
    assert rows["v0"] == "noqueue (default)  ->  tbf 7c01:, 10 Mbit/s, burst 3000 B, limit 100000 B"
    assert rows["v1"] == "htb 1:, restored at the end  ->  htb 7c01:, 20 Mbit/s, burst 3000 B, limit 50000 B"


@kernel
def test_a_rate_is_shown_as_the_kernel_keeps_it(here) -> None:
    route, _ = here
    odd = InterfaceQueue(interface="v0", queue=TokenBucket(rate=1_000_003.0, burst=3000, limit=9000))
    assert "1 Mbit/s" in plan_queues(route, QueuePlan(interfaces=(odd,))).rows()[0][1]


@kernel
def test_a_dry_run_takes_no_right_and_changes_nothing(here, tmp_path) -> None:
    TWO.save(tmp_path / "plan.json")
    before = queues()
    for verb in (["plan"], ["apply", "--dry-run"]):
        ran = as_nobody(tmp_path / "plan.json", *verb)
        assert (ran.returncode, ran.stderr) == (0, "")
        assert "nothing was changed" in ran.stdout
        assert "v0  noqueue (default)  ->  tbf 7c01:, 10 Mbit/s" in ran.stdout
    assert queues() == before


@kernel
def test_a_plan_as_json_is_one_object(here, tmp_path) -> None:
    TWO.save(tmp_path / "plan.json")
    for verb in ("plan", "apply"):
        ran = command(verb, tmp_path / "plan.json", *(["--dry-run"] if verb == "apply" else []), "--json")
        assert ran.returncode == 0, ran.stderr
        content = json.loads(ran.stdout)
        assert content["plan"] == json.loads(TWO.to_json())
        assert [each["interface"] for each in content["entries"]] == ["v0", "v1"]


@kernel
def test_the_namespaces_queues_are_listed_once_for_all_interfaces(here, tmp_path, monkeypatch) -> None:
    """The kernel lists those of all interfaces each time: a list for each takes time quadratic in their number."""
    lists = []
    dump = RouteSocket._dump

    def counted(self, ask, takes, content, what):
        lists.append(what)
        return dump(self, ask, takes, content, what)

    monkeypatch.setattr(RouteSocket, "_dump", counted)
    route, _ = here
    plan = plan_queues(route, TWO)
    assert (len(plan.entries), lists.count("list queues")) == (2, 1)
    with applied(plan, folder=tmp_path / "state", watch=False):
        assert lists.count("list queues") == 3  # planned again, and read back


@kernel
def test_one_interface_is_read_alone(here) -> None:
    route, index = here
    assert route.link(index["v0"]).name == "v0"
    assert route.link(max(index.values()) + 1) is None


def kept(route, folder) -> Path:
    """The record of queues that stay, under the name that an earlier version gave it."""
    with applied(plan_queues(route, ONE), folder=folder, watch=False) as made:
        made.keep()
    earlier = folder / f"queues-{Path('/proc/thread-self/ns/net').stat().st_ino}.json"
    return Store(folder).path.rename(earlier)


@kernel
def test_a_record_of_an_earlier_version_is_found_after_an_upgrade(here, tmp_path) -> None:
    route, _ = here
    before = queues()
    earlier = kept(route, tmp_path / "state")
    ran = command("status", "--state-dir", tmp_path / "state")
    assert (ran.returncode, "v0  as applied" in ran.stdout) == (0, True), ran.stdout + ran.stderr
    ran = command("restore", "--state-dir", tmp_path / "state")
    assert ran.returncode == 0, ran.stderr
    assert queues() == before
    assert not earlier.exists()


@kernel
def test_a_record_of_another_namespace_with_that_inode_is_not_ours(here, tmp_path) -> None:
    route, _ = here
    earlier = kept(route, tmp_path / "state")
    content = json.loads(earlier.read_text())
    for entry in content["entries"]:
        entry["address"] = "02:00:00:00:00:99"
    earlier.write_text(json.dumps(content))
    assert Store(tmp_path / "state").read() is None


@kernel
def test_status_answers_no_where_a_queue_is_not_as_applied(here, tmp_path) -> None:
    route, _ = here
    state = ("--state-dir", tmp_path / "state")
    with applied(plan_queues(route, TWO), folder=tmp_path / "state", watch=False) as made:
        made.keep()
    assert command("status", *state).returncode == 0
    tc("qdisc del dev v0 root")
    ran = command("status", *state)
    assert (ran.returncode, "tbf qdisc 7c01: is missing" in ran.stdout) == (3, True), ran.stdout + ran.stderr
    ip("link", "del", "v1")
    ran = command("status", *state, "--json")
    assert ran.returncode == 3
    assert json.loads(ran.stdout)["interfaces"][1]["differs"] == ["the interface was deleted"]


@kernel
def test_an_interface_that_is_down_may_have_queues_too(here, tmp_path) -> None:
    route, _ = here
    ip("link", "set", "v0", "down")
    with applied(plan_queues(route, ONE), folder=tmp_path / "state", watch=False):
        assert "v0 qdisc pfifo 7c01: root limit 10p" in queues()
        ip("link", "set", "v0", "up")
    assert "v0 qdisc noqueue 0: root" in queues()


# The command line


@pytest.mark.parametrize(
    ("line", "status", "says"),
    [
        (["plan", "nonesuch.json"], 2, "nonesuch.json: can't be read"),
        (["plan"], 2, "is missing: a file of desired queues"),
        (["apply", "x.json", "--confirm-within", "5"], 2, "--confirm-within: got '5', takes a time above 0"),
        (["bogus"], 2, "bogus"),
        (["status", "--state-dir", "nonesuch"], 0, ""),
        (["confirm", "--state-dir", "nonesuch"], 1, "nothing waits for a confirmation"),
    ],
)
def test_wrong_use_is_one_line(line, status, says) -> None:
    ran = command(*line)
    assert ran.returncode == status, ran.stderr
    assert says in ran.stderr
    assert "Traceback" not in ran.stderr


def test_help_is_light_and_lists_the_verbs() -> None:
    code = "import sys; from netctrl.__main__ import main; main(['linux', '--help']); print(sorted(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    for word in ("plan", "apply", "confirm", "restore", "status"):
        assert f"\n  {word} " in ran.stdout
    loaded = ran.stdout.splitlines()[-1]
    assert not any(f"'{name}'" in loaded for name in ("numpy", "netctrl.linux.kernel.netlink"))
