// Nodes, and lines between them: two point-to-point devices, their channel, addresses and routes.
//
// Routing is by a look into a table, for nodes with many interfaces: what kinds of tables share, and one of networks, to
// which there may be several ways.

#pragma once

#include "scenario.h"

#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-header.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/queue-disc.h"
#include "ns3/string.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Routes by a look-up of its heirs: ns-3's own routing goes through all interfaces and all routes for every packet.
/// The arguments U to E are callbacks, by value in ns-3.37 and by reference in ns-3.44.
template <class RouteInputType>
class LookupRoutingFor;

template <class U, class M, class L, class E>
class LookupRoutingFor<bool (Ipv4RoutingProtocol::*)(Ptr<const Packet>,
                                                     const Ipv4Header&,
                                                     Ptr<const NetDevice>,
                                                     U,
                                                     M,
                                                     L,
                                                     E)>
    : public Ipv4RoutingProtocol
{
  public:
    Ptr<Ipv4Route> RouteOutput(Ptr<Packet> packet,
                               const Ipv4Header& header,
                               Ptr<NetDevice>,
                               Socket::SocketErrno& error) override
    {
        Ptr<Ipv4Route> route = Find(header.GetDestination().Get(), packet);
        error = route ? Socket::ERROR_NOTERROR : Socket::ERROR_NOROUTETOHOST;
        return route;
    }

    bool RouteInput(Ptr<const Packet> packet,
                    const Ipv4Header& header,
                    Ptr<const NetDevice> device,
                    U forward,
                    M,
                    L deliver,
                    E) override
    {
        const uint32_t destination = header.GetDestination().Get();
        if (m_own.count(destination) > 0)
        {
            deliver(packet, header, m_ipv4->GetInterfaceForDevice(device));
            return true;
        }
        Ptr<Ipv4Route> route = Find(destination, packet);
        if (route)
        {
            forward(route, packet, header);
        }
        return route != nullptr;
    }

    void NotifyAddAddress(uint32_t, Ipv4InterfaceAddress address) override
    {
        m_own.insert(address.GetLocal().Get());
    }

    void SetIpv4(Ptr<Ipv4> ipv4) override
    {
        m_ipv4 = ipv4;
    }

    void NotifyInterfaceUp(uint32_t) override
    {
    }

    void NotifyInterfaceDown(uint32_t) override
    {
    }

    void NotifyRemoveAddress(uint32_t, Ipv4InterfaceAddress) override
    {
    }

    void PrintRoutingTable(Ptr<OutputStreamWrapper>, Time::Unit) const override
    {
    }

  private:
    /// The way to a destination for a packet without its IP header, or for none yet (null); null: no way.
    virtual Ptr<Ipv4Route> Find(uint32_t destination, Ptr<const Packet> packet) = 0;

    void DoDispose() override
    {
        m_ipv4 = nullptr;
        Ipv4RoutingProtocol::DoDispose();
    }

    Ptr<Ipv4> m_ipv4;
    std::unordered_set<uint32_t> m_own;
};

using LookupRouting = LookupRoutingFor<decltype(&Ipv4RoutingProtocol::RouteInput)>;

/// Ways to networks. Of several each packet, or each flow of TCP, takes the one that is furthest behind its share, so that
/// shares are met to within a packet, or a flow, at any time.
class TableRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::TableRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    /// Packets to what starts with the `bits` bits of `network` (24, 30, or 0: all others) leave through `route`.
    void Set(uint32_t network, int bits, Ptr<Ipv4Route> route)
    {
        To(network, bits) = {{{route, 1.0, 0.0}}, false, {}};
    }

    /// A share of those to what starts with these 30 bits leaves through `route`, too.
    ///
    /// @param flows a flow keeps to its way, lest it is reordered; else each packet is free
    void Add(uint32_t network, Ptr<Ipv4Route> route, double share, bool flows)
    {
        Ways& to = To(network, 30);
        to.ways.push_back({route, share, 0.0});
        to.flows = flows;
    }

  private:
    struct Way
    {
        Ptr<Ipv4Route> route;
        double share;
        double behind; ///< its share, less what it took [byte], or [flow]
    };

    struct Ways
    {
        std::vector<Way> ways;
        bool flows = false;
        std::unordered_map<uint16_t, std::size_t> taken; ///< by port at the source, of TCP
    };

    Ways& To(uint32_t network, int bits)
    {
        return bits == 30 ? m_narrow[network >> 2] : bits == 24 ? m_wide[network >> 8] : m_default;
    }

    Ptr<Ipv4Route> Find(uint32_t destination, Ptr<const Packet> packet) override
    {
        const auto narrow = m_narrow.find(destination >> 2);
        if (narrow != m_narrow.end())
        {
            return Choose(narrow->second, packet);
        }
        const auto wide = m_wide.find(destination >> 8);
        return Choose(wide != m_wide.end() ? wide->second : m_default, packet);
    }

    static Ptr<Ipv4Route> Choose(Ways& of, Ptr<const Packet> packet)
    {
        if (of.ways.size() <= 1 || !packet)
        {
            return of.ways.empty() ? nullptr : of.ways.front().route;
        }
        if (!of.flows)
        {
            return of.ways[Next(of.ways, packet->GetSize())].route;
        }
        uint8_t port[2];
        packet->CopyData(port, sizeof port);
        const auto [flow, isNew] = of.taken.try_emplace(static_cast<uint16_t>(port[0] << 8 | port[1]), 0);
        if (isNew)
        {
            flow->second = Next(of.ways, 1.0);
        }
        return of.ways[flow->second].route;
    }

    static std::size_t Next(std::vector<Way>& ways, double size)
    {
        for (Way& way : ways)
        {
            way.behind += way.share * size;
        }
        const auto less = [](const Way& one, const Way& other) { return one.behind < other.behind; };
        const auto chosen = std::max_element(ways.begin(), ways.end(), less);
        chosen->behind -= size;
        return static_cast<std::size_t>(chosen - ways.begin());
    }

    std::unordered_map<uint32_t, Ways> m_narrow;
    std::unordered_map<uint32_t, Ways> m_wide;
    Ways m_default;
};

