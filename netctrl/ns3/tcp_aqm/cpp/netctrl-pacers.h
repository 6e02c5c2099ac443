// Laws that set the rate of a flow, at work.

#pragma once

#include "netctrl-pacing-laws.h"
#include "netctrl-records.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace netctrl
{

/// The paper's law at work.
struct ArxPacer
{
    ArxParameters parameters;
    ArxState state;
    std::vector<double> memory;
};

/// The law whose queue depends on the own rate, at work.
struct OwnRatePacer
{
    OwnRateParameters parameters;
    OwnRateState state;
};

using Pacer = std::variant<ArxPacer, OwnRatePacer>;

/// What a law counts.
template <class State>
std::array<int64_t, 5>
EventsOf(const State& state)
{
    std::array<int64_t, 5> events{};
    const double counts[] = {state.badRtt, state.badTime, state.held, state.floored, state.resets};
    std::transform(std::begin(counts), std::end(counts), events.begin(), [](double count) { return int64_t(count); });
    return events;
}

/// Parameters of a law, and what of its first state isn't 0.
template <class Law>
Law
TakeLaw(Record& record)
{
    Law law;
    ForEach(law.parameters, [&](const char* name, double& value) { value = record.Take<double>(name); });
    ForEach(law.state, [&](const std::string& name, double& value) { value = record.Take("state." + name, 0.0); });
    return law;
}

inline Pacer
TakePacer(Record& record)
{
    const std::string law = record.Take("law");
    if (law == "own-rate")
    {
        return TakeLaw<OwnRatePacer>(record);
    }
    if (law != "arx")
    {
        record.Refuse("has law " + law + ", which is neither arx nor own-rate");
    }
    const auto places = record.Take<std::size_t>("memory"); // theta, then phi
    auto pacer = TakeLaw<ArxPacer>(record);
    pacer.memory.resize(places);
    return pacer;
}

} // namespace netctrl
