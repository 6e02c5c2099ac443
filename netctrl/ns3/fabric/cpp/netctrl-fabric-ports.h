// Ports of the fabric: counters, telemetry, and routes that flows bring along.

#pragma once

#include "netctrl-fabric-tables.h"
#include "netctrl-lines.h"
#include "netctrl-queues.h"
#include "scenario.h"

#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"
#include "ns3/tag.h"
#include "ns3/tcp-header.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <vector>

namespace netctrl::fabric
{

using namespace ns3;

constexpr uint32_t kTcpPort = 10000; ///< of the first flow

inline int64_t
Now()
{
    return Simulator::Now().GetNanoSeconds();
}

/// What packets carry: which flow and which bytes, what switches say; all of it in the acknowledgement.
struct Letter
{
    uint32_t flow;
    bool ack;
    bool missing;     ///< of an acknowledgement: a packet before this one didn't come
    bool marked;      ///< the data found a long queue
    bool notified;    ///< of an acknowledgement: it carries a notification (CNP)
    int64_t sequence; ///< first byte of the data
    int64_t bytes;    ///< of data: how many; of an acknowledgement: all that came in order
    int64_t sent;     ///< when the data left [ns]
    int count;        ///< switches that wrote
    std::array<Hop, kMostHops> hops;
};

/// A letter as a packet tag; room for it is in the scenario's sizes of packets. A tag rather than a header: a trace of a
/// device's queue, which shows a packet that isn't to be changed, may write one into the packet.
class LetterTag final : public Tag
{
  public:
    explicit LetterTag(const Letter& given = {})
        : content(given)
    {
    }

    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::Letter").SetParent<Tag>().AddConstructor<LetterTag>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return sizeof(Letter);
    }

    void Serialize(TagBuffer buffer) const override
    {
        buffer.Write(reinterpret_cast<const uint8_t*>(&content), sizeof(Letter));
    }

    void Deserialize(TagBuffer buffer) override
    {
        buffer.Read(reinterpret_cast<uint8_t*>(&content), sizeof(Letter));
    }

    void Print(std::ostream& os) const override
    {
        os << "flow " << content.flow;
    }

    Letter content;
};

/// What a port counted; sizes are those on the wire. The packet that is being sent isn't in the queue.
struct PortCounts
{
    int64_t waiting = 0; ///< packets in the queue
    int64_t queue = 0;   ///< [byte]
    int64_t packets = 0; ///< sent
    int64_t bytes = 0;
    int64_t cameIn = 0; ///< packets from the other end
    int64_t bytesIn = 0;
    int64_t drops = 0;
    int64_t droppedBytes = 0;
    int64_t most = 0; ///< longest queue [byte]
};

