// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "five kinds";
inline constexpr int64_t kDuration = 60000000000; ///< [ns]
inline constexpr int64_t kSample = 100000000; ///< [ns]
inline constexpr uint32_t kPacketSize = 1000U; ///< [byte], with IP and TCP headers
inline constexpr uint32_t kInitialWindow = 10U; ///< [segment]
inline constexpr uint32_t kSeed = 1U;
inline constexpr uint32_t kSocketBuffer = 4440000U; ///< [byte], of TCP at both ends
inline constexpr uint64_t kAccessRate = 1000000000U; ///< of hosts' lines, where nothing waits [bit/s]
inline constexpr int kRouters = 6;

/// id, source, target, capacity, delay, buffer
inline const std::vector<LinkRow> kLinks = {
    {"arc", 0, 1, 4000000U, 5000000, 200000U},
    {"pi", 1, 2, 4000000U, 5000000, 200000U},
    {"avq", 2, 3, 4000000U, 5000000, 200000U},
    {"sfc", 3, 4, 4000000U, 5000000, 200000U},
    {"codel", 4, 5, 4000000U, 5000000, 200000U},
    {"back", 5, 0, 4000000U, 25000000, kUnlimited},
};

/// id, sender, ecn, path, ackPath, {objectsPerPage, paretoScale, paretoShape, maxObject, thinkTime}
inline const std::vector<GroupRow> kGroups = {
    {"long", "ns3::TcpNewReno", true, {0, 1, 2, 3, 4}, {5}, {0, 0.0, 0.0, 0.0, 0.0}},
    {"old", "ns3::TcpNewReno", false, {1}, {}, {0, 0.0, 0.0, 0.0, 0.0}},
    {"web", "ns3::TcpNewReno", true, {0}, {}, {2, 833.3333333333331, 1.2, 10000000.0, 7.0}},
};

/// group, accessDelay
inline const std::vector<HostRow> kHosts = {
    {0, 36650576},
    {0, 44572258},
    {0, 69085309},
    {1, 35000000},
    {2, 20582921},
    {2, 22617554},
};

/// host, start, stop
inline const std::vector<FlowRow> kFlows = {
    {1, 0, kNever},
    {2, 0, kNever},
    {0, 0, kNever},
    {3, 0, 30000000000},
    {3, 0, 30000000000},
    {4, 1711759021, kNever},
    {5, 1723609112, kNever},
};

/// at, link, capacity, delay
inline const std::vector<ChangeRow> kChanges = {
    {20000000000, 0, 2000000U, -1},
    {25000000000, 1, 0U, 10000000},
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
