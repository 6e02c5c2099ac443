// Flows of packets whose regulator lets a burst through and then pauses, at a rate that may change. Times in ns.
//
// Arithmetic and draws are those of netctrl's packet engine (netctrl.sim.packet.links.gates), so that packets leave at
// the same nanosecond.

#pragma once

#include "netctrl-sockets.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Numbers of a flow's own (SplitMix64).
class Chances
{
  public:
    explicit Chances(uint64_t state)
        : m_state(state)
    {
    }

    /// Evenly from [0, 1).
    double Next()
    {
        m_state += 0x9E3779B97F4A7C15U;
        uint64_t z = m_state;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
        z ^= z >> 31;
        return static_cast<double>(z >> 11) * 0x1p-53;
    }

  private:
    uint64_t m_state;
};

/// When the next packet of a flow goes.
class Gate
{
  public:
    Gate(const GateRow& row, double rate, const FlowRow& flow)
        : m_row(row),
          m_chances(flow.random),
          m_opens(flow.opens),
          m_mean(MeanPause(rate, row.burst)),
          m_burst(row.burst),
          m_left(row.burst)
    {
    }

    /// kForever at rate 0.
    int64_t Opens() const
    {
        return m_opens;
    }

    /// A packet goes through now.
    void Pass(int64_t now)
    {
        m_pausing = --m_left == 0;
        if (!m_pausing)
        {
            m_opens = now + m_row.within;
            return;
        }
        m_left = m_burst;
        const double v = m_row.variation;
        Pause(now, v > 0.0 ? 1.0 - v + v * -std::log(1.0 - m_chances.Next()) : 1.0);
    }

    /// Another rate [bit/s] and burst from a time on: what is left of a pause is stretched, and a burst is finished.
    void Set(int64_t since, double rate, int burst)
    {
        const int64_t before = m_mean;
        const int64_t mean = MeanPause(rate, burst);
        if (mean == before && burst == m_burst)
        {
            return;
        }
        m_mean = mean;
        m_burst = burst;
        if (!m_pausing)
        {
            return;
        }
        m_left = burst;
        if (m_opens > since) // else its packet may go now
        {
            const bool shut = before == kForever;
            Pause(since, shut ? m_held : static_cast<double>(m_opens - since) / static_cast<double>(before));
        }
    }

  private:
    /// From the last packet of a burst to the first of the next; kForever at rate 0.
    int64_t MeanPause(double rate, int burst) const
    {
        constexpr double kLongest = 1e17;
        const double bits = 8e9 * kPacketSize * burst;
        if (rate <= 0.0 || bits > kLongest * rate)
        {
            return kForever;
        }
        const double mean = bits / rate - static_cast<double>((burst - 1) * m_row.within);
        return std::max(static_cast<int64_t>(std::nearbyint(mean)), int64_t{1});
    }

    /// So much of the mean pause is left from a time on.
    void Pause(int64_t since, double share)
    {
        if (m_mean == kForever)
        {
            m_held = share;
            m_opens = kForever;
            return;
        }
        const double left = share * static_cast<double>(m_mean);
        m_opens = since + std::max(static_cast<int64_t>(std::nearbyint(left)), int64_t{1});
    }

    const GateRow& m_row;
    Chances m_chances;
    int64_t m_opens;
    int64_t m_mean; ///< pause
    int m_burst;
    int m_left;            ///< packets of the burst
    bool m_pausing = true; ///< whether the next packet is the first of a burst
    double m_held = 0.0;   ///< what is left of a pause at rate 0, over the mean
};

/// Sends packets that carry the time at which they left, from the router at which the path begins.
class GatedFlow
{
  public:
    GatedFlow(const FlowRow& flow, const Host& host)
        : group(host.group),
          m_flow(flow),
          m_socket(UdpTo(host.node, host.sink->end)),
          m_gate(kGroups[group].gate, kGroups[group].rate, flow),
          m_told(kGroups[group].rate),
          m_burst(kGroups[group].gate.burst)
    {
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
        m_gate.Set(std::max(now, m_flow.start), m_fixed < 0.0 ? m_told : m_fixed, m_burst);
        m_event.Cancel();
        Plan();
    }

    void Plan()
    {
        const int64_t now = Simulator::Now().GetNanoSeconds();
        const int64_t opens = std::max(m_gate.Opens(), now);
        if (opens <= kDuration && opens < m_flow.stop)
        {
            m_event = Simulator::Schedule(NanoSeconds(opens - now), &GatedFlow::Send, this);
        }
    }

    void Send()
    {
        Simulator::ScheduleNow(&GatedFlow::Leave, this); // what a link has sent by now makes room
        m_gate.Pass(Simulator::Now().GetNanoSeconds());
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
    Ptr<Socket> m_socket;
    Gate m_gate;
    double m_told;        ///< [bit/s]
    double m_fixed = -1.0; ///< [bit/s]
    int m_burst;
    EventId m_event;
};

} // namespace netctrl
