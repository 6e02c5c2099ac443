// Queue discs of ns-3 around the laws of netctrl-laws.h: ARC, PI and SFC act every epoch, AVQ on every arrival.
//
// A packet that finds no room is dropped. One that the law chooses is marked, or dropped if it can't be marked
// (ARC paper, Algorithm 2). Compiles against ns-3.37 and ns-3.44.
//
// Fixed: netctrl copies this file as it is. The numbers are in gains.h.

#ifndef NETCTRL_QUEUE_DISCS_H
#define NETCTRL_QUEUE_DISCS_H

#include "netctrl-laws.h"

#include "ns3/drop-tail-queue.h"
#include "ns3/queue-disc.h"
#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"

#include <string>

namespace netctrl
{

/// One FIFO with its limit in bytes, and a law that marks before it.
class LawQueueDisc : public ns3::QueueDisc
{
  public:
    static constexpr const char* FULL_DROP = "No room";
    static constexpr const char* LAW_DROP = "Chosen by the law, could not be marked";
    static constexpr const char* LAW_MARK = "Chosen by the law";

    /// The link's capacity [bit/s]; set it before the start and whenever it changes.
    void SetCapacity(double capacity)
    {
        m_capacity = capacity;
    }

    /// Of marking the next packet, as the law has it now.
    virtual double GetProbability() const = 0;

  protected:
    LawQueueDisc()
        : QueueDisc(ns3::QueueDiscSizePolicy::SINGLE_INTERNAL_QUEUE)
    {
    }

    double GetCapacity() const
    {
        return m_capacity;
    }

    static ns3::TypeId Describe(const char* name)
    {
        return ns3::TypeId(name).SetParent<ns3::QueueDisc>().SetGroupName("TrafficControl").AddAttribute(
            "MaxSize",
            "The most that this queue disc holds, in bytes.",
            ns3::QueueSizeValue(ns3::QueueSize("500000B")),
            ns3::MakeQueueSizeAccessor(&ns3::QueueDisc::SetMaxSize, &ns3::QueueDisc::GetMaxSize),
            ns3::MakeQueueSizeChecker());
    }

  private:
    /// A packet of `size` bytes arrives for which there is room: does the law choose it?
    virtual bool Chooses(uint32_t size) = 0;
    /// A packet of `size` bytes was enqueued.
    virtual void Count(uint32_t size) = 0;

    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        const uint32_t size = item->GetSize(); // read before the queue owns the item
        const bool chosen = Chooses(size);
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
        if (enqueued)
        {
            Count(size);
        }
        return enqueued;
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        return GetInternalQueue(0)->Dequeue();
    }

    ns3::Ptr<const ns3::QueueDiscItem> DoPeek() override
    {
        return GetInternalQueue(0)->Peek();
    }

    bool CheckConfig() override
    {
        if (GetNQueueDiscClasses() > 0 || GetNPacketFilters() > 0 || m_capacity <= 0.0 ||
            GetMaxSize().GetUnit() != ns3::QueueSizeUnit::BYTES)
        {
            return false;
        }
        if (GetNInternalQueues() == 0)
        {
            AddInternalQueue(ns3::CreateObjectWithAttributes<ns3::DropTailQueue<ns3::QueueDiscItem>>(
                "MaxSize", ns3::QueueSizeValue(GetMaxSize())));
        }
        return GetNInternalQueues() == 1;
    }

    double m_capacity = 0.0;
};

/// A law that gives a new probability at the end of every epoch.
template <class Law>
class EpochQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid = Describe(Law::kName).template AddConstructor<EpochQueueDisc<Law>>();
        return tid;
    }

    /// Set it before the simulation starts.
    void SetLaw(const Law& law)
    {
        m_law = law;
    }

    double GetProbability() const override
    {
        return m_state.probability;
    }

  private:
    void InitializeParams() override
    {
        m_random = ns3::CreateObject<ns3::UniformRandomVariable>();
        ScheduleEpoch();
    }

    void DoDispose() override
    {
        m_epoch.Cancel();
        m_random = nullptr;
        LawQueueDisc::DoDispose();
    }

    void ScheduleEpoch()
    {
        const ns3::Time epoch = ns3::NanoSeconds(std::llround(m_law.epoch * 1e9));
        m_epoch = ns3::Simulator::Schedule(epoch, &EpochQueueDisc::EndEpoch, this);
    }

    void EndEpoch()
    {
        const double now = ns3::Simulator::Now().GetSeconds();
        m_state = m_law.Next(m_state, {now, m_enqueued, static_cast<double>(GetNBytes()), GetCapacity()});
        m_enqueued = 0.0;
        ScheduleEpoch();
    }

    bool Chooses(uint32_t) override
    {
        return m_random->GetValue() < m_state.probability;
    }

    void Count(uint32_t size) override
    {
        m_enqueued += size;
    }

    Law m_law{};
    typename Law::State m_state;
    double m_enqueued = 0.0; ///< in this epoch [byte]
    ns3::EventId m_epoch;
    ns3::Ptr<ns3::UniformRandomVariable> m_random;
};

using ArcQueueDisc = EpochQueueDisc<ArcLaw>;
using PiQueueDisc = EpochQueueDisc<PiLaw>;
using SfcQueueDisc = EpochQueueDisc<SfcLaw>;

/// AVQ decides at each arrival, without chance; it counts what the buffer has no room for, too.
class AvqQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid = Describe("netctrl::AvqQueueDisc").AddConstructor<AvqQueueDisc>();
        return tid;
    }

    /// Set it before the simulation starts.
    void SetLaw(const AvqLaw& law)
    {
        m_law = law;
    }

    /// 1 if the packet that arrived last was chosen, else 0.
    double GetProbability() const override
    {
        return m_state.mark ? 1.0 : 0.0;
    }

  private:
    void InitializeParams() override
    {
        m_state = AvqLaw::Start(ns3::Simulator::Now().GetSeconds(), GetCapacity());
    }

    bool Chooses(uint32_t size) override
    {
        m_state = m_law.Next(m_state, {ns3::Simulator::Now().GetSeconds(), static_cast<double>(size), GetCapacity()});
        return m_state.mark;
    }

    void Count(uint32_t) override
    {
    }

    AvqLaw m_law{};
    AvqLaw::State m_state;
};

} // namespace netctrl

#endif // NETCTRL_QUEUE_DISCS_H
