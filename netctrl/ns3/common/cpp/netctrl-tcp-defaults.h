// What TCP of ns-3 is set to.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_TCP_DEFAULTS_H
#define NETCTRL_TCP_DEFAULTS_H

#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/nstime.h"
#include "ns3/tcp-recovery-ops.h"
#include "ns3/uinteger.h"

#include <cstdint>

namespace netctrl
{

using namespace ns3;

constexpr uint32_t kSegment = kPacketSize - 40; ///< payload: IP and TCP without options [byte]

/// Senders that never give up, receivers that acknowledge each packet.
///
/// @param segment payload of a full one [byte]
/// @param buffer at both ends [byte]
inline void
SetTcpDefaults(uint32_t segment, uint32_t buffer)
{
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
}

/// TCP as Linux has it.
inline void
SetLinuxDefaults(uint32_t buffer)
{
    SetTcpDefaults(kSegment, buffer);
    // Not PRR: that of ns-3.37 loses more of what it sends again, where a first queue is short.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    // Timeouts: smoothed round trip + max(4 deviations, 200 ms); ns-3's least one is a second.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
}

} // namespace netctrl

#endif // NETCTRL_TCP_DEFAULTS_H
