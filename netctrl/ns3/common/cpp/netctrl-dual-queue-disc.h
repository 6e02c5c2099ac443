// A queue disc of ns-3 with two queues around a law that couples them: one for packets with ECT(1) or CE, L, and one for
// all others, C.
//
// A law says which queue is next, and what becomes of the packet that was taken from it; it acts every epoch on the age
// of the older of both first packets. A packet that finds no room in the buffer, which both share, is dropped. The law
// and its queue disc are in netctrl-laws.h. Compiles against ns-3.37 and ns-3.44.

#pragma once

#include "netctrl-law-queue-disc.h"

#include "ns3/ipv4-header.h"
#include "ns3/ipv4-queue-disc-item.h"

#include <algorithm>
#include <cstdint>
#include <deque>

namespace netctrl
{

class DualQueueDisc : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid =
            ns3::TypeId("netctrl::DualQueueDisc").SetParent<LawQueueDisc>().SetGroupName("TrafficControl");
        return tid;
    }

  protected:
    static constexpr int64_t kSend = 0;
    static constexpr int64_t kMark = 1;
    static constexpr int64_t kDrop = 2;

    DualQueueDisc()
        : LawQueueDisc(ns3::QueueDiscSizePolicy::MULTIPLE_QUEUES)
    {
    }

  private:
    static constexpr std::size_t kClassic = 0;
    static constexpr std::size_t kLow = 1;

    /// Before the first packet, with the attributes set.
    virtual void Start() = 0;
    /// Both queues are empty.
    virtual void Idle() = 0;
    /// Whether C is next; one of both has a packet.
    virtual bool ClassicNext(bool low, bool classic) const = 0;
    /// A packet was sent while the other queue had one too.
    virtual void Spend(bool classic, double size) = 0;
    /// Whether the step applies to a packet that finds so much in L [byte].
    virtual bool Steps(double found) const = 0;
    /// Whether that is beyond the step [s].
    virtual bool Late(double waited) const = 0;
    /// What becomes of a packet that was taken from a queue, while so much waits in both [byte].
    virtual int64_t Judge(bool low, bool capable, bool late, double backlog, double draw) const = 0;
    /// Acts on a delay [s]; the probability of a classic packet's mark from now on.
    virtual double Update(double delay) = 0;

    static ns3::Ipv4Header::EcnType Codepoint(ns3::Ptr<const ns3::QueueDiscItem> item)
    {
        const auto packet = ns3::DynamicCast<const ns3::Ipv4QueueDiscItem>(item);
        return packet ? packet->GetHeader().GetEcn() : ns3::Ipv4Header::ECN_NotECT;
    }

    void InitializeParams() override
    {
        Start();
        LawQueueDisc::InitializeParams();
    }

    double Age(std::size_t queue) const
    {
        const auto first = GetInternalQueue(queue)->Peek();
        return first ? (ns3::Simulator::Now() - first->GetTimeStamp()).GetSeconds() : 0.0;
    }

    double Act(const Seen&) override
    {
        return Update(std::max(Age(kClassic), Age(kLow)));
    }

    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        if (uint64_t{GetNBytes()} + item->GetSize() > GetMaxSize().GetValue())
        {
            DropBeforeEnqueue(item, FULL_DROP);
            return false;
        }
        const auto codepoint = Codepoint(item);
        if (codepoint != ns3::Ipv4Header::ECN_ECT1 && codepoint != ns3::Ipv4Header::ECN_CE)
        {
            return GetInternalQueue(kClassic)->Enqueue(item);
        }
        m_steps.push_back(Steps(GetInternalQueue(kLow)->GetNBytes()));
        return GetInternalQueue(kLow)->Enqueue(item);
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        while (GetNPackets() > 0)
        {
            const bool low = GetInternalQueue(kLow)->GetNPackets() > 0;
            const bool classic = ClassicNext(low, GetInternalQueue(kClassic)->GetNPackets() > 0);
            const auto item = GetInternalQueue(classic ? kClassic : kLow)->Dequeue();
            const bool late = !classic && m_steps.front() &&
                              Late((ns3::Simulator::Now() - item->GetTimeStamp()).GetSeconds());
            if (!classic)
            {
                m_steps.pop_front();
            }
            const bool capable = Codepoint(item) != ns3::Ipv4Header::ECN_NotECT;
            const int64_t fate = Judge(!classic, capable, late, GetNBytes(), Random()->GetValue());
            if (fate == kDrop)
            {
                DropAfterDequeue(item, LAW_DROP);
                continue;
            }
            if (fate == kMark)
            {
                Mark(item, LAW_MARK);
            }
            if (GetInternalQueue(classic ? kLow : kClassic)->GetNPackets() > 0)
            {
                Spend(classic, item->GetSize());
            }
            return item;
        }
        Idle();
        return nullptr;
    }

    std::size_t InternalQueues() const override
    {
        return 2;
    }

    std::deque<bool> m_steps; ///< of the packets in L
};

} // namespace netctrl
