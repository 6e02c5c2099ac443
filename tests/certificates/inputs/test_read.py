"""Files of each kind that `netctrl.read_queues` knows: samples made after the public documentation, and broken ones.

Sources: iproute2 7.1, tc/q_dualpi2.c (words); OpenWrt, sqm-scripts, platform/openwrt and src/functions.sh; SONiC,
`config apply-patch` (RFC 6902); openconfig-qos-mem-mgmt.yang 2.2.0; Cisco IOS Quality of Service Solutions Command
Reference, Cisco Nexus 9000 NX-OS QoS Configuration Guide, Cisco IOS XR Modular QoS Command Reference, Arista EOS User
Manual; Junos OS Class of Service User Guide; CableLabs MULPIv3.1 Annex C.2.2.7.15, github.com/rlaager/docsis (names).
"""

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from installed import DUALPI2, entry, sonic, wred_profile
from places import TESTS

from netctrl.certificates.inputs.queue import Length, NamedLaw, Thresholds
from netctrl.certificates.inputs.read import KINDS, read_queues
from netctrl.certificates.inputs.tc_text import tc_entries
from netctrl.certificates.installed import certify_queues
from netctrl.certificates.red import wred_as_switch
from netctrl.core.errors import FileError, InvalidValue, NetctrlError
from netctrl.laws.targets.wred import WredLaw

TC = TESTS / "data" / "tc"
DUALPI2_WORDS = (
    "qdisc dualpi2 2: dev eth0 root refcnt 2 limit 10000p memlimit 30280000B target 15ms tupdate 16ms alpha 0.156250 "
    "beta 3.195312 step_thresh 1ms min_qlen_step 0p coupling_factor 2 drop_on_overload drop_dequeue "
    "classic_protection 10% l4s_ect split_gso \n"
)
SQM = """
config queue 'eth1'
\toption enabled '1'
\toption interface 'eth1'
\toption download '85000'
\toption upload '1000'
\toption qdisc 'fq_codel'
\toption script 'simple.qos'
\toption itarget '7ms'
\toption etarget 'auto'

config queue
\toption enabled 1
\toption interface "wan"
\toption download 0
\toption upload 2000
\toption qdisc 'fq_codel'
\toption script 'piece_of_cake.qos'
\toption eqdisc_opts 'nat regional'
"""
PIE_UP = """package sqm

config 'queue' 'a'
	option enabled '1'
	option interface 'eth0'
	option download '0'
	option upload '10000'
	option qdisc 'pie'
"""
IOS = """
policy-map WAN
 class DATA
  random-detect dscp-based
  random-detect exponential-weighting-constant 6
  random-detect dscp af21 32 40 20
  random-detect dscp 8 percent 50 75
  queue-limit 200 packets
 class VIDEO
  random-detect ecn
  random-detect precedence 3 10 ms 50 ms 5
 class class-default
  random-detect
interface Serial0/0
 no random-detect
 random-detect precedence 0 20 100
"""
XR = "policy-map A\n class B\n  random-detect 20 kbytes 100 kbytes probability percentage 25\n"
NXOS = """
policy-map type queuing OUT
  class type queuing c-out-8q-q3
    bandwidth remaining percent 50
    random-detect minimum-threshold 150 kbytes maximum-threshold 3000 kbytes drop-probability 7 weight 2 ecn
"""
EOS = """
interface Ethernet1
   tx-queue 3
      random-detect ecn minimum-threshold 500 kbytes maximum-threshold 1500 kbytes max-mark-probability 20
"""
JUNOS = """
class-of-service {
    /* RED of all queues */
    drop-profiles {
        ramp { interpolate { fill-level [ 25 50 75 ]; drop-probability [ 25 50 75 ]; } }
        qfx { interpolate { fill-level 30; fill-level 50; drop-probability 0; drop-probability 80; } }
        bent { interpolate { fill-level [ 40 80 100 ]; drop-probability [ 0 10 100 ]; } }
        stairs { fill-level 25 drop-probability 50; fill-level 75 drop-probability 100; }
        step { fill-level 20 drop-probability 100; }
        inactive: old { fill-level 20 drop-probability 100; }
    }
    schedulers {
        rdma {
            buffer-size temporal 10k;
            drop-profile-map loss-priority low protocol any drop-profile qfx;
            drop-profile-map loss-priority high protocol any drop-profile missing;
            explicit-congestion-notification;
        }
    }
}
"""
JUNOS_SET = """
set class-of-service drop-profiles qfx interpolate fill-level [ 30 50 ]
set class-of-service drop-profiles qfx interpolate drop-probability [ 0 80 ]
set class-of-service schedulers rdma buffer-size temporal 10k
set class-of-service schedulers rdma drop-profile-map loss-priority low protocol any drop-profile qfx
set class-of-service schedulers rdma explicit-congestion-notification
set class-of-service drop-profiles old fill-level 10 drop-probability 100
deactivate class-of-service drop-profiles old
"""
MODEM = """
Main
{
    UsServiceFlow
    {
        UsServiceFlowRef 1;
        MaxRateSustained 20;
        DataRateUnitSetting 2;
        AQMEncodings { SFAQMDisable 0; SFAQMLatencyTarget 15; }
    }
    UsServiceFlow { UsServiceFlowRef 2; MaxRateSustained 5000000; }
    UsServiceFlow { UsServiceFlowRef 3; AQMEncodings { SFAQMDisable 1; } }
    UsServiceFlow { UsServiceFlowRef 4; SchedulingType 6; }
    UsServiceFlow { UsServiceFlowRef 5; AQMEncodings { AQMAlgorithm 2; } }
    DsServiceFlow { DsServiceFlowRef 101; MaxRateSustained 200000000; }
    DsServiceFlow { DsServiceFlowRef 102; AQMEncodings { AQMAlgorithm 1; SFAQMLatencyTarget x; } }
    /* EndOfDataMkr */
}
"""
CONFIG = {"min-threshold": "80000", "max-threshold": "900000", "enable-ecn": True, "max-drop-probability-percent": 10}


