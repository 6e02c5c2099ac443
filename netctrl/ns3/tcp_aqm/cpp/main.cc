// Runs the scenario of FOLDER/scenario.txt on stock ns-3.
//
// Usage: scenario FOLDER [RUN [series]]. Compiles against ns-3.37 and ns-3.44.
//
// Each link of the scenario has a channel of its own. Forward it carries the link's queue; its other direction is idle
// and carries the acknowledgements of groups that name no links for them. Hosts of one group differ in their
// round-trip time, which the delay of their access line makes up. A group's data ends at a host of its own, or at the
// last router itself. Demands go from router to router, by shares of the links. A law may set links' rates.

#include "netctrl-control.h"
#include "netctrl-demands.h"
#include "netctrl-fabric.h"
#include "netctrl-files.h"
#include "netctrl-gates.h"
#include "netctrl-lines.h"
#include "netctrl-program.h"
#include "netctrl-queues.h"
#include "netctrl-recorder.h"
#include "netctrl-tcp-defaults.h"
#include "netctrl-track.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/rng-seed-manager.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-l4-protocol.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

using namespace ns3;

namespace netctrl
{

constexpr uint64_t kAtOnce = 1'000'000'000'000'000; ///< a packet takes less than half a nanosecond [bit/s]

/// Routers, links, hosts and sinks with their addresses and routes.
///
/// Group g's senders are in 10.x.y.0/24 with x.y = g, a subnet /30 each; its sink is in 11.x.y.0/30, the channel of link
/// k in 12.x.y.0/30. One route a group and router is then enough in each direction. Demand i ends at 14.x.y.1, and its TCP
/// begins at 13.x.y.1.
class Network : public Counted
{
  public:
    Network()
    {
        for (int i = 0; i < kRouters; ++i)
        {
            m_routers.push_back(MakeNode());
        }
        for (std::size_t i = 0; i < kLinks.size(); ++i)
        {
            AddLink(static_cast<int>(i));
        }
        for (std::size_t i = 0; i < kDemands.size(); ++i)
        {
            AddDemand(static_cast<int>(i));
        }
        for (std::size_t i = 0; i < kGroups.size(); ++i)
        {
            AddGroup(static_cast<int>(i));
        }
        for (const WayRow& way : kWays)
        {
            const uint32_t end = Subnet(14, way.demand) + 1;
            Ptr<Ipv4Route> route = m_lines[way.link].near.RouteTo(end);
            route->SetSource(Ipv4Address(Subnet(13, way.demand) + 1)); // which a TCP socket takes for its own
            m_lines[way.link].near.Table()->Add(end, route, way.share, IsTcp(way.demand));
        }
        DrawStarts();
        std::vector<int> counts(kGroups.size(), 0);
        for (const HostRow& row : kHosts)
        {
            AddHost(row, counts[row.group]++);
        }
        for (const ChangeRow& change : kChanges)
        {
            Simulator::Schedule(NanoSeconds(change.at), &Network::Apply, this, std::cref(change));
        }
    }

    std::vector<std::unique_ptr<Host>> hosts;
    std::vector<int64_t> starts; ///< of flows [ns]

  private:
    void DrawStarts()
    {
        Ptr<UniformRandomVariable> late;
        for (const FlowRow& flow : kFlows)
        {
            starts.push_back(flow.start);
            if (flow.spread >= 0)
            {
                late = late ? late : CreateObject<UniformRandomVariable>();
                if (!kDemands.empty() && starts.size() == 1)
                {
                    late->SetStream(0);
                }
                starts.back() += static_cast<int64_t>(late->GetValue() * static_cast<double>(flow.spread));
            }
        }
    }

    void AddLink(int index)
    {
        const LinkRow& row = kLinks[index];
        const Line line = Connect(m_routers[row.source],
                                  m_routers[row.target],
                                  Subnet(12, index),
                                  DeviceRate(row.capacity),
                                  row.delay,
                                  "1p"); // the queue is the queue disc's
        if (kAccessRate > 0)
        {
            line.far.device->SetDataRate(DataRate(kAccessRate)); // acknowledgements never wait
        }
        queues.push_back(MakeQueue(row.queue, row.capacity, row.buffer));
        if (row.header >= 0)
        {
            queues.back().Follow(row.at, row.sizes, row.header);
            line.near.device->SetDataRate(DataRate(kAtOnce));
        }
        else if (row.nominal > 0.0)
        {
            queues.back().Pace(row.paced ? row.nominal : HUGE_VAL, static_cast<double>(row.capacity));
        }
        line.near.SetQueue(queues.back().Root());
        if (kWatched)
        {
            waits.push_back(std::make_unique<WaitMeter>(queues.back().disc, line.near.device));
        }
        m_lines.push_back(line);
    }

