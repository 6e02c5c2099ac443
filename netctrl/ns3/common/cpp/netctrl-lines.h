// Lines between nodes: two point-to-point devices, their channel, addresses and routes.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_LINES_H
#define NETCTRL_LINES_H

#include "netctrl-routing.h"
#include "scenario.h"

#include "ns3/ipv4.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/string.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

using namespace ns3;

constexpr uint32_t kPppHeader = 2; ///< what a point-to-point device adds [byte]

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

} // namespace netctrl

#endif // NETCTRL_LINES_H
