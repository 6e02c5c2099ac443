// The types of the tables in scenario.h and gains.h. Times in ns, rates in bit/s, sizes of IP packets in bytes.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_TABLES_H
#define NETCTRL_PACING_TABLES_H

#include "netctrl-pacing-laws.h"
#include "netctrl-queue-settings.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <variant>
#include <vector>

namespace netctrl
{

/// No law.
struct NoPacer
{
};

/// The paper's law at work.
struct ArxPacer
{
    ArxParameters parameters;
    ArxState state;
    std::vector<double> memory;
};

/// The law that aims at an RTT, at work.
struct TargetPacer
{
    TargetParameters parameters;
    TargetState state;
};

using Pacer = std::variant<NoPacer, ArxPacer, TargetPacer>;

/// What a law counts.
template <class State>
std::array<int64_t, 5>
EventsOf(const State& state)
{
    std::array<int64_t, 5> events{};
    const double counts[] = {state.badRtt, state.badTime, state.held, state.floored, state.resets};
    std::transform(std::begin(counts), std::end(counts), events.begin(), [](double count) { return int64_t(count); });
    return events;
}

/// What sets a flow's window and rate.
enum class Control
{
    kPaced, ///< the law of gains.h: of the paper on top of H-TCP, of a target RTT by itself
    kCap,   ///< H-TCP whose pacing rate has a fixed cap
    kHtcp,
    kCubic,
    kBbr,
    kReno,
    kWindow ///< a law of netctrl-tcp-windows.h
};

struct FlowRow
{
    Control control;
    int window;    ///< number of a law of netctrl-tcp-windows.h; -1: none
    double cap;    ///< [bit/s]; 0: none
    int64_t delay; ///< of its access line, one way
    int64_t start;
    int64_t stop; ///< -1: never
};

} // namespace netctrl

#endif // NETCTRL_PACING_TABLES_H
