// Made by netctrl export ns3: do not edit.
// What senders see, and their law: printed from the Python that netctrl simulates. Bytes, bit/s, nanoseconds.

#ifndef NETCTRL_WINDOW_LAW_H
#define NETCTRL_WINDOW_LAW_H

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace netctrl
{

struct Hop
{
    double queue; ///< That waits behind the packet [byte]
    double flows; ///< That pass it
    double sent;  ///< So far, this packet included [byte]
    double time;  ///< [ns]
};

struct Acknowledged
{
    double now;              ///< [ns]
    double una;              ///< First byte that isn't acknowledged
    double nextByte;         ///< First byte that wasn't sent
    double newly;            ///< Bytes that it acknowledges for the first time
    double rtt;              ///< From its packet's departure to now [ns]
    bool marked;             ///< Its packet was (ECN)
    bool notified;           ///< It carries a notification (CNP)
    bool lost;               ///< It says that a packet is missing
    std::array<Hop, 5> hops; ///< Telemetry of its packet, for a law that asks for it
};

struct Path
{
    double baseRtt;              ///< Round trip without queues [ns]
    double bdp;                  ///< The round trip in bytes at line rate
    double lineRate;             ///< The sender's [bit/s]
    double hops;                 ///< Switch ports on it
    std::array<double, 5> rates; ///< Theirs [bit/s]
};

/// DCTCP: alpha <- (1 - g) alpha + g F once a window; W <- W (1 - alpha/2) at most once a window; else TCP's growth.
///
/// Source: Alizadeh et al., SIGCOMM 2010, (1), (2) and section 3.1.
struct DctcpLaw
{
    double gain;      ///< g of the moving average
    double packet;    ///< Payload of a full one [byte]
    double slowStart; ///< 1: until the first mark

    struct State
    {
        double window = 0.0;       ///< [byte]
        double rate = 0.0;         ///< [bit/s]
        double alpha = 0.0;        ///< Moving average of the marked part
        double acknowledged = 0.0; ///< In this window [byte]
        double marked = 0.0;       ///< Of these [byte]
        double windowEnd = 0.0;    ///< First byte behind this window
        double reduced = 0.0;      ///< Until this byte is acknowledged it isn't reduced again
        double started = 0.0;      ///< 0: not yet; 1: yes; 2: slow start
    };

    State Next(const State& state, const Acknowledged& seen, const Path&, const std::vector<double>&,
        std::vector<double>&) const
    {
        double started = state.started;
        double alpha = state.alpha;
        double end = state.windowEnd;
        if (started == 0.0)
        {
            started = 1.0 + slowStart;
            alpha = 1.0;
            end = seen.nextByte;
        }
        double acknowledged = state.acknowledged + seen.newly;
        double marked = state.marked;
        if (seen.marked)
        {
            marked += seen.newly;
            started = 1.0;
        }
        if (seen.una > end)
        {
            if (acknowledged > 0.0)
            {
                alpha += gain * (marked / acknowledged - alpha);
            }
            acknowledged = 0.0;
            marked = 0.0;
            end = seen.nextByte;
        }
        double window = state.window;
        double reduced = state.reduced;
        if (seen.lost || (seen.marked && seen.una > reduced))
        {
            window *= seen.lost ? 0.5 : 1.0 - 0.5 * alpha;
            reduced = seen.nextByte;
        }
        else if (!seen.marked && seen.newly > 0.0)
        {
            window += started == 2.0 ? seen.newly : packet * seen.newly / window;
        }
        return State{std::max(window, packet), state.rate, alpha, acknowledged, marked, end, reduced, started};
    }

    /// What leaves changes nothing.
    State Sent(const State& state, double, double, const Path&) const
    {
        return state;
    }
};

using Law = DctcpLaw;

} // namespace netctrl

#endif // NETCTRL_WINDOW_LAW_H
