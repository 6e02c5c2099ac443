"""Designs for Linux: rounding, the gains of pie and dualpi2 and the margins they leave, batch files, agents' files."""

import cmath
import dataclasses
import json
import subprocess
from math import sqrt

import msgspec
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from linux_queues import pairs, tc
from linux_support import kernel

import netctrl
from netctrl.cli.export import main
from netctrl.core.errors import FileError, InvalidValue, NoAdmissibleDesign
from netctrl.design.arc.design import arc
from netctrl.design.arc.rounding import check_implementation
from netctrl.design.connet.design import connet
from netctrl.design.mpc.file import mpc_from_file
from netctrl.frequency.sampled_margins import sampled_margins
from netctrl.laws.aqm.arc import ArcParameters, ArcState, arc_step
from netctrl.laws.aqm.delay_pi import DelayPi
from netctrl.laws.aqm.law import Seen
from netctrl.laws.aqm.pi import PiQueue
from netctrl.laws.aqm.pie import PieQueue, pie_scale
from netctrl.laws.link_rate.controller import by_hearing, command, measure, start_hearing
from netctrl.laws.targets.pie_law import pie_halvings
from netctrl.linux.export.agent import AgentConfig, read_agent_config
from netctrl.linux.export.agents import (
    AgentPlace,
    InterfaceMap,
    Watch,
    connet_on_linux,
    hftrac_on_linux,
    mpc_on_linux,
    read_interface_map,
)
from netctrl.linux.export.aqm import arc_on_delay, nearest_dualpi2, nearest_pie, pie_range
from netctrl.linux.export.records import HtbClass, read_queue_plan
from netctrl.linux.export.shaper import (
    Framing,
    MarkingConfig,
    TcSettings,
    batch,
    checked_interface,
    default_burst,
    nearest,
    read_marking_config,
    token_bucket,
)
from netctrl.linux.export.tc import arc_on_linux, mpcc_on_linux, pacing_on_linux
from netctrl.model.datasets import model_path, problem_path
from netctrl.model.identified import read_model
from netctrl.model.law import ArcLaw
from netctrl.model.network import Demand, Link, Network
from netctrl.plants.linearize import network_model
from netctrl.plants.tcp_response import arc_response, delay_pi_response
from netctrl.scenario.links import Link as QueueLink
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.network.plan import link_plan

PRINTED = read_model(model_path("connet-paper"))
CHAIN = Network(
    links=(
        Link(source="a", target="b", capacity=10e6, buffer=100e3, id="l1"),
        Link(source="b", target="c", capacity=10e6, buffer=100e3, id="l2"),
    ),
    demands=(Demand(source="a", target="c", mean=6e6, std=1e6),),
)
FIFTY = {"epoch_s": 0.05, "target_queue_packets": 50.0, "utilization": 1.0, "plant": "phys"}


@pytest.fixture(scope="module")
def standing():
    """50 flows at 50 ms on 100 Mbit/s, with a queue of 50 packets."""
    return arc(50, 0.05, 100e6, **FIFTY)


@pytest.fixture(scope="module")
def chain():
    """A chain of two links under a coordinated controller."""
    return netctrl.hftrac(CHAIN, 0.01, mu=1.0, architecture="coordinated")


# Rounding


@given(requested=st.floats(1.0, 1e9), step=st.sampled_from([1.0, 8.0, 0.25]))
def test_the_nearest_is_within_half_a_step(requested, step):
    steps, figure = nearest("x", requested, step=step, unit="", most=2**62, least=0, bound=None)
    assert abs(figure.implemented - requested) <= step / 2 * (1 + 1e-12)
    assert figure.implemented == steps * step
    again, same = nearest("x", figure.implemented, step=step, unit="", most=2**62, least=0, bound=0.0)
    assert (again, same.difference) == (steps, 0.0)


@pytest.mark.parametrize(
    ("requested", "more"),
    [(0.3, {}), (1e12, {}), (float("nan"), {}), (float("inf"), {}), (1.4, {"bound": 0.1}), (-5.0, {})],
)
def test_what_cannot_be_carried_is_refused(requested, more):
    with pytest.raises(InvalidValue, match="burst"):
        nearest("burst", requested, step=1.0, unit="byte", **{"bound": None} | more)


# pie and dualpi2


@given(
    p=st.floats(0.2, 0.8),
    q=st.floats(100.0, 200.0),
    old=st.floats(100.0, 200.0),
    gamma=st.floats(0.95, 1.0),
    q0=st.floats(80.0, 120.0),
)
def test_on_a_busy_link_arc_is_the_pi_on_the_delay(p, q, old, gamma, q0):
    law = ArcLaw(
        alpha_per_packet=1e-4,
        alpha_per_byte=1e-7,
        epoch_s=0.1,
        target_utilization=gamma,
        target_queue_packets=q0,
        capacity_bit_per_s=10e6,
        packet_size_bytes=1000.0,
    )
    capacity, served = 1250.0, 125.0
    found = arc_on_delay(law)
    delay, before = q / capacity, old / capacity
    step = found.integral * (delay - found.target_s) + found.proportional * (delay - before)
    seen = Seen(1.0, served + q - old, 0.0, q, served)
    expected = arc_step(ArcState(p), seen, ArcParameters(1e-4, gamma, q0)).probability
    assert p + step == pytest.approx(expected, abs=1e-12)


