// What TCP of ns-3 is set to where Linux's is meant.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_TCP_DEFAULTS_H
#define NETCTRL_TCP_DEFAULTS_H

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/nstime.h"
#include "ns3/tcp-recovery-ops.h"
#include "ns3/uinteger.h"

#include <cstdint>

namespace netctrl
{

using namespace ns3;

/// @param segment payload of a full one [byte]
/// @param buffer at both ends [byte]
inline void
SetTcpDefaults(uint32_t segment, uint32_t buffer)
{
    // Not PRR: that of ns-3.37 loses more of what it sends again, where a first queue is short.
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpClassicRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    // Timeouts as Linux has them: smoothed round trip + max(4 deviations, 200 ms); ns-3's least one is a second.
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000)); // senders never give up
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(buffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(buffer));
}

} // namespace netctrl

#endif // NETCTRL_TCP_DEFAULTS_H
