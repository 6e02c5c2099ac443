// Routing by a look into a table, for nodes with many interfaces: what kinds of tables share, and one of networks.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_ROUTING_H
#define NETCTRL_ROUTING_H

#include "ns3/ipv4-header.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4.h"

#include <unordered_map>
#include <unordered_set>

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

/// One way to each network.
class TableRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::TableRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    /// Packets to what starts with the `bits` bits of `network` (24, 30, or 0: all others) leave through `route`.
    void Add(uint32_t network, int bits, Ptr<Ipv4Route> route)
    {
        (bits == 30 ? m_narrow[network >> 2] : bits == 24 ? m_wide[network >> 8] : m_default) = route;
    }

  private:
    Ptr<Ipv4Route> Find(uint32_t destination, Ptr<const Packet>) override
    {
        const auto narrow = m_narrow.find(destination >> 2);
        if (narrow != m_narrow.end())
        {
            return narrow->second;
        }
        const auto wide = m_wide.find(destination >> 8);
        return wide != m_wide.end() ? wide->second : m_default;
    }

    std::unordered_map<uint32_t, Ptr<Ipv4Route>> m_narrow;
    std::unordered_map<uint32_t, Ptr<Ipv4Route>> m_wide;
    Ptr<Ipv4Route> m_default;
};

inline uint32_t
Subnet(uint32_t kind, int number, int host = 0)
{
    return kind << 24 | static_cast<uint32_t>(number) << 8 | static_cast<uint32_t>(host) << 2;
}

} // namespace netctrl

#endif // NETCTRL_ROUTING_H
