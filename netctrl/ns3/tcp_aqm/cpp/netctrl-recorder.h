// What is written of each link's queue: series.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_RECORDER_H
#define NETCTRL_RECORDER_H

#include "netctrl-files.h"
#include "netctrl-queues.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Writes series.csv: a row a sample, differences of counters that run on.
class Recorder
{
  public:
    Recorder(const std::string& path,
             const std::vector<LinkQueue>& queues,
             const std::vector<std::unique_ptr<Sink>>& sinks)
        : m_table(path),
          m_queues(queues),
          m_sinks(sinks),
          m_links(queues.size()),
          m_groups(sinks.size())
    {
        m_table.Put("time_s");
        for (const LinkRow& link : kLinks)
        {
            for (const char* column : {"backlog:", "arrived:", "departed:", "lost:", "marked:", "probability:"})
            {
                m_table.Put(std::string(column) + link.id);
            }
        }
        for (const GroupRow& group : kGroups)
        {
            m_table.Put(std::string("carried:") + group.id);
        }
        for (const GroupRow& group : kGroups)
        {
            m_table.Put(std::string("rtt:") + group.id);
        }
        m_table.EndRow();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

  private:
    struct Counters
    {
        uint64_t arrived = 0;
        uint64_t departed = 0;
        uint64_t lost = 0;
        uint64_t marked = 0;
        uint64_t packets = 0;
        uint64_t chosen = 0;
    };

    static Counters Read(const LinkQueue& queue)
    {
        const QueueDisc::Stats& stats = queue.disc->GetStats();
        Counters now;
        now.arrived = stats.nTotalReceivedBytes;
        now.departed = stats.nTotalDequeuedBytes - stats.nTotalDroppedBytesAfterDequeue;
        now.lost = stats.nTotalDroppedBytes;
        for (const auto& reason : stats.nMarkedBytes) // the total has 32 bits only
        {
            now.marked += reason.second;
        }
        now.packets = stats.nTotalReceivedPackets;
        now.chosen = stats.nTotalMarkedPackets;
        for (const char* reason : queue.lawDrops)
        {
            now.chosen += stats.GetNDroppedPackets(reason);
        }
        return now;
    }

    void WriteLink(const LinkQueue& queue, Counters& before)
    {
        const Counters now = Read(queue);
        const uint64_t packets = now.packets - before.packets;
        const double chosen = packets > 0 ? static_cast<double>(now.chosen - before.chosen) / packets : 0.0;
        m_table.Put(queue.disc->GetNBytes());
        m_table.Put(now.arrived - before.arrived);
        m_table.Put(now.departed - before.departed);
        m_table.Put(now.lost - before.lost);
        m_table.Put(now.marked - before.marked);
        m_table.Put(queue.samplesProbability ? queue.law->GetProbability() : chosen);
        before = now;
    }

    void Sample()
    {
        m_table.Put(Simulator::Now().GetSeconds(), "%.9f");
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            WriteLink(m_queues[i], m_links[i]);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            m_table.Put(m_sinks[i]->received - m_groups[i]);
            m_groups[i] = m_sinks[i]->received;
        }
        for (const auto& sink : m_sinks)
        {
            m_table.Put(sink->measured > 0 ? sink->roundTrips / sink->measured : 0.0);
            sink->roundTrips = 0.0;
            sink->measured = 0;
        }
        m_table.EndRow();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

    Table m_table;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<Sink>>& m_sinks;
    std::vector<Counters> m_links;
    std::vector<uint64_t> m_groups;
};

} // namespace netctrl

#endif // NETCTRL_RECORDER_H
