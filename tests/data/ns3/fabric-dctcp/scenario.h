// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-fabric-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "tree \052/ \"2\"";
inline constexpr int64_t kDuration = 200000; ///< [ns]
inline constexpr int kHosts = 5; ///< the first nodes
inline constexpr int kNodes = 7;
inline constexpr int64_t kPayload = 1000; ///< of a full packet [byte]
inline constexpr int64_t kDataOverhead = 48; ///< of a data packet on the wire [byte]
inline constexpr int64_t kAckSize = 46; ///< on the wire [byte]
inline constexpr uint32_t kPacketSize = 1046U; ///< of the largest IP packets [byte]
inline constexpr bool kTelemetry = false; ///< switch ports write it
inline constexpr bool kCountsFlows = false; ///< with how many flows pass them
inline constexpr bool kMarks = false; ///< switch ports mark data that finds a long queue
inline constexpr double kMostMarking = 0.0; ///< probability between a port's two thresholds
inline constexpr int64_t kNotification = 0; ///< least time between two notifications of marks [ns]; 0: none
inline constexpr int64_t kFlowTimeout = 6; ///< a port counts a flow so long after its last packet [ns]
inline constexpr int64_t kRetransmission = 1000000; ///< [ns]
inline constexpr uint32_t kBuffer = 0U; ///< of a switch port [byte]; 0: no limit
inline constexpr int64_t kSample = 1000; ///< from one sample of all queues to the next [ns]
inline constexpr int64_t kBin = 2000000; ///< of watched flows' throughput [ns]
inline constexpr int64_t kBins = 1;
inline constexpr int64_t kWatchedFlows = 0;
inline constexpr int64_t kWatchedPorts = 0;
inline constexpr int64_t kMostAcknowledgements = 100000; ///< that are logged
inline constexpr bool kTcp = true; ///< flows go over ns-3's TcpDctcp
inline constexpr double kDctcpGain = 0.0625; ///< g
inline constexpr bool kSlowStart = false; ///< of DCTCP
inline constexpr int64_t kHistogramBins = 20000;
inline constexpr int64_t kHistogramBytes = 1000; ///< of a bin

/// from node, to node, rate [bit/s], delay [ns], the other end's port, place among watched ports or -1,
/// thresholds of marking [byte]
inline const std::vector<PortRow> kPorts = {
    {0, 5, 1000000000U, 1000, 5, -1, 3000, 3000}, // h0>s0
    {1, 5, 1000000000U, 1000, 6, -1, 3000, 3000}, // h1>s0
    {2, 5, 1000000000U, 1000, 7, -1, 3000, 3000}, // h2>s0
    {3, 5, 1000000000U, 1000, 8, -1, 3000, 3000}, // h3>s0
    {4, 6, 1000000000U, 1000, 10, -1, 3000, 3000}, // h4>s1
    {5, 0, 1000000000U, 1000, 0, -1, 3000, 3000}, // s0>h0
    {5, 1, 1000000000U, 1000, 1, -1, 3000, 3000}, // s0>h1
    {5, 2, 1000000000U, 1000, 2, -1, 3000, 3000}, // s0>h2
    {5, 3, 1000000000U, 1000, 3, -1, 3000, 3000}, // s0>h3
    {5, 6, 1000000000U, 1000, 11, -1, 3000, 3000}, // s0>s1
    {6, 4, 1000000000U, 1000, 4, -1, 3000, 3000}, // s1>h4
    {6, 5, 1000000000U, 1000, 9, -1, 3000, 3000}, // s1>s0
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
