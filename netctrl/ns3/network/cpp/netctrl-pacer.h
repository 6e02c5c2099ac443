// Queue discs that say when packets go: no faster than a rate that is set from outside, or at given times.

#pragma once

#include "ns3/queue-disc.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace netctrl
{

/// Of packets that wait in its one child, which decides what is dropped or marked and what goes next: any queue disc of
/// ns-3.
class ParentQueueDisc : public ns3::QueueDisc
{
  public:
    ParentQueueDisc()
        : QueueDisc(ns3::QueueDiscSizePolicy::NO_LIMITS)
    {
    }

    /// What holds the packets; once, before the start.
    void SetChild(ns3::Ptr<ns3::QueueDisc> child)
    {
        auto only = ns3::CreateObject<ns3::QueueDiscClass>();
        only->SetQueueDisc(child);
        AddQueueDiscClass(only);
    }

  protected:
    ns3::Ptr<ns3::QueueDisc> Child() const
    {
        return GetQueueDiscClass(0)->GetQueueDisc();
    }

    void DoDispose() override
    {
        m_again.Cancel();
        QueueDisc::DoDispose();
    }

    ns3::EventId m_again;

  private:
    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        return Child()->Enqueue(item); // the device's layer calls Run
    }

    bool CheckConfig() override
    {
        return GetNQueueDiscClasses() == 1 && GetNInternalQueues() == 0 && GetNPacketFilters() == 0;
    }

    void InitializeParams() override
    {
    }
};

/// A packet goes when all before it are paid off at the rate; nothing is saved up.
class PacerQueueDisc final : public ParentQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid = ns3::TypeId("netctrl::PacerQueueDisc")
                                     .SetParent<ns3::QueueDisc>()
                                     .SetGroupName("TrafficControl")
                                     .AddConstructor<PacerQueueDisc>();
        return tid;
    }

    /// [bit/s], of which the capacity is the most that counts; a packet on its way out is paid off at the new rate from
    /// now on.
    void SetRate(double rate)
    {
        Settle();
        m_wanted = rate;
        m_rate = std::min(m_wanted, m_capacity);
        Wait();
    }

    /// The device's rate [bit/s], so that packets wait here and not there.
    void SetCapacity(double capacity)
    {
        m_capacity = capacity;
        SetRate(m_wanted);
    }

  private:
    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        Settle();
        if (m_owed > 0.0)
        {
            Wait();
            return nullptr;
        }
        ns3::Ptr<ns3::QueueDiscItem> item = Child()->Dequeue();
        if (item)
        {
            m_owed = 8.0 * item->GetSize();
        }
        return item;
    }

    void Settle()
    {
        const int64_t now = ns3::Simulator::Now().GetNanoSeconds();
        m_owed = std::max(m_owed - m_rate * 1e-9 * static_cast<double>(now - m_settled), 0.0);
        m_owed = m_owed < kNothing ? 0.0 : m_owed;
        m_settled = now;
    }

    /// Come again when all is paid off; at rate 0 when there is another rate.
    void Wait()
    {
        m_again.Cancel();
        if (GetNPackets() > 0 && m_rate > 0.0)
        {
            const double wait = std::min(std::ceil(1e9 * m_owed / m_rate), kLongest);
            m_again = ns3::Simulator::Schedule(ns3::NanoSeconds(static_cast<int64_t>(wait)), &QueueDisc::Run, this);
        }
    }

    static constexpr double kNothing = 1e-6; ///< [bit]: rounding
    static constexpr double kLongest = 1e18; ///< [ns]

    double m_wanted = HUGE_VAL; ///< [bit/s]
    double m_capacity = 0.0;    ///< [bit/s]
    double m_rate = 0.0;        ///< in force [bit/s]
    double m_owed = 0.0; ///< of what has gone [bit]
    int64_t m_settled = 0; ///< [ns]
};

/// So many bytes may go at each of some times. A packet that has some of its bytes waits for the rest; what nothing waits
/// for is lost.
class TraceQueueDisc final : public ParentQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        static ns3::TypeId tid =
            ns3::TypeId("netctrl::TraceQueueDisc").SetParent<ns3::QueueDisc>().AddConstructor<TraceQueueDisc>();
        return tid;
    }

    /// @param at times, ascending; what comes at one of them comes too late for it [ns]
    /// @param sizes what may go at each [byte]
    /// @param header what each packet takes in addition [byte]
    void Follow(std::vector<int64_t> at, std::vector<int64_t> sizes, int64_t header)
    {
        m_at = std::move(at);
        m_sizes = std::move(sizes);
        m_header = header;
        Wait();
    }

  private:
    void Wait()
    {
        if (m_next < m_at.size())
        {
            const auto at = ns3::NanoSeconds(m_at[m_next] - 1);
            m_again = ns3::Simulator::Schedule(at - ns3::Simulator::Now(), &TraceQueueDisc::Open, this);
        }
    }

    void Open()
    {
        m_credit += m_sizes[m_next++];
        Run();
        Wait();
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        if (!m_item && m_credit > 0)
        {
            m_item = Child()->Dequeue();
            m_owed = m_item ? m_item->GetSize() + m_header : m_credit;
        }
        const int64_t used = std::min(m_owed, m_credit);
        m_credit -= used;
        m_owed -= used;
        return m_owed > 0 ? nullptr : std::exchange(m_item, nullptr);
    }

    std::vector<int64_t> m_at;
    std::vector<int64_t> m_sizes;
    int64_t m_header = 0;
    std::size_t m_next = 0;
    int64_t m_credit = 0; ///< that has not gone [byte]
    int64_t m_owed = 0;   ///< for the packet on its way
    ns3::Ptr<ns3::QueueDiscItem> m_item;
};

} // namespace netctrl
