// Pacing laws, one sample at a time, without ns-3. C++17.
//
// ArxPacer is the pacing paper's Algorithm 1 with its bounds and guards: eq. (1) predicts, eq. (2) learns, eq. (7) with
// the bounds of eq. (3) sets the rate. TargetPacer aims at an RTT: what is in flight over the delivered rate is the RTT
// that the next packet will see. Sources: netctrl.laws.pacing.arx and netctrl.laws.pacing.target_rtt, whose operations
// these are, in their order. Times in s, rates in bit/s.
//
// Fixed: netctrl copies this file as it is. The numbers are in gains.h.

#ifndef NETCTRL_PACING_LAWS_H
#define NETCTRL_PACING_LAWS_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <variant>
#include <vector>

namespace netctrl
{

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kForever = std::numeric_limits<double>::infinity();
constexpr double kDue = 1.0 - 1e-6; ///< times are rounded

/// What a sender sees with an acknowledgement; kNone: not known.
struct PacingSample
{
    double time;      ///< [s]
    double rtt;       ///< [s]
    double delivered; ///< since the flow began [byte]
    double inFlight;  ///< [byte]
    double lost;      ///< since the flow began [byte]
};

/// What a law counts.
struct PacingEvents
{
    int64_t badRtt = 0;  ///< RTTs that are none
    int64_t badTime = 0; ///< times that go backwards
    int64_t held = 0;    ///< rates held for want of a number or of an effect
    int64_t floored = 0; ///< rates that would have been below the least one
    int64_t resets = 0;  ///< estimates that exploded and started again
};

/// No law: a fixed rate.
struct NoTable
{
};

/// The paper's law.
struct ArxTable
{
    double psi;
    double xi;
    double period;         ///< T [s]
    double least;          ///< rate, in the law's unit
    double most;           ///< R, in the law's unit
    double start;          ///< rate [bit/s]
    int pastRtts;          ///< p
    int pastRates;         ///< q
    double step;           ///< alpha
    bool normalised;       ///< alpha is divided by |phi|^2
    double smoothing;      ///< gamma
    bool guarded;
    double rttUnit;        ///< [s]; 0: the first RTT
    double rateUnit;       ///< [bit/s]
    double firstSlope;     ///< b_1 at the start
    double slopeFloor;
    double deviationFloor;
    double thetaLimit;
};

/// The law that aims at an RTT.
struct TargetTable
{
    double psi;
    double xi;
    double period; ///< T [s]
    double least;  ///< [bit/s]
    double most;   ///< [bit/s]
    double start;  ///< [bit/s]
    double packet; ///< [byte]
    double queueShare;
    double queueShareSlope;
    double leastQueueShare;
    double intervalShare;
    double horizonRtts;
    double startGrowth;
    double growth;
    double decrease;
    double probe; ///< [s]
    double probeRtts;
    double drainShare;
    bool competitive;
};

using PacingTable = std::variant<NoTable, ArxTable, TargetTable>;

/// Eq. (7): where the cost is least, without the bounds that eq. (3) asks for.
inline double
BestRate(double psi, double xi, double b1, double rttAtZero, double meanRtt, double variance, double meanRate)
{
    const double pull = (xi / meanRate - b1 / meanRtt) * variance / (2.0 * psi * b1);
    return (pull + meanRtt - rttAtZero) / b1;
}

/// The bounds of eq. (3); what is no number stays none.
inline double
Clipped(double rate, double least, double most)
{
    return std::min(std::max(rate, least), most);
}

/// MPC pacing as published.
class ArxPacer
{
  public:
    explicit ArxPacer(const ArxTable& law)
        : m_law(law),
          m_k(static_cast<std::size_t>(law.pastRtts + law.pastRates)),
          m_p(static_cast<std::size_t>(law.pastRtts)),
          m_theta(m_k, 0.0),
          m_phi(m_k, 0.0),
          m_rate(law.start),
          m_unit(law.rttUnit)
    {
    }

    double Rate() const
    {
        return m_rate;
    }

    const PacingEvents& Events() const
    {
        return m_events;
    }

