// What sets the rates of links under demands: the law of all links, which is asked every interval, and the table of a run.

#pragma once

#include "netctrl-demands.h"
#include "netctrl-files.h"
#include "netctrl-link-controllers.h"
#include "netctrl-queues.h"
#include "netctrl-recorder.h"
#include "scenario.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// What differs between runs of demands: in the file FOLDER/run-RUN.bin, little-endian, in this order.
struct RunTable
{
    std::vector<double> rates;  ///< [bit/s], intervals times demands
    std::vector<int64_t> phase; ///< of each link: tick of the interval at which it acts

    explicit RunTable(const std::string& path)
        : phase(kLinks.size())
    {
        const std::size_t steps = kDuration / kSample;
        RunFile file(path);
        rates = file.Take<double>(steps * kDemands.size());
        if (kLate)
        {
            const auto ticks = file.Take<int32_t>(kLinks.size());
            phase.assign(ticks.begin(), ticks.end());
            m_late = file.Take<int32_t>(steps * kLaw.messages);
            m_received = file.Take<uint8_t>(steps * kLinks.size());
        }
        file.End();
    }

    /// By how many ticks each message of an interval is late, or -1: it is lost.
    std::vector<int64_t> Late(int64_t step) const
    {
        const auto first = m_late.begin() + step * kLaw.messages;
        return {first, first + kLaw.messages};
    }

    /// Whether a central controller's command of an interval reaches each link.
    std::vector<bool> Received(int64_t step) const
    {
        const auto links = static_cast<int64_t>(kLinks.size());
        if (!kLate)
        {
            return std::vector<bool>(kLinks.size(), true);
        }
        return {m_received.begin() + step * links, m_received.begin() + (step + 1) * links};
    }

  private:
    std::vector<int32_t> m_late; ///< intervals times messages; these two only where messages may be late
    std::vector<uint8_t> m_received; ///< intervals times links
};

/// The controllers of all links: every tick, of which an interval has one, or several where links act out of step. Each
/// interval ends in what is written of it, and begins with what demands send.
class Control
{
  public:
    Control(const RunTable& table,
            const std::vector<LinkQueue>& queues,
            const std::vector<std::unique_ptr<Demand>>& demands,
            Recorder& recorder)
        : m_table(table),
          m_queues(queues),
          m_demands(demands),
          m_recorder(recorder),
          m_controllers(kLaw, table.phase),
          m_acted(queues.size())
    {
        Set(kLaw.nominal);
        Simulator::ScheduleNow(&Control::Tick, this, int64_t{0});
    }

  private:
    /// What was measured up to now is looked at before anything new happens.
    void Tick(int64_t tick)
    {
        const int64_t step = tick / kLaw.ticks;
        const bool begins = tick % kLaw.ticks == 0;
        if (begins && step > 0)
        {
            m_recorder.Sample();
        }
        if (step == kDuration / kSample)
        {
            return;
        }
        Set(Act(tick, step));
        for (std::size_t i = 0; begins && i < m_demands.size(); ++i)
        {
            m_demands[i]->Begin(m_table.rates[step * m_demands.size() + i]);
        }
        const int64_t ends = tick + 1;
        const int64_t next = ends / kLaw.ticks * kSample + ends % kLaw.ticks * kSample / kLaw.ticks;
        Simulator::Schedule(NanoSeconds(next) - Simulator::Now(), &Control::Tick, this, ends);
    }

    const std::vector<double>& Act(int64_t tick, int64_t step)
    {
        std::vector<Measured> measured(m_queues.size());
        for (std::size_t link = 0; link < measured.size(); ++link)
        {
            if (m_controllers.ActsAt(link, tick))
            {
                const LinkCounters now = m_queues[link].Count();
                measured[link] = Between(m_acted[link], now);
                if (step == 0) // before the start all sent at their nominal rates
                {
                    const auto phase = static_cast<double>(m_table.phase[link]);
                    const double before = 1.0 - phase / static_cast<double>(kLaw.ticks);
                    measured[link].rate += before * kLaw.nominal[link];
                }
                m_acted[link] = now;
            }
        }
        return m_controllers.Act(tick, measured, m_table.Late(step), m_table.Received(step));
    }

    void Set(const std::vector<double>& rates)
    {
        for (std::size_t link = 0; link < m_queues.size(); ++link)
        {
            const auto capacity = static_cast<double>(kLinks[link].capacity);
            m_queues[link].pacer->SetRate(kLinks[link].paced ? std::clamp(rates[link], 0.0, capacity) : capacity);
        }
    }

    const RunTable& m_table;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<Demand>>& m_demands;
    Recorder& m_recorder;
    LinkControllers m_controllers;
    std::vector<LinkCounters> m_acted; ///< when each link last acted
};

} // namespace netctrl
