// Nodes, and lines between them: two point-to-point devices, their channel, addresses and routes.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_LINES_H
#define NETCTRL_LINES_H

#include "netctrl-routing.h"
#include "scenario.h"

#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/queue-disc.h"
#include "ns3/string.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

using namespace ns3;

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
        auto routing = device->GetNode()->GetObject<Ipv4>()->GetRoutingProtocol();
        DynamicCast<TableRouting>(routing)->Add(network, bits, RouteTo(network));
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

inline Line
Connect(Ptr<Node> near,
        Ptr<Node> far,
        uint32_t subnet,
        DataRate rate,
        int64_t delay,
        const char* nearQueue)
{
    PointToPointHelper helper;
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

#endif // NETCTRL_LINES_H
