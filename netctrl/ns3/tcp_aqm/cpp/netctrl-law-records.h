// A tracking law behind its governor and its schedule, from its records in scenario.txt, without ns-3. C++17.
// The law is in netctrl-tracking-law.h.

#pragma once

#include "netctrl-records.h"
#include "netctrl-tracking-law.h"

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace netctrl
{

/// The parts of a law; a governor or a schedule without numbers is none.
struct LawParts
{
    TrackingGains gains{};
    TrackingState start{};
    ReferenceGovernor governor{};
    GainSchedule schedule{};

    /// One of its records.
    void Take(Record& record)
    {
        const auto take = [&record](const char* field, auto& value) { Read(record, field, value); };
        if (record.id == "gains")
        {
            ForEach(gains, take);
        }
        else if (record.id == "state")
        {
            ForEach(start, take);
        }
        else if (record.id == "governor")
        {
            ForEach(governor, take);
        }
        else if (record.id == "schedule")
        {
            ForEach(schedule, take);
        }
        else
        {
            record.Refuse("is no part of a law");
        }
    }

  private:
    template <class Value>
    static void Read(Record& record, const char* field, Value& value)
    {
        record.TakeInto(field, value);
    }

    /// ROWSxCOLUMNS:numbers
    static void Read(Record& record, const char* field, Matrix& value)
    {
        const std::string text = record.Take(field);
        value.rows = std::strtoul(text.c_str(), nullptr, 10);
        value.columns = std::strtoul(text.c_str() + text.find('x') + 1, nullptr, 10);
        const auto numbers = record.ReadNumbers(field, text.substr(text.find(':') + 1));
        value.values = Vector(numbers.data(), numbers.size());
    }
};

/// Steps of a law.
class Tracker
{
  public:
    explicit Tracker(const LawParts& law)
        : state(law.start),
          given(law.gains.outputOffset),
          m_law(law)
    {
    }

    /// One sample: measured outputs and references, with their offsets.
    void Step(const Vector& measured, const Vector& wanted)
    {
        const bool governed = m_law.governor.byState.rows > 0;
        const bool scheduled = m_law.schedule.points.size() > 0;
        given = governed ? Govern(m_law.governor, state, given, wanted) : wanted;
        const Vector seen = scheduled ? Scheduled(m_law.schedule, measured, given, state.applied) : measured;
        state = StepTracking(m_law.gains, state, seen, given);
    }

    TrackingState state; ///< its inputs hold until the next sample
    Vector given;        ///< the reference that the law was given last

  private:
    const LawParts& m_law;
};

} // namespace netctrl
