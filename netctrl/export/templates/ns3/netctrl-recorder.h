// The queue of each link, and what is written of it: series.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_RECORDER_H
#define NETCTRL_RECORDER_H

#include "netctrl-queue-discs.h"
#include "netctrl-tables.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/codel-queue-disc.h"
#include "ns3/data-rate.h"
#include "ns3/double.h"
#include "ns3/fifo-queue-disc.h"
#include "ns3/net-device.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/red-queue-disc.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <cstdio>
#include <memory>
#include <vector>


namespace netctrl
{

using namespace ns3;

/// A queue disc, with what is its own to say: its probability, or which of its packets its law chose.
struct LinkQueue
{
    Ptr<QueueDisc> disc;
    Ptr<LawQueueDisc> law;         ///< null: one of ns-3's own
    bool samplesProbability;       ///< else the part of the packets that the law chose is written
    const char* lawDrop = nullptr; ///< reasons with which the law drops; null: none
    const char* hardDrop = nullptr;
};

/// A queue disc of ns-3's own that marks.
template <class Disc>
Ptr<Disc>
Marking()
{
    Ptr<Disc> disc = CreateObject<Disc>();
    disc->SetAttribute("UseEcn", BooleanValue(true));
    return disc;
}

inline LinkQueue
MakeQueue(const FifoSettings&, const LinkRow&)
{
    return {CreateObject<FifoQueueDisc>(), nullptr, false};
}

template <class Law>
inline LinkQueue
MakeQueue(const Law& law, const LinkRow&)
{
    auto disc = CreateObject<EpochQueueDisc<Law>>();
    disc->SetLaw(law);
    return {disc, disc, true};
}

inline LinkQueue
MakeQueue(const AvqLaw& law, const LinkRow&)
{
    auto disc = CreateObject<AvqQueueDisc>();
    disc->SetLaw(law);
    return {disc, disc, false, LawQueueDisc::LAW_DROP};
}

inline LinkQueue
MakeQueue(const RedSettings& red, const LinkRow& link)
{
    auto disc = Marking<RedQueueDisc>();
    disc->SetAttribute("Gentle", BooleanValue(true));
    disc->SetAttribute("Wait", BooleanValue(false)); // marks spread as in the paper of 1993, 2 p/(1 + p) of the packets
    disc->SetAttribute("MeanPktSize", UintegerValue(kPacketSize));
    disc->SetAttribute("LinkBandwidth", DataRateValue(DataRate(link.capacity))); // for its idle time
    disc->SetAttribute("MinTh", DoubleValue(red.minThreshold));                  // in the unit of MaxSize: bytes
    disc->SetAttribute("MaxTh", DoubleValue(red.maxThreshold));
    disc->SetAttribute("LInterm", DoubleValue(1.0 / red.maxProbability));
    disc->SetAttribute("QW", DoubleValue(red.weight));
    return {disc, nullptr, false, RedQueueDisc::UNFORCED_DROP, RedQueueDisc::FORCED_DROP};
}

inline LinkQueue
MakeQueue(const PieSettings& pie, const LinkRow&)
{
    auto disc = Marking<PieQueueDisc>();
    disc->SetAttribute("MeanPktSize", UintegerValue(kPacketSize));
    disc->SetAttribute("QueueDelayReference", TimeValue(NanoSeconds(pie.target)));
    disc->SetAttribute("Tupdate", TimeValue(NanoSeconds(pie.update)));
    disc->SetAttribute("A", DoubleValue(pie.alpha));
    disc->SetAttribute("B", DoubleValue(pie.beta));
    disc->SetAttribute("MaxBurstAllowance", TimeValue(NanoSeconds(pie.burst)));
    disc->SetAttribute("MarkEcnThreshold", DoubleValue(0.1)); // RFC 8033, Section 5.1: above it, drop
    return {disc, nullptr, false, PieQueueDisc::UNFORCED_DROP};
}

inline LinkQueue
MakeQueue(const CodelSettings& codel, const LinkRow&)
{
    auto disc = Marking<CoDelQueueDisc>();
    disc->SetAttribute("MinBytes", UintegerValue(kPacketSize));
    disc->SetAttribute("Target", TimeValue(NanoSeconds(codel.target)));
    disc->SetAttribute("Interval", TimeValue(NanoSeconds(codel.interval)));
    return {disc, nullptr, false, CoDelQueueDisc::TARGET_EXCEEDED_DROP};
}

inline LinkQueue
InstallQueue(const QueueSettings& settings, const LinkRow& link, Ptr<NetDevice> device)
{
    LinkQueue queue = std::visit([&](const auto& kind) { return MakeQueue(kind, link); }, settings);
    queue.disc->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, link.buffer));
    if (queue.law)
    {
        queue.law->SetCapacity(link.capacity);
    }
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
        for (const char* reason : {queue.lawDrop, queue.hardDrop})
        {
            now.chosen += reason ? stats.GetNDroppedPackets(reason) : 0;
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