def test_where_the_queue_is_empty_there_is_nothing_to_go_by():
    with pytest.raises(NoAdmissibleDesign, match=r"--implementation ebpf.*target queue above 25\.51"):
        arc_on_delay(arc(50, accept="stable").law)


@pytest.mark.parametrize("p", [0.5, 0.1, 0.0999, 0.01, 0.00999, 1e-3, 9e-4, 1e-4, 9e-5, 1e-5, 9e-6, 9e-7, 0.0])
def test_pie_scales_as_the_rfc_says(p):
    """RFC 8033, Section 4.2, as the fluid has it."""
    assert 0.5 ** pie_halvings(p) == pie_scale(p)
    low, high = pie_range(p)
    assert low <= p < high and pie_halvings(low) == pie_halvings(p) == pie_halvings(high * (1 - 1e-9))


def test_the_rfc_s_gains_are_tc_s_defaults():
    """RFC 8033's alpha = 0.125 and beta = 1.25 are alpha 2 and beta 20 of tc-pie(8), above a probability of 0.1."""
    from netctrl.linux.export.aqm import Pie

    law = Pie(15000, 16000, 2, 20, ()).law(0.1)
    assert (law.integral, law.proportional) == pytest.approx((0.125, 1.25), rel=1e-9)


def test_the_square_s_slope():
    """dualpi2's defaults, alpha 0.16 and beta 3.2 Hz (41 and 819 of 1/256): around p = p'², δp = 2 p' δp'."""
    from netctrl.linux.export.aqm import Dualpi2

    found, p, step = Dualpi2(15000, 16000, 41, 819, ()), 0.04, 1e-7
    slope = ((sqrt(p) + step) ** 2 - (sqrt(p) - step) ** 2) / (2 * step)
    assert found.law(p).integral == pytest.approx(slope * LINUX_7_2_DUALPI2[41], rel=1e-7)
    assert found.law(p).proportional == pytest.approx(slope * LINUX_7_2_DUALPI2[819], rel=1e-7)


# Steps that tc sends -> gain that Linux 7.2.13 runs [1/s]; tests/laws/targets/test_dualpi2.py has more of them.
LINUX_7_2_DUALPI2 = {41: 0.160071068, 92: 0.356521923, 819: 3.197783372}


def test_the_export_carries_what_dualpi2_runs(standing):
    """0.357 1/s is asked for: 91/256 would run 1.2 % below it, 92/256 runs 0.2 % below, and tc shows 91/256 of that."""
    slope = 2.0 * sqrt(0.01)
    found = nearest_dualpi2(
        DelayPi(integral=0.357 * slope, proportional=0.357 * slope, update_s=0.05, target_s=0.02), 0.01
    )
    implemented = {figure.what: figure for figure in found.figures}
    for what in ("alpha", "beta"):
        assert implemented[what].implemented == pytest.approx(slope * LINUX_7_2_DUALPI2[92], rel=1e-7)
        assert abs(implemented[what].difference) < 0.002
    made = arc_on_linux(standing, "eth0", found)
    said = next(note for note in made.notes if note.startswith("tc shows"))
    assert "alpha 0.355469 where tc sent 0.359375 and 0.356522 1/s is in effect" in said  # 91/256, 92/256
    assert "beta 0.355469 where tc sent 0.359375 and 0.356522 1/s is in effect" in said


def test_dualpi2_has_no_longer_update_than_32_bits_of_nanoseconds():
    law = DelayPi(integral=0.1, proportional=0.1, update_s=4.294967, target_s=0.02)
    assert nearest_dualpi2(law, 0.04).update_us == 4_294_967
    with pytest.raises(NoAdmissibleDesign, match=r"dualpi2 updates at least every 4\.29.* s, and .* 4\.295 s"):
        nearest_dualpi2(dataclasses.replace(law, update_s=4.295), 0.04)


def test_without_rounding_the_margins_are_the_certificate_s(standing):
    requested = arc_on_delay(standing.law)
    (found,) = check_implementation(standing.inputs, requested, lambda _: requested)
    proof = standing.certificate
    assert found.requested.phase_margin_deg == pytest.approx(proof.sampled.phase_margin_deg, rel=1e-6)
    assert found.requested.gain_margin_db == pytest.approx(proof.sampled.gain_margin_db, rel=1e-9)
    assert found.requested.delay_margin_s == pytest.approx(proof.sampled.delay_margin_s, rel=1e-6)
    assert found.requested.spectral_radius == pytest.approx(proof.sampled.spectral_radius, rel=1e-9)