inline uint32_t
Subnet(uint32_t kind, int number, int host = 0)
{
    return kind << 24 | static_cast<uint32_t>(number) << 8 | static_cast<uint32_t>(host) << 2;
}

constexpr uint32_t kPppHeader = 2; ///< what a point-to-point device adds [byte]

/// A node with IPv4, UDP and TCP.
inline Ptr<Node>
MakeNode(Ptr<Ipv4RoutingProtocol> routing = CreateObject<TableRouting>())
{
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
    Ptr<Node> node = CreateObject<Node>();
    stack.Install(node);
    node->GetObject<Ipv4>()->SetRoutingProtocol(routing);
    return node;
}

inline void
AddAddress(Ptr<NetDevice> device, uint32_t address)
{
    // By hand: Ipv4AddressHelper would install a FqCoDel on each device that has no queue disc.
    Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("/30")));
    ipv4->SetMetric(interface, 1);
    ipv4->SetUp(interface);
}

/// One more address of a node, at which no line ends.
inline void
AddOwn(Ptr<Node> node, uint32_t address)
{
    constexpr uint32_t kLoopback = 0;
    node->GetObject<Ipv4>()->AddAddress(kLoopback, Ipv4InterfaceAddress(Ipv4Address(address), Ipv4Mask("/32")));
}

/// The end of a line at a node.
struct End
{
    Ptr<PointToPointNetDevice> device;
    uint32_t address;
    uint32_t opposite; ///< address of the other end

    /// The way over this line to what has an address, or to a network.
    Ptr<Ipv4Route> RouteTo(uint32_t destination) const
    {
        Ptr<Ipv4Route> route = Create<Ipv4Route>();
        route->SetDestination(Ipv4Address(destination));
        route->SetSource(Ipv4Address(address));
        route->SetGateway(Ipv4Address(opposite));
        route->SetOutputDevice(device);
        return route;
    }

    /// Send what goes to a network over this line, at a node of TableRouting.
    void Route(uint32_t network, int bits) const
    {
        Table()->Set(network, bits, RouteTo(network));
    }

    /// The table of its node.
    Ptr<TableRouting> Table() const
    {
        return DynamicCast<TableRouting>(device->GetNode()->GetObject<Ipv4>()->GetRoutingProtocol());
    }

    /// What leaves by this line waits in a queue disc.
    void SetQueue(Ptr<QueueDisc> disc) const
    {
        device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, disc);
    }
};

/// A line with two ends; `near` has the lower address.
struct Line
{
    End near;
    End far;
    Ptr<PointToPointChannel> channel;
};

/// The rate of a device whose full packets leave as if there were no PPP header.
inline DataRate
DeviceRate(uint64_t capacity)
{
    const double full = kPacketSize;
    return DataRate(static_cast<uint64_t>(std::llround(capacity * ((full + kPppHeader) / full))));
}

/// @param stops whether the near queue, when it is full, stops what is above it; otherwise it drops what comes
inline Line
Connect(Ptr<Node> near,
        Ptr<Node> far,
        uint32_t subnet,
        DataRate rate,
        int64_t delay,
        const char* nearQueue,
        bool stops = true)
{
    PointToPointHelper helper;
    if (!stops)
    {
        helper.DisableFlowControl();
    }
    helper.SetDeviceAttribute("DataRate", DataRateValue(rate));
    helper.SetDeviceAttribute("Mtu", UintegerValue(std::max<uint32_t>(kPacketSize, 1500)));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p")); // no loss but at the links' queues
    const NetDeviceContainer devices = helper.Install(near, far);
    auto one = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    auto two = DynamicCast<PointToPointNetDevice>(devices.Get(1));
    one->GetQueue()->SetMaxSize(QueueSize(nearQueue));
    AddAddress(one, subnet + 1);
    AddAddress(two, subnet + 2);
    return {{one, subnet + 1, subnet + 2},
            {two, subnet + 2, subnet + 1},
            DynamicCast<PointToPointChannel>(one->GetChannel())};
}

/// The line of a host, whose near end is at its router, with the routes there and back.
inline Line
ConnectHost(Ptr<Node> router, Ptr<Node> host, uint32_t subnet, uint64_t rate, int64_t delay)
{
    const Line line = Connect(router, host, subnet, DataRate(rate), delay, "1000000p");
    line.far.Route(0, 0);
    line.near.Route(subnet, 30);
    return line;
}

} // namespace netctrl