    double Step(const PacingSample& sample)
    {
        if (!(0.0 < sample.rtt && sample.rtt < kForever))
        {
            ++m_events.badRtt;
            return m_rate;
        }
        if (!(std::isfinite(sample.time) && sample.time >= m_time))
        {
            ++m_events.badTime;
            return m_rate;
        }
        // What a rate does is seen one RTT later: between, samples tell nothing about it.
        if (m_law.guarded && sample.time - m_time < kDue * std::max(m_law.period, sample.rtt))
        {
            return m_rate;
        }
        m_unit = m_unit == 0.0 ? sample.rtt : m_unit;
        const double rtt = sample.rtt / m_unit;
        m_time = sample.time;
        ++m_samples;
        if (m_meanRtt == 0.0)
        {
            Begin(rtt);
            return m_rate;
        }
        Learn(rtt);
        if (m_law.guarded && m_samples <= m_law.pastRtts)
        {
            return m_rate;
        }
        const double b1 = m_theta[m_p];
        double rate = m_rate / m_law.rateUnit;
        if (m_law.guarded && !(b1 >= m_law.slopeFloor))
        {
            ++m_events.held;
        }
        else
        {
            rate = Decide(b1);
        }
        Push(m_p, m_k, rate);
        m_meanRate = m_law.smoothing * m_meanRate + (1.0 - m_law.smoothing) * rate;
        if (m_law.guarded || sample.time - m_applied > m_law.period)
        {
            m_applied = sample.time;
            m_rate = rate * m_law.rateUnit;
        }
        return m_rate;
    }

  private:
    /// Eq. (1), of `count` parameters and past values from these places on.
    double Predicted(std::size_t theta, std::size_t phi, std::size_t count) const
    {
        double total = 0.0;
        for (std::size_t i = 0; i < count; ++i)
        {
            total += m_theta[theta + i] * m_phi[phi + i];
        }
        return total;
    }

    /// Newest first.
    void Push(std::size_t first, std::size_t last, double newest)
    {
        for (std::size_t i = last - 1; i > first; --i)
        {
            m_phi[i] = m_phi[i - 1];
        }
        m_phi[first] = newest;
    }

    /// a alike, and such that RTT and rate of now predict themselves.
    void RestartTheta()
    {
        std::fill(m_theta.begin(), m_theta.end(), 0.0);
        m_theta[m_p] = m_law.firstSlope;
        const double held = m_law.firstSlope * (m_rate / m_law.rateUnit) / m_meanRtt;
        for (std::size_t i = 0; i < m_p; ++i)
        {
            m_theta[i] = (1.0 - held) / static_cast<double>(m_p);
        }
    }

    /// With the first RTT: all averages and histories are what is seen now.
    void Begin(double rtt)
    {
        const double rate = m_rate / m_law.rateUnit;
        m_meanRtt = rtt;
        m_meanRate = rate;
        m_variance = (m_law.deviationFloor * rtt) * (m_law.deviationFloor * rtt);
        std::fill(m_phi.begin(), m_phi.begin() + m_law.pastRtts, rtt);
        std::fill(m_phi.begin() + m_law.pastRtts, m_phi.end(), rate);
        RestartTheta();
    }

    /// Eqs. (1), (2), (4) and (6), and the histories moved on by this RTT.
    void Learn(double rtt)
    {
        const double prediction = Predicted(0, 0, m_k);
        double step = m_law.step;
        if (m_law.normalised)
        {
            double energy = 0.0;
            for (const double value : m_phi)
            {
                energy += value * value;
            }
            step = energy > 0.0 ? step / energy : 0.0;
        }
        const double change = step * (rtt - prediction);
        double size = 0.0;
        for (std::size_t i = 0; i < m_k; ++i)
        {
            m_theta[i] += change * m_phi[i];
            size += m_theta[i] * m_theta[i];
        }
        const double gamma = m_law.smoothing;
        const double off = prediction - m_meanRtt;
        m_meanRtt = gamma * m_meanRtt + (1.0 - gamma) * rtt;
        m_variance = gamma * m_variance + (1.0 - gamma) * off * off;
        Push(0, m_p, rtt);
        if (m_law.guarded)
        {
            if (!(size <= m_law.thetaLimit * m_law.thetaLimit)) // true for NaN too
            {
                ++m_events.resets;
                RestartTheta();
            }
            const double least = m_law.deviationFloor * m_meanRtt;
            if (!(least * least <= m_variance && m_variance < kForever))
            {
                m_variance = least * least;
            }
        }
    }

