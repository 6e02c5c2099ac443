// The queue disc of each link: netctrl's own, or ns-3's.

#pragma once

#include "netctrl-laws.h"
#include "netctrl-pacer.h"
#include "netctrl-records.h"

#include "ns3/codel-queue-disc.h"
#include "ns3/data-rate.h"
#include "ns3/fatal-error.h"
#include "ns3/object-factory.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/red-queue-disc.h"
#include "ns3/string.h"

#include <map>
#include <string>
#include <vector>

namespace netctrl
{

/// Of a link since the start.
struct LinkCounters
{
    uint64_t arrived = 0; ///< [byte]
    uint64_t departed = 0;
    uint64_t lost = 0;
    uint64_t marked = 0;
    uint64_t backlog = 0; ///< now
    uint64_t packets = 0;
    uint64_t chosen = 0; ///< by its law
};

/// A queue disc, with what is its own to say: its probability, or which of its packets its law chose.
struct LinkQueue
{
    ns3::Ptr<ns3::QueueDisc> disc;
    ns3::Ptr<LawQueueDisc> law;       ///< null: one of ns3's own
    bool samplesProbability = false;  ///< else the part of the packets that the law chose is written
    std::vector<const char*> lawDrops; ///< reasons with which the law drops
    ns3::Ptr<PacerQueueDisc> pacer;    ///< around it; null: none
    ns3::Ptr<TraceQueueDisc> trace;    ///< the same

    /// Lets packets go no faster than at a rate, and than the link does [bit/s].
    void Pace(double rate, double capacity)
    {
        pacer = ns3::CreateObject<PacerQueueDisc>();
        pacer->SetChild(disc);
        pacer->SetCapacity(capacity);
        pacer->SetRate(rate);
    }

    /// Lets packets go at given times, as `TraceQueueDisc` does.
    void Follow(const std::vector<int64_t>& at, const std::vector<int64_t>& sizes, int64_t header)
    {
        trace = ns3::CreateObject<TraceQueueDisc>();
        trace->SetChild(disc);
        trace->Follow(at, sizes, header);
    }

    /// What the device is to have.
    ns3::Ptr<ns3::QueueDisc> Root() const
    {
        return trace ? ns3::Ptr<ns3::QueueDisc>(trace) : pacer ? ns3::Ptr<ns3::QueueDisc>(pacer) : disc;
    }

    LinkCounters Count() const
    {
        const ns3::QueueDisc::Stats& stats = disc->GetStats();
        LinkCounters now;
        now.arrived = stats.nTotalReceivedBytes;
        now.departed = stats.nTotalDequeuedBytes - stats.nTotalDroppedBytesAfterDequeue;
        now.lost = stats.nTotalDroppedBytes;
        for (const auto& reason : stats.nMarkedBytes) // the total has 32 bits only
        {
            now.marked += reason.second;
        }
        now.backlog = disc->GetNBytes();
        now.packets = stats.nTotalReceivedPackets;
        now.chosen = stats.nTotalMarkedPackets;
        for (const char* reason : lawDrops)
        {
            now.chosen += stats.GetNDroppedPackets(reason);
        }
        return now;
    }
};

/// Its queue disc, for a link of this capacity [bit/s], with a buffer [byte].
inline LinkQueue
MakeQueue(const QueueSettings& settings, uint64_t capacity, uint32_t buffer)
{
    using namespace ns3;
    static const std::map<std::string, std::vector<const char*>> kLawDrops = {
        {"ns3::RedQueueDisc", {RedQueueDisc::UNFORCED_DROP, RedQueueDisc::FORCED_DROP}},
        {"ns3::PieQueueDisc", {PieQueueDisc::UNFORCED_DROP}},
        {"ns3::CoDelQueueDisc", {CoDelQueueDisc::TARGET_EXCEEDED_DROP}},
    };
    TypeId known;
    if (!TypeId::LookupByNameFailSafe(settings.type, &known))
    {
        NS_FATAL_ERROR("this program has no queue disc " << settings.type);
    }
    ObjectFactory factory(settings.type);
    for (const auto& [name, value] : settings.attributes)
    {
        factory.Set(name, StringValue(value));
    }
    LinkQueue queue;
    queue.disc = factory.Create<QueueDisc>();
    queue.disc->SetAttributeFailSafe("LinkBandwidth", DataRateValue(DataRate(capacity))); // RED's, for its idle time
    queue.disc->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, buffer));
    queue.law = DynamicCast<LawQueueDisc>(queue.disc);
    if (queue.law)
    {
        queue.law->SetCapacity(static_cast<double>(capacity));
        queue.samplesProbability = queue.law->ActsEveryEpoch();
        queue.lawDrops = {LawQueueDisc::LAW_DROP};
    }
    else if (const auto found = kLawDrops.find(settings.type); found != kLawDrops.end())
    {
        queue.lawDrops = found->second;
    }
    return queue;
}

} // namespace netctrl
