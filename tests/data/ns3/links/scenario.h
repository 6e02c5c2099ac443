// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-link-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "testbed";
inline constexpr int64_t kInterval = 10000000; ///< tau [ns]
inline constexpr int64_t kSteps = 300; ///< intervals
inline constexpr int64_t kWarmupSteps = 50; ///< intervals that don't count
inline constexpr int64_t kDuration = 3000000000; ///< [ns]
inline constexpr uint32_t kPacketSize = 1500U; ///< [byte], with IP and UDP headers
inline constexpr double kStanding = 800000.0; ///< backlog around which squares are taken, over the interval [bit/s]
inline constexpr bool kMayBeLate = false; ///< messages
inline constexpr int kNodes = 5;
inline constexpr uint32_t kSeed = 1U;
inline constexpr uint32_t kSocketBuffer = 4194304U; ///< [byte], of TCP at both ends

/// id, source, target, capacity, delay, buffer, paced, nominal
inline const std::vector<LinkRow> kLinks = {
    {"e1", 0, 1, 42000000U, 0, 37500U, true, 19000000.0},
    {"e2", 2, 3, 42000000U, 0, 37500U, false, 38000000.0},
    {"s13", 1, 4, 30000000U, 10000000, 25000U, true, 28500000.0},
    {"s23", 3, 4, 30000000U, 10000000, 25000U, false, 28500000.0},
    {"s21", 3, 1, 30000000U, 10000000, 25000U, false, 9500000.0},
};

/// id, source, target
inline const std::vector<DemandRow> kDemands = {
    {"p1", 0, 4},
    {"p2", 2, 4},
};

/// demand, link, share
inline const std::vector<SplitRow> kSplits = {
    {0, 0, 1.0},
    {1, 1, 1.0},
    {0, 2, 1.0},
    {1, 2, 1.0},
    {1, 3, 0.75},
    {1, 4, 0.25},
};

/// demand, flows, sender, first, last, ecn
inline const std::vector<TcpRow> kTcp = {
};

/// Of each link, inside of its pacer.
inline const QueueSettings kQueue = {"ns3::FifoQueueDisc", {}};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
