"""DualPI2 of packets and of Linux: one scenario, and the options that the kernel gets for it."""

from __future__ import annotations

import struct

import pytest

import netctrl
from netctrl.core.errors import InvalidValue
from netctrl.kernel.scenarios.queues import discipline_of, queue_lacks
from netctrl.laws.l4s.dualpi2 import DualPi2Queue
from netctrl.linux.kernel.messages import attributes
from netctrl.scenario.links import Link
from netctrl.scenario.tcp_aqm.flows import Flow

PACKET = 1514.0


def line(queue: DualPi2Queue) -> Link:
    return Link(id="line", source="a", target="b", capacity="20Mbit", queue=queue, buffer="1514kB")


def test_the_kernel_gets_the_scenario_s_values() -> None:
    queue = DualPi2Queue(target="20ms", update="8ms", coupling=3, step="500us", step_packets=2, protection=0.2)
    found = discipline_of(line(queue), PACKET)
    values = attributes(found.options)
    assert found.kind == "dualpi2"
    numbers = {1: 1000, 3: 20_000, 4: 8_000, 5: 41, 6: 820, 8: 500, 9: 2}  # limit, times in us, 1/256 Hz, packets
    assert {kind: struct.unpack("=I", values[kind])[0] for kind in numbers} == numbers
    assert {kind: values[kind][0] for kind in (10, 11, 12, 13)} == {10: 3, 11: 1, 12: 0, 13: 20}


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"coupling": 1.5}, "coupling_factor"),
        ({"protection": 0.125}, "classic_protection"),
        ({"alpha": 0.006}, "alpha"),  # 1/256 Hz and twice that are its neighbours
        ({"update": 1.5e-6}, "tupdate"),
    ],
)
def test_what_the_kernel_would_round_is_refused(changed, named) -> None:
    with pytest.raises(InvalidValue, match=named):
        discipline_of(line(DualPi2Queue(**changed)), PACKET)
    lacks = queue_lacks(line(DualPi2Queue(**changed)), PACKET)
    assert lacks is not None
    assert named in lacks


@pytest.mark.needs("lab")
def test_packets_and_the_kernel_have_one_queue() -> None:
    """Ten Reno flows with ECN, base round trip 20 ms: the same backlog, marks and probability."""
    from netctrl.kernel.build import chosen_kernel

    if "NET_SCH_DUALPI2" in chosen_kernel().absent:
        pytest.skip("dualpi2 needs Linux 6.17 or newer")
    flows = Flow(id="r", path=("line",), rtt="20ms", count=10, start=("0s", "1s"))
    scenario = netctrl.Scenario(
        name="ten", duration="60s", links=(line(DualPi2Queue()),), flows=(flows,), packet_size=PACKET, interval=0.1
    )
    packet, kernel = (netctrl.simulate(scenario, engine) for engine in ("packet", "kernel"))
    late = slice(150, None)
    assert packet.series["backlog"][0, late].mean() == pytest.approx(kernel.series["backlog"][0, late].mean(), rel=0.05)
    assert packet.series["backlog"][0, late].std() == pytest.approx(kernel.series["backlog"][0, late].std(), rel=0.2)
    chosen = [(each.series["marked"] + each.series["lost"])[0, late].sum() for each in (packet, kernel)]
    assert chosen[0] == pytest.approx(chosen[1], rel=0.1)
    assert packet.series["probability"][0, late].mean() == pytest.approx(
        kernel.series["probability"][0, late].mean(), rel=0.15
    )