@given(flows=st.floats(20.0, 100.0), rtt=st.floats(0.03, 0.2), theta=st.floats(0.01, 3.0))
def test_arc_s_sampled_loop_is_a_special_case(standing, flows, rtt, theta):
    setting, alpha = standing.inputs.setting, standing.law.alpha_per_packet
    capacity = setting.capacity_packet_per_s
    law = DelayPi(integral=alpha * capacity, proportional=alpha * capacity, update_s=0.05, target_s=0.004)
    expected = alpha * arc_response(setting, "phys").at(theta, flows, rtt)
    assert abs(delay_pi_response(setting, law).at(theta, flows, rtt) - expected) <= 1e-9 * abs(expected)


@given(late=st.floats(0.0, 0.05))
@settings(max_examples=5)
def test_an_old_reading_costs_its_age_in_delay_margin(standing, late):
    law, setting = arc_on_delay(standing.law), standing.inputs.setting
    fresh, old = (sampled_margins(delay_pi_response(setting, law, age), 50.0, 0.05, 1.0) for age in (0.0, late))
    assert fresh.delay_margin_s - old.delay_margin_s == pytest.approx(late, abs=1e-6)


def test_fast_updates_come_to_the_continuous_limit(standing):
    """L = (a/T)(P/C)(b T/a s + 1)/s with TCP's own plant: that is what short updates come to."""
    setting, law = standing.inputs.setting, DelayPi(integral=0.01, proportional=0.5, update_s=5e-4, target_s=0.004)
    flows, rtt, capacity, omega = 50.0, 0.05, setting.capacity_packet_per_s, 12.0
    w0 = rtt * capacity / flows
    sigma = 1j * omega * rtt
    plant = flows / rtt * w0**3 / 2 * sigma * cmath.exp(-sigma)
    plant /= w0 * sigma**2 + (w0 + 1) * sigma + 2 + sigma * cmath.exp(-sigma)
    expected = (law.integral / law.update_s / (1j * omega) + law.proportional) * plant / (1j * omega * capacity)
    found = complex(delay_pi_response(setting, law).at(omega * law.update_s, flows, rtt))
    assert abs(found / expected - 1.0) < 0.01


def test_pie_s_nearest(standing):
    requested = arc_on_delay(standing.law)
    found = nearest_pie(requested, standing.certificate.operating_point.marking_probability)
    implemented = found.law(standing.certificate.operating_point.marking_probability)
    step = 0.5 / 16
    assert abs(implemented.proportional - requested.proportional) <= step / 2
    assert found.update_us % 20000 == 0 and implemented.update_s <= requested.update_s
    per_second = implemented.integral / implemented.update_s
    assert per_second == pytest.approx(requested.integral / requested.update_s, rel=0.1)
    (check,) = check_implementation(standing.inputs, requested, found.law)
    assert check.implemented.keeps_rule
    assert check.phase_lost_deg == pytest.approx(45.0 - check.implemented.phase_margin_deg)


@pytest.mark.parametrize(
    ("law", "p", "why"),
    [
        ({"proportional": 0.001}, 0.02, "no beta near"),
        ({"proportional": 99.0}, 0.02, "no beta near"),
        ({"integral": 1e-6}, 0.02, "no alpha near"),
        ({}, 0.2, "drops packets instead"),
        ({"target_s": 0.3}, 0.02, "above a delay of 0.25 s"),
    ],
)
def test_pie_has_its_limits(law, p, why):
    requested = DelayPi(**{"integral": 0.1, "proportional": 0.1, "update_s": 0.05, "target_s": 0.02} | law)
    with pytest.raises(NoAdmissibleDesign, match=why):
        nearest_pie(requested, p)


def test_a_box_is_judged_at_its_corners():
    """From 50 to 70 flows the marking probability passes 0.01, where pie's gains are multiplied by 4."""
    design = arc((50, 70), (0.05, 0.06), 100e6, **FIFTY | {"target_queue_packets": 200.0}, accept="stable")
    requested = arc_on_delay(design.law)
    found = nearest_pie(requested, design.certificate.operating_point.marking_probability)
    checks = check_implementation(design.inputs, requested, found.law)
    assert [(each.flows, each.rtt_s) for each in checks] == [(50.0, 0.05), (50.0, 0.06), (70.0, 0.05), (70.0, 0.06)]
    assert [each.marking_probability > 0.01 for each in checks] == [True, False, True, True]
    lost = [each.gain_lost_db for each in checks]
    assert min(lost[0], lost[2], lost[3]) > 12.0 > 1.0 > lost[1]  # 20 log10 4 = 12.04


def test_dualpi2_s_nearest(standing):
    requested, p = arc_on_delay(standing.law), standing.certificate.operating_point.marking_probability
    found = nearest_dualpi2(requested, p)
    step = 2 * sqrt(p) / 256
    assert abs(found.law(p).proportional - requested.proportional) <= step
    assert abs(found.law(p).integral - requested.integral) <= step
    assert found.tokens(100)[-6:-2] == ("alpha", "0.359375", "beta", "0.359375")  # 92/256
    with pytest.raises(NoAdmissibleDesign, match=r"0\.25"):
        nearest_dualpi2(requested, 0.3)


