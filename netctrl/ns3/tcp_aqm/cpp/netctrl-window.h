// A window law that is printed from Python, as a congestion control of ns-3.

#pragma once

#include "netctrl-round-trips.h"

#include "ns3/simulator.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-socket-state.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace netctrl
{

using namespace ns3;

/// What grows and cuts the window is the law's; recovery and timeouts are ns-3's. RTTs are those of packets.
template <class State, class Acked>
class PrintedWindow final : public TcpNewReno
{
  public:
    using GrowFunction = void (*)(State&, const Acked&);
    using CutFunction = void (*)(State&);

    PrintedWindow(const RoundTrips& trips, GrowFunction grow, CutFunction cut)
        : m_trips(trips),
          m_grow(grow),
          m_cut(cut)
    {
        m_state.minRtt = HUGE_VAL;
    }

    void PktsAcked(Ptr<TcpSocketState>, uint32_t, const Time&) override
    {
        if (m_trips.Newest().IsStrictlyPositive())
        {
            m_state.rtt = m_trips.Newest().GetSeconds();
            m_state.minRtt = std::min(m_state.minRtt, m_state.rtt);
            m_state.maxRtt = std::max(m_state.maxRtt, m_state.rtt);
        }
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segments) override
    {
        const double size = state->m_segmentSize;
        if (state->m_cWnd.Get() != m_set) // recovery or a timeout set it
        {
            m_state.window = state->m_cWnd.Get() / size;
        }
        const double threshold = state->m_ssThresh.Get() / size;
        m_state.threshold = threshold;
        // In slow start by one at most: an acknowledgement that fills a hole may cover a whole window (RFC 5681).
        const double packets = m_state.window < m_state.threshold ? std::min(segments, 1U) : segments;
        m_grow(m_state, {packets, Simulator::Now().GetSeconds() - m_state.cutS, m_state.rtt, true});
        m_set = static_cast<uint32_t>(std::min(m_state.window * size, 4294967295.0));
        state->m_cWnd = m_set;
        if (m_state.threshold < threshold) // slow start ends by the law
        {
            state->m_ssThresh = static_cast<uint32_t>(m_state.threshold * size);
        }
    }

    /// The whole window is cut, as in Linux; what is in flight lacks what was acknowledged behind a hole.
    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        const double size = state->m_segmentSize;
        if (state->m_cWnd.Get() != m_set)
        {
            m_state.window = state->m_cWnd.Get() / size;
        }
        m_cut(m_state);
        m_state.threshold = m_state.window;
        m_state.cutS = Simulator::Now().GetSeconds();
        m_state.recoveredS = m_state.cutS + m_state.rtt;
        return std::max(static_cast<uint32_t>(m_state.window * size), 2 * state->m_segmentSize);
    }

  private:
    const RoundTrips& m_trips;
    GrowFunction m_grow;
    CutFunction m_cut;
    State m_state;
    uint32_t m_set = 0; ///< [byte]
};

} // namespace netctrl