    /// Eqs. (7) and (8), the bounds, and the rate of before where there is no number.
    double Decide(double b1)
    {
        double rttAtZero = Predicted(0, 0, m_p);
        rttAtZero += Predicted(m_p + 1, m_p, m_k - m_p - 1); // the newest rate so far will be the one before
        double free = kNone;
        if (b1 != 0.0 && m_meanRate != 0.0)
        {
            free = BestRate(m_law.psi, m_law.xi, b1, rttAtZero, m_meanRtt, m_variance, m_meanRate);
        }
        if (std::isnan(free))
        {
            ++m_events.held;
            return m_rate / m_law.rateUnit;
        }
        m_events.floored += free < m_law.least ? 1 : 0;
        return Clipped(free, m_law.least, m_law.most);
    }

    ArxTable m_law;
    std::size_t m_k;
    std::size_t m_p;
    std::vector<double> m_theta; ///< a, then b
    std::vector<double> m_phi;   ///< RTTs, then rates, newest first
    double m_time = -kForever;
    double m_applied = -kForever;
    double m_rate; ///< [bit/s]
    double m_meanRtt = 0.0;
    double m_variance = 0.0;
    double m_meanRate = 0.0;
    double m_unit; ///< of RTTs [s]
    int64_t m_samples = 0;
    PacingEvents m_events;
};

/// Pacing to a target RTT.
class TargetPacer
{
  public:
    explicit TargetPacer(const TargetTable& law)
        : m_law(law),
          m_rate(law.start),
          m_ringTimes(kRing, 0.0),
          m_ringBytes(kRing, 0.0)
    {
    }

    double Rate() const
    {
        return m_rate;
    }

    const PacingEvents& Events() const
    {
        return m_events;
    }

    double Step(const PacingSample& sample)
    {
        const double time = sample.time;
        if (!(0.0 < sample.rtt && sample.rtt < kForever))
        {
            ++m_events.badRtt;
            return m_rate;
        }
        if (!(std::isfinite(time) && time >= m_time))
        {
            ++m_events.badTime;
            return m_rate;
        }
        if (!(std::isfinite(sample.delivered) && sample.delivered >= m_bytes))
        {
            ++m_events.held;
            return m_rate;
        }
        m_time = time;
        m_bytes = sample.delivered;
        Listen(time, sample.rtt);
        HearLoss(sample);
        const double interval = std::max(m_law.period, m_law.intervalShare * m_least);
        if (time - m_applied < kDue * interval)
        {
            return m_rate;
        }
        const double queue = m_recent - m_least;
        m_applied = time;
        m_recent = kForever;
        const double seen = DeliveredRate(time, sample.delivered);
        if (seen <= 0.0)
        {
            m_events.held += seen == 0.0 ? 1 : 0;
            return m_rate;
        }
        m_highestRate = std::max(m_highestRate, seen);
        const bool busy = m_target > 0.0 && queue > kBusy * (m_target - m_least);
        const bool known = busy || m_phase == Phase::start || time < m_cutUntil;
        m_delivered = known ? seen : std::max(seen, m_delivered);
        const double rate = RateWanted(time, queue, sample.inFlight);
        const double kept = std::max(m_law.least, kKept * std::max(m_highestRate, m_highestRateBefore));
        m_events.floored += rate < kept ? 1 : 0;
        const double most = std::min(m_law.most, MostRate(interval, sample.inFlight));
        m_rate = std::max(Clipped(rate, kept, most), m_law.least);
        return m_rate;
    }

    /// What may be in flight [byte]; forever: no bound yet.
    double MostInFlight() const
    {
        return m_mostInFlight;
    }

