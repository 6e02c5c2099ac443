// What TCP of ns-3 is set to, and its Cubic, corrected after timeouts and for small windows.

#pragma once

#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/string.h"
#include "ns3/tcp-cubic.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cstdint>
#include <string>

namespace netctrl
{

using namespace ns3;

/// Payload of a full packet: IP and TCP without options [byte].
inline uint32_t
Segment()
{
    return kPacketSize - 40;
}

/// Senders that never give up, receivers that acknowledge each packet; then what the scenario says of ns-3's attributes.
inline void
SetTcpDefaults()
{
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(Segment()));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(1.0)); // closed connections leave memory soon
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(kInitialWindow));
    for (const auto& [name, value] : kAttributes)
    {
        Config::SetDefault(name, StringValue(value));
    }
}

/// ns-3's Cubic with two corrections.
///
/// Its window grows by one segment at most for each acknowledgement. That of ns-3.37 and 3.44 adds, in slow start, all
/// that an acknowledgement covers, however far that takes the window above its threshold. After a timeout one that fills
/// a hole covers what a whole timeout's time sent and was selectively acknowledged long ago: windows of thousands of
/// segments are sent at once, and lost. RFC 5681, eq. (2), allows one segment; ns-3's NewReno and Vegas do so. Receivers
/// here acknowledge each packet, so that nothing else changes.
///
/// It has the Reno-friendly region of RFC 9438, Section 4.3, which ns-3 lacks before 3.41: there a window is never below
/// that of Reno with Cubic's backoff. alpha stays 0.53, as in Linux, where the RFC recommends 1 above the window before
/// the last cut.
class Cubic final : public TcpCubic
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid =
            TypeId("netctrl::Cubic").SetParent<TcpCubic>().SetGroupName("Internet").AddConstructor<Cubic>();
        return tid;
    }

    std::string GetName() const override
    {
        return "Cubic";
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segmentsAcked) override
    {
        const bool slowStart = state->m_cWnd < state->m_ssThresh;
        const double window = static_cast<double>(state->m_cWnd.Get()) / state->m_segmentSize;
        const uint32_t acked = std::min(segmentsAcked, 1U);
        TcpCubic::IncreaseWindow(state, acked);
        if (slowStart || HasRegion())
        {
            m_reno = 0.0;
            return;
        }
        m_reno = (m_reno > 0.0 ? m_reno : window) + kAlpha * acked / window;
        if (m_reno * state->m_segmentSize >= state->m_cWnd.Get() + state->m_segmentSize)
        {
            state->m_cWnd += state->m_segmentSize;
        }
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t inFlight) override
    {
        m_reno = 0.0;
        return TcpCubic::GetSsThresh(state, inFlight);
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Cubic>(this);
    }

  private:
    static constexpr double kBeta = 0.7; ///< what a cut leaves of the window
    static constexpr double kAlpha = 3.0 * (1.0 - kBeta) / (1.0 + kBeta);

    /// Whether this ns-3's Cubic has a Reno-friendly region.
    static bool HasRegion()
    {
        TypeId::AttributeInformation found;
        static const bool has = TcpCubic::GetTypeId().LookupAttributeByName("TcpFriendliness", &found);
        return has;
    }

    double m_reno = 0.0; ///< W_est [segment]; 0: congestion avoidance hasn't begun since the last cut
};

NS_OBJECT_ENSURE_REGISTERED(Cubic);

} // namespace netctrl
