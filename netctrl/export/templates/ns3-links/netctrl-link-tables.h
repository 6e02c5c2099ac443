// The types of the tables in scenario.h, and what a run is given. Times in ns, sizes in bytes, rates in bit/s.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_LINK_TABLES_H
#define NETCTRL_LINK_TABLES_H

#include <cstdint>
#include <limits>
#include <vector>

namespace netctrl
{

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max(); ///< as a buffer: 4 GiB, the most that ns-3 counts

/// One direction of a line, in the order of the law's links.
struct LinkRow
{
    const char* id;
    int source;        ///< node
    int target;        ///< node
    uint64_t capacity; ///< [bit/s]
    int64_t delay;     ///< [ns]
    uint32_t buffer;   ///< [byte]
    bool paced;        ///< by its law; else it sends at its capacity
    double nominal;    ///< f*, around which squares are taken [bit/s]
};

struct DemandRow
{
    const char* id;
    int source; ///< node
    int target; ///< node
};

/// Share of what reaches a link's source of a demand that takes the link.
struct SplitRow
{
    int demand;
    int link;
    double share;
};

} // namespace netctrl

#endif // NETCTRL_LINK_TABLES_H
