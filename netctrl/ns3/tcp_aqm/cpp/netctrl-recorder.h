// The queue of each link, and what is written of it: series.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_RECORDER_H
#define NETCTRL_RECORDER_H

#include "netctrl-queues.h"
#include "netctrl-tables.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/net-device.h"
#include "ns3/traffic-control-layer.h"

#include <cstdio>
#include <memory>
#include <vector>

namespace netctrl
{

using namespace ns3;

inline LinkQueue
InstallQueue(const QueueSettings& settings, const LinkRow& link, Ptr<NetDevice> device)
{
    const LinkQueue queue = MakeQueue(settings, link.capacity, link.buffer);
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, queue.disc);
    return queue;
}

/// Writes series.csv: a row a sample, differences of counters that run on.
class Recorder
{
  public:
    Recorder(std::FILE* file, const std::vector<LinkQueue>& queues, const std::vector<std::unique_ptr<Sink>>& sinks)
        : m_file(file),
          m_queues(queues),
          m_sinks(sinks),
          m_links(queues.size()),
          m_groups(sinks.size())
    {
        std::fprintf(m_file, "time_s");
        for (const LinkRow& link : kLinks)
        {
            for (const char* column : {"backlog", "arrived", "departed", "lost", "marked", "probability"})
            {
                std::fprintf(m_file, ",%s:%s", column, link.id);
            }
        }
        for (const GroupRow& group : kGroups)
        {
            std::fprintf(m_file, ",carried:%s", group.id);
        }
        std::fprintf(m_file, "\n");
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
        double probability = packets > 0 ? static_cast<double>(now.chosen - before.chosen) / packets : 0.0;
        if (queue.samplesProbability)
        {
            probability = queue.law->GetProbability();
        }
        std::fprintf(m_file,
                     ",%u,%llu,%llu,%llu,%llu,%.17g",
                     queue.disc->GetNBytes(),
                     static_cast<unsigned long long>(now.arrived - before.arrived),
                     static_cast<unsigned long long>(now.departed - before.departed),
                     static_cast<unsigned long long>(now.lost - before.lost),
                     static_cast<unsigned long long>(now.marked - before.marked),
                     probability);
        before = now;
    }

    void Sample()
    {
        const Time now = Simulator::Now();
        std::fprintf(m_file, "%.9f", now.GetSeconds());
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            WriteLink(m_queues[i], m_links[i]);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            const uint64_t received = m_sinks[i]->Received();
            std::fprintf(m_file, ",%llu", static_cast<unsigned long long>(received - m_groups[i]));
            m_groups[i] = received;
        }
        std::fprintf(m_file, "\n");
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

    std::FILE* m_file;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<Sink>>& m_sinks;
    std::vector<Counters> m_links;
    std::vector<uint64_t> m_groups;
};

} // namespace netctrl

#endif // NETCTRL_RECORDER_H