/// A device's port. Its queue is that of the device, and of its queue disc with TCP.
class Port
{
  public:
    Port(const PortRow& row, const End& end)
        : row(row),
          device(end.device),
          m_counter(kCentre.flowTimeout)
    {
        auto queue = device->GetQueue();
        if (kCentre.tcp && OfSwitch())
        {
            queue->SetMaxSize(QueueSize("1p")); // all others wait in the queue disc
            m_disc = MakeQueue(row.queue, row.rate, kCentre.buffer > 0 ? kCentre.buffer : kUnlimited).disc;
            end.SetQueue(m_disc);
            m_disc->TraceConnectWithoutContext("Enqueue", MakeCallback(&Port::DiscEnqueued, this));
            m_disc->TraceConnectWithoutContext("Dequeue", MakeCallback(&Port::DiscDequeued, this));
            m_disc->TraceConnectWithoutContext("DropBeforeEnqueue", MakeCallback(&Port::DiscDropped, this));
        }
        else if (OfSwitch() && kCentre.buffer > 0)
        {
            queue->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, kCentre.buffer));
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
        return row.source >= kCentre.hosts;
    }

    int64_t Marked() const
    {
        return m_disc ? m_disc->GetStats().nTotalMarkedPackets : m_marked;
    }

    /// Byte nanoseconds so far.
    double Area(int64_t now) const
    {
        return m_area + static_cast<double>(counts.queue) * static_cast<double>(now - m_changed);
    }

    const PortRow& row;
    const Ptr<PointToPointNetDevice> device;
    PortCounts counts;

  private:
    void Change(int64_t packets, int64_t bytes)
    {
        const int64_t now = Now();
        m_area = Area(now);
        m_changed = now;
        counts.waiting += packets;
        counts.queue += bytes;
    }

    void Add(int64_t bytes)
    {
        Change(1, bytes);
        if (m_sending) // else it leaves at once
        {
            counts.most = std::max(counts.most, counts.queue);
        }
    }

    void DiscEnqueued(Ptr<const QueueDiscItem> item)
    {
        Add(item->GetSize() + kPppHeader);
    }

    void DiscDequeued(Ptr<const QueueDiscItem> item)
    {
        Change(-1, -static_cast<int64_t>(item->GetSize() + kPppHeader));
    }

    void DiscDropped(Ptr<const QueueDiscItem> item, const char*)
    {
        ++counts.drops;
        counts.droppedBytes += item->GetSize() + kPppHeader;
    }

    void Enqueued(Ptr<const Packet> packet)
    {
        LetterTag letter;
        if (OfSwitch() && packet->PeekPacketTag(letter) && !letter.content.ack)
        {
            if (kCentre.countsFlows)
            {
                m_counter.See(letter.content.flow, Now());
            }
            if (kCentre.marks && Marks())
            {
                letter.content.marked = true;
                ConstCast<Packet>(packet)->ReplacePacketTag(letter);
            }
        }
        Add(packet->GetSize());
    }

    /// Whether what comes now is marked: always above markHigh, in between with a probability that rises to kCentre.mostMarking.
    bool Marks()
    {
        if (counts.queue <= row.markLow)
        {
            return false;
        }
        const auto above = static_cast<double>(counts.queue - row.markLow);
        const auto room = static_cast<double>(row.markHigh - row.markLow);
        const bool marks = counts.queue > row.markHigh || m_chance->GetValue() * room < kCentre.mostMarking * above;
        m_marked += marks;
        return marks;
    }

    void Dequeued(Ptr<const Packet> packet)
    {
        Change(-1, -static_cast<int64_t>(packet->GetSize()));
        LetterTag letter;
        if (kCentre.telemetry && OfSwitch() && packet->PeekPacketTag(letter) && !letter.content.ack &&
            letter.content.count < kMostHops)
        {
            const double flows = kCentre.countsFlows ? static_cast<double>(m_counter.Count(Now())) : 0.0;
            const auto sent = static_cast<double>(counts.bytes + packet->GetSize());
            letter.content.hops[letter.content.count++] = {
                static_cast<double>(counts.queue), flows, sent, static_cast<double>(Now())};
            ConstCast<Packet>(packet)->ReplacePacketTag(letter);
        }
    }

    void Dropped(Ptr<const Packet> packet)
    {
        ++counts.drops;
        counts.droppedBytes += packet->GetSize();
    }

    void Begins(Ptr<const Packet> packet)
    {
        m_sending = true;
        ++counts.packets;
        counts.bytes += packet->GetSize();
    }

    void Ends(Ptr<const Packet>)
    {
        m_sending = false;
    }

    void Comes(Ptr<const Packet> packet)
    {
        ++counts.cameIn;
        counts.bytesIn += packet->GetSize();
    }

    Ptr<QueueDisc> m_disc; ///< null: none
    FlowCounter m_counter;
    Ptr<UniformRandomVariable> m_chance = CreateObject<UniformRandomVariable>();
    int64_t m_marked = 0;
    bool m_sending = false;
    int64_t m_changed = 0;
    double m_area = 0.0;
};

/// Source routing: a packet leaves a node by the one of its flow's ports that is there. TCP has the flow's number in its
/// ports, and its direction in its destination.
class FlowRouting final : public LookupRouting
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::FlowRouting").SetParent<Ipv4RoutingProtocol>();
        return tid;
    }

    /// Tables are kept by reference: of each port its route, of each host its address.
    FlowRouting(int node,
                const std::vector<FlowRow>& flows,
                const std::vector<Ptr<Ipv4Route>>& routes,
                const std::vector<Ipv4Address>& addresses)
        : m_node(node),
          m_flows(flows),
          m_routes(routes),
          m_addresses(addresses)
    {
    }

  private:
    Ptr<Ipv4Route> Find(uint32_t destination, Ptr<const Packet> packet) override
    {
        if (kCentre.tcp && m_node < kCentre.hosts)
        {
            return m_routes[m_node]; // hosts have one port each, and these are the first
        }
        TcpHeader tcp;
        LetterTag letter;
        if (kCentre.tcp && packet->PeekHeader(tcp) > 0)
        {
            const FlowRow& flow = m_flows[tcp.GetDestinationPort() - kTcpPort];
            const bool back = m_addresses[flow.source].Get() == destination;
            return Along(back ? flow.back : flow.there);
        }
        if (!kCentre.tcp && packet && packet->PeekPacketTag(letter))
        {
            const FlowRow& flow = m_flows[letter.content.flow];
            return Along(letter.content.ack ? flow.back : flow.there);
        }
        return nullptr;
    }

    Ptr<Ipv4Route> Along(const std::array<int64_t, kMostPorts>& way) const
    {
        for (const int64_t port : way)
        {
            if (port >= 0 && kPorts[port].source == m_node)
            {
                return m_routes[port];
            }
        }
        return nullptr;
    }

    const int m_node;
    const std::vector<FlowRow>& m_flows;
    const std::vector<Ptr<Ipv4Route>>& m_routes;
    const std::vector<Ipv4Address>& m_addresses;
};

} // namespace netctrl::fabric
