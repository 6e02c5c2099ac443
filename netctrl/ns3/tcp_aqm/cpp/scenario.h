// The scenario of a run, which is read from scenario.txt. Times in ns, sizes in bytes, capacities in bit/s.

#pragma once

#include "netctrl-fabric-tables.h"
#include "netctrl-link-controllers.h"
#include "netctrl-law-records.h"
#include "netctrl-pacers.h"
#include "netctrl-records.h"
#include "netctrl-tcp-windows.h"

#include "ns3/config.h"
#include "ns3/string.h"
#include "ns3/type-id.h"

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace netctrl
{

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

/// One direction of a line, with its queue.
struct LinkRow
{
    std::string id;
    int source;        ///< router
    int target;        ///< router
    uint64_t capacity; ///< [bit/s]
    int64_t delay;     ///< [ns]
    uint32_t buffer;   ///< [byte]
    double nominal;    ///< around which its rate is controlled [bit/s]; 0: nothing controls it
    bool paced;        ///< it sends at the rate of its law; else at its capacity
    QueueSettings queue;
};

/// What sends packets, evenly spaced at a rate that changes every sample, over ways of its own.
struct DemandRow
{
    int source; ///< router
    int target; ///< router
};

/// The share of what reaches a link's source of a demand that takes the link.
struct WayRow
{
    int demand;
    int link;
    double share;
};

/// What a group of web sessions asks for; objectsPerPage is 0 for bulk flows.
struct WebSettings
{
    int objectsPerPage;
    double paretoScale; ///< smallest object [byte]
    double paretoShape;
    double maxObject; ///< [byte]
    double thinkTime; ///< mean [s]
};

/// A regulator of each flow of a group: a burst, then a pause; without a burst there is none.
struct GateRow
{
    int burst;
    int64_t within;   ///< between packets of a burst [ns]
    double variation; ///< standard deviation over mean of the pauses
};

struct GroupRow
{
    std::string id;
    std::string sender; ///< its congestion control; of packets without acknowledgements none
    double cap;         ///< on the pacing rate of H-TCP [bit/s]; 0: none
    int pacer;          ///< law of its rate; -1: none
    double rate;        ///< of each flow's packets without acknowledgements [bit/s]; 0: it is TCP
    bool even;          ///< whether these are evenly spaced; else their times are random
    bool ecn;
    int demand;               ///< whose ways its data takes, from router to router; -1: it has a path
    bool atRouter;            ///< its data ends at the router behind `path`, not at a host of its own
    std::vector<int> path;    ///< links of the data
    std::vector<int> ackPath; ///< links of the acknowledgements; empty: the idle other direction of `path`
    WebSettings web;
    GateRow gate;
};

/// A sender with its access line, which makes up the round-trip time.
struct HostRow
{
    int group;
    int64_t accessDelay; ///< one way [ns]
};

/// A bulk flow or a web session.
struct FlowRow
{
    int host;
    int64_t start;  ///< [ns]
    int64_t spread; ///< it starts at a random time so much later at most [ns]; -1: it doesn't
    int64_t stop;   ///< [ns] or kForever
    int64_t opens;   ///< when its regulator lets the first packet through [ns]
    uint64_t random; ///< state of its regulator's numbers
};

/// The rate of a group's flows changes.
struct RateChangeRow
{
    int64_t at; ///< [ns]
    int group;
    double rate; ///< [bit/s]; below 0: what it was before, or what a control says
};

struct ChangeRow
{
    int64_t at; ///< [ns]
    int link;
    uint64_t capacity; ///< [bit/s]; 0: as it was
    int64_t delay;     ///< [ns]; -1: as it was
};

/// A group whose rates a law sets.
struct TrackedRow
{
    int group;
    double share; ///< of the rate of all, for each flow
};

/// What a law measures: a column of signals.csv, and what one of its unit is in the law's.
struct OutputRow
{
    int column; ///< delay, jitter, mean delay, mean jitter, throughput
    double scale;
};

/// From a period on: what is asked for, in the law's units.
struct ReferenceRow
{
    int64_t from;
    std::vector<double> values;
};

/// A law that sets flows' rates; without periods there is none.
struct TrackRows
{
    int64_t periods = 0;
    int64_t interval = 0; ///< [ns]
    int64_t start = 0;    ///< period in which the law is switched on
    double rateUnit = 0.0; ///< [bit/s]
    int measures = 0;     ///< group
    std::vector<TrackedRow> tracked;
    std::vector<OutputRow> outputs;
    std::vector<ReferenceRow> references;
    LawParts law;
};

// Named as the constants of programs that are generated with their scenario: what all programs share reads both.
inline int64_t kDuration = 0;
inline int64_t kSample = 0;
inline int64_t kWarmup = 0; ///< that doesn't count in what is written of demands
inline uint32_t kPacketSize = 0; ///< with IP and TCP headers
inline uint32_t kInitialWindow = 0;
inline uint32_t kSeed = 0; ///< of ns-3's random numbers
inline uint64_t kRun = 0;  ///< of these too
inline uint64_t kFirstRun = 0; ///< the number of ns-3's that run 0 has
inline bool kWatched = false; ///< whether waits at links, and what each group's only flow does, are written
inline uint32_t kSocketBuffer = 0; ///< of TCP at both ends
inline uint64_t kAccessRate = 0;   ///< of hosts' lines, where nothing waits; 0: idle directions are as their links
inline Record::Values kAttributes; ///< of ns-3 whose defaults are others here
inline int kRouters = 0;
inline std::vector<LinkRow> kLinks;
inline std::vector<DemandRow> kDemands;
inline std::vector<WayRow> kWays;
inline LinkRates kLaw;     ///< of the links' rates, where there are demands
inline bool kLate = false; ///< whether messages between links may be late
inline std::vector<Pacer> kPacers;
inline std::vector<GroupRow> kGroups;
inline std::vector<HostRow> kHosts;
inline std::vector<FlowRow> kFlows;
inline std::vector<ChangeRow> kChanges;
inline std::vector<RateChangeRow> kRateChanges;
inline TrackRows kTrack;

/// Whether a congestion control is a type that ns-3 knows by its name.
inline bool
KnownToNs3(const std::string& sender)
{
    ns3::TypeId known;
    return ns3::TypeId::LookupByNameFailSafe(sender, &known);
}

/// Whether it is one, or one of netctrl's that takes round trips of its own.
inline bool
IsSender(const std::string& name)
{
    RoundTrips none;
    return KnownToNs3(name) || name == "htcp" || MakeWindow(name, none);
}

/// A record of a law that sets flows' rates; false: it is another one.
inline bool
ReadTrack(Record& record, const std::map<std::string, int>& groups)
{
    if (record.kind == "track")
    {
        kTrack.periods = record.Take<int64_t>("periods");
        kTrack.interval = record.Take<int64_t>("interval");
        kTrack.start = record.Take("start", int64_t{0});
        kTrack.rateUnit = record.Take<double>("rate_unit");
        kTrack.measures = record.TakeOne("measures", groups);
        return true;
    }
    if (record.kind == "tracked")
    {
        kTrack.tracked.push_back({record.TakeOne("group", groups), record.Take<double>("share")});
        return true;
    }
    if (record.kind == "output")
    {
        kTrack.outputs.push_back({record.Take<int>("column"), record.Take<double>("scale")});
        return true;
    }
    if (record.kind == "reference")
    {
        kTrack.references.push_back({record.Take<int64_t>("from"), {}});
        record.TakeInto("values", kTrack.references.back().values);
        return true;
    }
    if (record.kind != "law")
    {
        return false;
    }
    kTrack.law.Take(record);
    return true;
}

/// Reads scenario.txt in a folder; each record names those above it.
inline void
ReadScenario(const std::string& folder)
{
    using Names = std::map<std::string, int>;
    Names routers, links, demands, pacers, groups, hosts;
    const auto add = [](const Record& record, Names& names) {
        if (!names.emplace(record.id, names.size()).second)
        {
            record.Refuse("is there twice");
        }
    };
    const auto router = [&](const std::string& name) {
        return routers.emplace(name, routers.size()).first->second;
    };
    for (Record& record : ReadRecords(folder + "/scenario.txt"))
    {
        if (record.kind == "set")
        {
            kDuration = record.Take<int64_t>("duration");
            kSample = record.Take<int64_t>("sample");
            kWarmup = record.Take("warmup", int64_t{0});
            kPacketSize = record.Take<uint32_t>("packet_size");
            kInitialWindow = record.Take<uint32_t>("initial_window");
            kSeed = record.Take<uint32_t>("seed");
            kRun = record.Take<uint64_t>("run");
            kFirstRun = record.Take<uint64_t>("first_run", 0);
            kWatched = record.Take("watched", false);
            kSocketBuffer = record.Take<uint32_t>("socket_buffer");
            kAccessRate = record.Take<uint64_t>("access_rate", 0);
            if (kDuration <= 0 || kSample <= 0)
            {
                record.Refuse("has a duration or sample that is not above 0");
            }
            kAttributes = record.TakeRest();
            for (const auto& [name, value] : kAttributes)
            {
                if (!ns3::Config::SetDefaultFailSafe(name, ns3::StringValue(value)))
                {
                    record.Refuse("has " + name + " " + value + ", which is no value of an attribute of ns-3");
                }
            }
        }
        else if (record.kind == "link")
        {
            add(record, links);
            const int source = router(record.Take("source"));
            const int target = router(record.Take("target"));
            const auto capacity = record.Take<uint64_t>("capacity");
            const auto delay = record.Take<int64_t>("delay", 0);
            const auto buffer = record.Take("buffer", kUnlimited);
            const auto nominal = record.Take("nominal", 0.0);
            const bool paced = record.Take("paced", false);
            const std::string queue = record.Take("queue");
            kLinks.push_back(
                {record.id, source, target, capacity, delay, buffer, nominal, paced, {queue, record.TakeRest()}});
        }
        else if (record.kind == "demand")
        {
            add(record, demands);
            const int source = router(record.Take("source"));
            kDemands.push_back({source, router(record.Take("target"))});
        }
        else if (record.kind == "way")
        {
            const int demand = record.TakeOne("demand", demands);
            kWays.push_back({demand, record.TakeOne("link", links), record.Take<double>("share")});
        }
        else if (record.kind == "control")
        {
            kLate = record.Take("late", false);
            kLaw = TakeLinkRates(record);
        }
        else if (record.kind == "centre")
        {
            fabric::kCentre = fabric::TakeCentre(record);
        }
        else if (record.kind == "senders")
        {
            fabric::kFlowLaw = fabric::TakeFlowLaw(record);
        }
        else if (record.kind == "path")
        {
            fabric::kPaths.push_back(fabric::TakePath(record));
        }
        else if (record.kind == "port")
        {
            fabric::kPorts.push_back(fabric::TakePort(record));
        }
        else if (record.kind == "pacer")
        {
            add(record, pacers);
            kPacers.push_back(TakePacer(record));
        }
        else if (record.kind == "group")
        {
            add(record, groups);
            GroupRow row{};
            row.id = record.id;
            row.rate = record.Take("rate", 0.0);
            row.even = record.Take("even", false);
            row.sender = row.rate > 0.0 ? "" : record.Take("sender");
            row.cap = record.Take("cap", 0.0);
            row.pacer = record.Has("pacer") ? record.TakeOne("pacer", pacers) : -1;
            row.gate.burst = record.Take("burst", 0);
            row.gate.within = row.gate.burst > 0 ? record.Take<int64_t>("within") : 0;
            row.gate.variation = row.gate.burst > 0 ? record.Take<double>("variation") : 0.0;
            row.ecn = record.Take("ecn", false);
            row.atRouter = record.Take("at_router", false);
            if (row.rate == 0.0 && (row.sender == "paced" ? row.pacer < 0 : !IsSender(row.sender)))
            {
                record.Refuse("has sender " + row.sender + ", which this program does not have");
            }
            row.demand = record.Has("demand") ? record.TakeOne("demand", demands) : -1;
            row.path = record.TakeAll("path", links);
            row.ackPath = record.TakeAll("ack_path", links);
            if (record.Has("objects_per_page"))
            {
                row.web.objectsPerPage = record.Take<int>("objects_per_page");
                row.web.paretoScale = record.Take<double>("pareto_scale");
                row.web.paretoShape = record.Take<double>("pareto_shape");
                row.web.maxObject = record.Take<double>("max_object");
                row.web.thinkTime = record.Take<double>("think_time");
            }
            if (row.path.empty() && row.demand < 0)
            {
                record.Refuse("has no path");
            }
            kGroups.push_back(std::move(row));
        }
        else if (record.kind == "host")
        {
            add(record, hosts);
            kHosts.push_back({record.TakeOne("group", groups), record.Take<int64_t>("access_delay", 0)});
        }
        else if (record.kind == "flow")
        {
            kFlows.push_back({record.TakeOne("host", hosts),
                              record.Take<int64_t>("start"),
                              record.Take("spread", int64_t{-1}),
                              record.Take("stop", kForever),
                              record.Take("opens", int64_t{0}),
                              record.Take("random", uint64_t{0})});
        }
        else if (record.kind == "change" && record.Has("group"))
        {
            const auto at = record.Take<int64_t>("at");
            kRateChanges.push_back({at, record.TakeOne("group", groups), record.Take("rate", -1.0)});
        }
        else if (record.kind == "change")
        {
            kChanges.push_back({record.Take<int64_t>("at"),
                                record.TakeOne("link", links),
                                record.Take<uint64_t>("capacity", 0),
                                record.Take<int64_t>("delay", -1)});
        }
        else if (!ReadTrack(record, groups))
        {
            record.Refuse("is not a record of a scenario");
        }
        record.End();
    }
    if (kDuration == 0)
    {
        std::fprintf(stderr, "%s/scenario.txt: has no record of kind set\n", folder.c_str());
        std::exit(2);
    }
    kRouters = static_cast<int>(routers.size());
}

} // namespace netctrl
