// The laws of ARC, PI, AVQ and SFC, without ns-3: (state, sample) -> next state. C++17, no side effects.
//
// Gains are per packet of `packetSize`; sizes and queues in bytes, times in seconds, capacities in bit/s. The capacity
// comes with each sample, so that a law follows a link that changes.
//
// Fixed: netctrl copies this file as it is. The numbers are in gains.h.

#ifndef NETCTRL_LAWS_H
#define NETCTRL_LAWS_H

#include <algorithm>
#include <cmath>

namespace netctrl
{

constexpr double kBitsPerByte = 8.0;

/// A probability, whatever came out: not a number becomes 0.
inline double
Clip(double probability)
{
    return probability > 0.0 ? std::min(probability, 1.0) : 0.0;
}

/// What a law that acts every epoch sees at the end of one.
struct EpochSample
{
    double time;     ///< [s]
    double enqueued; ///< accepted by the queue in this epoch [byte]
    double backlog;  ///< waiting now [byte]
    double capacity; ///< of the link now [bit/s]
};

/// amplitude * sin(frequency * (t - start)) from start on, added to the arrivals that a law measures.
struct RateError
{
    double amplitude; ///< [bit/s]; 0: none
    double frequency; ///< [rad/s]
    double start;     ///< [s]

    /// Its integral from `from` to `to` [bit].
    double Over(double from, double to) const
    {
        const double first = std::max(from, start);
        if (amplitude == 0.0 || to <= first)
        {
            return 0.0;
        }
        return amplitude / frequency * (std::cos(frequency * (first - start)) - std::cos(frequency * (to - start)));
    }
};

/// ARC: every epoch d, p <- p + alpha (b - gamma (d C - (q - q0))), b <- 0.
/// Source: ARC paper, Algorithm 2; b counts what was enqueued.
struct ArcLaw
{
    static constexpr const char* kName = "netctrl::ArcQueueDisc";

    double alpha;       ///< [1/packet]
    double epoch;       ///< d [s]
    double utilization; ///< gamma
    double targetQueue; ///< q0 [byte]
    double packetSize;  ///< [byte]
    RateError error;

    struct State
    {
        double probability = 0.0;
    };

    State Next(const State& state, const EpochSample& sample) const
    {
        const double measured = sample.enqueued / packetSize +
                                error.Over(sample.time - epoch, sample.time) / (kBitsPerByte * packetSize);
        const double served = epoch * sample.capacity / (kBitsPerByte * packetSize);
        const double excess = (sample.backlog - targetQueue) / packetSize;
        return {Clip(state.probability + alpha * (measured - utilization * (served - excess)))};
    }
};

/// PI: every epoch, p <- p + alpha (q - q_ref) - beta (q_old - q_ref).
/// Source: Hollot, Misra, Towsley, Gong, INFOCOM 2001.
struct PiLaw
{
    static constexpr const char* kName = "netctrl::PiQueueDisc";

    double alpha;          ///< [1/packet]
    double beta;           ///< [1/packet]
    double epoch;          ///< 1/frequency [s]
    double referenceQueue; ///< q_ref [byte]
    double packetSize;     ///< [byte]

    struct State
    {
        double probability = 0.0;
        double backlog = 0.0; ///< q_old [byte]
    };

    State Next(const State& state, const EpochSample& sample) const
    {
        const double now = (sample.backlog - referenceQueue) / packetSize;
        const double before = (state.backlog - referenceQueue) / packetSize;
        return {Clip(state.probability + alpha * now - beta * before), sample.backlog};
    }
};

/// SFC: every epoch d, p = k1 (q - q0) [packet] + k2 (r/C - 1), with the rate r counted over the epoch.
/// Source: Gao, Hou, INFOCOM 2003, as the ARC paper uses it; the form is assumed (footnote 3 prints no law).
struct SfcLaw
{
    static constexpr const char* kName = "netctrl::SfcQueueDisc";

    double k1;          ///< [1/packet]
    double k2;          ///< no unit
    double epoch;       ///< d [s]
    double targetQueue; ///< q0 [byte]
    double packetSize;  ///< [byte]

    struct State
    {
        double probability = 0.0;
    };

    State Next(const State&, const EpochSample& sample) const
    {
        const double rate = sample.enqueued * kBitsPerByte / epoch;
        return {Clip(k1 * (sample.backlog - targetQueue) / packetSize + k2 * (rate / sample.capacity - 1.0))};
    }
};

/// What a law that acts on every packet sees when one arrives.
struct ArrivalSample
{
    double time;     ///< [s]
    double size;     ///< of the packet [byte]
    double capacity; ///< of the link now [bit/s]
};

/// AVQ: a virtual queue served at the virtual capacity v, v' = damping (gamma C - arrivals); what would overflow it is
/// marked. Source: Kunniyur, Srikant, SIGCOMM 2001, Figure 2 (token bucket for v, kept within [0, C]).
struct AvqLaw
{
    double utilization;   ///< gamma
    double damping;       ///< [1/s]
    double virtualBuffer; ///< [byte]

    struct State
    {
        double time = 0.0;     ///< of the last arrival [s]
        double backlog = 0.0;  ///< of the virtual queue [byte]
        double capacity = 0.0; ///< v [bit/s]
        bool mark = false;     ///< the packet that arrived last
    };

    /// Before the first arrival: an empty virtual queue, served as fast as the link.
    static State Start(double time, double capacity)
    {
        return {time, 0.0, capacity, false};
    }

    State Next(const State& state, const ArrivalSample& sample) const
    {
        const double passed = sample.time - state.time;
        const double drained = std::max(state.backlog - passed * state.capacity / kBitsPerByte, 0.0);
        const bool overflow = drained + sample.size > virtualBuffer;
        const double grown = state.capacity + damping * utilization * sample.capacity * passed;
        const double virtualCapacity =
            std::max(std::min(grown, sample.capacity) - damping * sample.size * kBitsPerByte, 0.0);
        return {sample.time, overflow ? drained : drained + sample.size, virtualCapacity, overflow};
    }
};

} // namespace netctrl

#endif // NETCTRL_LAWS_H
