// Flows of packets whose regulator lets a burst through and then pauses, at a rate that may change. Times in ns.
//
// The law is in netctrl-gate-law.h; draws are those of netctrl's packet engine, so that packets leave at the same
// nanosecond.

#pragma once

#include "netctrl-gate-law.h"
#include "netctrl-sockets.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// The next of a flow's own numbers, evenly from [0, 1) (SplitMix64).
inline double
Chance(uint64_t& state)
{
    state += 0x9E3779B97F4A7C15U;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    z ^= z >> 31;
    return static_cast<double>(z >> 11) * 0x1p-53;
}

/// Sends packets that carry the time at which they left, from the router at which the path begins.
class GatedFlow
{
  public:
    GatedFlow(const FlowRow& flow, const Host& host)
        : group(host.group),
          m_flow(flow),
          m_row(kGroups[group].gate),
          m_socket(UdpTo(host.node, host.sink->end)),
          m_random(flow.random),
          m_told(kGroups[group].rate),
          m_burst(m_row.burst)
    {
        const int64_t mean = MeanPause(m_told, m_burst, kPacketSize, m_row.within);
        m_gate = {flow.opens, mean, m_burst, m_burst, 1, 0.0};
        Plan();
    }

    /// A control sets a rate [bit/s] and a burst [packet].
    void Command(double rate, int burst)
    {
        m_told = rate;
        m_burst = burst;
        Set();
    }

    /// A rate that no control changes, until it is free again: below 0 [bit/s].
    void Fix(double rate)
    {
        m_fixed = rate;
        Set();
    }

    const int group;

  private:
    void Set()
    {
        const int64_t now = Simulator::Now().GetNanoSeconds();
        const int64_t since = std::max(now, m_flow.start);
        m_gate = SetGate(m_gate, m_row.within, kPacketSize, since, m_fixed < 0.0 ? m_told : m_fixed, m_burst);
        m_event.Cancel();
        Plan();
    }

    void Plan()
    {
        const int64_t now = Simulator::Now().GetNanoSeconds();
        const int64_t opens = std::max(m_gate.opens, now);
        if (opens <= kDuration && opens < m_flow.stop)
        {
            m_event = Simulator::Schedule(NanoSeconds(opens - now), &GatedFlow::Send, this);
        }
    }

    void Send()
    {
        Simulator::ScheduleNow(&GatedFlow::Leave, this); // what a link has sent by now makes room
        const double drawn = m_gate.left == 1 && m_row.variation > 0.0 ? Chance(m_random) : 0.0;
        m_gate = PassGate(m_gate, m_row.within, m_row.variation, Simulator::Now().GetNanoSeconds(), drawn);
        Plan();
    }

    void Leave()
    {
        const int64_t now = Simulator::Now().GetNanoSeconds();
        std::vector<uint8_t> payload(kPacketSize - kUdpHeaders);
        std::memcpy(payload.data(), &now, sizeof now);
        m_socket->Send(Create<Packet>(payload.data(), static_cast<uint32_t>(payload.size())));
    }

    const FlowRow& m_flow;
    const GateRow& m_row;
    Ptr<Socket> m_socket;
    uint64_t m_random; ///< state of its numbers
    Gate m_gate;
    double m_told;        ///< [bit/s]
    double m_fixed = -1.0; ///< [bit/s]
    int m_burst;
    EventId m_event;
};

} // namespace netctrl