def test_the_carried_gains_settle_in_the_nonlinear_fluid():
    """An independent way: the rounded law as a PI on the queue, and pie with its rules, under 50 flows of TCP."""
    design = arc(50, 0.066, 100e6, epoch_s=0.05, target_queue_packets=200.0, utilization=1.0, plant="phys")
    p = design.certificate.operating_point.marking_probability
    found, capacity = nearest_pie(arc_on_delay(design.law), p), 12500.0
    law = found.law(p)
    alike = PiQueue(
        alpha=(law.integral + law.proportional) / capacity,
        beta=law.proportional / capacity,
        frequency_hz=1.0 / law.update_s,
        reference_queue=200e3,
    )
    step = 1.0 / 16.0
    pie = PieQueue(target=law.target_s, update=law.update_s, alpha=found.alpha * step, beta=found.beta * step)
    for queue in (alike, pie):
        scenario = Scenario(
            name="implemented",
            duration=60.0,
            warmup=40.0,
            packet_size=1000,
            links=(QueueLink(id="l", source="a", target="b", capacity=100e6, buffer=1e6, queue=queue),),
            flows=(Flow(id="f", path=("l",), rtt=0.05, count=50, ecn=True),),
        )
        link = netctrl.simulate(scenario).of("l")
        assert link["backlog"] == pytest.approx(200e3, rel=0.01)
        assert link["backlog std"] < 2e3


# Queues and batch files


def test_a_bucket_counts_frames():
    queue = token_bucket("eth1", 10e6, 3028, 60e3, framing=Framing(1500.0), link="l1")
    # 10 Mbit/s · 1514/1500 / 8 = 1261666.67 byte/s
    (line,) = queue.lines
    assert " ".join(line) == "qdisc add dev eth1 root handle 7c01: tbf rate 10093336bit burst 3028 limit 60560"
    assert queue.desired.queue.rate == 10093336.0
    assert max(abs(figure.difference) for figure in queue.figures) < 1e-4  # a tick is 0.08 of 3028 bytes


def test_an_htb_is_a_queue_with_one_class_and_a_fifo_in_it():
    queue = token_bucket("eth1", 10e6, 3028, 60e3, framing=Framing(1500.0), shaper="htb")
    assert [" ".join(line) for line in queue.lines] == [
        "qdisc add dev eth1 root handle 7c01: htb default 1",
        "class add dev eth1 parent 7c01: classid 7c01:1 htb "
        "rate 10093336bit burst 3028 ceil 10093336bit cburst 3028 quantum 1514",
        "qdisc add dev eth1 parent 7c01:1 handle 7c02: bfifo limit 60560",
    ]
    assert queue.desired.queue == HtbClass(rate=10093336.0, burst=3028, limit=60560)


@given(rate=st.floats(1e4, 100e9), burst=st.integers(1600, 10**7))
def test_a_bucket_is_kept_in_whole_ticks_and_never_more_than_asked_for(rate, burst):
    """tc counts the bucket's time at its rate in ticks of 64 ns, and cuts off what is left (tc_core_time2tick)."""
    rate = 8.0 * round(rate / 8.0)
    assume(burst * 8.0 / rate > 11.0 * 64e-9)  # fewer ticks are off by more than 10 %: refused
    _, bucket, _ = token_bucket("eth0", rate, burst, 1e6, framing=Framing(1500.0, header=0.0)).figures
    tick = rate / 8.0 * 64e-9
    assert bucket.requested == burst
    assert bucket.requested - tick * (1.0 + 1e-6) < bucket.implemented <= bucket.requested * (1.0 + 1e-9)
    assert bucket.implemented / tick == pytest.approx(round(bucket.implemented / tick), abs=1e-6)


@pytest.mark.parametrize(
    ("rate", "packet", "bytes_"),
    [(1e6, 1500.0, 3028), (1e6, 2000.25, 4029), (1e9, 1500.0, 12500), (1e9 + 8e4, 1500.0, 12501), (1e6, 64.0, 3028)],
)
def test_a_default_bucket_is_two_frames_or_a_tenth_of_a_millisecond_rounded_up(rate, packet, bytes_):
    assert default_burst(rate, Framing(packet)) == bytes_


@given(rate=st.floats(1e4, 400e9), packet=st.floats(64.0, 9000.0))
def test_rates_survive_in_64_bits(rate, packet):
    framing = Framing(packet)
    queue = token_bucket("eth0", rate, default_burst(rate * framing.growth, framing), 1e6, framing=framing)
    bits = int(queue.lines[0][9].removesuffix("bit"))
    assert bits % 8 == 0
    assert abs(bits - rate * framing.growth) <= 4.0 + rate * 1e-12


@pytest.mark.parametrize(
    "name", ["", "a" * 16, "e/0", "a:b", "a b", "..", ".", "a\nb", "ö" * 8, 'a"b', "a#b", "a\\b", "a'"]
)
def test_names_of_interfaces(name):
    with pytest.raises(InvalidValue, match="interfaces"):
        checked_interface(name)


def test_names_that_the_kernel_takes():
    assert [checked_interface(name) for name in ("eth0", "a@b", "br-lan.7", "$x;rm", "-v")]


