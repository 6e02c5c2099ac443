"""Groups whose packets are smaller than the scenario's: the same as in a scenario of that size, and their share."""

import numpy as np
import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.laws.aqm.pie import PieQueue
from netctrl.laws.aqm.records import DropTailQueue
from netctrl.laws.window.timely import Timely
from netctrl.scenario.links import Link
from netctrl.scenario.scenario import Scenario
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.packet.run import simulate_packets


def scenario(*flows: Flow, packet_size: float = 1500, **link) -> Scenario:
    settings = {"id": "line", "source": "a", "target": "b", "capacity": 1e7, "delay": 0.01, "buffer": 60e3} | link
    return Scenario(
        name="sizes", links=(Link(**settings),), flows=flows, duration=60.0, warmup=10.0, packet_size=packet_size
    )


def bulk(**changed) -> Flow:
    return Flow(**{"id": "bulk", "path": ("line",), "rtt": 0.05, "count": 2} | changed)


@pytest.mark.parametrize("sender", ["reno", "cubic", "bbr"])
def test_a_flow_of_small_packets_is_that_of_a_scenario_of_them(sender):
    """Where nothing is drawn and the buffer counts bytes, the scenario's size is of no account."""
    found = simulate_packets(scenario(bulk(sender=sender, packet_size=500)))
    plain = simulate_packets(scenario(bulk(sender=sender), packet_size=500))
    assert np.array_equal(found.series["payload"], plain.series["payload"])
    assert np.array_equal(found.series["arrived"], plain.series["arrived"])
    assert np.array_equal(found.series["rtt"], plain.series["rtt"], equal_nan=True)
    assert found.series["payload"].sum() > 0.9 * 1e7 / 8.0 * 60.0 * 460.0 / 500.0


def test_data_are_cut_into_packets_of_the_group_s_size():
    """46,100 bytes are 100 packets of 500 bytes, 460 of them data, one of 140, and a SYN of 40."""
    found = simulate_packets(
        scenario(bulk(count=1, offers=46_100, packet_size=500), capacity=1e9, queue=DropTailQueue())
    )
    assert found.series["arrived"].sum() == 100 * 500 + 140 + 40
    assert found.series["payload"].sum() == 46_100


def test_equal_windows_of_packets_share_by_their_data():
    """Losses by chance, alike for all packets: goodputs as 460 to 1460 bytes."""
    small, large = bulk(id="small", count=20, packet_size=500), bulk(id="large", count=20)
    found = simulate_packets(scenario(small, large, capacity=1e9, buffer=1e7, loss=0.01))
    goodput = found.series["payload"].sum(axis=1)
    assert goodput[0] / goodput.sum() == pytest.approx(460.0 / 1920.0, rel=0.04)


@pytest.mark.parametrize("size", [40, 1501, 500.5])
def test_a_size_is_a_whole_number_up_to_the_scenario_s(size):
    with pytest.raises(InvalidValue, match=r"flows\.bulk\.packet_size"):
        simulate_packets(scenario(bulk(packet_size=size)))


def test_a_data_centre_s_senders_have_packets_of_one_size():
    with pytest.raises(InvalidValue, match=r"null with a data centre's sender"):
        simulate_packets(scenario(bulk(sender=Timely(), packet_size=500)))


def test_other_engines_and_certificates_refuse_it():
    small = scenario(bulk(packet_size=500))
    for engine in ("fluid", "ns3", "kernel"):
        with pytest.raises(InvalidValue, match="packets of several sizes"):
            netctrl.simulate(small, engine)
    with pytest.raises(InvalidValue, match=r"flows\.bulk\.packet_size"):
        netctrl.certify_network(scenario(bulk(packet_size=500), queue=PieQueue()))
