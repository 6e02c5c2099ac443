"""Windows over a drop-tail link: closed forms, packets' figures, and what is refused."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from one_link import plain, scenario_of, seen

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.engines.engine import supports
from netctrl.laws.aqm.pi import PiQueue
from netctrl.model.datasets import data_path
from netctrl.scenario.bottleneck import Bottleneck
from netctrl.scenario.links import Change, Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.scenario.tcp_aqm.offers import Web

PACKET = 1500


def line(sender, rate, rtt, count, buffer, *, duration=120.0, seed=1, **more):
    """Flows over one drop-tail link as a scenario of links; rate [bit/s], rtt [s], buffer [byte]."""
    flows = Flow(id="f", path=("line",), rtt=rtt, count=count, start=(0.0, 5.0), sender=sender, ecn=False)
    return Scenario(
        name="line",
        duration=duration,
        warmup=30.0,
        interval=0.05,
        packet_size=PACKET,
        links=(Link(id="line", source="a", target="b", capacity=rate, buffer=buffer),),
        flows=(flows,),
        seed=seed,
        **more,
    )


def found(scenario):
    """Mean backlog [byte], utilization, loss after the warm-up."""
    result = netctrl.simulate(scenario, "fluid")
    link = result.of("line")
    return link["backlog"], link["utilization"], link["loss"]


def test_a_cubic_flow_whose_cut_stays_above_the_line_never_idles():
    """A window of 300 + 500 kB is cut to .7 of it, 560 kB, above the 300 kB of the line: 260 kB stay in the queue. From
    there it goes along Cubic's curve to where it was; packets keep 392 kB."""
    backlog, utilization, _ = found(line("cubic", 40e6, 0.06, 1, 500e3, duration=60.0))
    assert utilization == pytest.approx(1.0, abs=1e-6)
    assert backlog == pytest.approx(392e3, rel=0.05)


def test_a_long_cubic_flow_has_figures():
    """Right by packets: 909 kB. A mean field overshot to a window below zero."""
    backlog, utilization, _ = found(line("cubic", 100e6, 0.1, 1, 1250e3, duration=60.0))
    assert utilization == pytest.approx(1.0, abs=1e-3)
    assert backlog == pytest.approx(909e3, rel=0.05)


def test_reno_s_sawtooth():
    """One flow over a buffer of a product P of 400 packets: the window goes from P to 2 P, a packet a round trip. It is
    away for (W/C) dW each, so the mean backlog is ∫(W − P) W dW/∫ W dW = 5/9 P, and 3/2 P² packets are sent a cycle,
    of which one or two are lost: the window has grown once more before the loss is known."""
    P, rate = 400, 48e6
    backlog, utilization, loss = found(line("reno", rate, P * PACKET * 8 / rate, 1, P * PACKET, duration=400.0))
    assert utilization == pytest.approx(1.0, abs=2e-3)
    assert backlog / PACKET == pytest.approx(5.0 / 9.0 * P, rel=0.05)
    assert 0.9 / (1.5 * P**2) < loss < 2.2 / (1.5 * P**2)


def test_a_small_buffer_s_sawtooth_idles():
    """Below the line's P a window W sends W a round trip. With a buffer of P/4 it goes from 5/8 P to 5/4 P: 3/8 P round
    trips below the line and 1/4 P above it, which take W/C: utilization (1.5 · 25/64)/(3/8 + 9/32) = 75/84."""
    P, rate = 400, 48e6
    _, utilization, _ = found(line("reno", rate, P * PACKET * 8 / rate, 1, P * PACKET / 4, duration=400.0))
    assert utilization == pytest.approx(75.0 / 84.0, abs=0.01)