def openconfig(*profiles, top="openconfig-qos:qos"):
    return json.dumps({top: {"queue-management-profiles": {"queue-management-profile": list(profiles)}}})


def uniform(config, name="p", law="wred"):
    return {"name": name, "config": {"name": name}, law: {"uniform": {"config": config}}}


PATCH = json.dumps(
    [
        {"op": "add", "path": "/WRED_PROFILE/A~1B", "value": wred_profile()},
        {"op": "replace", "path": "/asic0/WRED_PROFILE/A~1B/green_max_threshold", "value": "3000000"},
        {"op": "replace", "path": "/WRED_PROFILE/C/green_min_threshold", "value": "1"},
        {"op": "test"},
        5,
    ]
)
SAMPLES = (DUALPI2_WORDS, SQM, PIE_UP, IOS, XR, NXOS, EOS, JUNOS, JUNOS_SET, MODEM, PATCH, sonic(A=wred_profile()))
SAMPLES += (openconfig(uniform(CONFIG), uniform({}, law="red")), (TC / "details.txt").read_text())
SAMPLES += ((TC / "details.json").read_text(), (TC / "tc-6.1.txt").read_text())


def lines(low, high, percent, unit="packets", **more):
    return Thresholds(low=Length(low, unit), high=Length(high, unit), percent=percent, **more)


def laws(text, **more):
    return {queue.name: queue.law for queue in read_queues(text=text, **more)}


def reasons(text):
    return {queue.name: (queue.reason, queue.unreadable) for queue in read_queues(text=text) if queue.law is None}


def test_tc_in_words_has_the_laws_of_its_json():
    """iproute2 6.1 in Linux 7.2; its dualpi2 has d3 and d4, of which the words are those of q_dualpi2.c."""
    words = {queue.device: queue for queue in read_queues(TC / "details.txt")}
    exact = {(queue.device, queue.parent): queue for queue in read_queues(TC / "details.json")}
    assert {(queue.device, queue.parent) for queue in words.values()} == exact.keys() - {("d0", "root")}
    for queue in words.values():
        other = exact[queue.device, queue.parent]
        if queue.kind in ("pie", "fq_pie", "red"):
            assert (queue.kind, queue.law, queue.notes) == (other.kind, other.law, other.notes)
    assert [words[device].probability for device in ("d0", "d1")] == [0.0, 0.0]
    (told,), (meant,) = read_queues(text=DUALPI2_WORDS), read_queues(text=json.dumps([entry("dualpi2", DUALPI2)]))
    assert told == meant
    (packets,) = read_queues(text=DUALPI2_WORDS.replace("step_thresh 1ms", "step_thresh 20p"))
    assert packets.law.step_in_packets
    cake = "qdisc cake 1: dev d4 root refcnt 2 bandwidth {} diffserv3 nonat split-gso rtt 100ms raw overhead 0"
    for shown, bandwidth in (("20Mbit", 2_500_000), ("unlimited", "unlimited")):
        (found,) = tc_entries(cake.format(shown), "?")
        assert (found["options"]["bandwidth"], found["options"]["rtt"]) == (bandwidth, 100_000)