def test_no_token_ends_a_command():
    for token in ("a;b", "a b", "a\nb", "$(x)", "", "#"):
        with pytest.raises(InvalidValue, match="tokens"):
            batch((("qdisc", "add", token),), "t")
    assert batch((("qdisc", "add", "dev", "$x;rm"),), "two\nlines") == "# two\n# lines\nqdisc add dev $x;rm\n"


@pytest.mark.parametrize(
    ("rate", "burst", "limit"), [(1.0, 3028, 1e5), (1e6, 100, 1e5), (1e6, 2**33, 1e5), (1e6, 3028, 1e11)]
)
def test_values_that_the_kernel_has_not(rate, burst, limit):
    with pytest.raises(InvalidValue, match="of eth0"):
        token_bucket("eth0", rate, burst, limit, framing=Framing())


# Designs


def decoded(text, kind):
    from netctrl.model.io.arrays import array

    return msgspec.json.decode(text, type=kind, dec_hook=array)


def test_hftrac_for_two_machines(chain, tmp_path):
    places = InterfaceMap(
        agents=(
            AgentPlace(name="s1", links={"l1": "eth0"}, address="10.0.0.1", port=7001),
            AgentPlace(name="s2", links={"l2": "eth0"}, address="10.0.0.2", port=7001),
        ),
        key_file="key",
    )
    made = hftrac_on_linux(chain, network_model(CHAIN, 0.01), places)
    assert sorted(made.files) == sorted(
        f"{name}.{what}" for name in ("s1", "s2") for what in ("tc", "plan.json", "agent.json")
    )
    config = decoded(made.files["s1.agent.json"], AgentConfig)
    assert [peer.name for peer in config.peers] == ["s2"]
    (link,) = config.links
    (tmp_path / "plan.json").write_text(made.files["s1.plan.json"])
    (desired,) = read_queue_plan(tmp_path / "plan.json").interfaces
    assert (link.greatest_rate, link.burst, link.limit) == (
        desired.queue.rate,
        desired.queue.burst,
        desired.queue.limit,
    )
    assert config.law.nominal == pytest.approx(6e6 * 1514 / 1500)
    assert config.law.capacity == pytest.approx(10e6 * 1514 / 1500)
    assert (link.kind, made.notes) == ("htb", ())
    tbf = hftrac_on_linux(chain, network_model(CHAIN, 0.01), places, TcSettings(shaper="tbf"))
    assert decoded(tbf.files["s1.agent.json"], AgentConfig).links[0].kind == "tbf"
    assert "fills a TBF's bucket" in tbf.notes[0]


def test_frames_need_no_header(chain):
    settings = TcSettings(framing=Framing(1500.0, 0.0))
    made = hftrac_on_linux(chain, network_model(CHAIN, 0.01), read_interface_map("l1=eth1,l2=eth2"), settings)
    config = decoded(made.files["router.agent.json"], AgentConfig)
    assert config.law.nominal == pytest.approx(6e6)
    assert config.links[0].greatest_rate == 10e6
    assert "rate 10000000bit" in made.files["router.tc"]


@pytest.mark.parametrize(
    ("interfaces", "why"),
    [
        ("l3=eth0", "links of the Design's network"),
        ("l1=eth0", "no agent for the Design's links l2"),
        ("l1", "interfaces"),
    ],
)
def test_places_for_another_network(chain, interfaces, why):
    with pytest.raises(InvalidValue, match=why):
        hftrac_on_linux(chain, network_model(CHAIN, 0.01), read_interface_map(interfaces))


def test_an_unlimited_buffer_is_no_queue():
    links = tuple(msgspec.structs.replace(link, buffer=None) for link in CHAIN.links)
    network = msgspec.structs.replace(CHAIN, links=links)
    design = netctrl.hftrac(network, 0.01, mu=1.0, architecture="myopic")
    with pytest.raises(InvalidValue, match="limit"):
        hftrac_on_linux(design, network_model(network, 0.01), read_interface_map("l1=eth0,l2=eth1"))
    settings = TcSettings(limit=50e3)
    assert hftrac_on_linux(design, network_model(network, 0.01), read_interface_map("l1=eth0,l2=eth1"), settings).files


def test_connet_s_regulators_share_the_rate():
    design = connet(PRINTED, track="delay", limits=[(0.0, 95.0)], references=[(1.0, 0.7437)])
    delay_only = msgspec.structs.replace(design.law, outputs=("delay", "throughput"))
    design = msgspec.structs.replace(design, law=delay_only)
    made = connet_on_linux(design, read_interface_map("r1=eth1,r2=eth2"), watch=Watch("eth0", 100e6))
    config = decoded(made.files["router.agent.json"], AgentConfig)
    assert [link.share for link in config.links] == [0.5, 0.5]
    assert config.links[0].greatest_rate == pytest.approx(47.5e6 * 1514 / 1500, abs=4.0)
    assert config.links[0].limit == 20 * 1514
    assert config.law.reference == pytest.approx([1.0, 0.7437])
    assert config.law.measured_at == "eth0"
    with pytest.raises(InvalidValue, match="measured_at"):
        connet_on_linux(design, read_interface_map("r1=eth1"))


