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

struct Path
{
    double baseRtt;              ///< Round trip without queues [ns]
    double bdp;                  ///< The round trip in bytes at line rate
    double lineRate;             ///< The sender's [bit/s]
    double hops;                 ///< Switch ports on it
    std::array<double, 5> rates; ///< Theirs [bit/s]
};

struct Hop
{
    double queue; ///< That waits behind the packet [byte]
    double flows; ///< That pass it
    double sent;  ///< So far, this packet included [byte]
    double time;  ///< [ns]
};

struct Told
{
    double queue; ///< [byte]
    double flows;
    double share; ///< R_out/(R_in N)
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

/// The hop with the longest queue (Algorithm 1); where all are empty, that with the least fair share.
///
/// The thesis leaves N = 1 there, so that each new round would start from P_BD.
inline Told
Bottleneck(const Path& path, const std::array<Hop, 5>& hops)
{
    double queue = 0.0;
    int64_t place = 5;
    for (int64_t h = 0; h < 5; ++h)
    {
        if (static_cast<double>(h) < path.hops && hops[h].queue > queue)
        {
            queue = hops[h].queue;
            place = h;
        }
    }
    if (place < 5)
    {
        double flows = std::max(hops[place].flows, 1.0);
        return Told{queue, flows, path.rates[place] / (path.lineRate * flows)};
    }
    Told least = Told{0.0, 1.0, HUGE_VAL};
    for (int64_t h = 0; h < 5; ++h)
    {
        if (static_cast<double>(h) < path.hops)
        {
            double flows = std::max(hops[h].flows, 1.0);
            const double share = path.rates[h] / (path.lineRate * flows);
            if (share < least.share)
            {
                least = Told{0.0, flows, share};
            }
        }
    }
    return least;
}

/// K_P: P - 1 times s = W_Q + s W_R/(W_R + B^2 s), from W_Q on, then B s/(W_R + B^2 s); W_R is above 0.
///
/// With s = W_Q p/q and t = B^2 W_Q/W_R: p, q = q + (1 + t) p, q + t p, and K_P = t p/((q + t p) B).
inline double
RiccatiGain(double B, int64_t horizon, double queueWeight, double windowWeight)
{
    if (B == 0.0)
    {
        return 0.0;
    }
    const double t = std::min(B * B * (queueWeight / windowWeight), 1e100);
    double p = 1.0;
    double q = 1.0;
    for (int64_t turn = 0; turn < horizon - 1; ++turn)
    {
        const double before = p;
        p = q + (1.0 + t) * before;
        q = q + t * before;
        if (p > 1e200)
        {
            p *= 1e-200;
            q *= 1e-200;
        }
    }
    return t * p / ((q + t * p) * B);
}

/// Q + B sum of (W(k - i) - c), oldest first, never below 0 on its way (3.7).
///
/// `memory` is a ring of past windows [byte], of which `fed` came in; `steps` of them are under way.
inline double
PredictedQueue(double queue, double B, double fair, const std::vector<double>& memory, double fed, double steps)
{
    const int64_t length = static_cast<int64_t>(memory.size());
    const int64_t count = static_cast<int64_t>(std::min(std::min(steps, fed), static_cast<double>(length)));
    int64_t place = (static_cast<int64_t>(fed) - count) % length;
    double found = queue;
    for (int64_t turn = 0; turn < count; ++turn)
    {
        found = std::max(found + B * (memory[place] - fair), 0.0);
        place += 1;
        if (place == length)
        {
            place = 0;
        }
    }
    return found;
}

/// MPCC: W = clip(c - K(N) Q, 1 byte, P_BD), c = min(R_out/(R_in N), 1) P_BD, from an acknowledgement's telemetry.
///
/// K from a table by the number of flows N, or by the scalar Riccati recursion at each step.
///
/// Source: the MPCC thesis, (3.4) to (3.7), Algorithm 1, (A.1).
struct MpccLaw
{
    double variant;      ///< 0: delay-free; 1: on the queue that (3.7) predicts; 2: K = 0; 3: holds its window while queues are empty
    double packet;       ///< Of (A.1) [byte]
    double givenWindow;  ///< W of (A.1), with K by number of flows in a table; 0: the flow's own, without [byte]
    double horizon;      ///< P [acknowledgement]
    double queueWeight;  ///< W_Q
    double windowWeight; ///< W_R

    struct State
    {
        double window = 0.0; ///< [byte]
        double rate = 0.0;   ///< [bit/s]
        double fed = 0.0;    ///< Windows that memory has been given
    };

    State Next(const State& state, const Acknowledged& seen, const Path& path, const std::vector<double>& table,
        std::vector<double>& memory) const
    {
        const Told told = Bottleneck(path, seen.hops);
        const double fair = std::min(told.share, 1.0) * path.bdp;
        if (variant == 2.0)
        {
            return State{std::max(fair, 1.0), state.rate, state.fed};
        }
        if (variant == 3.0 && told.queue == 0.0)
        {
            return state;
        }
        double queue = told.queue;
        double K = givenWindow > 0.0 ?
            table[std::min<int64_t>(static_cast<int64_t>(told.flows), static_cast<int64_t>(table.size()) - 1)] : 0.0;
        if (givenWindow == 0.0 || variant == 1.0)
        {
            const double stepWindow = givenWindow > 0.0 ? givenWindow : std::max(state.window, packet);
            const double B = packet * path.baseRtt * told.flows * path.lineRate / (stepWindow * 8e9 * path.bdp);
            if (givenWindow == 0.0)
            {
                K = RiccatiGain(B, static_cast<int64_t>(horizon), queueWeight, windowWeight);
            }
            if (variant == 1.0)
            {
                queue = PredictedQueue(queue, B, fair, memory, state.fed, stepWindow / packet);
            }
        }
        const double window = std::min(std::max(fair - K * queue, 1.0), path.bdp);
        if (variant == 1.0)
        {
            memory[static_cast<int64_t>(state.fed) % static_cast<int64_t>(memory.size())] = window;
        }
        return State{window, state.rate, state.fed + 1.0};
    }

    /// What leaves changes nothing.
    State Sent(const State& state, double, double, const Path&) const
    {
        return state;
    }
};

using Law = MpccLaw;

} // namespace netctrl

#endif // NETCTRL_WINDOW_LAW_H
