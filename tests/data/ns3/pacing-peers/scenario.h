// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-pacing-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "peers \052/ \"2\"";
inline constexpr uint64_t kCapacity = 10000000U; ///< of the bottleneck [bit/s]
inline constexpr uint64_t kAccessRate = 1000000000U; ///< of hosts' lines, where nothing waits [bit/s]
inline constexpr uint32_t kBuffer = 50000U; ///< in front of it [byte]
inline constexpr uint32_t kPacketSize = 1500U; ///< with IP and TCP headers [byte]
inline constexpr uint32_t kSocketBuffer = 4194304U; ///< of TCP at both ends [byte]
inline constexpr double kCrossRate = 100000.0; ///< of packets at random [bit/s]
inline constexpr int64_t kStartSpread = 20000000; ///< [ns]
inline constexpr int64_t kDuration = 10000000000; ///< [ns]
inline constexpr int64_t kBin = 100000000; ///< [ns]

/// control, window, cap, delay, start, stop
inline const std::vector<FlowRow> kFlows = {
    {Control::kPaced, -1, 0.0, 20000000, 0, -1},
    {Control::kCap, -1, 4000000.0, 40000000, 1000000000, 9000000000},
    {Control::kHtcp, -1, 0.0, 20000000, 2000000000, -1},
    {Control::kCubic, -1, 0.0, 20000000, 2000000000, -1},
    {Control::kBbr, -1, 0.0, 20000000, 2000000000, -1},
    {Control::kReno, -1, 0.0, 20000000, 2000000000, -1},
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