PACKETS = [
    ("cubic", 25.355e6, 0.10893, 2, 1348229, 1103899, 1.0000, 0.00171),
    ("reno", 21.711e6, 0.06810, 12, 670277, 551234, 1.0000, 0.00178),
    ("reno", 20.862e6, 0.01512, 2, 56450, 35058, 0.9998, 0.00340),
    ("cubic", 33.010e6, 0.14336, 17, 120728, 70959, 0.9973, 0.00382),
    ("reno", 40.106e6, 0.02338, 5, 72736, 40366, 0.9924, 0.00515),
    ("reno", 13.729e6, 0.18161, 5, 234389, 144076, 0.9980, 0.00074),
    ("cubic", 66.620e6, 0.02593, 17, 346555, 315637, 1.0000, 0.00428),
    ("reno", 10.328e6, 0.08648, 2, 105541, 60889, 0.9958, 0.00080),
]
"""Of the packet engine with acknowledgements late by up to four packets' times, each at random: means of five seeds. At
random: 2 to 200 Mbit/s, 5 to 200 ms, 1 to 50 flows, .1 to 4 products of buffer, evenly in their logarithms."""


@pytest.mark.parametrize("case", PACKETS, ids=[f"{each[0]}-{each[3]}" for each in PACKETS])
def test_packets_agree(case):
    """Backlog within a tenth of the buffer, utilization within .02, loss within a third; base round trips with the mean
    lateness of what keeps its order, 2.3 packets."""
    sender, rate, rtt, count, buffer, *packets = case
    late = 2.3 * PACKET * 8 / rate
    scenario = line(sender, rate, (0.8 * rtt + late, 1.2 * rtt + late), count, buffer)
    backlog, utilization, loss = found(scenario)
    assert backlog == pytest.approx(packets[0], abs=0.1 * buffer)
    assert utilization == pytest.approx(packets[1], abs=0.02)
    assert loss == pytest.approx(packets[2], rel=1.0 / 3.0)


@pytest.mark.parametrize(
    ("flow", "packets"),
    [(plain("cubic", 0.04), [0.184, 0.236, 0.524]), (plain("htcp", 0.04), [0.149, 0.195, 0.493])],
    ids=["cubic", "htcp"],
)
def test_what_leaves_a_varying_link_has_waited_as_packets_have(flow, packets):
    """Median, mean and 95th percentile of the packet engine's delays over the trace. The backlog over the capacity of
    the moment would have half as much again in the mean, as an outage ends before the queue has left."""
    scenario = scenario_of([flow], 5e6, 1.5e5, 60.0, interval=0.04)
    trace = netctrl.read(data_path("traces/mobile.trace"))
    found = seen(scenario.replace(links=(replace(scenario.links[0], trace=trace),)))
    delay = found.delay_s[found.time_s > 20.0]
    assert [np.median(delay), delay.mean(), np.quantile(delay, 0.95)] == pytest.approx(packets, rel=0.1)


def test_both_kinds_of_scenario_are_the_same():
    """One link as `links` and as `bottleneck`: the same within the draws' chance."""
    backlog, utilization, loss = found(line("reno", 20e6, (0.05, 0.05), 10, 125e3))
    flows = tuple(Flow(id=f"f{i}", sender="reno", start=0.5 * i) for i in range(10))
    scenario = Scenario(
        name="b",
        network=Bottleneck(capacity=20e6, buffer=125e3, rtt=0.05),
        packet_size=PACKET,
        duration=120.0,
        warmup=30.0,
        flows=flows,
    )
    result = netctrl.simulate(scenario, "fluid")
    late = result.time_s > 30.0
    lost, got = result.series["lost"][0, late].sum(), result.series["delivered"][:, late].sum()
    assert result.series["backlog"][0, late].mean() == pytest.approx(backlog, abs=0.03 * 125e3)
    assert got * 8.0 / 90.0 / 20e6 == pytest.approx(utilization, abs=0.005)
    assert lost / (lost + got) == pytest.approx(loss, rel=0.1)


