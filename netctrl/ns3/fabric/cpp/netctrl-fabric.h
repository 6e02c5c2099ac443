// A data centre at work. Each link is a point-to-point channel. Hosts send UDP; a packet goes by the ports of its flow in
// run-RUN.bin, where Python chose among the shortest paths. Switch ports write telemetry into what they send and mark what
// finds a long queue; acknowledgements bring both back. Where ns-3's TCP sends instead, switch ports have a queue disc.

#pragma once

#include "netctrl-fabric-hosts.h"
#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-recorder.h"
#include "netctrl-fabric-tcp.h"
#include "netctrl-lines.h"
#include "netctrl-program.h"
#include "scenario.h"

#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl::fabric
{

/// Nodes and ports. The channel of link i is in 12.x.y.0/24 with x.y = i.
class Network
{
  public:
    Network(const std::vector<FlowRow>& flows, Recorder& recorder)
        : traffic{flows, recorder, std::vector<Receiver>(flows.size()), {}, {}, {}},
          m_routes(kPorts.size())
    {
        traffic.senders.resize(flows.size());
        for (int node = 0; node < kCentre.nodes; ++node)
        {
            m_nodes.push_back(MakeNode(CreateObject<FlowRouting>(node, flows, m_routes, traffic.addresses)));
        }
        ports.resize(kPorts.size());
        traffic.addresses.resize(kCentre.hosts);
        int links = 0;
        for (std::size_t p = 0; p < kPorts.size(); ++p)
        {
            if (!ports[p])
            {
                AddLink(p, links++);
            }
        }
        for (std::size_t p = 0; p < kPorts.size(); ++p)
        {
            if (!ports[p]->OfSwitch() && !kCentre.tcp) // hosts have one port each, in order
            {
                const int host = kPorts[p].source;
                traffic.hosts.push_back(std::make_unique<Host>(host, m_nodes[host], *ports[p], traffic));
            }
        }
    }

    /// The flow's first packet leaves now, if its host's wire is free.
    void Start(std::size_t flow)
    {
        if (flow < traffic.flows.size())
        {
            Simulator::Schedule(NanoSeconds(traffic.flows[flow].start) - Simulator::Now(), &Network::Begin, this, flow);
        }
    }

    Traffic traffic;
    std::vector<std::unique_ptr<Port>> ports;

  private:
    void Begin(std::size_t flow)
    {
        const FlowRow& row = traffic.flows[flow];
        const auto number = static_cast<uint32_t>(flow);
        if (kCentre.tcp)
        {
            const Ipv4Address end = traffic.addresses[row.target];
            m_tcp.push_back(std::make_unique<TcpFlow>(
                number, row, traffic.recorder, m_nodes[row.source], m_nodes[row.target], end));
        }
        else
        {
            traffic.hosts[row.source]->Start(number);
        }
        Start(flow + 1);
    }

    void AddLink(std::size_t p, int link)
    {
        const PortRow& row = kPorts[p];
        // Where there is no queue disc, what is full drops rather than stop what is above it.
        const Line line = Connect(m_nodes[row.source],
                                  m_nodes[row.target],
                                  Subnet(12, link),
                                  DataRate(row.rate),
                                  row.delay,
                                  "1000000p",
                                  kCentre.tcp);
        AddPort(p, line.near);
        AddPort(row.reverse, line.far);
    }

    void AddPort(std::size_t p, const End& end)
    {
        m_routes[p] = end.RouteTo(end.opposite);
        ports[p] = std::make_unique<Port>(kPorts[p], end);
        if (!ports[p]->OfSwitch())
        {
            traffic.addresses[kPorts[p].source] = Ipv4Address(end.address);
            if (kCentre.tcp)
            {
                using OfPacket = Callback<void, Ptr<const Packet>>;
                Counters& counters = traffic.recorder.counters;
                const OfPacket made([&counters](Ptr<const Packet> packet) { counters.Made(packet->GetSize()); });
                const OfPacket came([&counters](Ptr<const Packet> packet) { counters.Came(packet->GetSize()); });
                end.device->GetQueue()->TraceConnectWithoutContext("Enqueue", made);
                end.device->TraceConnectWithoutContext("PhyRxEnd", came);
            }
        }
    }

    std::vector<Ptr<Node>> m_nodes;
    std::vector<Ptr<Ipv4Route>> m_routes;
    std::vector<std::unique_ptr<TcpFlow>> m_tcp;
};

/// Runs it.
inline void
Run(const std::string& folder, const std::string& run)
{
    const std::vector<FlowRow> flows = ReadFlows(folder + "/run-" + run + ".bin");
    Recorder recorder(folder, run, flows);
    Network network(flows, recorder);
    Simulator::ScheduleNow(&Recorder::Sample, &recorder, std::ref(network.ports));
    network.Start(0);
    Simulate(kDuration);
    int64_t waiting = 0;
    for (const auto& host : network.traffic.hosts)
    {
        waiting += host->WaitingAcks();
    }
    recorder.Write(network.ports, waiting);
    Simulator::Destroy();
}

} // namespace netctrl::fabric
