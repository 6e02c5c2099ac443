// Ports of the fabric: counters, telemetry, and routes that flows bring along.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FABRIC_PORTS_H
#define NETCTRL_FABRIC_PORTS_H

#include "netctrl-fabric-tables.h"
#include "netctrl-fabric-tags.h"
#include "netctrl-flow-counter.h"
#include "netctrl-lines.h"
#include "netctrl-routing.h"
#include "scenario.h"

#include "ns3/drop-tail-queue.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace netctrl
{

using namespace ns3;

inline int64_t
Now()
{
    return Simulator::Now().GetNanoSeconds();
}

/// What a port counted; sizes are those on the wire.
struct PortCounts
{
    int64_t packets = 0; ///< sent
    int64_t bytes = 0;
    int64_t cameIn = 0; ///< packets from the other end
    int64_t bytesIn = 0;
    int64_t drops = 0;
    int64_t droppedBytes = 0;
    int64_t most = 0; ///< longest queue [byte]
};

/// A device's port. Its queue is that of the device; the packet that is being sent isn't in it.
class Port
{
  public:
    Port(const PortRow& row, const Ptr<PointToPointNetDevice>& device, const Ptr<Ipv4Route>& route)
        : route(route),
          device(device),
          m_row(row),
          m_counter(kFlowTimeout)
    {
        auto queue = device->GetQueue();
        if (row.source >= kHosts && kBuffer > 0)
        {
            queue->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, kBuffer));
        }
        queue->TraceConnectWithoutContext("Enqueue", MakeCallback(&Port::Enqueued, this));
        queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&Port::Dequeued, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&Port::Dropped, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Port::Begins, this));
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Port::Ends, this));
        device->TraceConnectWithoutContext("PhyRxEnd", MakeCallback(&Port::Comes, this));
    }

    bool OfSwitch() const
    {
        return m_row.source >= kHosts;
    }

    const PortRow& Row() const
    {
        return m_row;
    }

    int64_t Queue() const
    {
        return m_bytes;
    }

    int64_t Waiting() const
    {
        return m_packets;
    }

    const PortCounts& Counts() const
    {
        return m_counts;
    }

    /// Byte nanoseconds so far.
    double Area(int64_t now) const
    {
        return m_area + static_cast<double>(m_bytes) * static_cast<double>(now - m_changed);
    }

    const Ptr<Ipv4Route> route;
    const Ptr<PointToPointNetDevice> device;

  private:
    void Change(int64_t packets, int64_t bytes)
    {
        const int64_t now = Now();
        m_area = Area(now);
        m_changed = now;
        m_packets += packets;
        m_bytes += bytes;
    }

    void Enqueued(Ptr<const Packet> packet)
    {
        Change(1, packet->GetSize());
        if (m_sending) // else it leaves at once
        {
            m_counts.most = std::max(m_counts.most, m_bytes);
        }
        LetterTag letter;
        if (kTelemetry && OfSwitch() && packet->PeekPacketTag(letter) && !letter.content.ack)
        {
            m_counter.See(letter.content.flow, Now());
        }
    }

    void Dequeued(Ptr<const Packet> packet)
    {
        Change(-1, -static_cast<int64_t>(packet->GetSize()));
        LetterTag letter;
        if (kTelemetry && OfSwitch() && packet->PeekPacketTag(letter) && !letter.content.ack)
        {
            AddWord(packet, {static_cast<uint64_t>(m_bytes), m_row.rate, m_counter.Count(Now()), Now()});
        }
    }

    void Dropped(Ptr<const Packet> packet)
    {
        ++m_counts.drops;
        m_counts.droppedBytes += packet->GetSize();
    }

    void Begins(Ptr<const Packet> packet)
    {
        m_sending = true;
        ++m_counts.packets;
        m_counts.bytes += packet->GetSize();
    }

    void Ends(Ptr<const Packet>)
    {
        m_sending = false;
    }

    void Comes(Ptr<const Packet> packet)
    {
        ++m_counts.cameIn;
        m_counts.bytesIn += packet->GetSize();
    }

    const PortRow& m_row;
    FlowCounter m_counter;
    PortCounts m_counts;
    bool m_sending = false;
    int64_t m_packets = 0; ///< that wait
    int64_t m_bytes = 0;
    int64_t m_changed = 0;
    double m_area = 0.0;
};

/// Source routing: a packet leaves a node by the one of its flow's ports that is there.
class FlowRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::FlowRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    FlowRouting(int node, const std::vector<FlowRow>& flows, const std::vector<Ptr<Ipv4Route>>& routes)
        : m_node(node),
          m_flows(flows),
          m_routes(routes)
    {
    }

  private:
    Ptr<Ipv4Route> Find(uint32_t, Ptr<const Packet> packet) override
    {
        LetterTag letter;
        if (packet && packet->PeekPacketTag(letter))
        {
            const FlowRow& flow = m_flows[letter.content.flow];
            for (const int64_t port : letter.content.ack ? flow.back : flow.there)
            {
                if (port >= 0 && kPorts[port].source == m_node)
                {
                    return m_routes[port];
                }
            }
        }
        return nullptr;
    }

    const int m_node;
    const std::vector<FlowRow>& m_flows;
    const std::vector<Ptr<Ipv4Route>>& m_routes; ///< of each port
};

} // namespace netctrl

#endif // NETCTRL_FABRIC_PORTS_H