    void AddDemand(int index)
    {
        const uint32_t address = Subnet(14, index) + 1;
        const auto source = m_routers[kDemands[index].source], target = m_routers[kDemands[index].target];
        AddOwn(target, address);
        demands.push_back(
            std::make_unique<Demand>(source, target, InetSocketAddress(Ipv4Address(address), kPort)));
    }

    static bool IsTcp(int demand)
    {
        return std::any_of(kGroups.begin(), kGroups.end(), [&](const GroupRow& row) { return row.demand == demand; });
    }

    /// Of the ways of a demand from a router the one of the greatest share.
    static const WayRow& Greatest(int demand, int router)
    {
        const auto share = [&](const WayRow& row) {
            return row.demand == demand && kLinks[row.link].source == router ? row.share : -1.0;
        };
        return *std::max_element(kWays.begin(), kWays.end(), [&](const WayRow& one, const WayRow& other) {
            return share(one) < share(other);
        });
    }

    /// TCP over the ways of a demand. Its acknowledgements take the idle way back of the greatest shares.
    void AddTcp(const GroupRow& group)
    {
        const DemandRow& demand = kDemands[group.demand];
        const uint32_t begin = Subnet(13, group.demand) + 1, end = Subnet(14, group.demand) + 1;
        AddOwn(m_routers[demand.source], begin);
        for (int at = demand.source; at != demand.target;)
        {
            const WayRow& way = Greatest(group.demand, at);
            at = kLinks[way.link].target;
            m_lines[way.link].far.Route(begin, 30);
        }
        sinks.push_back(std::make_unique<Sink>(m_routers[demand.target], end, group));
        meters.push_back(
            std::make_unique<IpMeter>(m_routers[demand.source], m_routers[demand.target], Ipv4Address(end)));
    }

    void AddGroup(int index)
    {
        const GroupRow& group = kGroups[index];
        if (group.demand >= 0)
        {
            AddTcp(group);
            return;
        }
        Ptr<Node> router = m_routers[kLinks[group.path.back()].target];
        Ptr<Node> node = group.atRouter ? router : MakeNode();
        if (EchoesMarks(group.sender))
        {
            node->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(TypeId::LookupByName(group.sender)));
        }
        uint32_t end = Subnet(11, index) + 1;
        if (group.atRouter)
        {
            AddOwn(router, end);
        }
        else
        {
            end = ConnectHost(router, node, Subnet(11, index), kAccessRate, 0).far.address;
        }
        for (const int link : group.path)
        {
            m_lines[link].near.Route(Subnet(11, index), 30);
            if (group.ackPath.empty())
            {
                m_lines[link].far.Route(Subnet(10, index), 24);
            }
        }
        for (const int link : group.ackPath)
        {
            m_lines[link].near.Route(Subnet(10, index), 24);
        }
        sinks.push_back(std::make_unique<Sink>(node, end, group));
    }

    static bool EchoesMarks(const std::string& sender)
    {
        TypeId known;
        const TypeId dctcp = TcpDctcp::GetTypeId();
        return TypeId::LookupByNameFailSafe(sender, &known) && (known == dctcp || known.IsChildOf(dctcp));
    }

    void AddHost(const HostRow& row, int number)
    {
        const GroupRow& group = kGroups[row.group];
        if (group.demand >= 0)
        {
            Ptr<Node> source = m_routers[kDemands[group.demand].source];
            const uint32_t begin = Subnet(13, group.demand) + 1;
            hosts.push_back(std::make_unique<Host>(Host{row.group, source, begin, sinks[row.group].get()}));
            return;
        }
        Ptr<Node> router = m_routers[kLinks[group.path.front()].source];
        if (group.gate.burst > 0) // regulators stand at the router
        {
            hosts.push_back(std::make_unique<Host>(Host{row.group, router, 0, sinks[row.group].get()}));
            return;
        }
        Ptr<Node> node = MakeNode();
        const Line access = ConnectHost(router, node, Subnet(10, row.group, number), kAccessRate, row.accessDelay);
        hosts.push_back(
            std::make_unique<Host>(Host{row.group, node, access.far.address, sinks[row.group].get()}));
    }