def test_an_mpc_design_s_link_has_an_agent(tmp_path):
    design = mpc_from_file(problem_path("uplink"))
    made = mpc_on_linux(design, read_interface_map("uplink=eth1"), TcSettings(limit=50e3))
    config = decoded(made.files["router.agent.json"], AgentConfig)
    (line,) = config.links
    assert (line.interface, config.interval_s) == ("eth1", 0.01)
    assert line.greatest_rate == pytest.approx(100e6 * 1514 / 1500, abs=8.0)
    assert config.law.growth == pytest.approx(1514 / 1500)
    assert config.law.law.problem == design.law.problem
    with pytest.raises(InvalidValue, match="uplink=eth0"):
        mpc_on_linux(design, read_interface_map("down=eth1"))


def test_arc_by_ebpf(standing, tmp_path):
    made = arc_on_linux(standing, "eth0", None)
    (tmp_path / "m.json").write_text(made.files["arc.marking.json"])
    config = read_marking_config(tmp_path / "m.json")
    assert (config.law, config.handle, config.header_bytes) == (standing.law, "7c01:", 14)
    assert sorted(made.files) == ["arc.marking.json", "arc.plan.json", "arc.tc"]


def test_arc_by_pie(standing):
    p = standing.certificate.operating_point.marking_probability
    made = arc_on_linux(standing, "eth0", nearest_pie(arc_on_delay(standing.law), p))
    said = next(note for note in made.notes if note.startswith("tc shows"))
    assert "updates each 44 ms at 250 Hz (41 ms at 1000 Hz) and that it chooses 1/1.85 of the packets" in said
    assert made.files["arc.tc"] == (
        "# ARC: a bottleneck of 100 Mbit/s in packets of 1000 bytes\n"
        "qdisc add dev eth0 root handle 7c01: tbf rate 101400000bit burst 3028 limit 735150\n"
        "qdisc add dev eth0 parent 7c01:1 handle 7c02: pie limit 725 target 4000us tupdate 40000us alpha 2 beta 3 ecn "
        "nobytemode\n"
    )


def test_pacing_needs_no_queue():
    made = pacing_on_linux(netctrl.pacing(rtt_s=0.02, bottleneck_bit_per_s=95e6))
    assert list(made.files) == ["sender.design.json"]
    assert max(abs(figure.difference) for figure in made.figures) <= 1e-3


def test_mpcc_has_no_carrier():
    with pytest.raises(NoAdmissibleDesign, match="can't run MPCC"):
        mpcc_on_linux(None)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"schema": "x"}, "netctrl.marking/1"),
        ({"interface": "a/b"}, "interface"),
        ({"valid_epochs": 1}, "valid_epochs"),
    ],
)
def test_a_bad_marking_file(standing, tmp_path, change, named):
    text = MarkingConfig(interface="eth0", law=standing.law).to_json()
    (tmp_path / "m.json").write_text(json.dumps(json.loads(text) | change))
    with pytest.raises(FileError, match=named):
        read_marking_config(tmp_path / "m.json")


# The command line


def test_a_command_writes_and_says_what_was_rounded(standing, tmp_path, capsys):
    standing.save(tmp_path / "d.json")
    args = ["tc", str(tmp_path / "d.json"), "--interfaces", "eth0", "-o", str(tmp_path / "out")]
    assert main([*args, "--implementation", "pie"]) == 0
    out = capsys.readouterr().out
    assert "lost" in out and "beta" in out
    assert main([*args, "--implementation", "ebpf", "--json"]) == 0  # an earlier export is written over
    told = json.loads(capsys.readouterr().out)
    assert told == json.loads((tmp_path / "out" / "export.json").read_text())
    assert {figure["what"] for figure in told["figures"]} >= {"rate of eth0"}
    assert read_marking_config(tmp_path / "out" / "arc.marking.json").interface == "eth0"


@pytest.mark.parametrize(
    ("more", "status", "said"),
    [
        (["--interfaces", "a/b"], 2, "--interfaces"),
        ([], 2, "--interfaces is missing"),
        (["--interfaces", "eth0", "--implementation", "red"], 2, "--implementation"),
        (["--interfaces", "eth0", "--packet-size", "1500"], 2, "--packet-size"),
        (["--interfaces", "eth0", "--limit", "x"], 2, "--limit"),
        (["--interfaces", "eth0", "--limit", "1000GB"], 2, "--limit: got '1000GB', takes 1 to 4.29497e+09 byte"),
        (["--interfaces", "eth0", "--burst", "10"], 2, "--burst: got '10', takes at least a frame"),
        (["--interfaces", "eth0", "--implementation", "pie", "--drop"], 2, "--drop"),
    ],
)
def test_wrong_use(standing, tmp_path, capsys, more, status, said):
    standing.save(tmp_path / "d.json")
    assert main(["tc", str(tmp_path / "d.json"), "-o", str(tmp_path / "out"), *more]) == status
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and said in error
    assert not (tmp_path / "out").exists()


def test_a_folder_of_someone_else_s_is_left_alone(standing, tmp_path, capsys):
    standing.save(tmp_path / "d.json")
    assert main(["tc", str(tmp_path / "d.json"), "-o", str(tmp_path), "--interfaces", "eth0"]) == 2
    assert sorted(each.name for each in tmp_path.iterdir()) == ["d.json"]