def test_pies_interval_in_words_is_a_whole_number_of_ticks():
    """At 300 Hz 16.666 ms are shown as 16.7ms."""
    shown = "qdisc pie 1: dev e root refcnt 2 limit 1000p target 15ms tupdate {} alpha 2 beta 20"
    for text, us, hz in (("16.7ms", 16_666, 300), ("16ms", 16_000, 250), ("20ms", 20_000, 100), ("15ms", 15_000, 1000)):
        (queue,) = read_queues(text=shown.format(text))
        assert (queue.law.shown["tupdate"], queue.law.hz) == (us, hz)
    (queue,) = read_queues(text=shown.format("123us"))
    assert queue.reason.startswith("tupdate: got 123, takes a whole number of the kernel's ticks")


def test_sqm_has_a_queue_in_each_direction_with_its_rate():
    """At 1 Mbit/s 33 cells of 53 bytes take 13.992 ms; CAKE has the rtt of a keyword or number."""
    queues = {queue.name: queue for queue in read_queues(text=SQM)}
    assert {name: queue.capacity_bit_per_s for name, queue in queues.items() if queue.law} == {
        "fq_codel on eth1, download": 85e6,
        "fq_codel on eth1, upload": 1e6,
        "cake on wan, upload": 2e6,
    }
    slow = 13.992e-3
    assert queues["fq_codel on eth1, download"].law == ("fq_codel", {"target_s": 0.007})
    name, times = queues["fq_codel on eth1, upload"].law
    assert (name, times) == ("fq_codel", pytest.approx({"target_s": slow, "interval_s": 0.095 + slow}))
    assert queues["cake on wan, upload"].law == ("cake", {"rtt_s": 0.030})
    exact = SQM.replace("nat regional", "nat rtt 45ms")
    assert laws(exact)["cake on wan, upload"] == ("cake", {"rtt_s": 0.045})
    assert queues["cake on wan, download"].reason.startswith("download is 0")
    (queue,) = [queue for queue in read_queues(text=PIE_UP, hz=250) if queue.law]
    assert queue.law == NamedLaw("pie", {"target_s": 0.005, "ecn": True, "hz": 250})
    assert queue.notes == ()
    assert "OpenWrt's; else give --hz" in read_queues(text=PIE_UP)[1].notes[0]
    for change, said in (("'85000'", "download: got ''"), ("'fq_codel'\n\toption script 'simple.qos'", "qdisc")):
        broken = {name: each[0] for name, each in reasons(SQM.replace(change, "''")).items()}
        assert any(reason.startswith(said) for reason in broken.values())
    assert all("enabled" in reason for reason, _ in reasons(SQM.replace("enabled", "disabled")).values())


def test_random_detect_of_ios_xr_nxos_and_eos():
    assert laws(IOS) == {
        "wred WAN DATA, dscp af21": lines(32, 40, 5.0, weight_log=6, buffer=Length(200, "packets")),
        "wred WAN DATA, dscp 8": lines(50, 75, 10.0, "percent", weight_log=6, buffer=Length(200, "packets")),
        "wred WAN VIDEO, precedence 3": lines(0.010, 0.050, 20.0, "s", ecn=True, weight_log=9),
        "wred WAN class-default": None,
        "wred on Serial0/0, precedence 0": lines(20, 100, 10.0, weight_log=9),
    }
    assert laws(XR) == {"wred A B": lines(20e3, 100e3, 25.0, "bytes")}
    assert laws(NXOS) == {"wred OUT c-out-8q-q3": lines(150e3, 3e6, 7.0, "bytes", ecn=True, weight_log=2)}
    assert laws(EOS) == {"wred tx-queue 3 on Ethernet1": lines(500e3, 1.5e6, 20.0, "bytes", ecn=True)}
    ((reason, unreadable),) = reasons(IOS).values()
    assert (reason.startswith("random-detect: got nothing, takes thresholds in numbers"), unreadable) == (True, True)
    for change, said in (
        ("7 weight", "x weight"),
        ("drop-probability 7 ", ""),
        ("150", "150 cells"),
        ("weight 2", "weight"),
    ):
        ((reason, unreadable),) = reasons(NXOS.replace(change, said)).values()
        assert unreadable, reason


