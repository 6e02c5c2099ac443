// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-fabric-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "tree \052/ \"2\"";
inline constexpr int64_t kDuration = 200000; ///< [ns]
inline constexpr int kHosts = 4; ///< the first nodes
inline constexpr int kNodes = 9;
inline constexpr int64_t kPayload = 1000; ///< of a full packet [byte]
inline constexpr int64_t kDataOverhead = 100; ///< of a data packet on the wire [byte]
inline constexpr int64_t kAckSize = 98; ///< on the wire [byte]
inline constexpr uint32_t kPacketSize = 1098U; ///< of the largest IP packets [byte]
inline constexpr bool kTelemetry = true; ///< switch ports write it
inline constexpr bool kCountsFlows = false; ///< with how many flows pass them
inline constexpr bool kMarks = false; ///< switch ports mark data that finds a long queue
inline constexpr double kMostMarking = 0.0; ///< probability between a port's two thresholds
inline constexpr int64_t kNotification = 0; ///< least time between two notifications of marks [ns]; 0: none
inline constexpr int64_t kFlowTimeout = 49440; ///< a port counts a flow so long after its last packet [ns]
inline constexpr int64_t kRetransmission = 1000000; ///< [ns]
inline constexpr uint32_t kBuffer = 500000U; ///< of a switch port [byte]; 0: no limit
inline constexpr int64_t kSample = 1000; ///< from one sample of all queues to the next [ns]
inline constexpr int64_t kBin = 2000000; ///< of watched flows' throughput [ns]
inline constexpr int64_t kBins = 1;
inline constexpr int64_t kWatchedFlows = 2;
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
    {0, 4, 100000000000U, 1000, 4, -1, 0, 0}, // h0>s0
    {1, 4, 100000000000U, 1000, 5, -1, 0, 0}, // h1>s0
    {2, 5, 100000000000U, 1000, 8, -1, 0, 0}, // h2>s1
    {3, 5, 100000000000U, 1000, 9, -1, 0, 0}, // h3>s1
    {4, 0, 100000000000U, 1000, 0, -1, 0, 0}, // s0>h0
    {4, 1, 100000000000U, 1000, 1, -1, 0, 0}, // s0>h1
    {4, 6, 400000000000U, 1000, 12, -1, 0, 0}, // s0>s2
    {4, 7, 400000000000U, 1000, 15, -1, 0, 0}, // s0>s3
    {5, 2, 100000000000U, 1000, 2, -1, 0, 0}, // s1>h2
    {5, 3, 100000000000U, 1000, 3, -1, 0, 0}, // s1>h3
    {5, 6, 400000000000U, 1000, 13, 0, 0, 0}, // s1>s2
    {5, 7, 400000000000U, 1000, 16, -1, 0, 0}, // s1>s3
    {6, 4, 400000000000U, 1000, 6, -1, 0, 0}, // s2>s0
    {6, 5, 400000000000U, 1000, 10, -1, 0, 0}, // s2>s1
    {6, 8, 400000000000U, 1000, 18, -1, 0, 0}, // s2>s4
    {7, 4, 400000000000U, 1000, 7, -1, 0, 0}, // s3>s0
    {7, 5, 400000000000U, 1000, 11, -1, 0, 0}, // s3>s1
    {7, 8, 400000000000U, 1000, 19, -1, 0, 0}, // s3>s4
    {8, 6, 400000000000U, 1000, 14, -1, 0, 0}, // s4>s2
    {8, 7, 400000000000U, 1000, 17, -1, 0, 0}, // s4>s3
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
