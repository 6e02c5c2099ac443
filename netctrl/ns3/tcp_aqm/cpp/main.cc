// Runs the scenario of scenario.h with the queues of gains.h on stock ns-3.
//
// Usage: scenario FOLDER [RUN]. Compiles against ns-3.37 and ns-3.44.
//
// Each link of the scenario has a channel of its own. Forward it carries the link's queue; its other direction is idle
// and carries the acknowledgements of groups that name no links for them. Hosts of one group differ in their
// round-trip time, which the delay of their access line makes up.
//
// Fixed: netctrl copies this file as it is.

#include "gains.h"
#include "netctrl-cubic.h"
#include "netctrl-lines.h"
#include "netctrl-program.h"
#include "netctrl-queues.h"
#include "netctrl-recorder.h"
#include "netctrl-routing.h"
#include "netctrl-tables.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/global-value.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/string.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-prr-recovery.h"
#include "ns3/uinteger.h"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>

using namespace ns3;

namespace netctrl
{

constexpr int kMaxHosts = 64;         // of a group: 64 subnets /30 fill its /24
constexpr double kAccessSpeed = 10.0; // of access lines, in capacities of the fastest link
constexpr double kLeastAccess = 1e9;  // [bit/s]

// ---------------------------------------------------------------------------------------------------------------------
// Network. Group g's senders are in 10.x.y.0/24 with x.y = g, a subnet /30 each; its sink is in 11.x.y.0/30, the
// channel of link k in 12.x.y.0/30. One route a group and router is then enough in each direction.

double
AccessRate()
{
    double fastest = kLeastAccess / kAccessSpeed;
    for (const LinkRow& link : kLinks)
    {
        fastest = std::max(fastest, static_cast<double>(link.capacity));
    }
    return kAccessSpeed * fastest;
}

// ---------------------------------------------------------------------------------------------------------------------
// The whole.

void
SetDefaults()
{
    GlobalValue::Bind("SchedulerType", StringValue("ns3::PriorityQueueScheduler")); // the same order in less time
    RngSeedManager::SetSeed(1 + kSeed % 4294967086U); // ns-3's generator takes 1 to 4294967086
    OneByOneCubic::GetTypeId(); // known by its name from now on
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(1.0)); // closed connections leave memory soon
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(kInitialWindow));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000)); // senders never give up
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
}

/// Routers, links, hosts and sinks with their addresses and routes.
class Network
{
  public:
    Network()
    {
        m_stack.SetIpv6StackInstall(false);
        m_stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        for (int i = 0; i < kRouters; ++i)
        {
            m_routers.push_back(NewNode());
        }
        for (std::size_t i = 0; i < std::size(kLinks); ++i)
        {
            AddLink(static_cast<int>(i));
        }
        for (std::size_t i = 0; i < kGroups.size(); ++i)
        {
            AddGroup(static_cast<int>(i));
        }
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

    const Host& GetHost(int index) const
    {
        return *hosts[index];
    }

    std::vector<LinkQueue> queues;
    std::vector<std::unique_ptr<Sink>> sinks;
    std::vector<std::unique_ptr<Host>> hosts;

  private:
    void AddLink(int index)
    {
        const LinkRow& row = kLinks[index];
        const Line line = Connect(m_routers[row.source],
                                  m_routers[row.target],
                                  Subnet(12, index),
                                  DeviceRate(row.capacity),
                                  row.delay,
                                  "1p"); // the queue is the queue disc's
        line.far.device->SetDataRate(DataRate(static_cast<uint64_t>(AccessRate()))); // acknowledgements never wait
        queues.push_back(InstallQueue(kQueues[index], row, line.near.device));
        m_lines.push_back(line);
    }

    Ptr<Node> NewNode()
    {
        Ptr<Node> node = CreateObject<Node>();
        m_stack.Install(node);
        node->GetObject<Ipv4>()->SetRoutingProtocol(CreateObject<TableRouting>());
        return node;
    }

    Line Access(Ptr<Node> router, Ptr<Node> node, uint32_t subnet, int64_t delay)
    {
        const DataRate rate(static_cast<uint64_t>(AccessRate()));
        const Line line = Connect(router, node, subnet, rate, delay, "1000000p");
        line.far.Route(0, 0);
        line.near.Route(subnet, 30);
        return line;
    }

    void AddGroup(int index)
    {
        const GroupRow& group = kGroups[index];
        Ptr<Node> node = NewNode();
        Ptr<Node> router = m_routers[kLinks[group.path.back()].target];
        const Line access = Access(router, node, Subnet(11, index), 0);
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
        sinks.push_back(std::make_unique<Sink>());
        sinks.back()->Listen(node, access.far.address, group.ecn);
    }

    void AddHost(const HostRow& row, int number)
    {
        if (number >= kMaxHosts)
        {
            NS_FATAL_ERROR("group " << kGroups[row.group].id << " has more than " << kMaxHosts << " hosts");
        }
        Ptr<Node> router = m_routers[kLinks[kGroups[row.group].path.front()].source];
        Ptr<Node> node = NewNode();
        const TypeId sender = TypeId::LookupByName(kGroups[row.group].sender);
        node->GetObject<TcpL4Protocol>()->SetAttribute("SocketType", TypeIdValue(sender));
        const Line access = Access(router, node, Subnet(10, row.group, number), row.accessDelay);
        hosts.push_back(
            std::make_unique<Host>(Host{row.group, node, access.far.address, sinks[row.group].get()}));
    }

    void Apply(const ChangeRow& change)
    {
        if (change.capacity > 0)
        {
            m_lines[change.link].near.device->SetDataRate(DeviceRate(change.capacity));
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

    InternetStackHelper m_stack;
    std::vector<Ptr<Node>> m_routers;
    std::vector<Line> m_lines;
};

void
Run(const std::string& folder, const std::string& run)
{
    RngSeedManager::SetRun(std::strtoull(run.c_str(), nullptr, 10));
    SetDefaults();
    std::FILE* series = Open(folder, "series.csv");
    std::FILE* responses = Open(folder, "responses.csv");
    Network network;
    std::vector<std::unique_ptr<BulkFlow>> bulk;
    std::vector<std::unique_ptr<WebSession>> web;
    for (const FlowRow& flow : kFlows)
    {
        const Host& host = network.GetHost(flow.host);
        if (kGroups[host.group].web.objectsPerPage == 0)
        {
            bulk.push_back(std::make_unique<BulkFlow>(flow, host));
        }
        else
        {
            const auto stream = static_cast<int64_t>(web.size());
            web.push_back(std::make_unique<WebSession>(flow, host, stream, responses));
        }
    }
    Recorder recorder(series, network.queues, network.sinks);
    Simulator::ScheduleNow(&Progress, 0);
    // One nanosecond more: events at the very end count, the last sample among them.
    Simulator::Stop(NanoSeconds(kDuration + 1));
    Simulator::Run();
    Close(series);
    Close(responses);
    bulk.clear();
    web.clear();
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    return netctrl::Program(argc, argv, "1", &netctrl::Run);
}