    void Apply(const ChangeRow& change)
    {
        if (change.capacity > 0)
        {
            m_lines[change.link].near.device->SetDataRate(DeviceRate(change.capacity));
            if (queues[change.link].pacer)
            {
                queues[change.link].pacer->SetCapacity(static_cast<double>(change.capacity));
            }
            if (queues[change.link].law)
            {
                queues[change.link].law->SetCapacity(change.capacity);
            }
        }
        if (change.delay >= 0)
        {
            m_lines[change.link].channel->SetAttribute("Delay", TimeValue(NanoSeconds(change.delay)));
        }
    }

    std::vector<Ptr<Node>> m_routers;
    std::vector<Line> m_lines;
};

void
Run(const std::string& folder, const std::string& given, bool series)
{
    ReadScenario(folder);
    const std::string run = given.empty() ? std::to_string(kRun) : given;
    const bool drawn = !kDemands.empty(); // with a table for each run, whose files are named after it
    const std::string end = drawn ? "-" + run + ".csv" : ".csv";
    RngSeedManager::SetSeed(kSeed);
    RngSeedManager::SetRun(kFirstRun + std::strtoull(run.c_str(), nullptr, 10));
    SetTcpDefaults();
    if (!fabric::kPorts.empty())
    {
        fabric::Run(folder, run);
        return;
    }
    Table responses(folder + "/responses.csv");
    std::FILE* rtts = kWatched ? Open(folder + "/rtts.bin", "w") : nullptr;
    const RunTable table(folder + "/run-" + run + ".bin");
    Network network;
    std::vector<std::unique_ptr<WebSession>> web;
    std::vector<std::unique_ptr<Stream>> streams;
    std::vector<std::unique_ptr<GatedFlow>> gated;
    for (std::size_t i = 0; i < kFlows.size(); ++i)
    {
        const FlowRow& flow = kFlows[i];
        const Host& host = *network.hosts[flow.host];
        const GroupRow& group = kGroups[host.group];
        if (group.gate.burst > 0)
        {
            gated.push_back(std::make_unique<GatedFlow>(flow, host));
        }
        else if (group.rate > 0.0)
        {
            streams.push_back(std::make_unique<Stream>(network.starts[i], flow, host));
        }
        else if (group.web.objectsPerPage == 0)
        {
            network.bulk.push_back(std::make_unique<BulkFlow>(network.starts[i], flow, host, rtts));
        }
        else
        {
            const auto stream = static_cast<int64_t>(web.size());
            web.push_back(std::make_unique<WebSession>(flow, host, stream, responses));
        }
    }
    for (const RateChangeRow& change : kRateChanges)
    {
        for (const auto& flow : gated)
        {
            if (flow->group == change.group)
            {
                Simulator::Schedule(NanoSeconds(change.at), &GatedFlow::Fix, flow.get(), change.rate);
            }
        }
    }
    const auto track = kTrack.periods > 0 ? std::make_unique<Track>(folder, network.sinks, gated) : nullptr;
    Recorder recorder(folder, end, series || !drawn, network);
    const auto control =
        kInterval > 0 ? std::make_unique<Control>(folder, table, network.queues, network.demands, recorder) : nullptr;
    for (const LinkQueue& queue : network.queues)
    {
        if (queue.law && queue.law->ActsEveryEpoch())
        {
            queue.law->Random();
        }
    }
    Simulate();
    if (kWatched)
    {
        recorder.WriteConnections();
        Close(rtts);
    }
    network.bulk.clear();
    web.clear();
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    const bool series = argc == 4 && argv[3] == std::string("series");
    const auto work = [&](const std::string& folder, const std::string& run) { netctrl::Run(folder, run, series); };
    return netctrl::Program(argc - series, argv, "", work, "FOLDER [RUN [series]]");
}
