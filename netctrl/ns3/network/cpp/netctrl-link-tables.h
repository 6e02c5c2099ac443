// The types of the tables in scenario.h, and what a run is given. Times in ns, sizes in bytes, rates in bit/s.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_LINK_TABLES_H
#define NETCTRL_LINK_TABLES_H

#include "netctrl-queue-settings.h"

#include <cstdint>
#include <vector>

namespace netctrl
{

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

/// Endless flows over the ways of a demand, which sends no UDP then. Each starts at a time drawn between two.
struct TcpRow
{
    int demand;
    int flows;
    const char* sender; ///< TypeId of its congestion control
    int64_t first; ///< earliest start [ns]
    int64_t last;  ///< latest start [ns]
    bool ecn;
};

} // namespace netctrl

#endif // NETCTRL_LINK_TABLES_H
