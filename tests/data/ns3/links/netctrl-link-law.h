// Made by netctrl export ns3: do not edit.
// Rates of links by what each has heard: printed from the Python that netctrl simulates.

#ifndef NETCTRL_LINK_LAW_H
#define NETCTRL_LINK_LAW_H

#include "netctrl-arrays.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace netctrl
{

constexpr int64_t kNever = -1;
constexpr int64_t kRate = 0;
constexpr int64_t kBacklog = 1;
constexpr int64_t kArrivalInnovation = 2;
constexpr int64_t kBacklogInnovation = 2;
constexpr int64_t kSaturationError = 3;
constexpr int64_t kRateInnovation = 3;

struct FirSums
{
    std::vector<int64_t> start;      ///< (N + 1) where each link's taps start
    std::vector<int64_t> series;     ///< (P)
    std::vector<int64_t> lag;        ///< (P) [sample]
    std::vector<double> coefficient; ///< (P)
    std::vector<double> offset;      ///< (N) [bit/s]
};

struct Feeds
{
    std::vector<int64_t> start; ///< (N + 1)
    std::vector<int64_t> link;  ///< that feeds
    std::vector<int64_t> delay; ///< of it [sample]
    std::vector<double> share;  ///< of what it sends that comes here
};

struct Prices
{
    std::vector<int64_t> start; ///< (N + 1) start of each link's pairs
    std::vector<int64_t> link;  ///< (E) that is fed
    std::vector<double> share;  ///< (E) of what the link sends that goes there
    std::vector<double> other;  ///< (E) nominal rate at which others feed it, less its capacity [bit/s]
    std::vector<double> spread; ///< (E) of its forecast [bit/s]
    std::vector<int64_t> delay; ///< (N) propagation delay of each link, and the age at which it hears of the links that it feeds [sample]
    std::vector<int64_t> lag;   ///< (N) intervals between that in which a link sends and that in which it arrives: one more where links store one
    std::vector<double> enters; ///< (N) mean rate of demands that enter there [bit/s]
    std::vector<double> varies; ///< (N) spread of what does [bit/s]
    std::vector<double> buffer; ///< (N) over the interval [bit/s]
    std::vector<double> later;  ///< (N) price of what comes later
};

struct LinkRates
{
    std::vector<double> nominal;  ///< (N) rates around which links are controlled
    double setpoint;              ///< backlog around which they are
    FirSums control;              ///< of the rates
    FirSums predicted;            ///< of each link's own backlog, from innovations; no taps where the law takes none
    bool foresees;                ///< whether the law takes what came unforeseen and what wasn't sent instead: all must be heard in time
    std::vector<double> expected; ///< (N) what is foreseen to arrive at each link, beside what others feed
    Feeds feeds;                  ///< of links, by those that feed them
    bool central;                 ///< whether one controller hears of all and tells all links what to send
    int64_t ticks;                ///< of an interval
    int64_t messages;             ///< sent in an interval; 0: all is heard in time
    Grid<int64_t> line;           ///< (N, N) number of the messages by which link l hears of link k; -1: of none
    Grid<int64_t> least;          ///< (N, N) age from which on link l hears what link k measured; what the law takes earlier is known without
    int64_t mask;                 ///< samples that are remembered, a power of 2, less one
    Prices prices;                ///< by which links send less than their sums where the next buffers are full
};

struct LinkMemory
{
    std::vector<int64_t> phase;   ///< (N) tick of the interval at which each link acts, the same all the time
    Grid<double> measured;        ///< (4 N, samples) what each link measured
    Grid<int64_t> arrival;        ///< (messages, samples) tick at which a message is there; -1: it was lost
    std::vector<double> command;  ///< (N) rates in force, before limits
    std::vector<double> forecast; ///< (E) of the prices' pairs, in the last sample
};

struct Measured
{
    double rate;    ///< that was sent
    double backlog; ///< at its end
    double arrived; ///< rate
    double lost;    ///< rate
};

/// Before the first tick all was as it is wanted.
inline void
StartLinks(const LinkRates& law, LinkMemory& memory)
{
    const int64_t N = static_cast<int64_t>(law.nominal.size());
    for (int64_t link = 0; link < N; ++link)
    {
        memory.command[link] = law.nominal[link];
        for (int64_t slot = 0; slot < law.mask + 1; ++slot)
        {
            memory.measured(kRate * N + link, slot) = law.nominal[link];
            memory.measured(kBacklog * N + link, slot) = law.setpoint;
        }
    }
    for (int64_t message = 0; message < law.messages; ++message)
    {
        for (int64_t slot = 0; slot < law.mask + 1; ++slot)
        {
            memory.arrival(message, slot) = kNever;
        }
    }
}

/// Whether a link measures and acts at a tick.
inline bool
LinkActs(const LinkRates& law, const LinkMemory& memory, int64_t link, int64_t tick)
{
    return memory.phase[link] == tick % law.ticks;
}

/// Link `at`'s sum over what it has heard, or over what is assumed of what it hasn't.
///
/// Arrays have names of their own: to look them up in a record at each tap costs more than the tap.
inline double
FirSum(const LinkRates& law, const LinkMemory& memory, const FirSums& taps, int64_t at, int64_t tick)
{
    const int64_t N = static_cast<int64_t>(law.nominal.size());
    const int64_t sample = tick / law.ticks;
    const int64_t mask = law.mask;
    const bool inTime = law.messages == 0;
    auto& line = law.line;
    auto& least = law.least;
    auto& nominal = law.nominal;
    auto& phase = memory.phase;
    auto& measured = memory.measured;
    auto& arrival = memory.arrival;
    auto& series = taps.series;
    auto& lag = taps.lag;
    auto& coefficient = taps.coefficient;
    double total = taps.offset[at];
    for (int64_t j = taps.start[at]; j < taps.start[at + 1]; ++j)
    {
        int64_t wanted = sample - lag[j];
        const int64_t of = series[j] % N;
        if (inTime || line(at, of) == kNever || lag[j] < least(at, of))
        {
            total += coefficient[j] * measured(series[j], wanted & mask);
            continue;
        }
        if (phase[of] > phase[at])
        {
            wanted -= 1;
        }
        int64_t when = arrival(line(at, of), wanted & mask);
        if (wanted < 0 || (when != kNever && when <= tick))
        {
            total += coefficient[j] * measured(series[j], wanted & mask);
        }
        else if (series[j] < N * (kRate + 1))
        {
            total += coefficient[j] * nominal[of];
        }
        else if (series[j] < N * (kBacklog + 1))
        {
            const int64_t oldest = std::max<int64_t>(wanted - mask + lag[j] + 1, kNever);
            while (wanted > oldest && (when == kNever || when > tick))
            {
                wanted -= 1;
                when = arrival(line(at, of), wanted & mask);
            }
            total += coefficient[j] * (wanted > oldest ? measured(series[j], wanted & mask) : law.setpoint);
        }
    }
    return total;
}

/// What was foreseen to arrive at a link in the interval that ended.
inline double
Foreseen(const LinkRates& law, const LinkMemory& memory, int64_t link, int64_t sample)
{
    double total = law.expected[link];
    for (int64_t j = law.feeds.start[link]; j < law.feeds.start[link + 1]; ++j)
    {
        const int64_t slot = (sample - 1 - law.feeds.delay[j]) & law.mask;
        total += law.feeds.share[j] *
            memory.measured(kRate * static_cast<int64_t>(law.nominal.size()) + law.feeds.link[j], slot);
    }
    return total;
}

/// A link measures, at its tick, and tells others.
///
/// `late`, (messages), is by how many ticks each message of this interval is late; -1: it is lost.
inline void
MeasureLink(const LinkRates& law, LinkMemory& memory, int64_t link, const Measured& seen, int64_t tick,
    const std::vector<int64_t>& late)
{
    const int64_t N = static_cast<int64_t>(law.nominal.size());
    const int64_t sample = tick / law.ticks;
    const int64_t now = sample & law.mask;
    memory.measured(kRate * N + link, now) = seen.rate;
    memory.measured(kBacklog * N + link, now) = seen.backlog;
    if (law.foresees)
    {
        if (sample == 0)
        {
            memory.measured(kArrivalInnovation * N + link, now) = seen.backlog - law.setpoint;
        }
        else
        {
            const double innovation = seen.arrived - Foreseen(law, memory, link, sample) - seen.lost;
            memory.measured(kArrivalInnovation * N + link, now) = innovation;
            memory.measured(kSaturationError * N + link, now) = memory.command[link] - seen.rate;
        }
    }
    else if (static_cast<int64_t>(law.predicted.lag.size()) > 0)
    {
        const double predicted = FirSum(law, memory, law.predicted, link, tick);
        memory.measured(kBacklogInnovation * N + link, now) = seen.backlog - predicted;
        memory.measured(kRateInnovation * N + link, now) = seen.rate - memory.command[link];
    }
    for (int64_t at = 0; at < (law.messages > 0 ? N : 0); ++at)
    {
        const int64_t message = law.line(at, link);
        if (message != kNever)
        {
            if (late[message] == kNever)
            {
                memory.arrival(message, now) = kNever;
            }
            else
            {
                memory.arrival(message, now) = tick + law.least(at, link) * law.ticks + late[message];
            }
        }
    }
}

/// Newest sample of link `of`, at least `lag` old, that link `at` has heard; none if it is out of memory.
inline int64_t
NewestHeard(const LinkRates& law, const LinkMemory& memory, int64_t at, int64_t of, int64_t lag, int64_t tick)
{
    int64_t wanted = tick / law.ticks - lag;
    if (law.messages == 0 || at == of)
    {
        return wanted;
    }
    if (memory.phase[of] > memory.phase[at])
    {
        wanted -= 1;
    }
    const int64_t oldest = std::max<int64_t>(tick / law.ticks - law.mask + lag, kNever);
    int64_t when = memory.arrival(law.line(at, of), wanted & law.mask);
    while (wanted > oldest && (when == kNever || when > tick))
    {
        wanted -= 1;
        when = memory.arrival(law.line(at, of), wanted & law.mask);
    }
    return wanted;
}

/// Mean of max(z + y, 0), y uniform between -spread and spread.
inline double
Above(double z, double spread)
{
    if (z >= spread)
    {
        return z;
    }
    if (z <= -spread)
    {
        return 0.0;
    }
    return (z + spread) * (z + spread) / (4.0 * spread);
}

/// Mean share of a buffer that is in use, for a forecast and its spread.
inline double
Fill(double z, double spread, double buffer)
{
    return (Above(z, spread) - Above(z - buffer, spread)) / buffer;
}

/// Whether a bit costs more in the next buffers than here, where a link sends at a rate.
///
/// `forecast`, (E,), is what would be in the next buffers at a rate of 0, and `here` what would be in its own.
inline bool
TooDear(const Prices& prices, const std::vector<double>& forecast, int64_t link, double here, double rate)
{
    double total = -Fill(here - rate, prices.varies[link], prices.buffer[link]);
    for (int64_t j = prices.start[link]; j < prices.start[link + 1]; ++j)
    {
        const int64_t following = prices.link[j];
        const double z = forecast[j] + prices.share[j] * rate;
        const double ahead = z > 0.0 ? Fill(z, prices.spread[j], prices.buffer[following]) : 0.0;
        total += prices.share[j] * (ahead - prices.later[following]);
    }
    return total > 0.0;
}

/// Greatest rate up to `most` at which a link's next bit costs less ahead than here.
inline double
Granted(const Prices& prices, const std::vector<double>& forecast, int64_t link, double here, double most)
{
    if (!TooDear(prices, forecast, link, here, most))
    {
        return most;
    }
    double low = 0.0;
    double high = most;
    for (int64_t Halving = 0; Halving < 16; ++Halving)
    {
        const double middle = 0.5 * (low + high);
        if (TooDear(prices, forecast, link, here, middle))
        {
            high = middle;
        }
        else
        {
            low = middle;
        }
    }
    return low;
}

/// Rate of a link by its prices, up to `most`: what it hasn't heard is nominal, or forecast from older samples.
inline double
PricedRate(const LinkRates& law, LinkMemory& memory, int64_t link, int64_t tick, double most)
{
    const int64_t N = static_cast<int64_t>(law.nominal.size());
    const int64_t sample = tick / law.ticks;
    const int64_t oldest = std::max<int64_t>(sample - law.mask + law.prices.delay[link], kNever);
    double here = memory.measured(kBacklog * N + link, sample & law.mask) + law.prices.enters[link];
    for (int64_t j = law.feeds.start[link]; j < law.feeds.start[link + 1]; ++j)
    {
        const int64_t feeder = law.feeds.link[j];
        int64_t wanted = sample - law.prices.lag[feeder] + 1;
        if (memory.phase[feeder] > memory.phase[link])
        {
            wanted -= 1;
        }
        int64_t heard = NewestHeard(law, memory, link, feeder, law.feeds.delay[j], tick);
        const double rate = heard >= wanted ? memory.measured(kRate * N + feeder, wanted & law.mask) :
            law.nominal[feeder];
        here += law.feeds.share[j] * rate;
    }
    for (int64_t j = law.prices.start[link]; j < law.prices.start[link + 1]; ++j)
    {
        const int64_t following = law.prices.link[j];
        int64_t heard = NewestHeard(law, memory, link, following, law.prices.delay[link], tick);
        double waits = heard > oldest ? memory.measured(kBacklog * N + following, heard & law.mask) : law.setpoint;
        if (memory.phase[following] > memory.phase[link])
        {
            heard += 1;
        }
        for (int64_t arrives = heard; arrives < sample + law.prices.lag[link]; ++arrives)
        {
            const double sent = memory.measured(kRate * N + link, (arrives - law.prices.lag[link] + 1) & law.mask);
            waits = std::max(waits + law.prices.other[j] + law.prices.share[j] * sent, 0.0);
        }
        memory.forecast[j] = waits + law.prices.other[j];
    }
    return Granted(law.prices, memory.forecast, link, here, most);
}

/// The rate of a link from its tick on, before limits; `received`: whether a central controller's command comes.
inline void
CommandLink(const LinkRates& law, LinkMemory& memory, int64_t link, int64_t tick, bool received)
{
    if (law.central && !received)
    {
        memory.command[link] = law.nominal[link];
    }
    else
    {
        memory.command[link] = FirSum(law, memory, law.control, link, tick);
        if (law.prices.start[link + 1] > law.prices.start[link])
        {
            memory.command[link] = PricedRate(law, memory, link, tick, memory.command[link]);
        }
    }
}

template <class Visit>
void
ForEach(FirSums& row, Visit visit)
{
    visit("start", row.start);
    visit("series", row.series);
    visit("lag", row.lag);
    visit("coefficient", row.coefficient);
    visit("offset", row.offset);
}

template <class Visit>
void
ForEach(Feeds& row, Visit visit)
{
    visit("start", row.start);
    visit("link", row.link);
    visit("delay", row.delay);
    visit("share", row.share);
}

template <class Visit>
void
ForEach(Prices& row, Visit visit)
{
    visit("start", row.start);
    visit("link", row.link);
    visit("share", row.share);
    visit("other", row.other);
    visit("spread", row.spread);
    visit("delay", row.delay);
    visit("lag", row.lag);
    visit("enters", row.enters);
    visit("varies", row.varies);
    visit("buffer", row.buffer);
    visit("later", row.later);
}

template <class Visit>
void
ForEach(LinkRates& row, Visit visit)
{
    visit("nominal", row.nominal);
    visit("setpoint", row.setpoint);
    ForEach(row.control, [&](const std::string& name, auto& value) { visit("control." + name, value); });
    ForEach(row.predicted, [&](const std::string& name, auto& value) { visit("predicted." + name, value); });
    visit("foresees", row.foresees);
    visit("expected", row.expected);
    ForEach(row.feeds, [&](const std::string& name, auto& value) { visit("feeds." + name, value); });
    visit("central", row.central);
    visit("ticks", row.ticks);
    visit("messages", row.messages);
    visit("line", row.line.values);
    visit("least", row.least.values);
    visit("mask", row.mask);
    ForEach(row.prices, [&](const std::string& name, auto& value) { visit("prices." + name, value); });
}

} // namespace netctrl

#endif // NETCTRL_LINK_LAW_H
