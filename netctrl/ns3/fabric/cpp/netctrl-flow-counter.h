// How many flows pass a switch port: those of which a packet came within a time, without ns-3. C++17.
//
// Source: MPCC thesis, Section 4.2; netctrl.sim.packet.links.ports.

#pragma once

#include <cstdint>
#include <list>
#include <unordered_map>
#include <utility>

namespace netctrl
{

/// Times are nanoseconds, and never go back.
class FlowCounter
{
  public:
    /// @param timeout a flow counts so long after its last packet
    explicit FlowCounter(int64_t timeout)
        : m_timeout(timeout)
    {
    }

    /// A packet of a flow came.
    void See(uint32_t flow, int64_t now)
    {
        const auto found = m_places.find(flow);
        if (found == m_places.end())
        {
            m_places.emplace(flow, m_seen.insert(m_seen.end(), {now, flow}));
            return;
        }
        found->second->first = now;
        m_seen.splice(m_seen.end(), m_seen, found->second);
    }

    /// Flows that were seen at `now` less the timeout, or later.
    int64_t Count(int64_t now)
    {
        while (!m_seen.empty() && m_seen.front().first < now - m_timeout)
        {
            m_places.erase(m_seen.front().second);
            m_seen.pop_front();
        }
        return static_cast<int64_t>(m_seen.size());
    }

  private:
    using Seen = std::list<std::pair<int64_t, uint32_t>>; // in order of time

    int64_t m_timeout;
    Seen m_seen;
    std::unordered_map<uint32_t, Seen::iterator> m_places;
};

} // namespace netctrl
