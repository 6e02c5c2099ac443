// The types of the tables in scenario.h. Times in ns, rates in bit/s, sizes of IP packets in bytes.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_TABLES_H
#define NETCTRL_PACING_TABLES_H

#include "netctrl-queue-settings.h"

#include <cstdint>
#include <vector>

namespace netctrl
{

/// What sets a flow's window and rate.
enum class Control
{
    kPaced, ///< the law of gains.h: of the paper on top of H-TCP, of a target RTT by itself
    kCap,   ///< H-TCP whose pacing rate has a fixed cap
    kHtcp,
    kCubic,
    kBbr,
    kReno
};

struct FlowRow
{
    Control control;
    double cap;    ///< [bit/s]; 0: none
    int64_t delay; ///< of its access line, one way
    int64_t start;
    int64_t stop; ///< -1: never
};

} // namespace netctrl

#endif // NETCTRL_PACING_TABLES_H
