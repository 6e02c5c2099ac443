// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-pacing-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "bottleneck of the design";
inline constexpr uint64_t kCapacity = 100000000U; ///< of the bottleneck [bit/s]
inline constexpr uint64_t kAccessRate = 1000000000U; ///< of hosts' lines, where nothing waits [bit/s]
inline constexpr uint32_t kBuffer = 250000U; ///< in front of it [byte]
inline constexpr uint32_t kPacketSize = 1500U; ///< with IP and TCP headers [byte]
inline constexpr uint32_t kSocketBuffer = 4194304U; ///< of TCP at both ends [byte]
inline constexpr double kCrossRate = 0.0; ///< of packets at random [bit/s]
inline constexpr int64_t kStartSpread = 0; ///< [ns]
inline constexpr int64_t kDuration = 24000000000; ///< [ns]
inline constexpr int64_t kBin = 20000000; ///< [ns]

/// control, window, cap, delay, start, stop
inline const std::vector<FlowRow> kFlows = {
    {Control::kPaced, -1, 0.0, 10000000, 0, -1},
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
