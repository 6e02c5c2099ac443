// Made by netctrl export ns3: do not edit.
// What senders see, and their laws: printed from the Python that netctrl simulates. Bytes, bit/s, nanoseconds.

#ifndef NETCTRL_WINDOW_LAWS_H
#define NETCTRL_WINDOW_LAWS_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace netctrl
{

struct Target
{
    double rate;
    double target;
};

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

template <class Visit>
void
ForEach(Path& row, Visit visit)
{
    visit("base_rtt", row.baseRtt);
    visit("bdp", row.bdp);
    visit("line_rate", row.lineRate);
    visit("hops", row.hops);
}

/// One event of timer or byte counter: fast recovery, additive or hyper increase (Fig. 7).
inline Target
Raised(const Target& now, double times, double counts, double line, double F, double RAi, double RHai)
{
    double target = now.target;
    if (std::max(times, counts) > F)
    {
        double step = RAi;
        if (std::min(times, counts) > F)
        {
            step = RHai * (std::min(times, counts) - F);
        }
        target = std::min(target + step, line);
    }
    return Target{std::min(0.5 * (target + now.rate), line), target};
}

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

/// DCQCN: on a notification R_T <- R_C, R_C <- R_C (1 - alpha/2), alpha <- (1 - g) alpha + g; counters start again.
///
/// Source: Zhu et al., SIGCOMM 2015, section 3.1, (1) to (4) and Fig. 7.
struct DcqcnLaw
{
    double gain;             ///< g
    double alphaInterval;    ///< Of alpha's decay [ns]
    double increaseInterval; ///< Of the rate's timer [ns]
    double increaseBytes;    ///< Of the rate's byte counter [byte]
    double fastStages;       ///< F
    double increase;         ///< R_AI [bit/s]
    double hyperIncrease;    ///< R_HAI [bit/s]
    double leastRate;        ///< [bit/s]

    struct State
    {
        double window = 0.0;   ///< [byte]
        double rate = 0.0;     ///< R_C [bit/s]
        double target = 0.0;   ///< R_T [bit/s]
        double alpha = 0.0;    ///< How much a notification takes
        double alphaAt = 0.0;  ///< Of its next decay [ns]
        double timerAt = 0.0;  ///< Of the rate's timer [ns]
        double times = 0.0;    ///< That the timer went off
        double counted = 0.0;  ///< Sent since the byte counter went off [byte]
        double counts = 0.0;   ///< That the byte counter went off
        double notified = 0.0; ///< 1: a notification has come; until then it sends at line rate
    };

    State Next(const State& state, const Acknowledged& seen, const Path& path, const std::vector<double>&,
        std::vector<double>&) const
    {
        const State now = Sent(state, seen.now, 0.0, path);
        if (!seen.notified)
        {
            return now;
        }
        const double alpha = state.notified == 0.0 ? 1.0 : now.alpha;
        return State{state.window, std::max(now.rate * (1.0 - 0.5 * alpha), leastRate), now.rate, (1.0 - gain) *
            alpha + gain, seen.now + alphaInterval, seen.now + increaseInterval, 0.0, 0.0, 0.0, 1.0};
    }

    /// What timers and byte counter did up to `now`; `count` bytes went out since the last call.
    State Sent(const State& state, double now, double count, const Path& path) const
    {
        if (state.notified == 0.0)
        {
            return state;
        }
        double alpha = state.alpha;
        double alphaAt = state.alphaAt;
        while (alphaAt <= now)
        {
            alpha *= 1.0 - gain;
            alphaAt += alphaInterval;
        }
        const double line = path.lineRate;
        Target to = Target{state.rate, state.target};
        double counted = state.counted + count;
        double counts = state.counts;
        while (counted >= increaseBytes)
        {
            counted -= increaseBytes;
            counts += 1.0;
            to = Raised(to, state.times, counts, line, fastStages, increase, hyperIncrease);
        }
        double times = state.times;
        double timerAt = state.timerAt;
        while (timerAt <= now)
        {
            timerAt += increaseInterval;
            times += 1.0;
            to = Raised(to, times, counts, line, fastStages, increase, hyperIncrease);
        }
        return State{state.window, to.rate, to.target, alpha, alphaAt, timerAt, times, counted, counts, 1.0};
    }
};

template <class Visit>
void
ForEach(DcqcnLaw& row, Visit visit)
{
    visit("gain", row.gain);
    visit("alpha_interval", row.alphaInterval);
    visit("increase_interval", row.increaseInterval);
    visit("increase_bytes", row.increaseBytes);
    visit("fast_stages", row.fastStages);
    visit("increase", row.increase);
    visit("hyper_increase", row.hyperIncrease);
    visit("least_rate", row.leastRate);
}

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

template <class Visit>
void
ForEach(DctcpLaw& row, Visit visit)
{
    visit("gain", row.gain);
    visit("packet", row.packet);
    visit("slow_start", row.slowStart);
}

/// No control: all stays.
struct FixedLaw
{
    struct State
    {
        double window = 0.0; ///< [byte]
        double rate = 0.0;   ///< [bit/s]
    };

    State Next(const State& state, const Acknowledged&, const Path&, const std::vector<double>&,
        std::vector<double>&) const
    {
        return state;
    }

    /// What leaves changes nothing.
    State Sent(const State& state, double, double, const Path&) const
    {
        return state;
    }
};

template <class Visit>
void
ForEach(FixedLaw&, Visit)
{
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

template <class Visit>
void
ForEach(HpccLaw& row, Visit visit)
{
    visit("target", row.target);
    visit("stages", row.stages);
    visit("increase", row.increase);
    visit("rtt", row.rtt);
    visit("paced", row.paced);
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

template <class Visit>
void
ForEach(MpccLaw& row, Visit visit)
{
    visit("variant", row.variant);
    visit("packet", row.packet);
    visit("given_window", row.givenWindow);
    visit("horizon", row.horizon);
    visit("queue_weight", row.queueWeight);
    visit("window_weight", row.windowWeight);
}

/// TIMELY: the rate once a segment, from the round trip of its last packet.
///
/// Source: Mittal et al., SIGCOMM 2015, Algorithm 1; patched: Zhu et al., CoNEXT 2016, Algorithm 2.
struct TimelyLaw
{
    double patched;   ///< 1: Algorithm 2 of Zhu et al., CoNEXT 2016
    double smoothing; ///< alpha
    double decrease;  ///< beta
    double low;       ///< T_low [ns]
    double high;      ///< T_high [ns]
    double increase;  ///< delta [bit/s]
    double segment;   ///< Acknowledged from one update to the next [byte]
    double fastAfter; ///< Updates without a rise after which the increase is five-fold

    struct State
    {
        double window = 0.0;     ///< [byte]
        double rate = 0.0;       ///< [bit/s]
        double before = 0.0;     ///< Round trip of the update before; 0: there was none [ns]
        double difference = 0.0; ///< Moving average of its changes [ns]
        double falls = 0.0;      ///< Updates without a rise
        double pending = 0.0;    ///< Acknowledged since the last update [byte]
    };

    State Next(const State& state, const Acknowledged& seen, const Path& path, const std::vector<double>&,
        std::vector<double>&) const
    {
        const double pending = state.pending + seen.newly;
        if (pending < segment)
        {
            return State{state.window, state.rate, state.before, state.difference, state.falls, pending};
        }
        const double before = state.before == 0.0 ? seen.rtt : state.before;
        const double difference = state.difference + smoothing * (seen.rtt - before - state.difference);
        const double gradient = difference / path.baseRtt;
        double rate = std::min(state.rate, path.lineRate);
        double falls = 0.0;
        if (seen.rtt < low)
        {
            rate += increase;
        }
        else if (seen.rtt > high)
        {
            rate *= 1.0 - decrease * (1.0 - high / seen.rtt);
        }
        else if (patched != 0.0)
        {
            falls = state.falls;
            const double w = std::min(std::max(2.0 * gradient + 0.5, 0.0), 1.0);
            rate = increase * (1.0 - w) + rate * (1.0 - decrease * w * (seen.rtt - low) / low);
        }
        else if (gradient <= 0.0)
        {
            falls = state.falls + 1.0;
            rate += increase * (falls >= fastAfter ? 5.0 : 1.0);
        }
        else
        {
            rate *= 1.0 - decrease * std::min(gradient, 1.0);
        }
        rate = std::min(std::max(rate, 0.001 * path.lineRate), path.lineRate);
        return State{state.window, rate, seen.rtt, difference, falls, 0.0};
    }

    /// What leaves changes nothing.
    State Sent(const State& state, double, double, const Path&) const
    {
        return state;
    }
};

template <class Visit>
void
ForEach(TimelyLaw& row, Visit visit)
{
    visit("patched", row.patched);
    visit("smoothing", row.smoothing);
    visit("decrease", row.decrease);
    visit("low", row.low);
    visit("high", row.high);
    visit("increase", row.increase);
    visit("segment", row.segment);
    visit("fast_after", row.fastAfter);
}

/// Calls `with` with the law of this name, whose parameters aren't set yet; whether it is here.
template <class With>
bool
WithLaw(const std::string& name, With with)
{
    if (name == "dcqcn")
    {
        with(DcqcnLaw{});
        return true;
    }
    if (name == "dctcp")
    {
        with(DctcpLaw{});
        return true;
    }
    if (name == "fixed")
    {
        with(FixedLaw{});
        return true;
    }
    if (name == "hpcc")
    {
        with(HpccLaw{});
        return true;
    }
    if (name == "mpcc")
    {
        with(MpccLaw{});
        return true;
    }
    if (name == "timely")
    {
        with(TimelyLaw{});
        return true;
    }
    return false;
}

} // namespace netctrl

#endif // NETCTRL_WINDOW_LAWS_H
