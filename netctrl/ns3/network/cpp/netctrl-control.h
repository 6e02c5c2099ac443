// What sets the rates of links: their law, which is asked every interval, and under demands the table of a run.

#pragma once

#include "netctrl-demands.h"
#include "netctrl-files.h"
#include "netctrl-link-controllers.h"
#include "netctrl-queues.h"
#include "netctrl-recorder.h"
#include "scenario.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// What differs between runs of demands, if there are any: in the file FOLDER/run-RUN.bin, little-endian, in this order.
struct RunTable
{
    std::vector<double> rates;  ///< [bit/s], intervals times demands
    std::vector<int64_t> phase; ///< of each link: tick of the interval at which it acts

    explicit RunTable(const std::string& path)
        : phase(kControlled.size())
    {
        if (kDemands.empty())
        {
            return;
        }
        const std::size_t steps = kDuration / kInterval;
        RunFile file(path);
        rates = file.Take<double>(steps * kDemands.size());
        if (kLate)
        {
            const auto ticks = file.Take<int32_t>(kControlled.size());
            phase.assign(ticks.begin(), ticks.end());
            m_late = file.Take<int32_t>(steps * kLaw.messages);
            m_received = file.Take<uint8_t>(steps * kControlled.size());
        }
        file.End();
    }

    /// By how many ticks each message of an interval is late, or -1: it is lost.
    std::vector<int64_t> Late(int64_t step) const
    {
        if (!kLate)
        {
            return {};
        }
        const auto first = m_late.begin() + step * kLaw.messages;
        return {first, first + kLaw.messages};
    }

    /// Whether a central controller's command of an interval reaches each link.
    std::vector<bool> Received(int64_t step) const
    {
        const auto links = static_cast<int64_t>(kControlled.size());
        if (!kLate)
        {
            return std::vector<bool>(links, true);
        }
        return {m_received.begin() + step * links, m_received.begin() + (step + 1) * links};
    }

  private:
    std::vector<int32_t> m_late; ///< intervals times messages; these two only where messages may be late
    std::vector<uint8_t> m_received; ///< intervals times links
};

/// The controllers of links: every tick, of which an interval has one, or several where links act out of step. Under
/// demands each interval ends in what is written of it, and begins with what they send.
class Control
{
  public:
    Control(const std::string& folder,
            const RunTable& table,
            const std::vector<LinkQueue>& queues,
            const std::vector<std::unique_ptr<Demand>>& demands,
            Recorder& recorder)
        : m_table(table),
          m_queues(queues),
          m_demands(demands),
          m_recorder(recorder),
          m_acted(kControlled.size())
    {
        if (kDecided.empty())
        {
            m_controllers = std::make_unique<LinkControllers>(kLaw, table.phase);
        }
        else
        {
            m_decided = std::make_unique<DecidedLink>(kDecided.front(), kLaw.nominal.front(), folder);
        }
        Set(kLaw.nominal);
        Simulator::ScheduleNow(&Control::Tick, this, int64_t{0});
    }

  private:
    /// What was measured up to now is looked at before anything new happens.
    void Tick(int64_t tick)
    {
        const int64_t step = tick / kLaw.ticks;
        const bool begins = tick % kLaw.ticks == 0;
        if (begins && step > 0 && !kDemands.empty())
        {
            m_recorder.Sample();
        }
        if (step == kDuration / kInterval)
        {
            return;
        }
        Set(Act(tick, step));
        for (std::size_t i = 0; begins && i < m_demands.size(); ++i)
        {
            m_demands[i]->Begin(m_table.rates[step * m_demands.size() + i]);
        }
        const int64_t ends = tick + 1;
        const int64_t next = ends / kLaw.ticks * kInterval + ends % kLaw.ticks * kInterval / kLaw.ticks;
        Simulator::Schedule(NanoSeconds(next) - Simulator::Now(), &Control::Tick, this, ends);
    }

    std::vector<double> Act(int64_t tick, int64_t step)
    {
        std::vector<Measured> measured(kControlled.size());
        for (std::size_t link = 0; link < measured.size(); ++link)
        {
            if (m_decided || m_controllers->ActsAt(link, tick))
            {
                const LinkCounters now = m_queues[kControlled[link]].Count();
                measured[link] = Between(m_acted[link], now, kInterval);
                if (step == 0) // before the start all sent at their nominal rates
                {
                    const auto phase = static_cast<double>(m_table.phase[link]);
                    const double before = 1.0 - phase / static_cast<double>(kLaw.ticks);
                    measured[link].rate += before * kLaw.nominal[link];
                }
                m_acted[link] = now;
            }
        }
        if (m_decided)
        {
            return {m_decided->Decide(step, measured[0].backlog, measured[0].arrived - measured[0].lost)};
        }
        return m_controllers->Act(tick, measured, m_table.Late(step), m_table.Received(step));
    }

    void Set(const std::vector<double>& rates)
    {
        for (std::size_t link = 0; link < kControlled.size(); ++link)
        {
            const int row = kControlled[link];
            m_queues[row].pacer->SetRate(kLinks[row].paced ? std::max(rates[link], 0.0) : HUGE_VAL);
        }
    }

    const RunTable& m_table;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<Demand>>& m_demands;
    Recorder& m_recorder;
    std::unique_ptr<LinkControllers> m_controllers;
    std::unique_ptr<DecidedLink> m_decided; ///< a law of one link in their place
    std::vector<LinkCounters> m_acted; ///< when each link last acted
};

} // namespace netctrl
