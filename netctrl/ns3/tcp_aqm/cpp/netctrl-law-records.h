// A tracking law behind its governor and its schedule, from its records in scenario.txt, without ns-3. C++17.
//
// Fixed: netctrl copies this file as it is. The law is in netctrl-tracking-law.h.

#ifndef NETCTRL_LAW_RECORDS_H
#define NETCTRL_LAW_RECORDS_H

#include "netctrl-records.h"
#include "netctrl-tracking-law.h"

#include <cstdlib>
#include <sstream>
#include <string>
#include <vector>

namespace netctrl
{

/// Numbers between commas.
inline std::vector<double>
Numbers(const std::string& text)
{
    std::vector<double> found;
    std::istringstream parts(text);
    for (std::string part; std::getline(parts, part, ',');)
    {
        found.push_back(std::strtod(part.c_str(), nullptr));
    }
    return found;
}

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
        const auto take = [&record](const char* field, auto& value) { Read(record.Take(field), value); };
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
    static void Read(const std::string& text, Vector& value)
    {
        const std::vector<double> numbers = Numbers(text);
        value = Vector(numbers.data(), numbers.size());
    }

    /// ROWSxCOLUMNS:numbers
    static void Read(const std::string& text, Matrix& value)
    {
        value.rows = std::strtoul(text.c_str(), nullptr, 10);
        value.columns = std::strtoul(text.c_str() + text.find('x') + 1, nullptr, 10);
        Read(text.substr(text.find(':') + 1), value.values);
    }

    static void Read(const std::string& text, bool& value)
    {
        value = text != "0";
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

#endif // NETCTRL_LAW_RECORDS_H
