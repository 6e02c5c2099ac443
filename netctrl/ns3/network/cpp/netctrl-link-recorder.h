// What links did in each interval, and what is written of it: result-RUN.csv, and series-RUN.csv where asked for.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_LINK_RECORDER_H
#define NETCTRL_LINK_RECORDER_H

#include "netctrl-files.h"
#include "netctrl-link-law.h"
#include "scenario.h"

#include "ns3/queue-disc.h"

#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

constexpr double kBitPerSecond = 8e9 / kInterval; ///< of a byte an interval

/// Bytes of a link since the start.
struct Counters
{
    uint64_t arrived = 0;
    uint64_t departed = 0;
    uint64_t lost = 0;
    uint64_t backlog = 0; ///< now

    static Counters Of(Ptr<QueueDisc> disc)
    {
        const QueueDisc::Stats& stats = disc->GetStats();
        const uint64_t departed = stats.nTotalDequeuedBytes - stats.nTotalDroppedBytesAfterDequeue;
        return {stats.nTotalReceivedBytes, departed, stats.nTotalDroppedBytes, disc->GetNBytes()};
    }

    /// From `before` to here.
    Measured Since(const Counters& before) const
    {
        return {kBitPerSecond * static_cast<double>(departed - before.departed),
                kBitPerSecond * static_cast<double>(backlog),
                kBitPerSecond * static_cast<double>(arrived - before.arrived),
                kBitPerSecond * static_cast<double>(lost - before.lost)};
    }
};

/// Of a demand's TCP since the start.
struct TcpCounters
{
    uint64_t offered = 0;    ///< to IP, with headers [byte]
    uint64_t delivered = 0;  ///< by IP, with headers [byte]
    uint64_t arrived = 0;    ///< payload, in order [byte]
    uint64_t sent = 0;       ///< payload [byte]
    uint64_t again = 0;      ///< of it what had been sent before [byte]
    uint64_t samples = 0;    ///< acknowledgements
    double roundTrips = 0.0; ///< sum of the newest samples at each of them [s]
};

/// Sums over the intervals that count.
class LinkRecorder
{
  public:
    /// Bytes that demands have sent, and that came to their ends.
    struct Ends
    {
        uint64_t offered = 0;
        uint64_t delivered = 0;
        std::vector<TcpCounters> tcp;
    };

    /// @param watched whether a series has a row an interval from the very beginning
    LinkRecorder(const std::string& folder, const std::string& run, bool watched)
        : m_result(folder + "/result-" + run + ".csv"),
          m_series(watched ? std::make_unique<Table>(folder + "/series-" + run + ".csv") : nullptr),
          m_start(kLinks.size()),
          m_sums(kLinks.size())
    {
        if (m_series)
        {
            m_series->Put("time_s");
            for (const LinkRow& link : kLinks)
            {
                for (const char* column : {"backlog:", "rate:", "lost:"})
                {
                    m_series->Put(std::string(column) + link.id);
                }
            }
            m_series->EndRow();
        }
    }

    /// The warmup ends here.
    void Start(const std::vector<Counters>& now, const Ends& ends)
    {
        m_start = now;
        m_ends = ends;
    }

    /// An interval has ended, number `index` from 0.
    void Add(int64_t index, const std::vector<Measured>& measured)
    {
        for (std::size_t link = 0; link < m_sums.size() && index >= kWarmupSteps; ++link)
        {
            const double rate = measured[link].rate - kLinks[link].nominal;
            const double backlog = measured[link].backlog - kStanding;
            m_sums[link].backlog += measured[link].backlog;
            m_sums[link].rateSquare += rate * rate;
            m_sums[link].backlogSquare += backlog * backlog;
        }
        if (m_series)
        {
            m_series->Put(1e-9 * static_cast<double>(kInterval) * static_cast<double>(index + 1), "%.9f");
            for (const Measured& one : measured)
            {
                m_series->Put(std::llround(one.backlog / kBitPerSecond));
                m_series->Put(one.rate);
                m_series->Put(std::llround(one.lost / kBitPerSecond));
            }
            m_series->EndRow();
        }
    }

    /// At the end: first what demands sent and what came to their ends, then a row a link, then one of each TCP; bytes,
    /// and means of squares.
    void Write(const std::vector<Counters>& now, const Ends& ends)
    {
        m_result.Row(ends.offered - m_ends.offered, ends.delivered - m_ends.delivered, 0, 0, 0, 0, 0);
        const auto count = static_cast<double>(kSteps - kWarmupSteps);
        for (std::size_t link = 0; link < now.size(); ++link)
        {
            const Counters& start = m_start[link];
            const Sums& sums = m_sums[link];
            m_result.Row(now[link].arrived - start.arrived,
                         now[link].departed - start.departed,
                         now[link].lost - start.lost,
                         static_cast<int64_t>(now[link].backlog - start.backlog),
                         sums.backlog / count / kBitPerSecond,
                         sums.rateSquare / count,
                         sums.backlogSquare / count);
        }
        for (std::size_t i = 0; i < ends.tcp.size(); ++i)
        {
            const TcpCounters start = i < m_ends.tcp.size() ? m_ends.tcp[i] : TcpCounters{};
            const TcpCounters& end = ends.tcp[i];
            const auto samples = static_cast<double>(end.samples - start.samples);
            const double roundTrip = samples > 0.0 ? (end.roundTrips - start.roundTrips) / samples : 0.0;
            m_result.Row(
                end.arrived - start.arrived, end.sent - start.sent, end.again - start.again, roundTrip, 0, 0, 0);
        }
    }

  private:
    struct Sums
    {
        double backlog = 0.0;
        double rateSquare = 0.0;
        double backlogSquare = 0.0;
    };

    Table m_result;
    std::unique_ptr<Table> m_series;
    std::vector<Counters> m_start;
    std::vector<Sums> m_sums;
    Ends m_ends;
};

} // namespace netctrl

#endif // NETCTRL_LINK_RECORDER_H
