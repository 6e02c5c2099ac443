// TCP: endless flows over the ways of a demand.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_TCP_H
#define NETCTRL_TCP_H

#include "netctrl-demands.h"
#include "netctrl-link-recorder.h"
#include "netctrl-sockets.h"
#include "netctrl-tcp-defaults.h"
#include "scenario.h"

#include "ns3/ipv4-l3-protocol.h"
#include "ns3/object-factory.h"
#include "ns3/random-variable-stream.h"
#include "ns3/string.h"
#include "ns3/tcp-vegas.h"

#include <algorithm>
#include <memory>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// One endless flow.
class TcpFlow
{
  public:
    TcpFlow(Ptr<Node> node, const InetSocketAddress& end, const TcpRow& row, int64_t start, TcpCounters& counters)
        : m_node(node),
          m_end(end),
          m_row(row),
          m_counters(counters)
    {
        Simulator::Schedule(NanoSeconds(start), &TcpFlow::Open, this);
    }

    TcpFlow(const TcpFlow&) = delete;
    TcpFlow& operator=(const TcpFlow&) = delete;

  private:
    void Open()
    {
        m_socket = TcpSender(m_node, Callback<void, Ptr<Socket>>([](Ptr<Socket> it) { FillWhole(it, Segment()); }));
        DynamicCast<TcpSocketBase>(m_socket)->SetCongestionControlAlgorithm(
            ObjectFactory(m_row.sender).Create<TcpCongestionOps>());
        m_socket->SetAttribute("UseEcn", StringValue(m_row.ecn ? "On" : "Off"));
        m_socket->SetIpTtl(255);
        m_socket->Bind();
        m_socket->TraceConnectWithoutContext("RTT", MakeCallback(&TcpFlow::RoundTrip, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&TcpFlow::Received, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&TcpFlow::Sent, this));
        m_socket->Connect(m_end);
    }

    void RoundTrip(Time, Time sample) // told where it differs from the last
    {
        m_roundTrip = sample;
    }

    void Received(Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>)
    {
        if (m_roundTrip.IsStrictlyPositive())
        {
            m_counters.roundTrips += m_roundTrip.GetSeconds();
            ++m_counters.samples;
        }
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        const uint32_t size = packet->GetSize();
        const SequenceNumber32 behind = header.GetSequenceNumber() + size;
        m_counters.sent += size;
        m_counters.again += m_newest < behind ? 0 : size;
        m_newest = std::max(m_newest, behind);
    }

    Ptr<Node> m_node;
    const InetSocketAddress m_end;
    const TcpRow& m_row;
    TcpCounters& m_counters;
    Ptr<Socket> m_socket;
    SequenceNumber32 m_newest{0};
    Time m_roundTrip; ///< newest sample
};

/// The flows of a demand, and where they end.
class TcpDemand
{
  public:
    /// @param end the address at which they end, of `target`
    TcpDemand(Ptr<Node> source, Ptr<Node> target, Ipv4Address end, const TcpRow& row, Ptr<UniformRandomVariable> random)
        : m_end(end, kPort),
          m_listener(Listen(target, m_end, MakeCallback(&TcpDemand::Accept, this)))
    {
        source->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("SendOutgoing",
                                                                        MakeCallback(&TcpDemand::Offered, this));
        target->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("LocalDeliver",
                                                                        MakeCallback(&TcpDemand::Delivered, this));
        m_listener->SetAttribute("UseEcn", StringValue(row.ecn ? "On" : "Off"));
        m_listener->SetIpTtl(255);
        for (int i = 0; i < row.flows; ++i)
        {
            const double share = random->GetValue();
            const auto start = row.first + static_cast<int64_t>(share * static_cast<double>(row.last - row.first));
            m_flows.push_back(std::make_unique<TcpFlow>(source, m_end, row, start, counters));
        }
    }

    TcpDemand(const TcpDemand&) = delete;
    TcpDemand& operator=(const TcpDemand&) = delete;

    TcpCounters counters;

  private:
    void Offered(const Ipv4Header& header, Ptr<const Packet>, uint32_t)
    {
        counters.offered += Size(header);
    }

    void Delivered(const Ipv4Header& header, Ptr<const Packet>, uint32_t)
    {
        counters.delivered += Size(header);
    }

    uint64_t Size(const Ipv4Header& header) const
    {
        return header.GetDestination() == m_end.GetIpv4() ? header.GetPayloadSize() + header.GetSerializedSize() : 0;
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&TcpDemand::Read, this));
    }

    void Read(Ptr<Socket> socket)
    {
        counters.arrived += TakeAll(socket);
    }

    const InetSocketAddress m_end;
    Ptr<Socket> m_listener;
    std::vector<std::unique_ptr<TcpFlow>> m_flows;
};

} // namespace netctrl

#endif // NETCTRL_TCP_H
