// Made by netctrl export ns3: do not edit.
// Pacing laws, one sample at a time: printed from the Python that netctrl runs.

#ifndef NETCTRL_PACING_LAWS_H
#define NETCTRL_PACING_LAWS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace netctrl
{

constexpr int64_t kSteps = 3;
constexpr int64_t kTerms = 11;
constexpr int64_t kHalvings = 64;

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

struct OwnRateState
{
    double timeS = 0.0;          ///< Of the newest sample [s]
    double appliedS = 0.0;       ///< Of the newest window [s]
    double rate = 0.0;           ///< In force [bit/s]
    double minRtt = 0.0;         ///< ℓ₀ [s]
    double targetRtt = 0.0;      ///< ℓ₀ + α/x [s]
    double deliveredRate = 0.0;  ///< Over the last round trip [bit/s]
    double prediction = 0.0;     ///< Of the RTT to come [s]
    double samples = 0.0;
    double phase = 0.0;          ///< START, CRUISE or DRAIN
    double window = 0.0;         ///< W [packet]
    double mostInFlight = 0.0;   ///< What may be [byte]
    double deliveredBytes = 0.0;
    double roundS = 0.0;         ///< This round trip began [s]
    double roundBytes = 0.0;     ///< Delivered by then [byte]
    double roundEnd = 0.0;       ///< It ends once so much is delivered or lost [byte]
    double roundRtt = 0.0;       ///< Least of this round trip [s]
    double roundSum = 0.0;       ///< Of its RTTs [s]
    double roundSamples = 0.0;   ///< Samples before it
    double rtt = 0.0;            ///< ℓ, least of the last round trip [s]
    double recentRtt = 0.0;      ///< Least of the newest few samples [s]
    double recent = 0.0;         ///< Their number
    double rateBefore = 0.0;     ///< Delivered over the round trip before the last [bit/s]
    double flat = 0.0;           ///< Round trips of the start without growth
    double free = 0.0;           ///< Round trips without a queue
    double emptied = 0.0;        ///< Number of times that the queue ran empty by itself; half of it is forgotten each period
    double lowestBefore = 0.0;   ///< Least RTT of the period before [s]
    double lostBytes = 0.0;      ///< -1: not known yet
    double lostBase = 0.0;       ///< Lost when there was no excess of losses last [byte]
    double sentBase = 0.0;       ///< Sent by then [byte]
    double share = 0.0;          ///< Of α that the buffer is taken to hold
    double shareS = 0.0;         ///< Time of its last cut [s]
    double roundLost = 0.0;      ///< Lost when this round trip began [byte]
    double marked = 0.0;         ///< Acknowledged with marks by then [byte]
    double marks = 0.0;          ///< Their average share, of L4S; 1: none was heard yet
    double limit = 0.0;          ///< Greatest window since the last significant losses or marks [packet]
    double limitS = 0.0;         ///< Time of these [s]
    double deaf = 0.0;           ///< Round trips to come that hear of losses of what was sent before a cut
    double probeS = 0.0;         ///< The next drain begins [s]
    double drainUntilS = 0.0;    ///< [s]
    double saved = 0.0;          ///< Window before the drain [packet]
    double drainS = 0.0;         ///< The drain began [s]
    double drained = 0.0;        ///< Queueing delay before it [s]; 0 where there was none to speak of
    double drainRtt = 0.0;       ///< Least RTT of packets sent in it [s]
    double drainRounds = 0.0;    ///< Round trips of packets sent in it
    double drainSum = 0.0;       ///< Of their least RTTs [s]
    double drainSpread = 0.0;    ///< Of their spreads [s]
    double wander = 0.0;         ///< What jitter adds to the least RTT of a round trip, beyond ℓ₀: the less of the last two drains' [s]
    double wanderBefore = 0.0;   ///< As of the last drain [s]
    double spread = 0.0;         ///< Mean RTT less the least, of the round trip before it [s]
    double seenS = 0.0;          ///< When the least RTT was seen last [s]
    double fastest = 0.0;        ///< Highest delivered rate of late [bit/s]
    double foreign = 0.0;        ///< Drains in a row that left most of the queue
    double competing = 0.0;      ///< 1: with Cubic's window, as others keep a queue
    double peak = 0.0;           ///< Window at its last cut in competition [packet]
    double cutS = 0.0;           ///< Time of this cut [s]
    double lowestRtt = 0.0;      ///< Since the last drain [s]
    double badRtt = 0.0;
    double badTime = 0.0;
    double held = 0.0;
    double floored = 0.0;
    double resets = 0.0;
};

struct OwnRateParameters
{
    double packets;        ///< a [packet]
    double packetsPerRoot; ///< c [packet √s]
    double gain;           ///< γ
    double toleratedLoss;
    double cut;
    double growth;
    double noiseShare;
    double drainShare;
    double probeS;
    double patienceDrains;
    double scalable;       ///< 1: L4S
    double packet;         ///< [byte]
    double minRate;        ///< [bit/s]
    double maxRate;        ///< [bit/s]
    double startRate;      ///< [bit/s]
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

/// A sample's part in the least RTTs and the round trip's mean.
inline void
Listen(OwnRateState& state, double time, double rtt)
{
    state.minRtt = std::min(state.minRtt, rtt);
    if (rtt <= 1.01 * state.minRtt)
    {
        state.seenS = time;
    }
    state.lowestRtt = std::min(state.lowestRtt, rtt);
    if (state.phase == 2.0 && time - rtt >= state.drainS)
    {
        state.drainRtt = std::min(state.drainRtt, rtt);
    }
    state.roundRtt = std::min(state.roundRtt, rtt);
    state.roundSum += rtt;
    state.samples += 1.0;
    if (state.phase == 0.0)
    {
        state.recentRtt = std::min(state.recentRtt, rtt);
        state.recent += 1.0;
    }
}

/// Drains begin at multiples of the period on a clock that all share, so that they are those of all.
inline double
Next(const OwnRateState& state, const OwnRateParameters& p, double time)
{
    const double period = p.probeS * (state.competing > 0.0 ? 4.0 : 1.0);
    return (std::floor(time / period) + 1.0) * period;
}

inline void
GiveUp(OwnRateState& state)
{
    state.competing = 0.0;
    state.foreign = -8.0;
}

/// A queue that the drains of all flows of this law leave, several times in a row, is kept by others.
inline void
Suspect(OwnRateState& state, const OwnRateParameters& p, double time, double left, double jitter)
{
    if (state.competing > 0.0)
    {
        if (left < 0.1 * state.drained)
        {
            state.competing = 0.0;
            state.foreign = p.patienceDrains - 1.0;
        }
    }
    else if (left <= 0.5 * state.drained + jitter || state.window < 3.0)
    {
        state.foreign = std::min(state.foreign, 0.0);
    }
    else
    {
        state.foreign += 1.0;
        if ((state.foreign >= p.patienceDrains && p.patienceDrains > 0.0) && state.window >= 1.0 && state.marks == 1.0)
        {
            state.competing = 1.0;
            state.peak = std::max(state.window, 0.5 * state.fastest * state.rtt / (8.0 * p.packet));
            state.cutS = time;
            if (state.peak < 10.0)
            {
                GiveUp(state);
            }
        }
    }
}

/// The least RTT is that of this period and the one before.
inline void
Renew(OwnRateState& state, const OwnRateParameters& p, double time)
{
    state.fastest *= 0.9;
    const double lowest = std::min(state.lowestRtt, state.lowestBefore);
    if ((state.foreign <= 0.0 && state.competing == 0.0) || time - state.seenS > 40.0)
    {
        state.minRtt = lowest;
        state.seenS = time;
    }
    state.lowestBefore = state.lowestRtt;
    state.lowestRtt = HUGE_VAL;
    state.emptied *= 0.5;
    state.probeS = Next(state, p, time);
}

inline void
EndDrain(OwnRateState& state, const OwnRateParameters& p, double time)
{
    state.phase = 1.0;
    state.window = state.saved;
    state.free = 0.0;
    if (state.drainRtt < HUGE_VAL && state.drained > 0.0)
    {
        Suspect(state, p, time, state.drainRtt - state.minRtt, 3.0 * state.spread);
    }
    Renew(state, p, time);
    double wander = 0.0;
    if (state.drainRounds > 0.0)
    {
        wander = std::max(state.drainSum / state.drainRounds - state.minRtt, 0.0);
        wander = std::min(wander, 3.0 * state.drainSpread / state.drainRounds);
    }
    state.wander = std::min(wander, state.wanderBefore);
    state.wanderBefore = wander;
}

/// Half a window that is lost at once is a timer's guess, and what was lost before the first sample is no news.
inline void
HearTimer(OwnRateState& state, const OwnRateParameters& p, double delivered, double lost)
{
    if (!std::isfinite(lost))
    {
        return;
    }
    if (state.lostBytes < 0.0)
    {
        state.lostBase = lost;
        state.sentBase = delivered + lost;
    }
    else if (lost > state.lostBytes && lost - state.lostBytes > 0.5 * std::max(state.window, 10.0) * p.packet)
    {
        state.lostBase += lost - state.lostBytes;
        state.sentBase += lost - state.lostBytes;
    }
    state.lostBytes = lost;
}

/// alpha = a + c √x [packet] of a rate x [packet/s].
inline double
OwnQueue(double packets, double perRoot, double rate)
{
    return packets + perRoot * std::sqrt(std::max(rate, 0.0));
}

inline void
EndStart(OwnRateState& state, double pipe, double alpha)
{
    state.phase = 1.0;
    state.window = std::min(state.window, std::max(pipe + alpha, 2.0));
    state.deaf = 2.0;
}

/// The share of alpha that is kept: cut at any loss or mark, raised in time, so that all flows come to one share. Random
/// losses leave a shorter queue, no lower rate.
inline void
KeepRoom(OwnRateState& state, double time, double span, double gone, bool marked)
{
    if (gone <= state.roundLost && !marked)
    {
        state.share = std::min(state.share + 0.05 * span, 1.0);
    }
    else if (time - state.shareS > 0.1)
    {
        state.share = std::max(0.8 * state.share, 0.1);
        state.shareS = time;
    }
    state.roundLost = gone;
}

/// ln x of 1 <= x < 2^64, within 3 units in the last place of the greater of it and 1.
///
/// x = 2^k m with √½ <= m < √2, and ln m = 2 artanh z = 2 (z + z^3/3 + z⁵/5 + ...), z = (m - 1)/(m + 1).
inline double
Logarithm(double x)
{
    double k = 0.0;
    for (int64_t turn = 0; turn < kHalvings; ++turn)
    {
        if (x * 0.7071067811865476 < 1.0)
        {
            break;
        }
        x *= 0.5;
        k += 1.0;
    }
    const double z = (x - 1.0) / (x + 1.0);
    const double square = z * z;
    double total = 0.0;
    double power = 2.0 * 11.0 + 1.0;
    for (int64_t turn = 0; turn < kTerms + 1; ++turn)
    {
        total = total * square + 1.0 / power;
        power -= 2.0;
    }
    return k * 0.6931471805599453 + 2.0 * z * total;
}

/// Share that was lost since the excess over what is tolerated was last 0, if this excess is significant; else 0.
///
/// A one-sided cumulative sum, in which n packets may lose p n.
inline double
Judge(OwnRateState& state, const OwnRateParameters& p, double delivered, double lost)
{
    if (!std::isfinite(lost))
    {
        return 0.0;
    }
    const double sent = delivered + lost;
    const double packets = (sent - state.sentBase) / p.packet;
    const double gone = (lost - state.lostBase) / p.packet;
    const double excess = gone - p.toleratedLoss * packets;
    const bool heard = state.deaf == 0.0;
    state.deaf = std::max(state.deaf - 1.0, 0.0);
    if (heard && excess > 0.0)
    {
        double significant = 2.0;
        if (state.phase != 0.0)
        {
            significant = std::max(1.3 * Logarithm(1.0 + state.window / (4.0 * state.rtt)), 3.0);
        }
        if (excess < significant)
        {
            return 0.0;
        }
    }
    state.lostBase = lost;
    state.sentBase = sent;
    return heard && excess > 0.0 ? gone / packets : 0.0;
}

/// Round trips in a virtual one, V/R with V = max(R, 25 ms).
inline double
VirtualTrips(double rtt)
{
    return std::max(0.025 / rtt, 1.0);
}

/// What marks of L4S cut: half of their average share, 1 until the first; once for what was sent in a virtual round
/// trip, of which marks may come in two rounds.
inline double
MarksCut(OwnRateState& state, double told, double time)
{
    if (told > 0.0 || state.marks < 1.0)
    {
        state.marks += 0.0625 / VirtualTrips(state.rtt) * (std::min(told, 1.0) - state.marks);
    }
    const bool heard = time - state.limitS > (VirtualTrips(state.rtt) + 0.5) * state.rtt;
    return told > 0.0 && heard ? 0.5 * state.marks : 0.0;
}

/// The cube root of 0 or of 1e-12 <= x <= 1e12, within 1.5 units in the last place.
///
/// x^(1/4) x^(1/16) x^(1/64) is off by x^(1/192), at most 16 %. Halley's step cubes that error.
inline double
CubeRoot(double x)
{
    if (x <= 0.0)
    {
        return 0.0;
    }
    const double fourth = std::sqrt(std::sqrt(x));
    const double sixteenth = std::sqrt(std::sqrt(fourth));
    double y = fourth * sixteenth * std::sqrt(std::sqrt(sixteenth));
    for (int64_t turn = 0; turn < kSteps; ++turn)
    {
        const double cube = y * y * y;
        y += y * ((x - cube) / (2.0 * cube + x));
    }
    return y;
}

/// Window in congestion avoidance after `acknowledged` packets more [packet].
///
/// max(C (t + R - K)^3 + M, w0 + a t/R), with K = ((M - w0)/C)^(1/3), is approached as RFC 9438 says. After fast
/// convergence M is 0.85 W and w0 is 0.7 W, so that K is (0.15 W/C)^(1/3), not (0.3 M/C)^(1/3).
///
/// Parameters
/// ----------
/// window : float
///     W before it [packet].
/// highest : float
///     M (W_max), the window at the last cut, or less by fast convergence [packet]; at least `first`.
/// first : float
///     w0 (cwnd_epoch), the window when congestion avoidance began [packet].
/// since : float
///     t, the time since congestion avoidance began [s].
/// rtt : float
///     R, with queueing [s].
/// acknowledged : float
///     [packet]
///
/// Notes
/// -----
/// RFC 9438, Sections 4.2 to 4.5, with beta = 0.7, C = 0.4, and the Reno-friendly region. Where its line is above the
/// window before the last cut, a stays 0.53, as in Linux; Section 4.3 recommends a = 1 there.
inline double
CubicWindow(double window, double highest, double first, double since, double rtt, double acknowledged)
{
    const double past = since + rtt - CubeRoot((highest - first) / 0.4);
    const double target = std::min(std::max(0.4 * (past * past * past) + highest, window), 1.5 * window);
    const double friendly = first + 0.5294117647058825 * since / rtt;
    const double grown = window + (target - window) / window * acknowledged;
    return std::max(grown, std::min(friendly, window + acknowledged));
}

/// Cubic's window. It answers each loss, but not before it is nearly back at its peak: a sender that loses all the
/// time, as BBR does in short buffers, would take it down to nothing.
inline void
Compete(OwnRateState& state, double time, bool lost, double share)
{
    const double W = state.window;
    const double since = time - state.cutS;
    const double back = CubeRoot((1.0 - 0.7) / 0.4 * state.peak);
    if (lost && since > std::max(state.rtt, (share > 0.0 ? 0.5 : 1.0) * 0.8 * back))
    {
        state.peak = W;
        state.window = std::max(std::min(0.7, 1.0 - share) * W, 1.0);
        state.cutS = time;
        state.limitS = time;
        state.deaf = 1.0;
        if (W < 4.0)
        {
            GiveUp(state);
        }
        return;
    }
    state.window = CubicWindow(W, state.peak, 0.7 * state.peak, since, state.rtt, W);
}

/// Significant losses, or marks: the window less a cut is its limit.
inline void
Lose(OwnRateState& state, double time, double cut)
{
    state.limit = std::max((1.0 - cut) * state.window, 0.1);
    state.limitS = time;
    state.window = std::min(state.window, state.limit);
}

/// The window of the next round trip; after losses its limit's rate x grows by c √x each second,
/// squared, whatever the round trip: with the cuts, which take a share, flows become equal as under AIMD.
inline void
Cruise(OwnRateState& state, const OwnRateParameters& p, double time, double cut, double alpha)
{
    const double W = state.window;
    double wanted = W + p.gain * (W * std::min((state.minRtt + state.wander) / state.rtt, 1.0) + alpha - W);
    if (state.free >= 3.0)
    {
        wanted = std::max(wanted, W + (p.growth - 1.0) * W * std::min((state.free - 3.0) / 20.0, 1.0));
    }
    state.window = std::min(wanted, 1.25 * W + 0.5);
    if (cut > 0.0)
    {
        state.window = std::min(wanted, W);
        Lose(state, time, cut);
    }
    if (state.limit < HUGE_VAL && (cut == 0.0 || state.marks < 1.0))
    {
        const double root = std::sqrt(state.limit / state.rtt);
        const double since = time - state.limitS;
        const double faster = 1.0 + since * since / (5.0 * 5.0);
        if (state.marks < 1.0)
        {
            const double trips = VirtualTrips(state.rtt);
            state.limit += 1.3660254037844386 / (trips * (trips + 1.0)) * faster;
        }
        else
        {
            const double steeper = p.packetsPerRoot * root / (root + 3.0) * (1.0 + since / 0.25) * faster;
            state.limit += state.limit * std::min(steeper / root * state.rtt, 0.02);
        }
        if (since > 10.0 * p.probeS)
        {
            state.limit = HUGE_VAL;
        }
        state.window = std::min(state.window, state.limit);
    }
}

/// A round trip is over: the window of the next.
inline void
EndRound(OwnRateState& state, const OwnRateParameters& p, double time, double delivered, double inFlight,
    double lost, double marked)
{
    const double packet = p.packet;
    const double span = time - state.roundS;
    const double gone = std::isfinite(lost) ? lost : 0.0;
    const double got = delivered - state.roundBytes;
    const double told = std::isfinite(marked) ? std::max(marked - state.marked, 0.0) / std::max(got, packet) : 0.0;
    state.marked = std::isfinite(marked) ? marked : state.marked;
    state.rtt = state.roundRtt;
    const double spread = state.roundSum / std::max(state.samples - state.roundSamples, 1.0) - state.rtt;
    state.rateBefore = state.deliveredRate;
    state.deliveredRate = 8.0 * got / span;
    state.fastest = std::max(state.fastest, state.deliveredRate);
    const bool drained = state.roundS < state.drainUntilS + state.rtt;
    const bool many = state.samples - state.roundSamples >= 8.0;
    if (state.phase == 2.0 && many && state.roundS >= state.drainS + state.rtt)
    {
        state.drainRounds += 1.0;
        state.drainSum += state.rtt;
        state.drainSpread += spread;
    }
    state.roundS = time;
    state.roundBytes = delivered;
    state.roundEnd = delivered + gone + (std::isfinite(inFlight) ? inFlight : state.window * packet);
    state.roundRtt = HUGE_VAL;
    state.roundSum = 0.0;
    state.roundSamples = state.samples;
    state.appliedS = time;
    const double base = state.minRtt + state.wander;
    const double queue = state.rtt - base;
    const double before = state.roundLost;
    const double W = state.window;
    const double x = W / state.rtt;
    const bool fresh = told > 0.0 && state.deaf == 0.0;
    KeepRoom(state, time, span, gone, fresh && p.scalable == 0.0);
    double alpha = std::max(state.share * OwnQueue(p.packets, p.packetsPerRoot, x), 1.0);
    state.targetRtt = base + alpha / x;
    if (state.phase != 0.0)
    {
        alpha += p.noiseShare * spread * x;
    }
    const bool empty = queue * x < 0.3 * alpha + 0.2 * state.wander * x;
    state.free = empty ? state.free + 1.0 : 0.0;
    if (state.free == 1.0 && state.drainUntilS > 0.0 && !drained)
    {
        state.emptied += 1.0;
    }
    const double share = Judge(state, p, delivered, lost);
    double cut = share > 0.0 ? std::max(share, p.cut) : 0.0;
    if (p.scalable > 0.0)
    {
        cut = std::max(cut, MarksCut(state, told, time));
    }
    else if (fresh && (state.share <= 0.1 || alpha <= 1.0))
    {
        cut = std::max(cut, p.cut);
    }
    if (share > 0.0 || (cut > 0.0 && p.scalable == 0.0))
    {
        state.deaf = 1.0;
    }
    const double pipe = state.deliveredRate * base / (8.0 * packet);
    if (state.phase == 0.0)
    {
        state.flat = state.deliveredRate < 1.25 * state.rateBefore ? state.flat + 1.0 : 0.0;
        const double stands = 2.0 * alpha + state.spread * x;
        state.spread = spread;
        if (share > 0.0 || told > 0.0 || state.flat >= 3.0 || queue * x > stands)
        {
            EndStart(state, pipe, alpha);
        }
        else
        {
            state.window = std::min(2.0 * state.window, std::max(4.0 * got / packet, 2.0 * 10.0));
        }
    }
    else if (state.phase == 1.0)
    {
        if (state.competing > 0.0)
        {
            Compete(state, time, gone > before || fresh, share);
        }
        else if (cut > 0.0 || !drained)
        {
            Cruise(state, p, time, cut, alpha);
        }
        const bool alone = state.competing == 0.0 && state.foreign <= 0.0;
        const bool empties = alone && state.emptied >= 2.0 && state.share >= 0.5;
        if (time >= state.probeS && (empties || state.marks < 1.0))
        {
            Renew(state, p, time);
        }
        else if (time >= state.probeS && span * std::min(W, 1.0) < 4.0 * state.rtt)
        {
            state.phase = 2.0;
            state.saved = state.window;
            state.window = std::min(state.window, p.drainShare * pipe * state.minRtt / base);
            state.drainUntilS = time + 0.125 * p.probeS + 2.0 * std::min(state.rtt, 2.0 * state.targetRtt);
            state.drained = empty ? 0.0 : state.rtt - state.minRtt;
            state.drainRounds = 0.0;
            state.drainSum = 0.0;
            state.drainSpread = 0.0;
            state.drainRtt = HUGE_VAL;
            state.drainS = time;
            state.spread = spread;
        }
    }
    else if (cut > 0.0)
    {
        state.saved *= 1.0 - cut;
        state.limit = state.saved;
        state.limitS = time;
    }
    const double fast = std::max(state.deliveredRate, state.rateBefore) / (8.0 * packet);
    if (state.phase != 0.0 && state.competing == 0.0)
    {
        state.window = std::min(state.window, 2.0 * (fast * base + alpha) + 4.0);
    }
    state.window = std::max(state.window, 0.1);
}

/// One RTT [s] at a time [s], bytes delivered so far, in flight, lost, and of those delivered the ones whose
/// acknowledgements told of marks (NaN: not known); changes the state in place and gives the rate in force [bit/s].
inline double
OwnRateLawStep(OwnRateState& state, const OwnRateParameters& p, double time, double rtt, double delivered,
    double inFlight, double lost, double marked)
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
    const double gone = std::isfinite(lost) ? lost : 0.0;
    const bool first = state.samples == 0.0;
    bool changed = first;
    state.timeS = time;
    state.deliveredBytes = delivered;
    Listen(state, time, rtt);
    if (first)
    {
        state.rtt = rtt;
        state.targetRtt = rtt;
        state.roundS = time - rtt;
        state.roundBytes = 0.0;
        state.roundEnd = 10.0 * p.packet + gone;
        state.probeS = Next(state, p, time);
        state.seenS = time;
    }
    if (state.phase == 2.0 && time >= state.drainUntilS)
    {
        EndDrain(state, p, time);
        changed = true;
    }
    HearTimer(state, p, delivered, lost);
    if (state.phase == 0.0 && state.recent >= 8.0)
    {
        const double x = state.window / rtt;
        const double alpha = OwnQueue(p.packets, p.packetsPerRoot, x);
        const double span = time - state.roundS;
        const double stands = 2.0 * alpha + state.spread * x;
        if ((state.recentRtt - state.minRtt) * x > stands && span >= 0.5 * rtt)
        {
            const double now = 8.0 * (delivered - state.roundBytes) / span;
            EndStart(state, std::max(now, state.deliveredRate) * state.minRtt / (8.0 * p.packet), alpha);
            changed = true;
        }
        state.recent = 0.0;
        state.recentRtt = HUGE_VAL;
    }
    if (delivered + gone >= state.roundEnd && time - state.roundS >= 0.5 * state.minRtt)
    {
        EndRound(state, p, time, delivered, inFlight, lost, marked);
        changed = true;
    }
    if (!changed)
    {
        return state.rate;
    }
    const double speed = state.phase == 0.0 ? 2.0 : 1.02;
    double trip = state.rtt;
    if (state.phase != 0.0)
    {
        trip = std::min(trip, 2.0 * state.targetRtt);
    }
    state.mostInFlight = std::max(state.window, 1.0) * p.packet;
    const double rate = speed * 8.0 * state.window * p.packet / trip;
    if (rate < p.minRate)
    {
        state.floored += 1.0;
    }
    state.rate = std::min(std::max(rate, p.minRate), p.maxRate);
    state.prediction = state.window * p.packet * 8.0 / std::max(state.deliveredRate, p.minRate);
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
ForEach(OwnRateParameters& row, Visit visit)
{
    visit("packets", row.packets);
    visit("packets_per_root", row.packetsPerRoot);
    visit("gain", row.gain);
    visit("tolerated_loss", row.toleratedLoss);
    visit("cut", row.cut);
    visit("growth", row.growth);
    visit("noise_share", row.noiseShare);
    visit("drain_share", row.drainShare);
    visit("probe_s", row.probeS);
    visit("patience_drains", row.patienceDrains);
    visit("scalable", row.scalable);
    visit("packet", row.packet);
    visit("min_rate", row.minRate);
    visit("max_rate", row.maxRate);
    visit("start_rate", row.startRate);
}

template <class Visit>
void
ForEach(OwnRateState& row, Visit visit)
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
    visit("window", row.window);
    visit("most_in_flight", row.mostInFlight);
    visit("delivered_bytes", row.deliveredBytes);
    visit("round_s", row.roundS);
    visit("round_bytes", row.roundBytes);
    visit("round_end", row.roundEnd);
    visit("round_rtt", row.roundRtt);
    visit("round_sum", row.roundSum);
    visit("round_samples", row.roundSamples);
    visit("rtt", row.rtt);
    visit("recent_rtt", row.recentRtt);
    visit("recent", row.recent);
    visit("rate_before", row.rateBefore);
    visit("flat", row.flat);
    visit("free", row.free);
    visit("emptied", row.emptied);
    visit("lowest_before", row.lowestBefore);
    visit("lost_bytes", row.lostBytes);
    visit("lost_base", row.lostBase);
    visit("sent_base", row.sentBase);
    visit("share", row.share);
    visit("share_s", row.shareS);
    visit("round_lost", row.roundLost);
    visit("marked", row.marked);
    visit("marks", row.marks);
    visit("limit", row.limit);
    visit("limit_s", row.limitS);
    visit("deaf", row.deaf);
    visit("probe_s", row.probeS);
    visit("drain_until_s", row.drainUntilS);
    visit("saved", row.saved);
    visit("drain_s", row.drainS);
    visit("drained", row.drained);
    visit("drain_rtt", row.drainRtt);
    visit("drain_rounds", row.drainRounds);
    visit("drain_sum", row.drainSum);
    visit("drain_spread", row.drainSpread);
    visit("wander", row.wander);
    visit("wander_before", row.wanderBefore);
    visit("spread", row.spread);
    visit("seen_s", row.seenS);
    visit("fastest", row.fastest);
    visit("foreign", row.foreign);
    visit("competing", row.competing);
    visit("peak", row.peak);
    visit("cut_s", row.cutS);
    visit("lowest_rtt", row.lowestRtt);
    visit("bad_rtt", row.badRtt);
    visit("bad_time", row.badTime);
    visit("held", row.held);
    visit("floored", row.floored);
    visit("resets", row.resets);
}

} // namespace netctrl

#endif // NETCTRL_PACING_LAWS_H
