// Routing by shares: a destination may have several ways, each of which takes its share of the bytes.
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

/// Each packet takes the way that is furthest behind its share, so that shares are met to within a packet at any time.
class SplitRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::SplitRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    void Add(uint32_t destination, Ptr<Ipv4Route> route, double share)
    {
        m_ways[destination].push_back({route, share, 0.0});
    }

  private:
    struct Way
    {
        Ptr<Ipv4Route> route;
        double share;
        double behind; ///< its share, less what it took [byte]
    };

    Ptr<Ipv4Route> Find(uint32_t destination, uint32_t size) override
    {
        const auto found = m_ways.find(destination);
        if (found == m_ways.end())
        {
            return nullptr;
        }
        std::vector<Way>& ways = found->second;
        for (Way& way : ways)
        {
            way.behind += way.share * size;
        }
        const auto less = [](const Way& one, const Way& other) { return one.behind < other.behind; };
        Way& chosen = *std::max_element(ways.begin(), ways.end(), less);
        chosen.behind -= size;
        return chosen.route;
    }

    std::unordered_map<uint32_t, std::vector<Way>> m_ways;
};

} // namespace netctrl

#endif // NETCTRL_SPLIT_ROUTING_H
