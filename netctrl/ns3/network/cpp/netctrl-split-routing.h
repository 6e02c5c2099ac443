// Routing by shares: a destination may have several ways, each of which takes its share of the bytes, or of the
// flows.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_SPLIT_ROUTING_H
#define NETCTRL_SPLIT_ROUTING_H

#include "netctrl-routing.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Each packet, or each flow of TCP, takes the way that is furthest behind its share, so that shares are met to within a
/// packet, or a flow, at any time.
class SplitRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::SplitRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    /// @param flows a flow keeps to its way, lest it is reordered; else each packet is free
    void Add(uint32_t destination, Ptr<Ipv4Route> route, double share, bool flows)
    {
        Ways& ways = m_ways[destination];
        ways.ways.push_back({route, share, 0.0});
        ways.flows = flows;
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

    Ptr<Ipv4Route> Find(uint32_t destination, Ptr<const Packet> packet) override
    {
        const auto found = m_ways.find(destination);
        if (found == m_ways.end())
        {
            return nullptr;
        }
        Ways& of = found->second;
        if (of.ways.size() == 1 || !packet)
        {
            return of.ways.front().route;
        }
        if (!of.flows)
        {
            return of.ways[Choose(of.ways, packet->GetSize())].route;
        }
        uint8_t port[2];
        packet->CopyData(port, sizeof port);
        const auto [flow, isNew] = of.taken.try_emplace(static_cast<uint16_t>(port[0] << 8 | port[1]), 0);
        if (isNew)
        {
            flow->second = Choose(of.ways, 1.0);
        }
        return of.ways[flow->second].route;
    }

    static std::size_t Choose(std::vector<Way>& ways, double size)
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

    std::unordered_map<uint32_t, Ways> m_ways;
};

} // namespace netctrl

#endif // NETCTRL_SPLIT_ROUTING_H