@pytest.mark.parametrize("implementation", ["pie", "dualpi2"])
def test_margins_that_are_lost_end_with_status_3(tmp_path, capsys, implementation):
    """A queue of 0.16 s is read that late: 36° become 28°, whatever the steps."""
    requested = {"epoch_s": 0.1, "target_queue_packets": 200.0, "utilization": 1.0, "simulation": False}
    alpha = 1.35 * arc(20, 0.17, 10e6, **requested).law.alpha_per_packet
    design = arc(20, 0.17, 10e6, **requested, alpha_per_packet=alpha)
    design.save(tmp_path / "d.json", accept="stable")
    args = ["tc", str(tmp_path / "d.json"), "--interfaces", "eth0", "-o", str(tmp_path / "out")]
    assert main([*args, "--implementation", implementation]) == 3
    error = capsys.readouterr().err
    assert f"{design.certificate.sampled.phase_margin_deg:.1f}°" in error and "--implementation ebpf" in error
    assert not (tmp_path / "out").exists()


def test_hftrac_on_the_command_line(chain, tmp_path, capsys):
    chain.save(tmp_path / "d.json")
    (tmp_path / "places.toml").write_text(
        'key_file = "k"\n'
        '[[agents]]\nname = "s1"\naddress = "10.0.0.1"\nport = 7001\nlinks = { l1 = "eth0" }\n'
        '[[agents]]\nname = "s2"\naddress = "10.0.0.2"\nport = 7001\nlinks = { l2 = "eth0" }\n'
    )
    args = ["tc", str(tmp_path / "d.json"), "--interfaces", str(tmp_path / "places.toml"), "-o", str(tmp_path / "o")]
    assert main(args) == 0
    assert read_agent_config(tmp_path / "o" / "s2.agent.json").port == 7001
    assert main([*args, "--reference", "-1"]) == 2
    assert "--reference: got '-1'" in capsys.readouterr().err
    (tmp_path / "places.toml").write_text('[[agents]]\nname = "s1"\nlinks = { l1 = "a/b" }\n')
    assert main(args) == 2
    assert "agents[0].interfaces" in capsys.readouterr().err


def test_a_scenario_s_law_on_the_command_line(tmp_path, capsys):
    """The credit law is homogeneous: of frames its agents command what the scenario's law does of packets, as much
    more as frames are longer."""
    text = 'schema = "netctrl.scenario/3"\nname = "c"\nduration = "1s"\ninterval = "10ms"\n'
    text += 'network = { kind = "routed", graph = "tandem", utilization = 0.9 }\ncontrol = { kind = "credit" }\n'
    (tmp_path / "c.toml").write_text(text)
    args = ["tc", str(tmp_path / "c.toml"), "--interfaces", "L1=eth0,L2=eth1", "-o", str(tmp_path / "o")]
    assert main(args) == 0
    table = read_agent_config(tmp_path / "o" / "router.agent.json").law
    law = by_hearing(link_plan(netctrl.read(tmp_path / "c.toml"), messages=True).law)
    heard, framed = start_hearing(law, [0, 1]), start_hearing(table.as_law(), [0, 1])
    rng, growth, held = np.random.default_rng(0), 1514 / 1500, 0
    for sample in range(50):
        rate, backlog = rng.uniform(15e6, 23e6, 2), rng.uniform((0.0, 10e6), (4e6, 20e6))
        links = np.arange(2)
        heard, u = command(law, measure(law, heard, sample, links, rate, backlog)[0])
        after, _ = measure(table.as_law(), framed, sample, links, growth * rate, growth * backlog)
        framed, commanded = command(table.as_law(), after)
        assert commanded == pytest.approx(growth * u, rel=1e-3)  # the law halves its rate 16 times
        held += u[0] < 22.9e6
    assert held > 5
    assert main([*args, "--reference", "1.1"]) == 2
    assert "--reference: got '1.1'" in capsys.readouterr().err
    (tmp_path / "c.toml").write_text(text.replace("credit", "fifo"))
    assert main(args) == 2
    assert "c.toml: control: got 'fifo', takes a control that sets the rates of links" in capsys.readouterr().err


# The kernel


def test_a_central_law_asks_for_its_controller_in_the_file(tmp_path, capsys):
    netctrl.hftrac(CHAIN, 0.01, mu=1.0, architecture="centralized", information_delay=2).save(tmp_path / "d.json")
    args = ["tc", str(tmp_path / "d.json"), "--interfaces", "l1=one,l2=two", "-o", str(tmp_path / "o")]
    assert main(args) == 2
    assert "l1=one,l2=two: controller: got None, takes a Peer" in capsys.readouterr().err
    (tmp_path / "places.toml").write_text(
        'key_file = "k"\n[controller]\nname = "c"\naddress = "10.0.0.9"\nport = 7000\n'
        '[[agents]]\nname = "s1"\naddress = "10.0.0.1"\nport = 7001\nlinks = { l1 = "eth0", l2 = "eth1" }\n'
    )
    args[3] = str(tmp_path / "places.toml")
    assert main(args) == 0
    assert read_agent_config(tmp_path / "o" / "c.agent.json").role == "controller"


