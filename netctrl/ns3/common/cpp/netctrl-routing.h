// Routing by a look into a table, for nodes with many interfaces: what kinds of tables share, and one of networks, to
// which there may be several ways.

#pragma once

#include "ns3/ipv4-header.h"
#include "ns3/ipv4-route.h"
#include "ns3/ipv4-routing-protocol.h"
#include "ns3/ipv4.h"

#include <algorithm>
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

} // namespace netctrl
