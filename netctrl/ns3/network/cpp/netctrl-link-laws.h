// Laws for the rates of N links as sums over what was measured, without ns-3. C++17.
//
// u_l(n) = offset_l + sum of coefficient * series(n - lag). Rates and backlogs (over the interval) in bit/s. A series is
// kind * N + link. Where all is heard in time: LinkLaw; where messages come late or never: DistributedLaw.
//
// Fixed: netctrl copies this file as it is. The numbers are in gains.h.

#ifndef NETCTRL_LINK_LAWS_H
#define NETCTRL_LINK_LAWS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace netctrl
{

/// Kinds of series. The last two of LinkLaw: what came beyond what was foreseen, less what was lost; what was commanded
/// and not sent. Of DistributedLaw: by how much the backlog and the newest rate differ from what was predicted.
enum Kind : std::size_t
{
    kRate,
    kBacklog,
    kSurplus,
    kShortfall,
    kBacklogNews = kSurplus,
    kRateNews = kShortfall,
    kKinds
};

struct Tap
{
    int series;
    int lag; ///< [interval]
    double coefficient;
};

struct Taps
{
    std::vector<double> offset; ///< of each link [bit/s]
    std::vector<int> start;     ///< where each link's taps start, and the end
    std::vector<Tap> taps;
};

/// A link's share of what another one sends, a delay later.
struct Feed
{
    int link;
    int delay; ///< [interval]
    double share;
};

struct LawTable
{
    Taps control;
    std::vector<double> nominal; ///< rates around which links are controlled [bit/s]
    double standing;             ///< backlog around which they are [bit/s]
    // What is foreseen to arrive at each link: what demands send into it, and what others sent unless it is `alone`.
    std::vector<double> expected; ///< [bit/s]
    bool alone;
    std::vector<int> feedStart;
    std::vector<Feed> feeds;
};

/// Who hears whom, and when; of no use where all is heard in time (ticks = 0).
struct HearingTable
{
    int ticks; ///< of an interval
    Taps predicted; ///< each link's own backlog; no taps where the law takes no news
    bool central;   ///< one controller hears of all and tells all links what to send
    int messages;   ///< how many are sent an interval
    // By the link that hears, N each:
    std::vector<int> line;  ///< number of the messages by which it hears of a link, or kNever
    std::vector<int> least; ///< age from which on it may use what that link measured [interval]
};

constexpr int64_t kLost = -1;
constexpr int kNever = -1;

/// What a link measured in the interval that ended.
struct Measured
{
    double sent;
    double backlog; ///< at its end
    double arrived;
    double lost;
};

/// What is remembered of all series: a ring of a power of 2.
class History
{
  public:
    History(std::size_t links, int lags)
        : m_links(links)
    {
        while (m_slots < static_cast<std::size_t>(lags))
        {
            m_slots *= 2;
        }
        m_values.resize(kKinds * links * m_slots);
    }

    void Fill(Kind kind, std::size_t link, double value)
    {
        for (std::size_t slot = 0; slot < m_slots; ++slot)
        {
            m_values[(kind * m_links + link) * m_slots + slot] = value;
        }
    }

    double& At(std::size_t series, int64_t sample)
    {
        return m_values[series * m_slots + Slot(sample)];
    }

    double& At(Kind kind, std::size_t link, int64_t sample)
    {
        return At(kind * m_links + link, sample);
    }

    std::size_t Slot(int64_t sample) const
    {
        return static_cast<std::size_t>(sample) & (m_slots - 1);
    }

    std::size_t Slots() const
    {
        return m_slots;
    }

  private:
    std::size_t m_links;
    std::size_t m_slots = 1;
    std::vector<double> m_values;
};

inline int
LongestLag(const Taps& taps)
{
    int most = 0;
    for (const Tap& tap : taps.taps)
    {
        most = std::max(most, tap.lag);
    }
    return most;
}

/// The sum of a link, where value(series, lag) is what a series was.
template <class Value>
double
Sum(const Taps& taps, std::size_t link, Value value)
{
    double total = taps.offset[link];
    for (int j = taps.start[link]; j < taps.start[link + 1]; ++j)
    {
        const Tap& tap = taps.taps[static_cast<std::size_t>(j)];
        total += tap.coefficient * value(static_cast<std::size_t>(tap.series), tap.lag);
    }
    return total;
}

/// All links act at once, and all is heard in time. Source: netctrl.sim.network.kernel.
class LinkLaw
{
  public:
    explicit LinkLaw(const LawTable& law)
        : m_law(law),
          m_history(law.nominal.size(), Lags(law)),
          m_command(law.nominal)
    {
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            m_history.Fill(kRate, link, law.nominal[link]);
            m_history.Fill(kBacklog, link, law.standing);
        }
    }

    /// Rates for the interval that begins, by link, before they are bounded. At the first one only backlogs count: what
    /// differs from the standing one is the first surplus.
    const std::vector<double>& Next(const std::vector<Measured>& measured)
    {
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            const Measured& now = measured[link];
            const bool first = m_sample == 0;
            m_history.At(kBacklog, link, m_sample) = now.backlog;
            if (!first)
            {
                m_history.At(kRate, link, m_sample) = now.sent;
            }
            m_history.At(kSurplus, link, m_sample) =
                first ? now.backlog - m_law.standing : now.arrived - Foreseen(link) - now.lost;
            m_history.At(kShortfall, link, m_sample) = first ? 0.0 : m_command[link] - now.sent;
        }
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            m_command[link] = Sum(m_law.control, link, [this](std::size_t series, int lag) {
                return m_history.At(series, m_sample - lag);
            });
        }
        ++m_sample;
        return m_command;
    }

  private:
    static int Lags(const LawTable& law)
    {
        int most = LongestLag(law.control);
        for (const Feed& feed : law.feeds)
        {
            most = std::max(most, feed.delay);
        }
        return most + 2;
    }

    double Foreseen(std::size_t link)
    {
        double total = m_law.expected[link];
        for (int j = m_law.feedStart[link]; j < m_law.feedStart[link + 1] && !m_law.alone; ++j)
        {
            const Feed& feed = m_law.feeds[static_cast<std::size_t>(j)];
            total += feed.share * m_history.At(kRate, static_cast<std::size_t>(feed.link), m_sample - 1 - feed.delay);
        }
        return total;
    }

    const LawTable& m_law;
    History m_history;
    std::vector<double> m_command;
    int64_t m_sample = 0;
};