  private:
    enum class Phase
    {
        start,
        cruise,
        drain,
        drained
    };

    static constexpr std::size_t kRing = 32;
    static constexpr double kBusy = 0.25; ///< of the target's queue: from there on one stands
    static constexpr double kFreeRtts = 2.0;
    static constexpr double kDrainRtts = 2.0;
    static constexpr double kLeastDrop = 0.15; ///< of the delivered rate
    static constexpr double kMostDrop = 0.5;
    static constexpr double kForeign = 2.0; ///< greatest shares: a queue that never falls below is somebody else's
    static constexpr double kStillForeign = 0.25; ///< the same, where it was
    static constexpr double kCubicC = 0.4;        ///< [packet/s^3], RFC 9438
    static constexpr double kCubicBeta = 0.7;
    static constexpr double kCubicMost = 1.5; ///< times what is in flight
    static constexpr double kSeen = 1.002;    ///< times the least RTT
    static constexpr double kRise = 1.001;    ///< times the least RTT, from drain to drain, beside others
    static constexpr double kKept = 0.25;     ///< of the greatest delivered rate of the last two periods
    static constexpr double kCut = 0.5;       ///< of the delivered rate, for a round trip after a loss
    static constexpr double kRoom = 0.5;      ///< of the queue at a loss
    static constexpr double kWaryRtts = 50.0; ///< after a loss, until the rate grows as fast as before
    static constexpr double kMostBdps = 2.0;  ///< in flight
    static constexpr double kMostPackets = 4.0;
    static constexpr double kBits = 8.0;

    struct Queue
    {
        double wanted; ///< [s]
        bool bound;    ///< by the buffer
    };

    /// What every sample adds. Who sees the least RTT need not drain: so all drain together.
    void Listen(double time, double rtt)
    {
        if (rtt <= kSeen * m_least)
        {
            m_probe = NextProbe(time);
        }
        m_recent = std::min(m_recent, rtt);
        m_lowest = std::min(m_lowest, rtt);
        m_least = std::min(m_least, rtt);
        m_highest = std::max(m_highest, rtt);
    }

    /// A loss halves the rate for a round trip, or cuts Cubic's window; once a round trip.
    void HearLoss(const PacingSample& sample)
    {
        const double before = m_lost;
        if (!(sample.lost > before))
        {
            return;
        }
        m_lost = sample.lost;
        if (before < 0.0) // what was lost before the first sample is no news
        {
            return;
        }
        const double time = sample.time;
        if (m_foreign)
        {
            if (time >= m_cubicUntil && std::isfinite(sample.inFlight))
            {
                m_cubicHighest = sample.inFlight / m_law.packet;
                m_cubicCut = time;
                m_cubicUntil = time + m_target;
            }
        }
        else if (time >= m_cutUntil && m_delivered > 0.0)
        {
            const double full = m_highest - m_least;
            if (m_phase == Phase::start)
            {
                m_phase = Phase::cruise;
                m_probe = NextProbe(time);
            }
            if (m_law.competitive && full > kForeign * m_law.queueShare * m_least)
            {
                return; // no queue of this law's: the next drain tells whose
            }
            m_room = kRoom * (TargetQueue(time).bound ? std::min(full, Room(time)) : full);
            m_cutUntil = m_freeSince = time + sample.rtt;
            m_highest = m_highestRate = m_highestRateBefore = 0.0;
            m_applied = -kForever; // a rate is due
        }
    }

    /// Over the last round trip, as near as the ring's marks tell [bit/s]; -1 before they span one. Adds a mark.
    /// Over less of the first round trip than the whole, a window that came back in one burst would be no rate at all.
    double DeliveredRate(double time, double delivered)
    {
        double found = -1.0;
        for (std::size_t back = 1; back <= std::min(m_marks, kRing); ++back)
        {
            const std::size_t at = (m_marks - back) % kRing;
            const double span = time - m_ringTimes[at];
            if (span > 0.0 && (span >= m_least || m_marks >= kRing))
            {
                found = kBits * (delivered - m_ringBytes[at]) / span;
            }
            if (span >= m_least)
            {
                break;
            }
        }
        m_ringTimes[m_marks % kRing] = time;
        m_ringBytes[m_marks % kRing] = delivered;
        ++m_marks;
        return found;
    }

