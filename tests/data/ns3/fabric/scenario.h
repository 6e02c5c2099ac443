// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-fabric-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "4 flows through the bottleneck of the design";
inline constexpr int64_t kDuration = 10425600; ///< [ns]
inline constexpr int kHosts = 8; ///< the first nodes
inline constexpr int kNodes = 10;
inline constexpr int64_t kPayload = 980; ///< of a full packet [byte]
inline constexpr int64_t kDataOverhead = 100; ///< of a data packet on the wire [byte]
inline constexpr int64_t kAckSize = 98; ///< on the wire [byte]
inline constexpr uint32_t kPacketSize = 1078U; ///< of the largest IP packets [byte]
inline constexpr bool kTelemetry = true; ///< switch ports write it
inline constexpr bool kCountsFlows = true; ///< with how many flows pass them
inline constexpr bool kMarks = false; ///< switch ports mark data that finds a long queue
inline constexpr double kMostMarking = 0.0; ///< probability between a port's two thresholds
inline constexpr int64_t kNotification = 0; ///< least time between two notifications of marks [ns]; 0: none
inline constexpr int64_t kFlowTimeout = 208512; ///< a port counts a flow so long after its last packet [ns]
inline constexpr int64_t kRetransmission = 1000000; ///< [ns]
inline constexpr uint32_t kBuffer = 0U; ///< of a switch port [byte]; 0: no limit
inline constexpr int64_t kSample = 1000; ///< from one sample of all queues to the next [ns]
inline constexpr int64_t kBin = 2000000; ///< of watched flows' throughput [ns]
inline constexpr int64_t kBins = 6;
inline constexpr int64_t kWatchedFlows = 4;
inline constexpr int64_t kWatchedPorts = 1;
inline constexpr int64_t kMostAcknowledgements = 100000; ///< that are logged
inline constexpr bool kTcp = false; ///< flows go over ns-3's TcpDctcp
inline constexpr double kDctcpGain = 0.0; ///< g
inline constexpr bool kSlowStart = false; ///< of DCTCP
inline constexpr int64_t kHistogramBins = 20000;
inline constexpr int64_t kHistogramBytes = 1000; ///< of a bin

/// from node, to node, rate [bit/s], delay [ns], the other end's port, place among watched ports or -1,
/// thresholds of marking [byte]
inline const std::vector<PortRow> kPorts = {
    {0, 8, 1000000000U, 1080, 8, -1, 0, 0}, // h0>s0
    {1, 8, 1000000000U, 1080, 9, -1, 0, 0}, // h1>s0
    {2, 8, 1000000000U, 1080, 10, -1, 0, 0}, // h2>s0
    {3, 8, 1000000000U, 1080, 11, -1, 0, 0}, // h3>s0
    {4, 9, 1000000000U, 1080, 13, -1, 0, 0}, // h4>s1
    {5, 9, 1000000000U, 1080, 14, -1, 0, 0}, // h5>s1
    {6, 9, 1000000000U, 1080, 15, -1, 0, 0}, // h6>s1
    {7, 9, 1000000000U, 1080, 16, -1, 0, 0}, // h7>s1
    {8, 0, 1000000000U, 1080, 0, -1, 0, 0}, // s0>h0
    {8, 1, 1000000000U, 1080, 1, -1, 0, 0}, // s0>h1
    {8, 2, 1000000000U, 1080, 2, -1, 0, 0}, // s0>h2
    {8, 3, 1000000000U, 1080, 3, -1, 0, 0}, // s0>h3
    {8, 9, 1000000000U, 1080, 17, 0, 0, 0}, // s0>s1
    {9, 4, 1000000000U, 1080, 4, -1, 0, 0}, // s1>h4
    {9, 5, 1000000000U, 1080, 5, -1, 0, 0}, // s1>h5
    {9, 6, 1000000000U, 1080, 6, -1, 0, 0}, // s1>h6
    {9, 7, 1000000000U, 1080, 7, -1, 0, 0}, // s1>h7
    {9, 8, 1000000000U, 1080, 12, -1, 0, 0}, // s1>s0
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
