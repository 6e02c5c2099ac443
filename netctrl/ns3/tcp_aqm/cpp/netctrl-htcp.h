// H-TCP by its Internet draft.

#pragma once

#include "netctrl-round-trips.h"
#include "netctrl-tcp-laws.h"

#include "ns3/simulator.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-socket-state.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

using namespace ns3;

/// H-TCP. ns-3's own (3.37 and 3.44) adds that many bytes for each acknowledgement, where the draft has that many
/// segments for each round trip, and measures its backoff otherwise: in whole numbers, with no bounds, and with a least
/// RTT that each loss forgets. Here RTTs are those of packets.
class DraftHtcp : public TcpNewReno
{
  public:
    explicit DraftHtcp(RoundTrips& trips)
        : m_trips(trips)
    {
    }

    /// An RTT [s].
    void See(double rtt)
    {
        m_rtt = rtt;
        m_leastRtt = m_leastRtt > 0.0 ? std::min(m_leastRtt, rtt) : rtt;
        m_mostRtt = std::max(m_mostRtt, rtt);
    }

    void PktsAcked(Ptr<TcpSocketState>, uint32_t, const Time&) override
    {
        if (m_trips.Newest().IsStrictlyPositive())
        {
            See(m_trips.Newest().GetSeconds());
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        const double rate = m_rtt > 0.0 ? inFlight / m_rtt : 0.0;
        m_backoff = m_mostRtt > 0.0 ? HtcpBackoff(m_leastRtt, m_mostRtt, rate, m_rate) : 0.5;
        m_rate = rate;
        m_mostRtt = 0.0;
        m_lost = Simulator::Now();
        return std::max(static_cast<uint32_t>(m_backoff * inFlight), 2 * state->m_segmentSize);
    }

  protected:
    void CongestionAvoidance(Ptr<TcpSocketState> state, uint32_t segments) override
    {
        const double size = state->m_segmentSize;
        const double increase = HtcpIncrease((Simulator::Now() - m_lost).GetSeconds(), m_backoff);
        m_rest += increase * segments * size * size / state->m_cWnd.Get();
        const double whole = std::floor(m_rest);
        m_rest -= whole;
        state->m_cWnd += static_cast<uint32_t>(whole);
    }

  private:
    RoundTrips& m_trips;
    double m_rtt = 0.0;      ///< the newest [s]
    double m_leastRtt = 0.0; ///< [s]
    double m_mostRtt = 0.0;  ///< since the last loss [s]
    double m_rate = 0.0;     ///< at the last loss [byte/s]
    double m_backoff = 0.5;
    double m_rest = 0.0; ///< of a byte
    Time m_lost;
};

} // namespace netctrl
