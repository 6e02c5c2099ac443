// Made by netctrl export ns3: do not edit.
// Pacing laws, one sample at a time: printed from the Python that netctrl runs.

#ifndef NETCTRL_PACING_LAWS_H
#define NETCTRL_PACING_LAWS_H

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace netctrl
{

constexpr int64_t kRing = 32;

struct ArxState
{
    double timeS = 0.0;      ///< Of the newest sample that was used [s]
    double appliedS = 0.0;   ///< Of the newest rate [s]
    double rate = 0.0;       ///< In force [bit/s]
    double meanRtt = 0.0;    ///< In the law's unit
    double variance = 0.0;
    double meanRate = 0.0;   ///< In the law's unit
    double prediction = 0.0; ///< Of the RTT, in the law's unit
    double rttUnit = 0.0;    ///< [s]; 0: the first RTT will be
    double samples = 0.0;
    double free = 0.0;       ///< Eq. (7) before its bounds, in the law's unit
    double badRtt = 0.0;     ///< RTTs that are none
    double badTime = 0.0;    ///< Times that go backwards
    double held = 0.0;       ///< Rates held for want of a number or of an effect
    double floored = 0.0;    ///< Rates that would have been below the least one
    double resets = 0.0;     ///< Estimates that exploded and started again
};

struct ArxParameters
{
    double psi;
    double xi;
    double period;         ///< T [s]
    double minRate;        ///< In the law's unit
    double maxRate;        ///< R, in the law's unit
    double pastRtts;       ///< p
    double places;         ///< k = p + q
    double step;           ///< alpha
    double normalised;     ///< 1: alpha is divided by |phi|^2
    double smoothing;      ///< gamma
    double guarded;        ///< 1: yes
    double rateUnit;       ///< [bit/s]
    double firstSlope;     ///< b_1 at the start
    double slopeFloor;     ///< b_1 below which a rate is held
    double deviationFloor; ///< Least deviation over the mean RTT
    double thetaLimit;     ///< |theta| beyond which the estimate begins again
    double startRate;      ///< In the law's unit
};

struct TargetState
{
    double timeS = 0.0;                 ///< Of the newest sample [s]
    double appliedS = 0.0;              ///< Of the newest rate [s]
    double rate = 0.0;                  ///< In force [bit/s]
    double minRtt = 0.0;                ///< [s]
    double targetRtt = 0.0;             ///< [s]
    double deliveredRate = 0.0;         ///< [bit/s]
    double prediction = 0.0;            ///< Of the RTT to come [s]
    double samples = 0.0;
    double phase = 0.0;                 ///< 0: start; 1: cruise; 2: drain; 3: drained
    double recentRtt = 0.0;             ///< Least since the last rate [s]
    double freeSinceS = 0.0;            ///< A queue stood last [s]
    double probeS = 0.0;                ///< The next drain begins [s]
    double drainUntilS = 0.0;           ///< [s]
    double lowestRtt = 0.0;             ///< Of this period [s]
    double lowestRttBefore = 0.0;       ///< Of the one before [s]
    double highestRtt = 0.0;            ///< Since the last loss, or of this period [s]
    double highestRate = 0.0;           ///< Delivered, of this period [bit/s]
    double highestRateBefore = 0.0;     ///< Of the one before [bit/s]
    double foreign = 0.0;               ///< 1: the queue is somebody else's
    double marks = 0.0;                 ///< That the rings were given
    double deliveredBytes = 0.0;
    double lostBytes = 0.0;             ///< -1: not known yet
    double cubicHighest = 0.0;          ///< Window at the last cut [packet]
    double cubicCutS = 0.0;             ///< [s]
    double cubicUntilS = 0.0;           ///< It isn't cut again before [s]
    double roomS = 0.0;                 ///< Half of the queue at the last loss [s]
    double cutUntilS = 0.0;             ///< The rate is halved until [s]
    double mostInFlight = 0.0;          ///< What may be [byte]
    double badRtt = 0.0;                ///< RTTs that are none
    double badTime = 0.0;               ///< Times that go backwards
    double held = 0.0;                  ///< Rates held for want of a number
    double floored = 0.0;               ///< Rates that would have been below the least one
    double resets = 0.0;
    std::array<double, 32> ringTimes{}; ///< Of the newest marks [s]
    std::array<double, 32> ringBytes{}; ///< Delivered by then [byte]
};

struct TargetParameters
{
    double psi;
    double xi;
    double period;          ///< T [s]
    double minRate;         ///< [bit/s]
    double maxRate;         ///< [bit/s]
    double packet;          ///< [byte]
    double queueShare;      ///< Of the least RTT that is to wait
    double queueShareSlope; ///< Over ln(window)
    double minQueueShare;
    double intervalShare;   ///< Between two rates, over the least RTT
    double startGrowth;     ///< Until a queue is seen
    double growth;          ///< Where no queue is seen
    double decrease;        ///< Least rate over the delivered rate
    double probeS;          ///< Between two drains [s]
    double probeRtts;       ///< The same, in least RTTs
    double drainShare;      ///< Of the pipe, to which a drain goes
    double competitive;     ///< 1: finds foreign queues
    double startRate;       ///< [bit/s]
    double horizonRtts;     ///< H over the least RTT
};

struct TargetQueue
{
    double delay; ///< [s]
    bool bound;   ///< By the buffer
};

/// a alike, and such that RTT and rate of now predict themselves.
inline void
RestartTheta(const ArxState& state, const ArxParameters& p, std::vector<double>& memory)
{
    const int64_t past = static_cast<int64_t>(p.pastRtts);
    for (int64_t i = 0; i < static_cast<int64_t>(p.places); ++i)
    {
        memory[i] = 0.0;
    }
    memory[past] = p.firstSlope;
    const double held = p.firstSlope * (state.rate / p.rateUnit) / state.meanRtt;
    for (int64_t i = 0; i < past; ++i)
    {
        memory[i] = (1.0 - held) / p.pastRtts;
    }
}

/// With the first RTT: all averages and histories are what is seen now.
inline void
Begin(ArxState& state, const ArxParameters& p, std::vector<double>& memory, double rtt)
{
    const int64_t past = static_cast<int64_t>(p.pastRtts);
    const int64_t k = static_cast<int64_t>(p.places);
    const double rate = state.rate / p.rateUnit;
    state.meanRtt = rtt;
    state.prediction = rtt;
    state.meanRate = rate;
    const double deviation = p.deviationFloor * rtt;
    state.variance = deviation * deviation;
    for (int64_t i = 0; i < k; ++i)
    {
        memory[k + i] = i < past ? rtt : rate;
    }
    RestartTheta(state, p, memory);
}

/// Eq. (1), theta'phi, of theta = (a_1 .. a_p, b_1 .. b_q) and phi = (l(n-1) .. l(n-p), r(n-1) .. r(n-q)), each k = p + q long,
/// that begin at these places of `values`.
inline double
PredictedRtt(const std::vector<double>& values, int64_t theta, int64_t phi, int64_t k)
{
    double total = 0.0;
    for (int64_t i = 0; i < k; ++i)
    {
        total += values[theta + i] * values[phi + i];
    }
    return total;
}

/// |phi|^2 of phi = values[at : at + k]; places instead of slices, which cost as much as the sum.
inline double
Energy(const std::vector<double>& values, int64_t at, int64_t k)
{
    double total = 0.0;
    for (int64_t i = at; i < at + k; ++i)
    {
        total += values[i] * values[i];
    }
    return total;
}

/// theta <- theta + change phi in place, for theta and phi that begin at these places of `values`; gives |theta|^2 after it.
inline double
CorrectLms(std::vector<double>& values, int64_t theta, int64_t phi, int64_t k, double change)
{
    double total = 0.0;
    for (int64_t i = 0; i < k; ++i)
    {
        const double after = values[theta + i] + change * values[phi + i];
        values[theta + i] = after;
        total += after * after;
    }
    return total;
}

/// Newest first, from place `first` to before `last`.
inline void
Push(std::vector<double>& values, int64_t first, int64_t last, double newest)
{
    for (int64_t i = 0; i < last - 1 - first; ++i)
    {
        values[last - 1 - i] = values[last - 2 - i];
    }
    values[first] = newest;
}

/// Eqs. (1), (2), (4) and (6), and the histories moved on by this RTT.
inline void
Learn(ArxState& state, const ArxParameters& p, std::vector<double>& memory, double rtt)
{
    const int64_t k = static_cast<int64_t>(p.places);
    const double prediction = PredictedRtt(memory, 0, k, k);
    double step = p.step;
    if (p.normalised > 0.0)
    {
        const double square = Energy(memory, k, k);
        step = square > 0.0 ? step / square : 0.0;
    }
    const double size = CorrectLms(memory, 0, k, k, step * (rtt - prediction));
    const double gamma = p.smoothing;
    const double off = prediction - state.meanRtt;
    state.prediction = prediction;
    state.meanRtt = gamma * state.meanRtt + (1.0 - gamma) * rtt;
    state.variance = gamma * state.variance + (1.0 - gamma) * off * off;
    Push(memory, k, k + static_cast<int64_t>(p.pastRtts), rtt);
    if (p.guarded > 0.0)
    {
        if (!(size <= p.thetaLimit * p.thetaLimit))
        {
            state.resets += 1.0;
            RestartTheta(state, p, memory);
            state.prediction = rtt;
        }
        const double least = p.deviationFloor * state.meanRtt;
        if (!(least * least <= state.variance && state.variance < HUGE_VAL))
        {
            state.variance = least * least;
        }
    }
}

/// Eq. (7): where the cost is least, without the bounds that eq. (3) asks for.
inline double
BestRate(double psi, double xi, double b1, double rttAtZero, double meanRtt, double variance, double meanRate)
{
    const double pull = (xi / meanRate - b1 / meanRtt) * variance / (2.0 * psi * b1);
    return (pull + meanRtt - rttAtZero) / b1;
}

/// The bounds of eq. (3): the cost is convex in r, so its least within them is the nearest to the free one.
inline double
Clipped(double rate, double least, double most)
{
    return std::min(std::max(rate, least), most);
}

/// Eqs. (7) and (8), the bounds, and the rate of before where there is no number.
inline double
Decide(ArxState& state, const ArxParameters& p, const std::vector<double>& memory, double b1)
{
    const int64_t past = static_cast<int64_t>(p.pastRtts);
    const int64_t k = static_cast<int64_t>(p.places);
    const double rttAtZero = PredictedRtt(memory, 0, k, past) +
        PredictedRtt(memory, past + 1, k + past, k - past - 1);
    double free = NAN;
    if (b1 != 0.0 && state.meanRate != 0.0)
    {
        free = BestRate(p.psi, p.xi, b1, rttAtZero, state.meanRtt, state.variance, state.meanRate);
    }
    state.free = free;
    if (std::isnan(free))
    {
        state.held += 1.0;
        return state.rate / p.rateUnit;
    }
    if (free < p.minRate)
    {
        state.floored += 1.0;
    }
    return Clipped(free, p.minRate, p.maxRate);
}

/// One RTT [s] at a time [s]; changes the state in place and gives the rate in force [bit/s].
///
/// `memory` has theta = (a, b), then phi = (RTTs, rates), newest first, k = p + q each.
inline double
ArxPacingStep(ArxState& state, const ArxParameters& p, std::vector<double>& memory, double time, double sample)
{
    const bool guarded = p.guarded > 0.0;
    if (!(0.0 < sample && sample < HUGE_VAL))
    {
        state.badRtt += 1.0;
        return state.rate;
    }
    if (!(std::isfinite(time) && time >= state.timeS))
    {
        state.badTime += 1.0;
        return state.rate;
    }
    if (guarded && time - state.timeS < 0.999999 * std::max(p.period, sample))
    {
        return state.rate;
    }
    if (state.rttUnit == 0.0)
    {
        state.rttUnit = sample;
    }
    const double rtt = sample / state.rttUnit;
    state.timeS = time;
    state.samples += 1.0;
    if (state.meanRtt == 0.0)
    {
        Begin(state, p, memory, rtt);
        return state.rate;
    }
    Learn(state, p, memory, rtt);
    if (guarded && state.samples <= p.pastRtts)
    {
        return state.rate;
    }
    const double b1 = memory[static_cast<int64_t>(p.pastRtts)];
    double rate = state.rate / p.rateUnit;
    if (guarded && !(b1 >= p.slopeFloor))
    {
        state.held += 1.0;
    }
    else
    {
        rate = Decide(state, p, memory, b1);
    }
    Push(memory, static_cast<int64_t>(p.places + p.pastRtts), static_cast<int64_t>(2.0 * p.places), rate);
    state.meanRate = p.smoothing * state.meanRate + (1.0 - p.smoothing) * rate;
    if (guarded || time - state.appliedS > p.period)
    {
        state.appliedS = time;
        state.rate = rate * p.rateUnit;
    }
    return state.rate;
}

/// From drain to drain [s].
inline double
Period(const TargetState& state, const TargetParameters& p)
{
    return std::max(p.probeS, p.probeRtts * state.minRtt);
}

/// When the next drain begins [s].
inline double
NextProbe(const TargetState& state, const TargetParameters& p, double time)
{
    return time + Period(state, p);
}

/// What every sample adds, between two rates too. Who sees the least RTT need not drain: so all drain together.
inline void
Listen(TargetState& state, const TargetParameters& p, double time, double rtt)
{
    if (rtt <= 1.002 * state.minRtt)
    {
        state.probeS = NextProbe(state, p, time);
    }
    state.samples += 1.0;
    state.recentRtt = std::min(state.recentRtt, rtt);
    state.lowestRtt = std::min(state.lowestRtt, rtt);
    state.minRtt = std::min(state.minRtt, rtt);
    state.highestRtt = std::max(state.highestRtt, rtt);
}

/// Queue that the buffer is taken to hold [s]: half of what stood at the last loss, all of it a period later.
inline double
Room(const TargetState& state, const TargetParameters& p, double time)
{
    return state.roomS * (1.0 + std::max(time - state.cutUntilS, 0.0) / Period(state, p));
}

/// d [s], a share of the least RTT that falls with the window, at least a packet's time, and whether the buffer
/// bounds it; who has more takes less of what the buffer holds, too.
inline TargetQueue
Aim(const TargetState& state, const TargetParameters& p, double time)
{
    const double packet = 8.0 * p.packet / state.deliveredRate;
    const double window = std::max(state.minRtt / packet, 1.0);
    const double share = Clipped(p.queueShare - p.queueShareSlope * std::log(window), p.minQueueShare,
        p.queueShare);
    const double desired = std::max(share * state.minRtt, packet);
    const double held = share / p.queueShare * Room(state, p, time);
    return TargetQueue{std::min(desired, held), held < desired};
}

/// A loss halves the rate for a round trip, or cuts Cubic's window; once a round trip.
inline void
HearLoss(TargetState& state, const TargetParameters& p, double time, double rtt, double lost, double inFlight)
{
    const double before = state.lostBytes;
    if (!(lost > before))
    {
        return;
    }
    state.lostBytes = lost;
    if (before < 0.0)
    {
        return;
    }
    if (state.foreign > 0.0)
    {
        if (time >= state.cubicUntilS && std::isfinite(inFlight))
        {
            state.cubicHighest = inFlight / p.packet;
            state.cubicCutS = time;
            state.cubicUntilS = time + state.targetRtt;
        }
    }
    else if (time >= state.cutUntilS && state.deliveredRate > 0.0)
    {
        const double full = state.highestRtt - state.minRtt;
        if (state.phase == 0.0)
        {
            state.phase = 1.0;
            state.probeS = NextProbe(state, p, time);
        }
        if (p.competitive > 0.0 && full > 2.0 * p.queueShare * state.minRtt)
        {
            return;
        }
        state.roomS = 0.5 * (Aim(state, p, time).bound ? std::min(full, Room(state, p, time)) : full);
        state.cutUntilS = time + rtt;
        state.freeSinceS = time + rtt;
        state.highestRtt = 0.0;
        state.highestRate = 0.0;
        state.highestRateBefore = 0.0;
        state.appliedS = -HUGE_VAL;
    }
}

/// Over the last round trip, as near as the ring's marks tell [bit/s]; -1 before they span one. Adds a mark.
///
/// Over less of the first round trip than the whole, a window that came back in one burst would be no rate at all.
inline double
DeliveredRate(TargetState& state, double time, double delivered)
{
    const int64_t marks = static_cast<int64_t>(state.marks);
    double found = -1.0;
    for (int64_t back = 1; back < std::min<int64_t>(marks, kRing) + 1; ++back)
    {
        const int64_t at = (marks - back) % kRing;
        const double span = time - state.ringTimes[at];
        if (span > 0.0 && (span >= state.minRtt || marks >= kRing))
        {
            found = 8.0 * (delivered - state.ringBytes[at]) / span;
        }
        if (span >= state.minRtt)
        {
            break;
        }
    }
    state.ringTimes[marks % kRing] = time;
    state.ringBytes[marks % kRing] = delivered;
    state.marks += 1.0;
    return found;
}

/// RTT that Cubic's window would make of this flow's share, as it would be now [s].
inline double
CubicTarget(const TargetState& state, const TargetParameters& p, double time, double rtt)
{
    const double highest = state.cubicHighest;
    const double since = time - state.cubicCutS;
    const double past = since - std::pow((1.0 - 0.7) * highest / 0.4, 1.0 / 3.0);
    const double friendly = 3.0 * (1.0 - 0.7) / (1.0 + 0.7) * since / rtt;
    const double window = highest + std::max(0.4 * (past * past * past), friendly - (1.0 - 0.7) * highest);
    return std::min(8.0 * p.packet * window / state.deliveredRate, 1.5 * state.prediction);
}

/// After a drain: the least RTT is that of this period and the one before.
inline void
NextPeriod(TargetState& state, const TargetParameters& p, double time)
{
    const double base = state.minRtt;
    const double empty = (state.foreign == 0.0 ? 2.0 : 0.25) * p.queueShare * base;
    const bool foreign = p.competitive > 0.0 && state.lowestRtt - base > empty;
    if (foreign && state.foreign == 0.0)
    {
        state.cubicHighest = state.deliveredRate * state.targetRtt / (8.0 * p.packet);
        state.cubicCutS = time - std::pow((1.0 - 0.7) * state.cubicHighest / 0.4, 1.0 / 3.0);
    }
    state.foreign = foreign ? 1.0 : 0.0;
    if (!foreign)
    {
        const double most = p.competitive > 0.0 ? 1.001 * base : HUGE_VAL;
        state.minRtt = std::min(std::min(state.lowestRtt, state.lowestRttBefore), most);
    }
    state.lowestRttBefore = state.lowestRtt;
    state.highestRateBefore = state.highestRate;
    state.lowestRtt = HUGE_VAL;
    state.highestRtt = 0.0;
    state.highestRate = 0.0;
    state.probeS = NextProbe(state, p, time);
}

/// By phase: growth until a queue is seen; eq. (7); growth where none is left; a drain.
inline double
RateDesired(TargetState& state, const TargetParameters& p, double time, double queue, double inFlight)
{
    const double C = state.deliveredRate;
    const double base = state.minRtt;
    const double desired = Aim(state, p, time).delay;
    state.targetRtt = base + desired;
    if (state.phase == 0.0)
    {
        if (queue <= desired)
        {
            return p.startGrowth * C;
        }
        state.phase = 1.0;
        state.probeS = NextProbe(state, p, time);
    }
    if (queue > 0.25 * desired)
    {
        state.freeSinceS = time;
    }
    double horizon = p.horizonRtts * base;
    state.prediction = 8.0 * inFlight / C;
    if (!std::isfinite(inFlight))
    {
        horizon = 2.0 * p.horizonRtts * base;
        state.prediction = base + queue;
    }
    if (state.foreign > 0.0)
    {
        state.targetRtt = std::max(state.targetRtt, CubicTarget(state, p, time, base + queue));
    }
    if (time < state.cutUntilS)
    {
        return 0.5 * C;
    }
    const double standing = state.targetRtt - base;
    const double drop = Clipped(0.5 * standing / base, 0.15, 0.5);
    if (state.phase == 1.0 && time >= state.probeS)
    {
        state.phase = 2.0;
        state.drainUntilS = time + 2.0 * base + 2.0 * std::min(standing, 2.0 * base) / drop;
    }
    if (state.phase == 2.0 && state.prediction <= p.drainShare * base)
    {
        state.phase = 3.0;
        state.drainUntilS = std::min(state.drainUntilS, time + base);
    }
    if (state.phase >= 2.0)
    {
        if (time < state.drainUntilS)
        {
            return state.phase == 3.0 ? C : (1.0 - drop) * C;
        }
        state.phase = 1.0;
        state.freeSinceS = time;
        NextPeriod(state, p, time);
    }
    const double wary = state.foreign > 0.0 ? 1.0 : std::min((time - state.cutUntilS) / (50.0 * base), 1.0);
    const double growth = 1.0 + wary * (p.growth - 1.0);
    if (time - state.freeSinceS > 2.0 * base)
    {
        return growth * C;
    }
    const double spread = p.minQueueShare * base;
    const double free = BestRate(p.psi, p.xi, horizon / C, state.prediction - horizon, state.targetRtt, spread *
        spread, C);
    return Clipped(free, p.decrease * C, growth * C);
}

/// Rate that brings what is in flight to two bandwidth-delay products, or four packets, by the next rate [bit/s], or
/// as much of the delivered rate as is always kept: at less a sender's timer would sleep for many round trips.
inline double
MaxRate(TargetState& state, const TargetParameters& p, double interval, double inFlight)
{
    if (state.foreign > 0.0)
    {
        state.mostInFlight = HUGE_VAL;
        return HUGE_VAL;
    }
    const double C = state.phase == 0.0 ? std::max(state.deliveredRate, state.highestRate) : state.deliveredRate;
    const double packets = 4.0 * p.packet;
    state.mostInFlight = std::max(2.0 * C * state.minRtt / 8.0, packets);
    if (!std::isfinite(inFlight))
    {
        return HUGE_VAL;
    }
    return std::max(C + 8.0 * (state.mostInFlight - inFlight) / interval, 0.25 * C);
}

/// One RTT [s] at a time [s], bytes delivered so far, in flight, and lost so far (NaN: not known);
/// changes the state in place and gives the rate in force [bit/s].
inline double
TargetRttStep(TargetState& state, const TargetParameters& p, double time, double rtt, double delivered,
    double inFlight, double lost)
{
    if (!(0.0 < rtt && rtt < HUGE_VAL))
    {
        state.badRtt += 1.0;
        return state.rate;
    }
    if (!(std::isfinite(time) && time >= state.timeS))
    {
        state.badTime += 1.0;
        return state.rate;
    }
    if (!(std::isfinite(delivered) && delivered >= state.deliveredBytes))
    {
        state.held += 1.0;
        return state.rate;
    }
    state.timeS = time;
    state.deliveredBytes = delivered;
    Listen(state, p, time, rtt);
    HearLoss(state, p, time, rtt, lost, inFlight);
    const double interval = std::max(p.period, p.intervalShare * state.minRtt);
    if (time - state.appliedS < 0.999999 * interval)
    {
        return state.rate;
    }
    const double queue = state.recentRtt - state.minRtt;
    state.appliedS = time;
    state.recentRtt = HUGE_VAL;
    const double seen = DeliveredRate(state, time, delivered);
    if (seen <= 0.0)
    {
        if (seen == 0.0)
        {
            state.held += 1.0;
        }
        return state.rate;
    }
    state.highestRate = std::max(state.highestRate, seen);
    const bool busy = state.targetRtt > 0.0 && queue > 0.25 * (state.targetRtt - state.minRtt);
    const bool known = busy || state.phase == 0.0 || time < state.cutUntilS;
    state.deliveredRate = known ? seen : std::max(seen, state.deliveredRate);
    const double rate = RateDesired(state, p, time, queue, inFlight);
    const double kept = std::max(p.minRate, 0.25 * std::max(state.highestRate, state.highestRateBefore));
    if (rate < kept)
    {
        state.floored += 1.0;
    }
    const double most = std::min(p.maxRate, MaxRate(state, p, interval, inFlight));
    state.rate = std::max(Clipped(rate, kept, most), p.minRate);
    return state.rate;
}

template <class Visit>
void
ForEach(ArxParameters& row, Visit visit)
{
    visit("psi", row.psi);
    visit("xi", row.xi);
    visit("period", row.period);
    visit("min_rate", row.minRate);
    visit("max_rate", row.maxRate);
    visit("past_rtts", row.pastRtts);
    visit("places", row.places);
    visit("step", row.step);
    visit("normalised", row.normalised);
    visit("smoothing", row.smoothing);
    visit("guarded", row.guarded);
    visit("rate_unit", row.rateUnit);
    visit("first_slope", row.firstSlope);
    visit("slope_floor", row.slopeFloor);
    visit("deviation_floor", row.deviationFloor);
    visit("theta_limit", row.thetaLimit);
    visit("start_rate", row.startRate);
}

template <class Visit>
void
ForEach(ArxState& row, Visit visit)
{
    visit("time_s", row.timeS);
    visit("applied_s", row.appliedS);
    visit("rate", row.rate);
    visit("mean_rtt", row.meanRtt);
    visit("variance", row.variance);
    visit("mean_rate", row.meanRate);
    visit("prediction", row.prediction);
    visit("rtt_unit", row.rttUnit);
    visit("samples", row.samples);
    visit("free", row.free);
    visit("bad_rtt", row.badRtt);
    visit("bad_time", row.badTime);
    visit("held", row.held);
    visit("floored", row.floored);
    visit("resets", row.resets);
}

template <class Visit>
void
ForEach(TargetParameters& row, Visit visit)
{
    visit("psi", row.psi);
    visit("xi", row.xi);
    visit("period", row.period);
    visit("min_rate", row.minRate);
    visit("max_rate", row.maxRate);
    visit("packet", row.packet);
    visit("queue_share", row.queueShare);
    visit("queue_share_slope", row.queueShareSlope);
    visit("min_queue_share", row.minQueueShare);
    visit("interval_share", row.intervalShare);
    visit("start_growth", row.startGrowth);
    visit("growth", row.growth);
    visit("decrease", row.decrease);
    visit("probe_s", row.probeS);
    visit("probe_rtts", row.probeRtts);
    visit("drain_share", row.drainShare);
    visit("competitive", row.competitive);
    visit("start_rate", row.startRate);
    visit("horizon_rtts", row.horizonRtts);
}

template <class Visit>
void
ForEach(TargetState& row, Visit visit)
{
    visit("time_s", row.timeS);
    visit("applied_s", row.appliedS);
    visit("rate", row.rate);
    visit("min_rtt", row.minRtt);
    visit("target_rtt", row.targetRtt);
    visit("delivered_rate", row.deliveredRate);
    visit("prediction", row.prediction);
    visit("samples", row.samples);
    visit("phase", row.phase);
    visit("recent_rtt", row.recentRtt);
    visit("free_since_s", row.freeSinceS);
    visit("probe_s", row.probeS);
    visit("drain_until_s", row.drainUntilS);
    visit("lowest_rtt", row.lowestRtt);
    visit("lowest_rtt_before", row.lowestRttBefore);
    visit("highest_rtt", row.highestRtt);
    visit("highest_rate", row.highestRate);
    visit("highest_rate_before", row.highestRateBefore);
    visit("foreign", row.foreign);
    visit("marks", row.marks);
    visit("delivered_bytes", row.deliveredBytes);
    visit("lost_bytes", row.lostBytes);
    visit("cubic_highest", row.cubicHighest);
    visit("cubic_cut_s", row.cubicCutS);
    visit("cubic_until_s", row.cubicUntilS);
    visit("room_s", row.roomS);
    visit("cut_until_s", row.cutUntilS);
    visit("most_in_flight", row.mostInFlight);
    visit("bad_rtt", row.badRtt);
    visit("bad_time", row.badTime);
    visit("held", row.held);
    visit("floored", row.floored);
    visit("resets", row.resets);
}

} // namespace netctrl

#endif // NETCTRL_PACING_LAWS_H