    /// From drain to drain [s].
    double Period() const
    {
        return std::max(m_law.probe, m_law.probeRtts * m_least);
    }

    double NextProbe(double time) const
    {
        return time + Period();
    }

    /// Queue that the buffer is taken to hold [s]: half of what stood at the last loss, all of it a period later.
    double Room(double time) const
    {
        return m_room * (1.0 + std::max(time - m_cutUntil, 0.0) / Period());
    }

    /// d [s], a share of the least RTT that falls with the window, at least a packet's time, and whether the buffer
    /// bounds it; who has more takes less of what the buffer holds, too.
    Queue TargetQueue(double time) const
    {
        const double packet = kBits * m_law.packet / m_delivered;
        const double window = std::max(m_least / packet, 1.0);
        const double free = m_law.queueShare - m_law.queueShareSlope * std::log(window);
        const double share = Clipped(free, m_law.leastQueueShare, m_law.queueShare);
        const double wanted = std::max(share * m_least, packet);
        const double held = share / m_law.queueShare * Room(time);
        return {std::min(wanted, held), held < wanted};
    }

    /// Rate that brings what is in flight to two bandwidth-delay products, or four packets, by the next rate [bit/s], or
    /// as much of the delivered rate as is always kept: at less a sender's timer would sleep for many round trips.
    double MostRate(double interval, double inFlight)
    {
        m_mostInFlight = kForever;
        if (m_foreign) // Cubic's window bounds it
        {
            return kForever;
        }
        // A start's first windows come in bursts: what has been delivered once can be again.
        const double C = m_phase == Phase::start ? std::max(m_delivered, m_highestRate) : m_delivered;
        m_mostInFlight = std::max(kMostBdps * C * m_least / kBits, kMostPackets * m_law.packet);
        if (!std::isfinite(inFlight))
        {
            return kForever;
        }
        return std::max(C + kBits * (m_mostInFlight - inFlight) / interval, kKept * C);
    }

    /// Time to the plateau of Cubic's window [s].
    double CubicK() const
    {
        return std::pow((1.0 - kCubicBeta) * m_cubicHighest / kCubicC, 1.0 / 3.0);
    }

    /// After a drain: the least RTT is that of this period and the one before.
    void NextPeriod(double time)
    {
        const double empty = (m_foreign ? kStillForeign : kForeign) * m_law.queueShare * m_least;
        const bool foreign = m_law.competitive && m_lowest - m_least > empty;
        if (foreign && !m_foreign) // begins on its plateau
        {
            m_cubicHighest = m_delivered * m_target / (kBits * m_law.packet);
            m_cubicCut = time - CubicK();
        }
        m_foreign = foreign;
        if (!foreign)
        {
            // Over long pipes Cubic's queue grows by less from drain to drain than would be noticed.
            const double most = m_law.competitive ? kRise * m_least : kForever;
            m_least = std::min(std::min(m_lowest, m_lowestBefore), most);
        }
        m_lowestBefore = m_lowest;
        m_highestRateBefore = m_highestRate;
        m_lowest = kForever;
        m_highest = m_highestRate = 0.0;
        m_probe = NextProbe(time);
    }

    /// RTT that Cubic's window would make of this flow's share, as it would be now [s].
    double CubicTarget(double time, double rtt) const
    {
        const double since = time - m_cubicCut;
        const double past = since - CubicK();
        const double friendly = 3.0 * (1.0 - kCubicBeta) / (1.0 + kCubicBeta) * since / rtt;
        const double grown = std::max(kCubicC * (past * past * past), friendly - (1.0 - kCubicBeta) * m_cubicHighest);
        const double window = m_cubicHighest + grown;
        return std::min(kBits * m_law.packet * window / m_delivered, kCubicMost * m_prediction);
    }

