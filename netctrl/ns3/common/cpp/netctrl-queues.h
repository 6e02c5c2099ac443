// The queue disc of each kind of queue: netctrl's own, or ns-3's.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_QUEUES_H
#define NETCTRL_QUEUES_H

#include "netctrl-queue-discs.h"
#include "netctrl-queue-settings.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/codel-queue-disc.h"
#include "ns3/data-rate.h"
#include "ns3/double.h"
#include "ns3/fifo-queue-disc.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/red-queue-disc.h"
#include "ns3/uinteger.h"

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
MakeQueue(const FifoSettings&, uint64_t)
{
    return {CreateObject<FifoQueueDisc>(), nullptr, false};
}

template <class Law>
inline LinkQueue
MakeQueue(const Law& law, uint64_t)
{
    auto disc = CreateObject<EpochQueueDisc<Law>>();
    disc->SetLaw(law);
    return {disc, disc, true};
}

inline LinkQueue
MakeQueue(const AvqLaw& law, uint64_t)
{
    auto disc = CreateObject<AvqQueueDisc>();
    disc->SetLaw(law);
    return {disc, disc, false, LawQueueDisc::LAW_DROP};
}

inline LinkQueue
MakeQueue(const RedSettings& red, uint64_t capacity)
{
    auto disc = Marking<RedQueueDisc>();
    disc->SetAttribute("Gentle", BooleanValue(true));
    disc->SetAttribute("Wait", BooleanValue(false)); // marks spread as in the paper of 1993, 2 p/(1 + p) of the packets
    disc->SetAttribute("MeanPktSize", UintegerValue(kPacketSize));
    disc->SetAttribute("LinkBandwidth", DataRateValue(DataRate(capacity))); // for its idle time
    disc->SetAttribute("MinTh", DoubleValue(red.minThreshold)); // in the unit of MaxSize: bytes
    disc->SetAttribute("MaxTh", DoubleValue(red.maxThreshold));
    disc->SetAttribute("LInterm", DoubleValue(1.0 / red.maxProbability));
    disc->SetAttribute("QW", DoubleValue(red.weight));
    return {disc, nullptr, false, RedQueueDisc::UNFORCED_DROP, RedQueueDisc::FORCED_DROP};
}

inline LinkQueue
MakeQueue(const PieSettings& pie, uint64_t)
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
MakeQueue(const CodelSettings& codel, uint64_t)
{
    auto disc = Marking<CoDelQueueDisc>();
    disc->SetAttribute("MinBytes", UintegerValue(kPacketSize));
    disc->SetAttribute("Target", TimeValue(NanoSeconds(codel.target)));
    disc->SetAttribute("Interval", TimeValue(NanoSeconds(codel.interval)));
    return {disc, nullptr, false, CoDelQueueDisc::TARGET_EXCEEDED_DROP};
}

/// Its queue disc, for a link of this capacity [bit/s], with a buffer [byte].
inline LinkQueue
MakeQueue(const QueueSettings& settings, uint64_t capacity, uint32_t buffer)
{
    LinkQueue queue = std::visit([&](const auto& kind) { return MakeQueue(kind, capacity); }, settings);
    queue.disc->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, buffer));
    if (queue.law)
    {
        queue.law->SetCapacity(static_cast<double>(capacity));
    }
    return queue;
}

} // namespace netctrl

#endif // NETCTRL_QUEUES_H