def test_drop_profiles_of_junos():
    """Three points on one line are one; (0, 0) is before the first point."""
    rdma = "rdma, loss-priority {} protocol any"
    qfx = lines(30, 50, 80.0, "percent", ecn=True)
    timed = lines(30, 50, 80.0, "percent", ecn=True, buffer=Length(0.010, "s"))
    assert laws(JUNOS) == {
        f"wred qfx, {rdma.format('low')}": timed,
        f"wred missing, {rdma.format('high')}": None,
        "wred ramp": lines(0, 75, 75.0, "percent"),
        "wred bent": None,
        "wred stairs": None,
        "wred step": lines(20, 20, 100.0, "percent"),
    }
    assert laws(JUNOS_SET) == {f"wred qfx, {rdma.format('low')}": timed}
    assert laws(JUNOS_SET.replace("temporal 10k", "percent 20")) == {f"wred qfx, {rdma.format('low')}": qfx}
    assert laws(JUNOS_SET + "deactivate class-of-service schedulers rdma buffer-size") == {
        f"wred qfx, {rdma.format('low')}": qfx
    }
    said = reasons(JUNOS)
    assert said["wred bent"][0].startswith("its lines have several slopes (40:0, 80:10, 100:100)")
    assert "stairs" in said["wred stairs"][0]
    assert said[f"wred missing, {rdma.format('high')}"] == (
        "drop-profile: got 'missing', takes one of drop-profiles, which isn't in this file",
        True,
    )
    for change in ("[ 30 ]", "[ 30 30 ]", "[ 50 130 ]", "[ x 50 ]"):
        assert all(unreadable for _, unreadable in reasons(JUNOS_SET.replace("[ 30 50 ]", change)).values())
    with pytest.raises(FileError, match="no profile behind drop-profiles"):
        read_queues(text="drop-profiles {}")


def test_service_flows_of_a_cable_modem():
    queues = {queue.handle.split()[-1]: queue for queue in read_queues(text=MODEM)}
    assert queues["1"].law == NamedLaw("docsis-pie", {"target_s": 0.015})
    assert queues["2"].law == NamedLaw("docsis-pie", {"target_s": 0.010})
    assert (queues["1"].capacity_bit_per_s, queues["2"].capacity_bit_per_s) == (20e6, 5e6)
    assert [bool(queue.reason) for queue in queues.values()] == [False, False, True, True, True, True, True]
    assert [queue.unreadable for queue in queues.values()] == [False] * 5 + [True, True]
    assert queues["102"].reason.startswith("aqmlatencytarget: got 'x'")


def test_openconfigs_profiles():
    law = lines(80e3, 900e3, 10.0, "bytes", ecn=True)
    for top in ("openconfig-qos:qos", "qos", "data"):
        assert laws(openconfig(uniform(CONFIG | {"weight": 0}), top=top)) == {"wred p": law}
    (queue,) = read_queues(text=openconfig(uniform(CONFIG)))
    assert (queue.law, queue.notes[0]) == (
        law,
        "the average's weight isn't in the file: the present queue is taken, weight 0",
    )
    percent = {
        "min-threshold-percent": 10,
        "max-threshold-percent": "90",
        "max-drop-probability-percent": 5,
        "weight": 3,
    }
    broken = [uniform(CONFIG | {"enable-ecn": "yes"}, "a"), uniform({}, "b", "red"), {"name": "c"}, 5]
    found = read_queues(text=openconfig(*broken, uniform(percent, "d")))
    assert found[-1].law == lines(10, 90, 5.0, "percent", weight_log=3)
    assert [queue.handle for queue in found] == ["a", "b", "c", "profile 4", "d"]
    assert [queue.unreadable for queue in found] == [True, True, False, False, False]


def test_a_patch_of_config_db_has_what_it_adds():
    first, second = read_queues(text=PATCH)
    assert (first.name, first.law) == (
        "wred A/B, green",
        WredLaw(min_bytes=1048576, max_bytes=3000000, max_percent=5, ecn=True),
    )
    assert (second.name, second.unreadable) == ("wred C", True)
    assert second.reason.startswith("ecn: got nothing, takes a setting, which the patch doesn't change")
    blank = wred_profile() | {"green_min_threshold": " "}
    assert reasons(sonic(A=blank))["wred A, green"][0].startswith("green_min_threshold: got nothing")