/// Each link measures and acts once an interval at a tick of its own, by what it has heard. What it hasn't is assumed:
/// rates are nominal, there are no news, backlogs are what they last were. Source: netctrl.sim.network.message_kernel.
class DistributedLaw
{
  public:
    DistributedLaw(const LawTable& law, const HearingTable& hearing, std::vector<int32_t> phase)
        : m_law(law),
          m_hearing(hearing),
          m_phase(std::move(phase)),
          m_history(law.nominal.size(), std::max(LongestLag(law.control), LongestLag(hearing.predicted)) + 4),
          m_arrival(static_cast<std::size_t>(std::max(hearing.messages, 1)) * m_history.Slots(), kLost),
          m_command(law.nominal)
    {
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            m_history.Fill(kRate, link, law.nominal[link]);
            m_history.Fill(kBacklog, link, law.standing);
        }
    }

    bool ActsAt(std::size_t link, int64_t tick) const
    {
        return m_phase[link] == tick % m_hearing.ticks;
    }

    /// Rates after this tick, by link, before they are bounded: new ones of the links that act.
    ///
    /// `sent` is over the interval that ended for the link. `late`: by how many ticks each message of this interval is
    /// late, or kNever; `told`: whether the central controller's command reaches each link.
    const std::vector<double>& Act(int64_t tick,
                                   const std::vector<Measured>& measured,
                                   const int32_t* late,
                                   const uint8_t* told)
    {
        const int64_t sample = tick / m_hearing.ticks;
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            if (ActsAt(link, tick))
            {
                Measure(link, measured[link], tick, sample);
                Tell(link, tick, sample, late);
            }
        }
        for (std::size_t link = 0; link < m_command.size(); ++link)
        {
            if (ActsAt(link, tick))
            {
                const bool reached = !m_hearing.central || told[link];
                m_command[link] = reached ? Total(m_law.control, link, tick, sample) : m_law.nominal[link];
            }
        }
        return m_command;
    }

  private:
    std::size_t Pair(std::size_t at, std::size_t of) const
    {
        return at * m_command.size() + of;
    }

    void Measure(std::size_t link, const Measured& now, int64_t tick, int64_t sample)
    {
        m_history.At(kRate, link, sample) = now.sent;
        m_history.At(kBacklog, link, sample) = now.backlog;
        if (!m_hearing.predicted.taps.empty())
        {
            const double foreseen = Total(m_hearing.predicted, link, tick, sample);
            m_history.At(kBacklogNews, link, sample) = now.backlog - foreseen;
            m_history.At(kRateNews, link, sample) = now.sent - m_command[link];
        }
    }

    void Tell(std::size_t link, int64_t tick, int64_t sample, const int32_t* late)
    {
        for (std::size_t at = 0; at < m_command.size(); ++at)
        {
            const int message = m_hearing.line[Pair(at, link)];
            if (message != kNever)
            {
                const int64_t due = tick + int64_t{m_hearing.least[Pair(at, link)]} * m_hearing.ticks + late[message];
                Arrival(message, sample) = late[message] == kNever ? kLost : due;
            }
        }
    }

    int64_t& Arrival(int message, int64_t sample)
    {
        return m_arrival[static_cast<std::size_t>(message) * m_history.Slots() + m_history.Slot(sample)];
    }

    bool Arrived(int message, int64_t sample, int64_t tick)
    {
        const int64_t when = Arrival(message, sample);
        return when != kLost && when <= tick;
    }

    double Total(const Taps& taps, std::size_t at, int64_t tick, int64_t sample)
    {
        return Sum(taps, at, [&](std::size_t series, int age) { return Heard(at, series, age, tick, sample); });
    }

    /// What link `at` takes a series to have been `age` samples ago.
    double Heard(std::size_t at, std::size_t series, int age, int64_t tick, int64_t sample)
    {
        const std::size_t kind = series / m_command.size();
        const std::size_t of = series % m_command.size();
        const int message = m_hearing.line[Pair(at, of)];
        if (message == kNever || age < m_hearing.least[Pair(at, of)])
        {
            return m_history.At(series, sample - age);
        }
        const int64_t behind = m_phase[of] > m_phase[at] ? 1 : 0; // it has not acted yet in this interval
        const int64_t asked = sample - age - behind;
        if (asked < 0 || Arrived(message, asked, tick))
        {
            return m_history.At(series, asked);
        }
        if (kind != kBacklog)
        {
            return kind == kRate ? m_law.nominal[of] : 0.0;
        }
        const int64_t mask = static_cast<int64_t>(m_history.Slots()) - 1;
        for (int64_t earlier = asked - 1; earlier > std::max<int64_t>(asked - mask + age + 1, -1); --earlier)
        {
            if (Arrived(message, earlier, tick))
            {
                return m_history.At(series, earlier);
            }
        }
        return m_law.standing;
    }

    const LawTable& m_law;
    const HearingTable& m_hearing;
    const std::vector<int32_t> m_phase;
    History m_history;
    std::vector<int64_t> m_arrival; ///< tick at which the message of a sample is there
    std::vector<double> m_command;
};

} // namespace netctrl

#endif // NETCTRL_LINK_LAWS_H
