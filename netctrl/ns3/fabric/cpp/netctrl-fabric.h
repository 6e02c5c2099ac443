// A data centre at work. Each link is a point-to-point channel. Hosts send UDP; a packet goes by the ports of its flow in
// run-RUN.bin, where Python chose among the shortest paths. Switch ports write telemetry into what they send and mark what
// finds a long queue; acknowledgements bring both back. Where ns-3's TCP sends instead, switch ports have a queue disc.

#pragma once

#include "netctrl-fabric-hosts.h"
#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-recorder.h"
#include "netctrl-lines.h"
#include "netctrl-program.h"
#include "netctrl-sockets.h"
#include "scenario.h"

#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl::fabric
{

constexpr int64_t kTcpOverhead = 42; ///< PPP, IPv4 and TCP without options [byte]

/// One flow over ns-3's own DCTCP, a peer of MPCC (switches mark all above K by RED): a connection that is made when it
/// starts.
class TcpFlow
{
  public:
    TcpFlow(uint32_t number,
            const FlowRow& flow,
            Recorder& recorder,
            Ptr<Node> source,
            Ptr<Node> target,
            Ipv4Address end)
        : m_number(number),
          m_flow(flow),
          m_recorder(recorder),
          m_left(flow.size)
    {
        const auto port = static_cast<uint16_t>(kTcpPort + m_number);
        m_listener = Listen(target, InetSocketAddress(end, port), MakeCallback(&TcpFlow::Accept, this));
        m_socket = TcpSender(source, MakeCallback(&TcpFlow::Fill, this));
        const double first = std::floor(kPaths[m_flow.kind].startWindow / kCentre.payload);
        const auto segments = static_cast<uint32_t>(std::clamp(first, 1.0, 1e5));
        m_socket->SetAttribute("InitialCwnd", UintegerValue(segments));
        if (!kCentre.slowStart)
        {
            m_socket->SetAttribute("InitialSlowStartThreshold", UintegerValue(segments * kCentre.payload));
        }
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&TcpFlow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&TcpFlow::Sent, this));
        m_socket->Connect(InetSocketAddress(end, port));
    }

    TcpFlow(const TcpFlow&) = delete;
    TcpFlow& operator=(const TcpFlow&) = delete;

  private:
    void Fill(Ptr<Socket> socket)
    {
        while (m_left > 0)
        {
            const int64_t room = socket->GetTxAvailable();
            // Whole segments: what is left over waits for more room.
            const int64_t bytes = m_left <= room ? m_left : room - room % kCentre.payload;
            if (bytes <= 0 || socket->Send(Create<Packet>(static_cast<uint32_t>(bytes))) < 0)
            {
                return;
            }
            m_left -= bytes;
            if (m_left == 0)
            {
                socket->Close();
            }
        }
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&TcpFlow::Read, this));
    }

    void Read(Ptr<Socket> socket)
    {
        const int64_t bytes = TakeAll(socket);
        const int64_t segments = (bytes + kCentre.payload - 1) / kCentre.payload;
        m_arrived += bytes;
        m_recorder.Carried(m_flow, bytes + segments * kTcpOverhead, Now());
        if (bytes > 0 && m_arrived == m_flow.size)
        {
            m_recorder.Finished(m_number, Now());
            socket->Close();
            m_listener->Close();
        }
    }

    void Acknowledged(Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>)
    {
        ++m_recorder.counters.acks;
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        const SequenceNumber32 behind = header.GetSequenceNumber() + packet->GetSize();
        if (packet->GetSize() > 0 && !(m_newest < behind))
        {
            ++m_recorder.counters.again;
        }
        m_newest = std::max(m_newest, behind);
    }

    const uint32_t m_number;
    const FlowRow& m_flow;
    Recorder& m_recorder;
    int64_t m_left;        ///< that TCP wasn't given yet [byte]
    int64_t m_arrived = 0; ///< [byte]
    Ptr<Socket> m_listener;
    Ptr<Socket> m_socket;
    SequenceNumber32 m_newest{0};
};

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
