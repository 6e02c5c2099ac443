// Made by netctrl export ns3: do not edit.
// What senders see, and their law: printed from the Python that netctrl simulates. Bytes, bit/s, nanoseconds.

#ifndef NETCTRL_WINDOW_LAW_H
#define NETCTRL_WINDOW_LAW_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
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

struct Load
{
    double share;
    double span;
};

struct Path
{
    double baseRtt;              ///< Round trip without queues [ns]
    double bdp;                  ///< The round trip in bytes at line rate
    double lineRate;             ///< The sender's [bit/s]
    double hops;                 ///< Switch ports on it
    std::array<double, 5> rates; ///< Theirs [bit/s]
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

/// The busier of this link and the busiest so far.
inline Load
HopLoad(const Hop& hop, const Hop& before, double capacity, double rtt, const Load& busiest)
{
    const double elapsed = hop.time - before.time;
    if (elapsed <= 0.0)
    {
        return busiest;
    }
    const double rate = (hop.sent - before.sent) * 8e9 / elapsed;
    const double share = std::min(hop.queue, before.queue) * 8e9 / (capacity * rtt) + rate / capacity;
    return share > busiest.share ? Load{share, elapsed} : busiest;
}

/// U, the moving average of the busiest link's normalised in-flight bytes (MeasureInflight).
inline double
Inflight(const std::array<Hop, 5>& hops, const std::array<Hop, 5>& before, const Path& path, double rtt,
    double average)
{
    Load busiest = Load{0.0, 0.0};
    for (int64_t h = 0; h < 5; ++h)
    {
        if (static_cast<double>(h) < path.hops)
        {
            busiest = HopLoad(hops[h], before[h], path.rates[h], rtt, busiest);
        }
    }
    const double span = std::min(busiest.span, rtt);
    return (1.0 - span / rtt) * average + span / rtt * busiest.share;
}

/// HPCC: the window from telemetry, and the rate W/T. Source: Li et al., SIGCOMM 2019, Algorithm 1.
struct HpccLaw
{
    double target;   ///< eta
    double stages;   ///< maxStage
    double increase; ///< W_AI [byte]
    double rtt;      ///< T [ns]
    double paced;    ///< 1: sends at W/T

    struct State
    {
        double window = 0.0;         ///< [byte]
        double rate = 0.0;           ///< [bit/s]
        double started = 0.0;        ///< 1: telemetry has come
        double reference = 0.0;      ///< W^c [byte]
        double stage = 0.0;          ///< incStage
        double updated = 0.0;        ///< lastUpdateSeq [byte]
        double utilization = 0.0;    ///< U
        std::array<Hop, 5> before{}; ///< Telemetry of the acknowledgement before
    };

    State Next(const State& state, const Acknowledged& seen, const Path& path, const std::vector<double>&,
        std::vector<double>&) const
    {
        const double most = path.lineRate * rtt / 8e9;
        if (state.started == 0.0)
        {
            return State{state.window, state.rate, 1.0, most, state.stage, state.updated, 1.0, seen.hops};
        }
        const double U = Inflight(seen.hops, state.before, path, rtt, state.utilization);
        const double relative = U / target;
        const bool multiplicative = relative >= 1.0 || state.stage >= stages;
        double window = state.reference + increase;
        if (multiplicative)
        {
            window = state.reference / std::max(relative, 1e-9) + increase;
        }
        window = std::min(std::max(window, 1.0), most);
        const double rate = paced != 0.0 ? window * 8e9 / rtt : state.rate;
        if (seen.una <= state.updated)
        {
            return State{window, rate, 1.0, state.reference, state.stage, state.updated, U, seen.hops};
        }
        return State{window, rate, 1.0, window, multiplicative ? 0.0 : state.stage + 1.0, seen.nextByte, U, seen.hops};
    }

    /// What leaves changes nothing.
    State Sent(const State& state, double, double, const Path&) const
    {
        return state;
    }
};

using Law = HpccLaw;

} // namespace netctrl

#endif // NETCTRL_WINDOW_LAW_H
