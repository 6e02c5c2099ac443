// A queue disc that lets packets go no faster than a rate that is set from outside.

#pragma once

#include "ns3/queue-disc.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

/// Paces what waits in its one child. A packet goes when all before it are paid off at the rate; nothing is saved up.
///
/// The child decides what is dropped or marked and what goes next: any queue disc of ns-3.
class PacerQueueDisc final : public ns3::QueueDisc
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

    PacerQueueDisc()
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
    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override
    {
        return GetQueueDiscClass(0)->GetQueueDisc()->Enqueue(item); // the device's layer calls Run
    }

    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override
    {
        Settle();
        if (m_owed > 0.0)
        {
            Wait();
            return nullptr;
        }
        ns3::Ptr<ns3::QueueDiscItem> item = GetQueueDiscClass(0)->GetQueueDisc()->Dequeue();
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

    bool CheckConfig() override
    {
        return GetNQueueDiscClasses() == 1 && GetNInternalQueues() == 0 && GetNPacketFilters() == 0;
    }

    void InitializeParams() override
    {
    }

    void DoDispose() override
    {
        m_again.Cancel();
        QueueDisc::DoDispose();
    }

    static constexpr double kNothing = 1e-6; ///< [bit]: rounding
    static constexpr double kLongest = 1e18; ///< [ns]

    double m_wanted = HUGE_VAL; ///< [bit/s]
    double m_capacity = 0.0;    ///< [bit/s]
    double m_rate = 0.0;        ///< in force [bit/s]
    double m_owed = 0.0; ///< of what has gone [bit]
    int64_t m_settled = 0; ///< [ns]
    ns3::EventId m_again;
};

} // namespace netctrl