@kernel
@pytest.mark.parametrize("shaper", ["htb", "tbf"])
def test_tc_and_the_kernel_take_the_batch_file(shaper, chain, tmp_path):
    """tc itself reads the file, and makes what `apply` makes of the plan, but for a microsecond of the burst."""
    from netctrl.linux.kernel.netlink import RouteSocket
    from netctrl.linux.kernel.objects import desired_objects, saved, shown

    settings = TcSettings(shaper=shaper)
    made = hftrac_on_linux(chain, network_model(CHAIN, 0.01), read_interface_map("l1=v0,l2=p0"), settings)
    (tmp_path / "b.tc").write_text(made.files["router.tc"])
    (tmp_path / "plan.json").write_text(made.files["router.plan.json"])
    plan = read_queue_plan(tmp_path / "plan.json")
    with pairs(1):
        tc(f"-batch {tmp_path / 'b.tc'}")
        with RouteSocket() as route:
            index = {link.name: link.index for link in route.links()}
            for entry in plan.interfaces:
                found, root = saved(route, index[entry.interface])
                desired = desired_objects(entry)
                assert root == shaper
                assert [(each.what, each.kind, each.handle) for each in found] == [
                    (each.what, each.kind, each.handle) for each in desired
                ]
                for ours, theirs in zip(desired, found, strict=True):
                    one, other = (
                        dataclasses.asdict(shown(each.what, each.kind, each.options)) for each in (ours, theirs)
                    )
                    for name in ("buffer", "ceil_buffer"):  # tc counts them in whole µs, of 15.625 ticks
                        assert one.pop(name, 0) == pytest.approx(other.pop(name, 0), abs=16)
                    assert one == other
        with pytest.raises(subprocess.CalledProcessError):  # what is there stays
            tc(f"-batch {tmp_path / 'b.tc'}")


@kernel
def test_from_a_design_to_a_router_and_back(standing, tmp_path, capsys):
    """export, apply, mark and restore, as a person types them."""
    from netctrl.cli.linux import main as linux
    from netctrl.linux.kernel.netlink import RouteSocket

    def queues():
        with RouteSocket() as route:
            return [(each.kind, each.handle) for each in route.qdiscs()]

    standing.save(tmp_path / "d.json")
    out, state = tmp_path / "out", ["--state-dir", str(tmp_path / "state")]
    with pairs(1):
        before = queues()
        assert (
            main(["tc", str(tmp_path / "d.json"), "--interfaces", "v0", "--implementation", "auto", "-o", str(out)])
            == 0
        )
        assert linux(["mark", str(out / "arc.marking.json"), "--duration", "100ms"]) == 1  # no queue of ours yet
        assert linux(["apply", str(out / "arc.plan.json"), *state]) == 0
        capsys.readouterr()
        assert linux(["mark", str(out / "arc.marking.json"), "--duration", "300ms", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["epochs"] >= 1 and told["mean_probability"] == 0.0
        assert linux(["restore", *state]) == 0
        assert queues() == before


@kernel
@pytest.mark.parametrize("method", ["hftrac", "connet"])
def test_an_agent_takes_its_file_and_the_queues(method, tmp_path, capsys):
    from netctrl.cli.linux import main as linux

    if method == "hftrac":
        netctrl.hftrac(CHAIN, 0.01, mu=1.0, architecture="myopic").save(tmp_path / "d.json")
        more = ["--interfaces", "l1=v0,l2=p0"]
    else:
        delay_only = {"track": "delay", "limits": [(0.0, 95.0)], "references": [(1.0, 0.7437)]}
        design = connet(PRINTED, **delay_only)
        law = msgspec.structs.replace(design.law, outputs=("delay", "throughput"), interval_s=0.1)
        msgspec.structs.replace(design, law=law).save(tmp_path / "d.json")
        more = ["--interfaces", "r1=v0", "--measured-at", "p0@20Mbit"]
    out, state = tmp_path / "out", ["--state-dir", str(tmp_path / "state")]
    with pairs(1):
        assert main(["tc", str(tmp_path / "d.json"), *more, "-o", str(out)]) == 0
        if method == "connet":  # the bottleneck's own queue, whose backlog is read
            tc("qdisc add dev p0 root handle 1: tbf rate 20mbit burst 3028 limit 100000")
        assert linux(["apply", str(out / "router.plan.json"), *state]) == 0
        assert linux(["agent", str(out / "router.agent.json"), "--dry-run"]) == 0, capsys.readouterr().err
        assert linux(["agent", str(out / "router.agent.json"), "--duration", "300ms"]) == 0, capsys.readouterr().err
        assert linux(["restore", *state]) == 0


@kernel
def test_what_the_kernel_has_is_found_by_trying():
    from netctrl.linux.kernel.objects import has_qdisc

    assert has_qdisc("tbf") and has_qdisc("bfifo")
    assert not has_qdisc("nosuchqueue")
