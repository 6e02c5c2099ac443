// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "50 flows through the link of the design";
inline constexpr int64_t kDuration = 300000000000; ///< [ns]
inline constexpr int64_t kSample = 100000000; ///< [ns]
inline constexpr uint32_t kPacketSize = 1000U; ///< [byte], with IP and TCP headers
inline constexpr uint32_t kInitialWindow = 10U; ///< [segment]
inline constexpr uint32_t kSeed = 1U;
inline constexpr uint32_t kSocketBuffer = 5050000U; ///< [byte], of TCP at both ends
inline constexpr uint64_t kAccessRate = 1000000000U; ///< of hosts' lines, where nothing waits [bit/s]
inline constexpr int kRouters = 2;

/// id, source, target, capacity, delay, buffer
inline const std::vector<LinkRow> kLinks = {
    {"bottleneck", 0, 1, 10000000U, 10000000, 625000U},
};

/// id, sender, ecn, path, ackPath, {objectsPerPage, paretoScale, paretoShape, maxObject, thinkTime}
inline const std::vector<GroupRow> kGroups = {
    {"bulk", "ns3::TcpNewReno", true, {0}, {}, {0, 0.0, 0.0, 0.0, 0.0}},
};

/// group, accessDelay
inline const std::vector<HostRow> kHosts = {
    {0, 235139807},
    {0, 235234867},
    {0, 235529023},
    {0, 235664040},
    {0, 235819372},
    {0, 236162515},
    {0, 236230200},
    {0, 236568871},
    {0, 236694402},
    {0, 236868267},
    {0, 237064971},
    {0, 237220674},
    {0, 237553693},
    {0, 237606091},
    {0, 237866990},
    {0, 238044642},
    {0, 238360019},
    {0, 238503966},
    {0, 238728410},
    {0, 238853685},
    {0, 239166997},
    {0, 239207135},
    {0, 239593005},
    {0, 239649215},
    {0, 239939163},
    {0, 240110218},
    {0, 240282991},
    {0, 240529587},
    {0, 240766822},
    {0, 240880112},
    {0, 241174699},
    {0, 241224285},
    {0, 241540771},
    {0, 241775077},
    {0, 241941270},
    {0, 242107898},
    {0, 242342019},
    {0, 242546976},
    {0, 242799909},
    {0, 242886320},
    {0, 243113105},
    {0, 243343105},
    {0, 243456245},
    {0, 243613429},
    {0, 243984354},
    {0, 244157533},
    {0, 244385512},
    {0, 244562049},
    {0, 244783315},
    {0, 244984834},
};

/// host, start, stop
inline const std::vector<FlowRow> kFlows = {
    {29, 15300609917, kNever},
    {41, 17638433709, kNever},
    {46, 7198789240, kNever},
    {47, 14276005094, kNever},
    {23, 9179713954, kNever},
    {14, 8802677728, kNever},
    {30, 6275338183, kNever},
    {2, 18717111248, kNever},
    {1, 11481998230, kNever},
    {17, 19748763109, kNever},
    {37, 17968628925, kNever},
    {20, 10259593730, kNever},
    {32, 2767569377, kNever},
    {4, 2190792793, kNever},
    {21, 95163069, kNever},
    {49, 2574380950, kNever},
    {0, 2560015623, kNever},
    {16, 3718204682, kNever},
    {10, 10150014996, kNever},
    {35, 2506112712, kNever},
    {38, 17253254201, kNever},
    {34, 19610097264, kNever},
    {36, 6857954731, kNever},
    {22, 6779307967, kNever},
    {26, 8430245901, kNever},
    {43, 3956921581, kNever},
    {44, 8262787959, kNever},
    {33, 17618622836, kNever},
    {19, 14648654179, kNever},
    {42, 2875987187, kNever},
    {48, 11601152023, kNever},
    {25, 8111614888, kNever},
    {9, 5223466122, kNever},
    {11, 8839954036, kNever},
    {7, 19383884088, kNever},
    {3, 9508837508, kNever},
    {5, 9000612691, kNever},
    {45, 9706231475, kNever},
    {15, 14231731545, kNever},
    {12, 16982106717, kNever},
    {39, 14841419762, kNever},
    {24, 17884023087, kNever},
    {18, 14513808435, kNever},
    {13, 9346858393, kNever},
    {31, 11471142983, kNever},
    {40, 18528436078, kNever},
    {6, 2677497041, kNever},
    {27, 9351087038, kNever},
    {28, 5406318466, kNever},
    {8, 7214034803, kNever},
};

/// at, link, capacity, delay
inline const std::vector<ChangeRow> kChanges = {
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
