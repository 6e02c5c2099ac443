// Made by netctrl export ns3: do not edit.
// Windows of TCP: printed from the Python that netctrl simulates.

#ifndef NETCTRL_TCP_WINDOWS_H
#define NETCTRL_TCP_WINDOWS_H

#include "netctrl-window.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace netctrl
{

namespace windows::dctcp
{

struct DctcpState
{
    double window = 0.0;
    double threshold = 0.0;
    double rtt = 0.0;
    double minRtt = 0.0;
    double maxRtt = 0.0;
    double cutS = 0.0;
    double recoveredS = 0.0;
    double timedOut = 0.0;
    double even = 0.0;
    double unmarked = 0.0;   ///< 1 - alpha, alpha being the moving average of the marked part, 1 at first
    double left = 0.0;       ///< Of this window of data, not acknowledged yet [packet]
    double acks = 0.0;       ///< In this window of data
    double marks = 0.0;      ///< Of these
};

struct Acked
{
    double packets; ///< That were acknowledged
    double since;   ///< The last cut [s]
    double rtt;     ///< With queueing [s]
    bool recovered; ///< The round trip of the last cut is over
};

/// The window after `acknowledged` packets more: slow start below `threshold`, else a packet a window [packet].
///
/// Source: RFC 5681, eqs. 2 and 3.
inline double
RenoWindow(double window, double acknowledged, double threshold)
{
    return window < threshold ? window + acknowledged : window + acknowledged / window;
}

inline void
Grow(DctcpState& state, const Acked& acked)
{
    if (acked.recovered)
    {
        state.window = RenoWindow(state.window, acked.packets, state.threshold);
    }
}

/// W after a loss [packet]; once for all losses of a round trip.
///
/// Source: RFC 5681, eq. 4; RFC 6582, section 3.2.
inline double
RenoCut(double window)
{
    return std::max(0.5 * window, 2.0);
}

/// At a loss. Source: RFC 8257, section 3.5.
inline void
Cut(DctcpState& state)
{
    state.window = RenoCut(state.window);
}

} // namespace windows::dctcp

namespace windows::ledbatpp
{

struct LedbatState
{
    double window = 0.0;
    double threshold = 0.0;
    double rtt = 0.0;
    double minRtt = 0.0;
    double maxRtt = 0.0;
    double cutS = 0.0;
    double recoveredS = 0.0;
    double timedOut = 0.0;
    double even = 0.0;
    double delay = 0.0;       ///< Queueing delay: of the last few samples the least [s]
    double least = 0.0;       ///< RTT of the newest samples [s]
    double samples = 0.0;
    double begun = 0.0;       ///< 1: the first window was set
    double cruising = 0.0;    ///< 1: the first slow start is over
    double nextS = 0.0;       ///< When the next slowdown begins [s]; 0: not known yet
    double pauseUntilS = 0.0; ///< [s]; 0: none goes on
    double pauseS = 0.0;      ///< When it began [s]
    double before = 0.0;      ///< Window before it; 0: it is reached again [packet]
};

struct Acked
{
    double packets; ///< That were acknowledged
    double since;   ///< The last cut [s]
    double rtt;     ///< With queueing [s]
    bool recovered; ///< The round trip of the last cut is over
};

/// Gain 1/min(16, ⌈2 T/RTT⌉): slow start by it for each packet, then by it a round trip below the target, less
/// W (delay/T - 1) above it. Every tenth of its time it stops, to see the path without its own queue.
///
/// Source: draft-irtf-iccrg-ledbat-plus-plus-01, sections 4.1 to 4.4.
inline void
Grow(LedbatState& state, const Acked& acked)
{
    const double now = state.cutS + acked.since;
    const double base = state.minRtt;
    const double parts = static_cast<double>(static_cast<int64_t>(2.0 * 0.06 / base));
    const double gain = 1.0 / std::min(16.0, parts * base == 2.0 * 0.06 ? parts : parts + 1.0);
    if (state.begun == 0.0)
    {
        state.begun = 1.0;
        state.window = 2.0;
    }
    state.least = state.samples == 0.0 ? acked.rtt : std::min(state.least, acked.rtt);
    state.samples += 1.0;
    if (state.samples >= 4.0)
    {
        state.delay = state.least - base;
        state.samples = 0.0;
    }
    if (state.pauseUntilS > 0.0)
    {
        state.window = 2.0;
        if (now < state.pauseUntilS)
        {
            return;
        }
        state.pauseUntilS = 0.0;
        state.threshold = state.before;
    }
    if (state.window < state.threshold)
    {
        state.window += gain * acked.packets;
        if (state.cruising == 0.0 && state.delay > 0.75 * 0.06)
        {
            state.threshold = state.window;
        }
        if (state.window < state.threshold)
        {
            return;
        }
        if (state.cruising == 0.0)
        {
            state.nextS = now + 2.0 * acked.rtt;
        }
        else
        {
            state.nextS = now + 9.0 * (now - state.pauseS);
        }
        state.cruising = 1.0;
        return;
    }
    const double over = std::max(state.delay / 0.06 - 1.0, 0.0);
    const double change = std::max(gain - state.window * over, -0.5 * state.window);
    state.window = std::max(state.window + change * acked.packets / state.window, 2.0);
    state.threshold = std::min(state.threshold, state.window);
    if (state.nextS == 0.0)
    {
        state.nextS = now + 2.0 * acked.rtt;
        state.cruising = 1.0;
    }
    else if (now > state.nextS)
    {
        state.before = state.window;
        state.pauseS = now;
        state.pauseUntilS = now + 2.0 * acked.rtt;
        state.window = 2.0;
    }
}

inline void
Cut(LedbatState& state)
{
    state.window = std::max(0.5 * state.window, 2.0);
}

} // namespace windows::ledbatpp

namespace windows::prague
{

struct PragueState
{
    double window = 0.0;
    double threshold = 0.0;
    double rtt = 0.0;
    double minRtt = 0.0;
    double maxRtt = 0.0;
    double cutS = 0.0;
    double recoveredS = 0.0;
    double timedOut = 0.0;
    double even = 0.0;
    double unmarked = 0.0;
    double left = 0.0;
    double acks = 0.0;
    double marks = 0.0;
    double spared = 0.0;     ///< To be acknowledged before the window may be cut again [packet]
    double heard = 0.0;      ///< 1: a mark has come
};

struct Acked
{
    double packets; ///< That were acknowledged
    double since;   ///< The last cut [s]
    double rtt;     ///< With queueing [s]
    bool recovered; ///< The round trip of the last cut is over
};

/// The window after `acknowledged` packets more: slow start below `threshold`, else a packet a window [packet].
///
/// Source: RFC 5681, eqs. 2 and 3.
inline double
RenoWindow(double window, double acknowledged, double threshold)
{
    return window < threshold ? window + acknowledged : window + acknowledged / window;
}

/// Round trips in a virtual one, V/R with V = max(R, 25 ms).
inline double
VirtualTrips(double rtt)
{
    return std::max(0.025 / rtt, 1.0);
}

/// By 1/W for each packet, over (V/R)^2; in slow start as Reno.
inline void
Grow(PragueState& state, const Acked& acked)
{
    if (acked.recovered)
    {
        const double grown = RenoWindow(state.window, acked.packets, state.threshold);
        const double trips = state.window < state.threshold ? 1.0 : VirtualTrips(state.rtt);
        state.window += (grown - state.window) / (trips * trips);
    }
}

/// W after a loss [packet]; once for all losses of a round trip.
///
/// Source: RFC 5681, eq. 4; RFC 6582, section 3.2.
inline double
RenoCut(double window)
{
    return std::max(0.5 * window, 2.0);
}

/// At a loss, Reno's; a mark doesn't cut it again in this virtual round trip.
inline void
Cut(PragueState& state)
{
    state.window = RenoCut(state.window);
    state.spared = state.window * VirtualTrips(state.rtt);
}

} // namespace windows::prague

namespace windows::vegas
{

struct VegasState
{
    double window = 0.0;
    double threshold = 0.0;
    double rtt = 0.0;
    double minRtt = 0.0;
    double maxRtt = 0.0;
    double cutS = 0.0;
    double recoveredS = 0.0;
    double timedOut = 0.0;
    double even = 0.0;
    double roundS = 0.0;     ///< When a round trip ends; 0: none has begun [s]
    double roundRtt = 0.0;   ///< Least of this round trip; 0: none was seen [s]
    double growing = 0.0;    ///< 1: in slow start it grows in this round trip; it does so in every other
};

struct Acked
{
    double packets; ///< That were acknowledged
    double since;   ///< The last cut [s]
    double rtt;     ///< With queueing [s]
    bool recovered; ///< The round trip of the last cut is over
};

/// Once a round trip: diff = W (RTT - RTT_min)/RTT packets are in the queue; W + 1 below alpha, W - 1 above beta.
///
/// Source: Brakmo, Peterson, "TCP Vegas: End to end congestion avoidance on a global Internet", JSAC 1995, sections
/// III.B and III.C; losses halve the window, as in Linux.
inline void
Grow(VegasState& state, const Acked& acked)
{
    if (!acked.recovered)
    {
        return;
    }
    const double now = state.cutS + acked.since;
    const bool slow = state.window < state.threshold;
    if (slow && state.growing > 0.0)
    {
        state.window += acked.packets;
    }
    const double seen = state.roundRtt;
    state.roundRtt = seen == 0.0 ? acked.rtt : std::min(seen, acked.rtt);
    if (now < state.roundS)
    {
        return;
    }
    const double queued = state.window * (state.roundRtt - state.minRtt) / state.roundRtt;
    if (slow && queued > 1.0)
    {
        state.window = std::max(0.875 * state.window, 2.0);
        state.threshold = state.window;
    }
    else if (slow)
    {
        state.growing = 1.0 - state.growing;
    }
    else if (queued < 2.0)
    {
        state.window += 1.0;
    }
    else if (queued > 4.0)
    {
        state.window = std::max(state.window - 1.0, 2.0);
        state.threshold = std::min(state.threshold, state.window);
    }
    state.roundS = now + acked.rtt;
    state.roundRtt = 0.0;
}

/// W after a loss [packet]; once for all losses of a round trip.
///
/// Source: RFC 5681, eq. 4; RFC 6582, section 3.2.
inline double
RenoCut(double window)
{
    return std::max(0.5 * window, 2.0);
}

inline void
Cut(VegasState& state)
{
    state.window = RenoCut(state.window);
}

} // namespace windows::vegas

/// The window of this name, for a flow with these round trips; null: it isn't here.
inline Ptr<TcpCongestionOps>
MakeWindow(const std::string& law, RoundTrips& trips)
{
    if (law == "dctcp")
    {
        return CreateObject<PrintedWindow<windows::dctcp::DctcpState, windows::dctcp::Acked>>(trips, windows::dctcp::Grow, windows::dctcp::Cut);
    }
    if (law == "ledbat++")
    {
        return CreateObject<PrintedWindow<windows::ledbatpp::LedbatState, windows::ledbatpp::Acked>>(trips, windows::ledbatpp::Grow, windows::ledbatpp::Cut);
    }
    if (law == "prague")
    {
        return CreateObject<PrintedWindow<windows::prague::PragueState, windows::prague::Acked>>(trips, windows::prague::Grow, windows::prague::Cut);
    }
    if (law == "vegas")
    {
        return CreateObject<PrintedWindow<windows::vegas::VegasState, windows::vegas::Acked>>(trips, windows::vegas::Grow, windows::vegas::Cut);
    }
    return nullptr;
}

} // namespace netctrl

#endif // NETCTRL_TCP_WINDOWS_H