    /// By phase: growth until a queue is seen; eq. (7); growth where none is left; a drain.
    double RateWanted(double time, double queue, double inFlight)
    {
        const double C = m_delivered;
        const double base = m_least;
        const double wanted = TargetQueue(time).wanted;
        m_target = base + wanted;
        if (m_phase == Phase::start)
        {
            if (queue <= wanted)
            {
                return m_law.startGrowth * C;
            }
            m_phase = Phase::cruise;
            m_probe = NextProbe(time);
        }
        if (queue > kBusy * wanted)
        {
            m_freeSince = time;
        }
        double horizon = m_law.horizonRtts * base;
        if (std::isfinite(inFlight))
        {
            m_prediction = kBits * inFlight / C;
        }
        else // the RTT of now, which doesn't tell what is under way: half as fast
        {
            m_prediction = base + queue;
            horizon = 2.0 * m_law.horizonRtts * base;
        }
        if (m_foreign)
        {
            m_target = std::max(m_target, CubicTarget(time, base + queue));
        }
        if (time < m_cutUntil)
        {
            return kCut * C;
        }
        const double standing = m_target - base;
        const double drop = Clipped(0.5 * standing / base, kLeastDrop, kMostDrop);
        if (m_phase == Phase::cruise && time >= m_probe)
        {
            m_phase = Phase::drain;
            m_drainUntil = time + kDrainRtts * base + 2.0 * std::min(standing, kDrainRtts * base) / drop;
        }
        if (m_phase == Phase::drain && m_prediction <= m_law.drainShare * base)
        {
            m_phase = Phase::drained; // its effect is seen a round trip later
            m_drainUntil = std::min(m_drainUntil, time + base);
        }
        if (m_phase == Phase::drain || m_phase == Phase::drained)
        {
            if (time < m_drainUntil)
            {
                return m_phase == Phase::drained ? C : (1.0 - drop) * C;
            }
            m_phase = Phase::cruise;
            m_freeSince = time;
            NextPeriod(time);
        }
        const double wary = m_foreign ? 1.0 : std::min((time - m_cutUntil) / (kWaryRtts * base), 1.0);
        const double growth = 1.0 + wary * (m_law.growth - 1.0);
        if (time - m_freeSince > kFreeRtts * base)
        {
            return growth * C;
        }
        const double spread = m_law.leastQueueShare * base;
        const double free =
            BestRate(m_law.psi, m_law.xi, horizon / C, m_prediction - horizon, m_target, spread * spread, C);
        return Clipped(free, m_law.decrease * C, growth * C);
    }

    TargetTable m_law;
    double m_rate; ///< [bit/s]
    double m_time = -kForever;
    double m_applied = -kForever;
    double m_least = kForever;  ///< RTT [s]
    double m_recent = kForever; ///< least RTT since the last rate [s]
    double m_lowest = kForever; ///< least RTT of this period [s]
    double m_lowestBefore = kForever;
    double m_target = 0.0;     ///< [s]
    double m_delivered = 0.0;  ///< [bit/s]
    double m_prediction = 0.0; ///< [s]
    double m_freeSince = 0.0;
    double m_probe = 0.0;
    double m_drainUntil = 0.0;
    double m_highestRate = 0.0;
    double m_highestRateBefore = 0.0;
    double m_bytes = 0.0;
    double m_lost = -1.0; ///< not known yet
    double m_highest = 0.0;   ///< RTT since the last loss, or of this period [s]
    double m_room = kForever; ///< half of the queue at the last loss [s]
    double m_cutUntil = -kForever;
    double m_mostInFlight = kForever; ///< [byte]
    bool m_foreign = false; ///< the queue is somebody else's
    double m_cubicHighest = 0.0;
    double m_cubicCut = 0.0;
    double m_cubicUntil = 0.0;
    Phase m_phase = Phase::start;
    std::size_t m_marks = 0;
    std::vector<double> m_ringTimes;
    std::vector<double> m_ringBytes;
    PacingEvents m_events;
};

} // namespace netctrl

#endif // NETCTRL_PACING_LAWS_H
