// The scenario of a run, which is read from scenario.txt. Times in ns, sizes in bytes, capacities in bit/s.

#pragma once

#include "netctrl-decided.h"
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
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <type_traits>
#include <vector>

namespace netctrl
{

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

inline Names kRouterNames, kLinkNames, kDemandNames, kPacerNames, kGroupNames, kHostNames; ///< each with its number

/// One direction of a line, with its queue.
struct LinkRow
{
    std::string id = From().Named(kLinkNames);
    int source = From().TakeNew("source", kRouterNames);
    int target = From().TakeNew("target", kRouterNames);
    uint64_t capacity = From().Take<uint64_t>("capacity"); ///< [bit/s]
    int64_t delay = From().Take("delay", int64_t{0}); ///< [ns]
    uint32_t buffer = From().Take("buffer", kUnlimited); ///< [byte]
    /// Around which its rate is controlled [bit/s]; 0: nothing controls it.
    double nominal = From().Take("nominal", 0.0);
    bool paced = From().Take("paced", false); ///< it sends at the rate of its law; else at its capacity
    std::vector<int64_t> at = From().TakeNumbersOrNone("at"); ///< when it may send [ns]
    std::vector<int64_t> sizes = From().TakeNumbersOrNone("sizes"); ///< how much then [byte]
    int64_t header = From().Take("header", int64_t{-1}); ///< which each packet has in addition then; -1: always [byte]
    QueueSettings queue{From().Take("queue"), From().TakeRest()};
};

/// What sends packets, evenly spaced at a rate that changes every sample, over ways of its own.
struct DemandRow
{
    std::string id = From().Named(kDemandNames);
    int source = From().TakeNew("source", kRouterNames);
    int target = From().TakeNew("target", kRouterNames);
};

/// The share of what reaches a link's source of a demand that takes the link.
struct WayRow
{
    int demand = From().TakeOne("demand", kDemandNames);
    int link = From().TakeOne("link", kLinkNames);
    double share = From().Take<double>("share");
};

/// What a group of web sessions asks for; objectsPerPage is 0 for bulk flows.
struct WebSettings
{
    int objectsPerPage = From().Take("objects_per_page", 0);
    double paretoScale = objectsPerPage > 0 ? From().Take<double>("pareto_scale") : 0.0; ///< smallest object [byte]
    double paretoShape = objectsPerPage > 0 ? From().Take<double>("pareto_shape") : 0.0;
    double maxObject = objectsPerPage > 0 ? From().Take<double>("max_object") : 0.0; ///< [byte]
    double thinkTime = objectsPerPage > 0 ? From().Take<double>("think_time") : 0.0; ///< mean [s]
};

/// A regulator of each flow of a group: a burst, then a pause; without a burst there is none.
struct GateRow
{
    int burst = From().Take("burst", 0);
    int64_t within = burst > 0 ? From().Take<int64_t>("within") : 0; ///< between packets of a burst [ns]
    /// Standard deviation over mean of the pauses.
    double variation = burst > 0 ? From().Take<double>("variation") : 0.0;
};

struct GroupRow
{
    std::string id = From().Named(kGroupNames);
    double rate = From().Take("rate", 0.0); ///< of each flow's packets without acknowledgements [bit/s]; 0: it is TCP
    bool even = From().Take("even", false); ///< whether these are evenly spaced; else their times are random
    /// Its congestion control; of packets without answers none.
    std::string sender = rate > 0.0 ? "" : From().Take("sender");
    double cap = From().Take("cap", 0.0); ///< on the pacing rate of H-TCP [bit/s]; 0: none
    int pacer = From().TakeOneOrNone("pacer", kPacerNames); ///< law of its rate; -1: none
    bool ecn = From().Take("ecn", false);
    /// Whose ways its data takes, router to router; -1: it has a path.
    int demand = From().TakeOneOrNone("demand", kDemandNames);
    /// Its data ends at the router behind `path`, not at a host of its own.
    bool atRouter = From().Take("at_router", false);
    std::vector<int> path = From().TakeAll("path", kLinkNames); ///< links of the data
    /// Of acknowledgements; empty: the idle other direction.
    std::vector<int> ackPath = From().TakeAll("ack_path", kLinkNames);
    WebSettings web;
    GateRow gate;
};

/// A sender with its access line, which makes up the round-trip time.
struct HostRow
{
    std::string id = From().Named(kHostNames);
    int group = From().TakeOne("group", kGroupNames);
    int64_t accessDelay = From().Take("access_delay", int64_t{0}); ///< one way [ns]
};

/// A bulk flow or a web session.
struct FlowRow
{
    int host = From().TakeOne("host", kHostNames);
    int64_t start = From().Take<int64_t>("start"); ///< [ns]
    /// It starts at a random time so much later at most [ns]; -1: it doesn't.
    int64_t spread = From().Take("spread", int64_t{-1});
    int64_t stop = From().Take("stop", kForever); ///< [ns] or kForever
    int64_t opens = From().Take("opens", int64_t{0}); ///< when its regulator lets the first packet through [ns]
    uint64_t random = From().Take("random", uint64_t{0}); ///< state of its regulator's numbers
};

/// The rate of a group's flows changes.
struct RateChangeRow
{
    int64_t at = From().Take<int64_t>("at"); ///< [ns]
    int group = From().TakeOne("group", kGroupNames);
    double rate = From().Take("rate", -1.0); ///< [bit/s]; below 0: what it was before, or what a control says
};

struct ChangeRow
{
    int64_t at = From().Take<int64_t>("at"); ///< [ns]
    int link = From().TakeOne("link", kLinkNames);
    uint64_t capacity = From().Take("capacity", uint64_t{0}); ///< [bit/s]; 0: as it was
    int64_t delay = From().Take("delay", int64_t{-1}); ///< [ns]; -1: as it was
};

/// A group whose rates a law sets.
struct TrackedRow
{
    int group = From().TakeOne("group", kGroupNames);
    double share = From().Take<double>("share"); ///< of the rate of all, for each flow
};

/// What a law measures: a column of signals.csv, and what one of its unit is in the law's.
struct OutputRow
{
    int column = From().Take<int>("column"); ///< delay, jitter, mean delay, mean jitter, throughput
    double scale = From().Take<double>("scale");
};

/// From a period on: what is asked for, in the law's units.
struct ReferenceRow
{
    int64_t from = From().Take<int64_t>("from");
    std::vector<double> values = From().TakeNumbers("values");
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
inline LinkRates kLaw;     ///< of the links' rates, where one sets them
inline std::vector<DecidedRow> kDecided; ///< a law of one link in its place
inline std::vector<int> kControlled; ///< links in the order of the law
inline int64_t kInterval = 0; ///< between rates of a law; 0: there is none
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

/// What a run is, and defaults of ns-3's attributes.
inline void
ReadSettings(Record& record)
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

inline void
ReadGroup(Record& record)
{
    kGroups.push_back(Made<GroupRow>(record));
    const GroupRow& row = kGroups.back();
    if (row.rate == 0.0 && (row.sender == "paced" ? row.pacer < 0 : !IsSender(row.sender)))
    {
        record.Refuse("has sender " + row.sender + ", which this program does not have");
    }
    if (row.path.empty() && row.demand < 0)
    {
        record.Refuse("has no path");
    }
}

inline void
ReadTrack(Record& record)
{
    kTrack.periods = record.Take<int64_t>("periods");
    kTrack.interval = record.Take<int64_t>("interval");
    kTrack.start = record.Take("start", int64_t{0});
    kTrack.rateUnit = record.Take<double>("rate_unit");
    kTrack.measures = record.TakeOne("measures", kGroupNames);
}

inline void
ReadControl(Record& record)
{
    kInterval = record.Take("interval", kSample);
    kControlled = record.TakeAll("links", kLinkNames);
    if (record.id == "decided")
    {
        kDecided.push_back(Made<DecidedRow>(record));
        kLaw.nominal = {kLinks[kControlled.front()].nominal};
        kLaw.ticks = 1;
        return;
    }
    kLate = record.Take("late", false);
    kLaw = TakeLinkRates(record);
}

/// Reads scenario.txt in a folder; each record names those above it.
inline void
ReadScenario(const std::string& folder)
{
    using Reader = std::function<void(Record&)>;
    const auto into = [](auto& rows) {
        using Kind = typename std::decay_t<decltype(rows)>::value_type;
        return Reader([&rows](Record& record) { rows.push_back(Made<Kind>(record)); });
    };
    const std::map<std::string, Reader> readers = {
        {"set", ReadSettings},
        {"link", into(kLinks)},
        {"demand", into(kDemands)},
        {"way", into(kWays)},
        {"control", ReadControl},
        {"centre", [](Record& record) { fabric::kCentre = fabric::TakeCentre(record); }},
        {"senders", [](Record& record) { fabric::kFlowLaw = fabric::TakeFlowLaw(record); }},
        {"path", into(fabric::kPaths)},
        {"port", into(fabric::kPorts)},
        {"pacer",
         [](Record& record) {
             record.Named(kPacerNames);
             kPacers.push_back(TakePacer(record));
         }},
        {"group", ReadGroup},
        {"host", into(kHosts)},
        {"flow", into(kFlows)},
        {"change", into(kChanges)},
        {"change of rates", into(kRateChanges)},
        {"track", ReadTrack},
        {"tracked", into(kTrack.tracked)},
        {"output", into(kTrack.outputs)},
        {"reference", into(kTrack.references)},
        {"law", [](Record& record) { kTrack.law.Take(record); }},
    };
    for (Record& record : ReadRecords(folder + "/scenario.txt"))
    {
        const bool ofRates = record.kind == "change" && record.Has("group");
        const auto reader = readers.find(ofRates ? "change of rates" : record.kind);
        if (reader == readers.end())
        {
            record.Refuse("is not a record of a scenario");
        }
        reader->second(record);
        record.End();
    }
    if (kDuration == 0)
    {
        std::fprintf(stderr, "%s/scenario.txt: has no record of kind set\n", folder.c_str());
        std::exit(2);
    }
    kRouters = static_cast<int>(kRouterNames.size());
}

} // namespace netctrl
