// A law at work that sets the rates of flows so that a flow's delay and jitter follow references; writes signals.csv.
// The law is in netctrl-tracking-law.h.

#pragma once

#include "netctrl-delay-laws.h"
#include "netctrl-files.h"
#include "netctrl-gates.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Delay and jitter of a group's packets, which carry the time at which they left.
class DelayMeter
{
  public:
    /// A period ends.
    PremiumReading Read()
    {
        const PremiumReading reading = ReadPremium(m_measured, 0.0, m_empty);
        std::fill(m_measured.begin() + kDelaySum, m_measured.end(), 0.0);
        return reading;
    }

    void Take(int64_t left)
    {
        Observe(m_measured, 1e-9 * static_cast<double>(Simulator::Now().GetNanoSeconds() - left), m_empty);
        m_empty = false;
    }

  private:
    std::vector<double> m_measured = std::vector<double>(kMeasured + 1);
    bool m_empty = true; ///< since the beginning
};

/// The loop: what a period brought, the law's step, the rates of the next period.
class Track
{
  public:
    Track(const std::string& folder,
          const std::vector<std::unique_ptr<Sink>>& sinks,
          const std::vector<std::unique_ptr<GatedFlow>>& flows)
        : m_tracker(kTrack.law),
          m_table(folder + "/signals.csv"),
          m_sinks(sinks)
    {
        for (const TrackedRow& row : kTrack.tracked)
        {
            m_flows.emplace_back();
            for (const auto& flow : flows)
            {
                if (flow->group == row.group)
                {
                    m_flows.back().push_back(flow.get());
                }
            }
        }
        sinks[kTrack.measures]->Watch([this](int64_t left) { m_meter.Take(left); });
        Begin();
    }

    Track(const Track&) = delete;
    Track& operator=(const Track&) = delete;

  private:
    /// What happens at the same time has happened before a period ends.
    void Tick()
    {
        Simulator::ScheduleNow(&Track::End, this);
    }

    void Begin()
    {
        const Vector& applied = m_tracker.state.applied;
        const bool open = m_period < kTrack.start;
        m_rate = open ? HUGE_VAL : std::max(applied[0] * kTrack.rateUnit, 0.0);
        m_burst = open || applied.size() < 2 ? 0 : std::max(1, static_cast<int>(std::nearbyint(applied[1])));
        for (std::size_t k = 0; k < m_flows.size(); ++k)
        {
            const TrackedRow& row = kTrack.tracked[k];
            const GroupRow& group = kGroups[row.group];
            for (GatedFlow* flow : m_flows[k])
            {
                flow->Command(std::min(m_rate * row.share, group.rate), m_burst > 0 ? m_burst : group.gate.burst);
            }
        }
        const int64_t end = std::min(kTrack.interval * (m_period + 1), kDuration);
        Simulator::Schedule(NanoSeconds(end) - Simulator::Now(), &Track::Tick, this);
    }

    void End()
    {
        const std::vector<double> found = Measure();
        Vector measured(kTrack.outputs.size());
        for (std::size_t i = 0; i < kTrack.outputs.size(); ++i)
        {
            measured[i] = found[kTrack.outputs[i].column] * kTrack.outputs[i].scale;
        }
        const Vector wanted = Wanted();
        Vector given = wanted;
        Vector commanded(std::nan(""), m_tracker.state.commanded.size());
        if (m_period >= kTrack.start)
        {
            commanded = m_tracker.state.commanded;
            m_tracker.Step(measured, wanted);
            given = m_tracker.given;
        }
        m_table.Put(m_rate);
        m_table.Put(m_burst);
        for (const double value : found)
        {
            m_table.Put(value);
        }
        for (const Vector* values : {&measured, &given, &commanded})
        {
            m_table.PutAll(*values);
        }
        m_table.EndRow();
        if (++m_period < kTrack.periods)
        {
            Begin();
        }
    }

    Vector Wanted() const
    {
        const auto after = std::upper_bound(
            kTrack.references.begin(), kTrack.references.end(), m_period, [](int64_t period, const ReferenceRow& row) {
                return period < row.from;
            });
        const std::vector<double>& values = std::prev(after)->values;
        return Vector(values.data(), values.size());
    }

    /// Delay, jitter and their means [ms], and throughput of the tracked flows [bit/s].
    std::vector<double> Measure()
    {
        const PremiumReading reading = m_meter.Read();
        uint64_t bytes = 0;
        for (const TrackedRow& row : kTrack.tracked)
        {
            bytes += m_sinks[row.group]->Arrived();
        }
        const double rate = 8e9 * static_cast<double>(bytes - m_bytes) / static_cast<double>(kTrack.interval);
        m_bytes = bytes;
        return {1e3 * reading.delay, 1e3 * reading.jitter, 1e3 * reading.meanDelay, 1e3 * reading.meanJitter, rate};
    }

    Tracker m_tracker;
    Table m_table;
    const std::vector<std::unique_ptr<Sink>>& m_sinks;
    std::vector<std::vector<GatedFlow*>> m_flows; ///< of each tracked group
    DelayMeter m_meter;
    int64_t m_period = 0;
    double m_rate = 0.0; ///< of all tracked flows [bit/s]
    int m_burst = 0;     ///< 0: each group's own
    uint64_t m_bytes = 0;
};

} // namespace netctrl
