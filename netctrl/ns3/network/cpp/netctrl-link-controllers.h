// The controllers of all links at work, without ns-3. C++17.
//
// The law is in netctrl-link-law.h.

#pragma once

#include "netctrl-link-law.h"
#include "netctrl-records.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace netctrl
{

/// Numbers of the law of the links' rates.
inline LinkRates
TakeLinkRates(Record& record)
{
    LinkRates law;
    ForEach(law, [&](const std::string& name, auto& value) { record.TakeInto(name, value); });
    law.line.columns = law.least.columns = static_cast<int64_t>(law.nominal.size());
    return law;
}

/// Each link measures and acts once an interval, at a tick of its own, by what it has heard.
class LinkControllers
{
  public:
    /// @param phase tick of the interval at which each link acts
    LinkControllers(const LinkRates& law, std::vector<int64_t> phase)
        : m_law(law)
    {
        const auto samples = static_cast<std::size_t>(law.mask + 1);
        m_memory.phase = std::move(phase);
        m_memory.measured = {law.mask + 1, std::vector<double>(4 * law.nominal.size() * samples)};
        m_memory.arrival = {law.mask + 1, std::vector<int64_t>(static_cast<std::size_t>(law.messages) * samples)};
        m_memory.command = law.nominal;
        m_memory.forecast.resize(law.prices.link.size());
        StartLinks(law, m_memory);
    }

    bool ActsAt(std::size_t link, int64_t tick) const
    {
        return LinkActs(m_law, m_memory, static_cast<int64_t>(link), tick);
    }

    /// Rates after this tick, by link, before they are bounded: new ones of the links that act.
    ///
    /// @param measured over the interval that ended for each link
    /// @param late by how many ticks each message of this interval is late, or -1: it is lost
    /// @param received whether the central controller's command reaches each link
    const std::vector<double>& Act(int64_t tick,
                                   const std::vector<Measured>& measured,
                                   const std::vector<int64_t>& late,
                                   const std::vector<bool>& received)
    {
        for (std::size_t link = 0; link < measured.size(); ++link)
        {
            if (ActsAt(link, tick))
            {
                MeasureLink(m_law, m_memory, static_cast<int64_t>(link), measured[link], tick, late);
            }
        }
        for (std::size_t link = 0; link < measured.size(); ++link)
        {
            if (ActsAt(link, tick))
            {
                CommandLink(m_law, m_memory, static_cast<int64_t>(link), tick, received[link]);
            }
        }
        return m_memory.command;
    }

  private:
    const LinkRates& m_law;
    LinkMemory m_memory;
};

} // namespace netctrl
