// Round-trip times of single packets, as their sender sees them.
//
// ns-3.37 gives congestion controls the smoothed RTT, ns-3.44 a sample; neither tells of packets that are selectively
// acknowledged. Here each packet that was sent once gives one sample, with the acknowledgement that it made: a
// cumulative one that ends with it, or one whose first block ends with it (RFC 2018, section 4: the first block holds
// the packet that came last). Receivers acknowledge each packet. What was sent again gives none (Karn).

#pragma once

#include "ns3/nstime.h"
#include "ns3/packet.h"
#include "ns3/simulator.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-option-sack.h"

#include <algorithm>
#include <cstdint>
#include <deque>

namespace netctrl
{

using namespace ns3;

class RoundTrips
{
  public:
    /// A packet leaves the sender.
    void Sent(uint32_t size, const TcpHeader& header)
    {
        if (size == 0)
        {
            return;
        }
        const SequenceNumber32 end = header.GetSequenceNumber() + size;
        sent += size;
        if (m_newest < end)
        {
            m_ends.push_back({end, Simulator::Now(), false});
            m_newest = end;
            return;
        }
        again += size;
        const auto found = Find(end);
        if (found != m_ends.end())
        {
            found->spent = true;
        }
    }

    /// An acknowledgement comes back.
    void Received(const TcpHeader& header)
    {
        const SequenceNumber32 acknowledged = header.GetAckNumber();
        m_fresh = Time();
        Time left;
        while (!m_ends.empty() && m_ends.front().end <= acknowledged)
        {
            left = m_ends.front().end == acknowledged && !m_ends.front().spent ? m_ends.front().sent : Time();
            m_ends.pop_front();
        }
        Take(left);
        if (!header.HasOption(TcpOption::SACK))
        {
            return;
        }
        const auto blocks = DynamicCast<const TcpOptionSack>(header.GetOption(TcpOption::SACK))->GetSackList();
        const auto found = blocks.empty() ? m_ends.end() : Find(blocks.front().second);
        if (found != m_ends.end() && !found->spent)
        {
            found->spent = true;
            Take(found->sent);
        }
    }

    /// Whether the last acknowledgement gave a sample.
    bool IsFresh() const
    {
        return m_fresh.IsStrictlyPositive();
    }

    /// The sample that the last acknowledgement gave, handed out once; zero: none.
    Time Fresh()
    {
        const Time found = m_fresh;
        m_fresh = Time();
        return found;
    }

    /// The newest sample; zero: none yet.
    Time Newest() const
    {
        return m_sample;
    }

    uint64_t sent = 0;  ///< that left the sender [byte]
    uint64_t again = 0; ///< of these, what had left it before [byte]

  private:
    struct Sending
    {
        SequenceNumber32 end; ///< behind the packet's last byte
        Time sent;
        bool spent; ///< sent again, or its sample was taken
    };

    std::deque<Sending>::iterator Find(SequenceNumber32 end)
    {
        const auto before = [](const Sending& one, SequenceNumber32 place) { return one.end < place; };
        const auto found = std::lower_bound(m_ends.begin(), m_ends.end(), end, before);
        return found != m_ends.end() && found->end == end ? found : m_ends.end();
    }

    void Take(Time left)
    {
        if (left.IsStrictlyPositive())
        {
            m_sample = m_fresh = Simulator::Now() - left;
        }
    }

    std::deque<Sending> m_ends;
    SequenceNumber32 m_newest{0};
    Time m_sample;
    Time m_fresh;
};

} // namespace netctrl
