// A queue disc of ns-3 around a law: one FIFO with its limit in bytes; the law says which packets are marked.
//
// A packet that finds no room is dropped. One that the law chooses is marked, or dropped if it can't be marked
// (ARC paper, Algorithm 2). A law acts every epoch, or at each arrival. The laws and their queue discs are in
// netctrl-laws.h. Compiles against ns-3.37 and ns-3.44.

#pragma once

#include "ns3/double.h"
#include "ns3/drop-tail-queue.h"
#include "ns3/nstime.h"
#include "ns3/queue-disc.h"
#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"
#include "ns3/traced-value.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

constexpr double kBitsPerByte = 8.0;

/// What a law knows when it acts; packets of the mean size.
struct Seen
{
    double elapsed;  ///< since it acted last [s]
    double arrived;  ///< enqueued in that time [packet]
    double offered;  ///< on its way in now [packet]; 0 for a law that acts every epoch
    double backlog;  ///< waiting now [packet]
    double capacity; ///< of the link now [packet/s]
};

class LawQueueDisc : public ns3::QueueDisc
{
  public:
    static constexpr const char* FULL_DROP = "No room";
    static constexpr const char* LAW_DROP = "Chosen by the law, could not be marked";
    static constexpr const char* LAW_MARK = "Chosen by the law";

    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::LawQueueDisc")
                .SetParent<QueueDisc>()
                .SetGroupName("TrafficControl")
                .AddAttribute("MaxSize",
                              "The most that this queue disc holds, in bytes.",
                              QueueSizeValue(QueueSize("500000B")),
                              MakeQueueSizeAccessor(&QueueDisc::SetMaxSize, &QueueDisc::GetMaxSize),
                              MakeQueueSizeChecker())
                .AddAttribute("MeanPktSize",
                              "What the law counts as a packet, in bytes.",
                              DoubleValue(1000.0),
                              MakeDoubleAccessor(&LawQueueDisc::m_packetSize),
                              MakeDoubleChecker<double>(1.0))
                .AddAttribute("Epoch",
                              "How often the law acts; 0: at each arrival.",
                              TimeValue(Seconds(0)),
                              MakeTimeAccessor(&LawQueueDisc::m_epoch),
                              MakeTimeChecker(Seconds(0)))
                .AddAttribute("RateErrorAmplitude",
                              "Of a sine that is added to the measured arrivals, in bit/s; 0: none.",
                              DoubleValue(0.0),
                              MakeDoubleAccessor(&LawQueueDisc::m_errorAmplitude),
                              MakeDoubleChecker<double>())
                .AddAttribute("RateErrorFrequency",
                              "Of that sine, in rad/s.",
                              DoubleValue(1.0),
                              MakeDoubleAccessor(&LawQueueDisc::m_errorFrequency),
                              MakeDoubleChecker<double>())
                .AddAttribute("RateErrorStart",
                              "When that sine begins, in seconds.",
                              DoubleValue(0.0),
                              MakeDoubleAccessor(&LawQueueDisc::m_errorStart),
                              MakeDoubleChecker<double>())
                .AddTraceSource("Probability",
                                "With which a packet is marked.",
                                MakeTraceSourceAccessor(&LawQueueDisc::m_probability),
                                "ns3::TracedValueCallback::Double");
        return tid;
    }

    /// The link's capacity [bit/s]; set it before the start and whenever it changes.
    void SetCapacity(double capacity)
    {
        m_capacity = capacity;
    }

    /// Of marking the next packet, as the law has it now.
    double GetProbability() const
    {
        return m_probability;
    }

    bool ActsEveryEpoch() const
    {
        return m_epoch.IsStrictlyPositive();
    }

    /// Fixes the random numbers; returns how many streams were taken.
    int64_t AssignStreams(int64_t stream)
    {
        Random()->SetStream(stream);
        return 1;
    }

    /// Its random numbers, whose stream is the next one at the first call. A program calls it for one link after the
    /// other: ns-3 initialises a node's queue discs in the order of its devices' addresses in memory.
    ns3::Ptr<ns3::UniformRandomVariable> Random()
    {
        if (!m_random)
        {
            m_random = ns3::CreateObject<ns3::UniformRandomVariable>();
        }
        return m_random;
    }

  protected:
    explicit LawQueueDisc(ns3::QueueDiscSizePolicy policy = ns3::QueueDiscSizePolicy::SINGLE_INTERNAL_QUEUE)
        : QueueDisc(policy)
    {
    }

    void InitializeParams() override
    {
        m_acted = ns3::Simulator::Now();
        if (ActsEveryEpoch())
        {
            m_next = ns3::Simulator::Schedule(m_epoch, &LawQueueDisc::EndEpoch, this);
        }
    }

  private:
    /// The law's step: the probability from now on.
    virtual double Act(const Seen& seen) = 0;

    virtual std::size_t InternalQueues() const
    {
        return 1;
    }

    void DoDispose() override
    {
        m_next.Cancel();
        m_random = nullptr;
        QueueDisc::DoDispose();
    }

    void EndEpoch()
    {
        Decide(0.0);
        m_next = ns3::Simulator::Schedule(m_epoch, &LawQueueDisc::EndEpoch, this);
    }

    void Decide(double offered)
    {
        const ns3::Time now = ns3::Simulator::Now();
        const double arrived =
            m_enqueued / m_packetSize + ErrorOver(m_acted.GetSeconds(), now.GetSeconds()) / (kBitsPerByte * m_packetSize);
        m_probability = Act({(now - m_acted).GetSeconds(),
                             arrived,
                             offered / m_packetSize,
                             GetNBytes() / m_packetSize,
                             m_capacity / (kBitsPerByte * m_packetSize)});
        m_acted = now;
        m_enqueued = 0.0;
    }

    /// Integral of the error of the measured rate [bit].
    double ErrorOver(double from, double to) const
    {
        const double first = std::max(from, m_errorStart);
        if (m_errorAmplitude == 0.0 || to <= first)
        {
            return 0.0;
        }
        const double w = m_errorFrequency;
        return m_errorAmplitude / w * (std::cos(w * (first - m_errorStart)) - std::cos(w * (to - m_errorStart)));
    }

    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        const uint32_t size = item->GetSize(); // read before the queue owns the item
        if (!ActsEveryEpoch())
        {
            Decide(size);
        }
        const bool certain = !ActsEveryEpoch() && (m_probability <= 0.0 || m_probability >= 1.0);
        const bool chosen = certain ? m_probability >= 1.0 : Random()->GetValue() < m_probability;
        if (uint64_t{GetNBytes()} + size > GetMaxSize().GetValue())
        {
            DropBeforeEnqueue(item, FULL_DROP);
            return false;
        }
        if (chosen && !Mark(item, LAW_MARK))
        {
            DropBeforeEnqueue(item, LAW_DROP);
            return false;
        }
        const bool enqueued = GetInternalQueue(0)->Enqueue(item);
        m_enqueued += enqueued ? size : 0.0;
        return enqueued;
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        return GetInternalQueue(0)->Dequeue();
    }

    bool CheckConfig() override
    {
        if (GetNQueueDiscClasses() > 0 || GetNPacketFilters() > 0 || m_capacity <= 0.0 ||
            GetMaxSize().GetUnit() != ns3::QueueSizeUnit::BYTES)
        {
            return false;
        }
        while (GetNInternalQueues() < InternalQueues())
        {
            AddInternalQueue(ns3::CreateObjectWithAttributes<ns3::DropTailQueue<ns3::QueueDiscItem>>(
                "MaxSize", ns3::QueueSizeValue(GetMaxSize())));
        }
        return GetNInternalQueues() == InternalQueues();
    }

    double m_capacity = 0.0;
    double m_packetSize;
    ns3::Time m_epoch;
    double m_errorAmplitude;
    double m_errorFrequency;
    double m_errorStart;
    double m_enqueued = 0.0; ///< since it acted last [byte]
    ns3::Time m_acted;
    ns3::EventId m_next;
    ns3::TracedValue<double> m_probability{0.0};
    ns3::Ptr<ns3::UniformRandomVariable> m_random;
};

} // namespace netctrl
