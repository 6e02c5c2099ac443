// The types of the tables in gains.h and scenario.h. Times in ns, sizes in bytes, capacities in bit/s.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_TABLES_H
#define NETCTRL_TABLES_H

#include "netctrl-queue-settings.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace netctrl
{

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

/// One direction of a line; its queue has the same index in gains.h.
struct LinkRow
{
    const char* id;
    int source;        ///< router
    int target;        ///< router
    uint64_t capacity; ///< [bit/s]
    int64_t delay;     ///< [ns]
    uint32_t buffer;   ///< [byte]
};

/// What a group of web sessions asks for; objectsPerPage is 0 for bulk flows.
struct WebSettings
{
    int objectsPerPage;
    double paretoScale; ///< smallest object [byte]
    double paretoShape;
    double maxObject; ///< [byte]
    double thinkTime; ///< mean [s]
};

struct GroupRow
{
    const char* id;
    const char* sender; ///< TypeId of its congestion control
    bool ecn;
    std::vector<int> path;    ///< links of the data
    std::vector<int> ackPath; ///< links of the acknowledgements; empty: the idle other direction of `path`
    WebSettings web;
};

/// A sender with its access line, which makes up the round-trip time.
struct HostRow
{
    int group;
    int64_t accessDelay; ///< one way [ns]
};

/// A bulk flow or a web session.
struct FlowRow
{
    int host;
    int64_t start; ///< [ns]
    int64_t stop;  ///< [ns] or kNever
};

struct ChangeRow
{
    int64_t at; ///< [ns]
    int link;
    uint64_t capacity; ///< [bit/s]; 0: as it was
    int64_t delay;     ///< [ns]; -1: as it was
};

} // namespace netctrl

#endif // NETCTRL_TABLES_H
