// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-link-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "tandem";
inline constexpr int64_t kInterval = 10000000; ///< tau [ns]
inline constexpr int64_t kSteps = 300; ///< intervals
inline constexpr int64_t kWarmupSteps = 50; ///< intervals that don't count
inline constexpr int64_t kDuration = 3000000000; ///< [ns]
inline constexpr uint32_t kPacketSize = 300U; ///< [byte], with IP and UDP headers
inline constexpr double kStanding = 0.0; ///< backlog around which squares are taken, over the interval [bit/s]
inline constexpr bool kMayBeLate = true; ///< messages
inline constexpr int kNodes = 3;
inline constexpr uint32_t kSeed = 1U;
inline constexpr uint32_t kSocketBuffer = 4194304U; ///< [byte], of TCP at both ends

/// id, source, target, capacity, delay, buffer, paced, nominal
inline const std::vector<LinkRow> kLinks = {
    {"L1", 0, 1, 23000000U, 20000000, 25000U, true, 16000000.0},
    {"L2", 1, 2, 18000000U, 20000000, 25000U, true, 16000000.0},
};

/// id, source, target
inline const std::vector<DemandRow> kDemands = {
    {"p", 0, 2},
};

/// demand, link, share
inline const std::vector<SplitRow> kSplits = {
    {0, 0, 1.0},
    {0, 1, 1.0},
};

/// demand, flows, sender, first, last, ecn
inline const std::vector<TcpRow> kTcp = {
};

/// Of each link, inside of its pacer.
inline const QueueSettings kQueue = {"ns3::FifoQueueDisc", {}};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