BOX = {"rtt_s": 0.02, "flows": 10.0, "senders": "reno"}


@pytest.mark.parametrize(
    ("text", "more", "thresholds"),
    [
        (IOS.replace("class VIDEO", "class DATA2"), {"packet_size_bytes": 1000.0}, (32_000, 40_000)),
        (JUNOS_SET, {}, (37_500, 62_500)),
        (JUNOS_SET, {"buffer_bytes": 1e6}, (300_000, 500_000)),
        (XR, {}, (20_000, 100_000)),
    ],
)
def test_thresholds_become_bytes_by_packets_rate_and_buffer(text, more, thresholds):
    """10 ms of buffer are 125 kB at 100 Mbit/s."""
    found = certify_queues(read_queues(text=text)[:1], capacity_bit_per_s=100e6, **BOX, **more).queues[0].certificate
    assert (found.law.parameters["min_bytes"], found.law.parameters["max_bytes"]) == thresholds


def test_what_is_missing_for_a_verdict_is_named_and_a_rate_of_the_file_is_taken():
    (queue,) = certify_queues(
        read_queues(text=JUNOS_SET.replace("temporal", "percent")), capacity_bit_per_s=1e8, **BOX
    ).queues
    assert (queue.unreadable, queue.reason[:58]) == (True, "buffer: got nothing, takes the queue's buffer, of which th")
    (queue,) = certify_queues(read_queues(text=JUNOS_SET), capacity_bit_per_s=(1e7, 1e8), **BOX).queues
    assert queue.reason.startswith("capacity: got nothing, takes one rate")
    found = certify_queues(read_queues(text=MODEM)[:3], **BOX).queues
    rates = [queue.certificate.inputs.capacity_bit_per_s for queue in found[:2]]
    assert rates == [(20e6, 20e6), (5e6, 5e6)]
    assert "the file's rate is taken: 20 Mbit/s" in found[0].certificate.certificate.warnings
    (given,) = certify_queues(read_queues(text=MODEM)[:1], capacity_bit_per_s=1e7, **BOX).queues
    assert given.certificate.inputs.capacity_bit_per_s == (1e7, 1e7)
    with pytest.raises(InvalidValue, match="capacity"):
        certify_queues(read_queues(text=NXOS), **BOX)
    endless = MODEM.replace("MaxRateSustained 20;", f"MaxRateSustained {2**53};")
    assert certify_queues(read_queues(text=endless)[:1], **BOX).queues[0].reason.startswith("capacity: got ")
    with pytest.raises(InvalidValue, match="queues: got 5"):
        certify_queues([5], **BOX)
    with pytest.raises(InvalidValue, match="the path of a file"):
        read_queues()


def test_an_average_of_wred_is_a_lag_of_its_weight():
    """At an arrival 1 - 2^-n of the average stay; the loop without it is that of the present queue."""
    law = {"min_bytes": 30_000, "max_bytes": 90_000, "max_percent": 10.0}
    slow, present = (wred_as_switch(WredLaw(**law, weight_log=weight)) for weight in (9, 0))
    assert (slow.weight, present.weight) == (2.0**-9, 1.0)
    assert slow.lines == present.lines
    assert slow.parameters == {**present.parameters, "weight_log": 9}


def test_kinds_are_told_apart_by_content():
    found = [[kind for kind in KINDS if kind.recognised(_parsed(sample))] for sample in SAMPLES]
    assert all(len(kinds) == 1 for kinds in found)
    assert {kinds[0] for kinds in found} == set(KINDS)


def _parsed(sample):
    return json.loads(re.sub(r"\[Unknown[^]]*\]", '"x": 1', sample)) if sample.lstrip()[0] in "[{" else sample


WORDS = st.sampled_from(["0", "-1", "1e400", "²", "9" * 22, *"'\"{}[];#!", "/*", "*/", "percent", "ms", "null"])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 60), WORDS | st.text(max_size=4)))
)
def test_broken_files_are_refused_in_words(sample, changes):
    for at, length, word in changes:
        sample = sample[: at % len(sample)] + word + sample[at % len(sample) + length :] or " "
    try:
        queues = read_queues(text=sample)
    except NetctrlError as error:
        assert str(error)
        return
    for queue in queues:
        assert queue.law is None or not queue.unreadable
        assert queue.law is not None or queue.reason
        assert queue.name