@settings(max_examples=12, deadline=None)
@given(
    st.sampled_from(["reno", "cubic", "htcp"]),
    st.floats(2e6, 2e8),
    st.floats(5e-3, 0.2),
    st.floats(0.0, 0.5),
    st.integers(1, 30),
    st.floats(16.0, 2000.0),
    st.integers(0, 99),
)
@example("htcp", 15949360.0, 0.1953125, 0.0, 7, 124.0, 0)  # nothing arrives for an interval: it was -2e-11 bytes
def test_what_arrives_leaves_is_lost_or_waits(sender, rate, rtt, spread, count, packets, seed):
    """And all is finite, also where all round trips are the same, the capacity falls to a third and the line grows."""
    changes = (Change(at=3.0, link="line", capacity=rate / 3.0), Change(at=4.0, link="line", delay=0.5 * rtt))
    scenario = Scenario(
        name="law",
        duration=6.0,
        interval=0.1,
        packet_size=PACKET,
        links=(Link(id="line", source="a", target="b", capacity=rate, buffer=packets * PACKET * 1.001),),
        flows=(
            Flow(id="f", path=("line",), rtt=(rtt, rtt * (1.0 + spread)), count=count, sender=sender),
            Flow(id="g", path=("line",), rtt=rtt, count=1, sender="reno", start="1s", stop="2s"),
        ),
        changes=changes,
        seed=seed,
    )
    result = netctrl.simulate(scenario, "fluid")
    arrived, departed, lost = (result.series[name][0] for name in ("arrived", "departed", "lost"))
    backlog = result.series["backlog"][0]
    assert min(arrived.min(), departed.min(), lost.min(), backlog.min()) >= 0.0
    assert backlog.max() <= packets * PACKET * 1.001 * (1.0 + 1e-9)
    growth = np.diff(backlog, prepend=0.0)
    assert np.abs(arrived - departed - lost - growth).max() <= 1e-9 * arrived.sum()
    assert (departed[:30] <= rate * 0.1 / 8.0 * (1.0 + 1e-6)).all()
    assert (departed[31:] <= rate / 3.0 * 0.1 / 8.0 * (1.0 + 1e-6)).all()


def test_a_seed_is_a_run():
    one, same, other = (found(line("reno", 10e6, (0.04, 0.06), 4, 60e3, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other


def web(count, sender="reno"):
    return (
        Flow(id="f", path=("line",), rtt="100ms", count=count, sender=sender, ecn=False),
        Flow(id="w", path=("line",), rtt="100ms", count=20, ecn=False, offers=Web()),
    )


def test_what_a_mean_field_gets_wrong_is_refused():
    """A buffer of few packets, Cubic in several queues, few flows beside Web sessions: packets are asked for."""
    small = line("cubic", 10e6, 0.05, 2, 15 * PACKET)
    assert "links.line.buffer" in supports(small)["fluid"]
    with pytest.raises(InvalidValue, match="below 16 packets, where the packet engine is as fast"):
        netctrl.simulate(small, "fluid")
    mixed = line("reno", 10e6, 0.05, 2, 60e3)
    few, many, cubic = (mixed.replace(flows=web(*each)) for each in ((20,), (200,), (200, "cubic")))
    assert "links.line.queue" in supports(few)["fluid"]
    assert "links.line.queue" in supports(cubic)["fluid"]
    assert supports(many)["fluid"] is None
    assert netctrl.simulate(few.replace(duration="2s", warmup="1s")).simulator == "packet"


def test_a_queue_that_slower_links_keep_empty_isn_t_refused():
    """A drop-tail link behind a slower one that a law manages never overflows."""
    managed = Link(id="slow", source="a", target="b", capacity=10e6, buffer=125e3, queue=PiQueue())
    behind = Link(id="fast", source="b", target="c", capacity=20e6, buffer=125e3)
    flows = Flow(id="f", path=("slow", "fast"), rtt="100ms", count=5)
    scenario = Scenario(name="two", duration=20.0, warmup=5.0, links=(managed, behind), flows=(flows,))
    assert supports(scenario)["fluid"] is None
    assert netctrl.simulate(scenario, "fluid").series["lost"][1].sum() == 0.0
    slower = scenario.replace(links=(managed, Link(id="fast", source="b", target="c", capacity=5e6, buffer=125e3)))
    assert "links.fast.queue" in supports(slower)["fluid"]
