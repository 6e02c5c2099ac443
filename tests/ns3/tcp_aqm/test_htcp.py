"""H-TCP of exported bottlenecks by its draft: increase, backoff and windows, and how ns-3's own differs."""

import subprocess
from math import sqrt

import pytest
from ns3_support import LIMITED

from netctrl.core.errors import NetctrlError
from netctrl.laws.tcp.htcp import htcp_backoff, htcp_increase
from netctrl.model.io.provenance import provenance
from netctrl.ns3.program import compile_program, find_ns3
from netctrl.ns3.tcp_aqm.render import render
from netctrl.scenario.builders import bottleneck
from netctrl.scenario.tcp_aqm.flows import Flow
from netctrl.sim.fluid.traffic import draw_flows

INCREASES = [(0.3, 0.5), (1.0, 0.5), (3.0, 0.5), (3.0, 0.8), (11.0, 0.5)]
BACKOFFS = [(20.0, 25.0, 1.0, 1.0), (20.0, 30.0, 1.1, 1.0), (20.0, 100.0, 1.0, 1.0), (20.0, 21.0, 0.9, 1.0)]
BACKOFFS += [(20.0, 30.0, 1.3, 1.0), (20.0, 30.0, 0.7, 1.0)]

PROGRAM = r"""
#include "netctrl-htcp.h"

#include "ns3/tcp-htcp.h"

#include <cstdio>

using namespace ns3;

// LIMITED

/// A round trip of 100 segments, the last loss being at 0.
static void Trip(Ptr<TcpCongestionOps> control)
{
    constexpr uint32_t segment = 1460;
    auto state = CreateObject<TcpSocketState>();
    Limited(state, 0);
    state->m_segmentSize = segment;
    state->m_cWnd = 100 * segment;
    state->m_ssThresh = 50 * segment;
    for (int i = 0; i < 100; ++i)
    {
        control->PktsAcked(state, 1, MilliSeconds(20));
        control->IncreaseWindow(state, 1);
    }
    std::printf("%.9g\n", static_cast<double>(state->m_cWnd.Get()) / segment);
}

/// What is left of 100 segments after a loss, RTTs having been from 20 ms to so many.
static void Loss(netctrl::DraftHtcp& control, double most)
{
    auto state = CreateObject<TcpSocketState>();
    state->m_segmentSize = 1460;
    control.See(0.02);
    control.See(most);
    std::printf("%.9g\n", control.GetSsThresh(state, 146000) / 1460.0);
}

int main()
{
INCREASES
BACKOFFS
    static netctrl::RoundTrips trips;
    for (const int at : {500, 3000, 11000})
    {
        Simulator::Schedule(MilliSeconds(at), [] {
            Trip(CreateObject<netctrl::DraftHtcp>(trips));
            Trip(CreateObject<TcpHtcp>());
        });
    }
    Simulator::Run();
    auto control = CreateObject<netctrl::DraftHtcp>(trips);
    for (const double most : {0.025, 0.025, 0.03, 0.1, 0.021})
    {
        Loss(*control, most);
    }
}
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory) -> list[float]:
    try:
        ns3 = find_ns3()
    except NetctrlError:
        pytest.skip("no ns-3")
    folder = tmp_path_factory.mktemp("htcp")
    scenario = bottleneck(flows=(Flow(sender="htcp"),))
    lines = [f'    std::printf("%.17g\\n", netctrl::HtcpIncrease({a!r}, {b!r}));' for a, b in INCREASES]
    program = PROGRAM.replace("// LIMITED", LIMITED).replace("INCREASES", "\n".join(lines))
    lines = [f'    std::printf("%.17g\\n", netctrl::HtcpBackoff{each!r});' for each in BACKOFFS]
    files = render(scenario, draw_flows(scenario, merged=False), provenance=provenance())
    files |= {"main.cc": program.replace("BACKOFFS", "\n".join(lines))}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    compile_program(folder, ns3)
    out = subprocess.run([folder / "scenario"], capture_output=True, text=True, check=True, timeout=60).stdout
    return list(map(float, out.split()))


@pytest.mark.needs("ns3")
def test_increase_and_backoff_are_the_draft_s_and_the_fluid_s(said):
    """alpha = 2 (1 - beta) alpha_H, alpha_H(Delta) = 1 up to a second, 1 + 10 (Delta - 1) + ((Delta - 1)/2)² beyond: by
    hand 1, 1, 22, 8.8 and 126. beta = RTT_min/RTT_max from 0.5 to 0.8, and 0.5 where throughput is off by a fifth."""
    increases, backoffs = said[:5], said[5:11]
    assert increases == pytest.approx([1.0, 1.0, 22.0, 8.8, 126.0], rel=1e-12)
    assert increases == pytest.approx([htcp_increase(*each) for each in INCREASES], rel=1e-12)
    assert backoffs == pytest.approx([0.8, 2.0 / 3.0, 0.5, 0.8, 0.5, 0.5], rel=1e-12)
    assert backoffs == pytest.approx([htcp_backoff(*each) for each in BACKOFFS], rel=1e-12)


@pytest.mark.needs("ns3")
def test_a_window_gains_alpha_segments_in_a_round_trip(said):
    """W² grows by 2 alpha for each acknowledgement of a segment: from 100 segments to sqrt(100² + 200 alpha) in a round
    trip. ns-3's own gains alpha bytes with each, and hardly grows."""
    ours, stock = said[11:17:2], said[12:17:2]
    expected = [sqrt(1e4 + 200.0 * alpha) for alpha in (1.0, 22.0, 126.0)]
    assert ours == pytest.approx(expected, rel=2e-3)
    if find_ns3().version in ("3.37", "3.44"):
        assert all(
            window < 100.0 + 0.25 * (whole - 100.0) for window, whole in zip(stock[1:], expected[1:], strict=True)
        )


@pytest.mark.needs("ns3")
def test_a_loss_leaves_what_the_backoff_says(said):
    """The first has no throughput before it to be near to; then 20/25 and 20/30 of 100 segments, and within the bounds.
    The throughput is what is in flight over the newest RTT: at 100 ms and after it is off by more than a fifth."""
    assert said[17:] == pytest.approx([50.0, 80.0, 66.67, 50.0, 50.0], abs=0.01)
