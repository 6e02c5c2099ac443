// Endless flows with all that they are measured by, and cross traffic.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_FLOWS_H
#define NETCTRL_PACING_FLOWS_H

#include "gains.h"
#include "netctrl-cubic.h"
#include "netctrl-htcp.h"
#include "netctrl-paced-tcp.h"
#include "netctrl-pacing-tables.h"
#include "netctrl-round-trips.h"
#include "netctrl-tcp-defaults.h"
#include "netctrl-tcp-windows.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/ipv4-address.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/random-variable-stream.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/tcp-bbr.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/udp-socket-factory.h"
#include "ns3/uinteger.h"

#include <cstdint>
#include <vector>

namespace netctrl
{

using namespace ns3;

constexpr uint16_t kFirstPort = 5001;
constexpr uint32_t kUdpHeaders = 28; ///< IPv4 and UDP [byte]

/// A sample of the RTT.
struct RttSample
{
    int64_t flow;
    int64_t time; ///< [ns]
    int64_t rtt;  ///< [ns]
};

/// One endless flow, from a host of its own.
class Flow
{
  public:
    Flow(int number, const FlowRow& row, Ptr<Node> source, Ptr<Node> target, Ipv4Address end, std::vector<RttSample>& rtts)
        : m_number(number),
          m_row(row),
          m_source(source),
          m_end(InetSocketAddress(end, static_cast<uint16_t>(kFirstPort + number))),
          m_rtts(rtts)
    {
        m_listener = Socket::CreateSocket(target, TcpSocketFactory::GetTypeId());
        m_listener->Bind(m_end);
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Flow::Accept, this));
    }

    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;

    void Start(int64_t at)
    {
        m_start = at;
        Simulator::Schedule(NanoSeconds(at), &Flow::Open, this);
    }

    int64_t StartTime() const
    {
        return m_start;
    }

    /// Of IP packets that came, since the flow began [byte].
    uint64_t Arrived() const
    {
        return m_arrived;
    }

    /// Payload that the receiver read [byte].
    uint64_t Read() const
    {
        return m_read;
    }

    const RoundTrips& Trips() const
    {
        return m_trips;
    }

    /// In force, of whole packets [bit/s]; 0: nothing paces them.
    double Rate() const
    {
        return m_target ? m_target->Rate() : m_capped ? m_capped->Cap() : m_pacing * kPacketsOfPayload;
    }

    /// Payload [byte].
    uint32_t Window() const
    {
        return m_window;
    }

    PacingEvents Events() const
    {
        return m_target ? m_target->Events() : m_capped ? m_capped->Events() : PacingEvents{};
    }

  private:
    Ptr<TcpCongestionOps> MakeControl()
    {
        switch (m_row.control)
        {
        case Control::kPaced:
            if (const auto* law = std::get_if<TargetPacer>(&kLaw))
            {
                m_target = CreateObject<TargetRtt>(m_trips, *law);
                return m_target;
            }
            m_capped = CreateObject<CappedHtcp>(m_trips, m_row.cap);
            m_capped->SetLaw(std::get<ArxPacer>(kLaw));
            return m_capped;
        case Control::kCap:
            m_capped = CreateObject<CappedHtcp>(m_trips, m_row.cap);
            return m_capped;
        case Control::kHtcp:
            return CreateObject<DraftHtcp>(m_trips);
        case Control::kCubic:
            return CreateObject<OneByOneCubic>();
        case Control::kBbr:
            return CreateObject<TcpBbr>();
        case Control::kWindow:
            return MakeWindow(m_row.window, m_trips);
        case Control::kReno:
            break;
        }
        return CreateObject<TcpNewReno>();
    }

    void Open()
    {
        m_socket = Socket::CreateSocket(m_source, TcpSocketFactory::GetTypeId());
        auto tcp = DynamicCast<TcpSocketBase>(m_socket);
        tcp->SetCongestionControlAlgorithm(MakeControl());
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Flow::Fill, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->SetSendCallback(MakeCallback(&Flow::Room, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Flow::SetWindow, this));
        if (m_row.control == Control::kBbr)
        {
            m_socket->TraceConnectWithoutContext("PacingRate", MakeCallback(&Flow::SetPacing, this));
        }
        m_socket->Connect(m_end);
    }

    void Room(Ptr<Socket> socket, uint32_t)
    {
        Fill(socket);
    }

    void Fill(Ptr<Socket> socket)
    {
        const bool stopped = m_row.stop >= 0 && Simulator::Now() >= NanoSeconds(m_row.stop);
        const uint32_t room = socket->GetTxAvailable();
        const uint32_t whole = room - room % kSegment; // no small packets
        if (whole > 0 && !stopped)
        {
            socket->Send(Create<Packet>(whole));
        }
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        m_trips.Sent(packet->GetSize(), header);
    }

    void Acknowledged(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        m_trips.Received(header);
        if (m_trips.IsFresh())
        {
            m_rtts.push_back({m_number, Simulator::Now().GetNanoSeconds(), m_trips.Newest().GetNanoSeconds()});
        }
    }

    void SetWindow(uint32_t, uint32_t window)
    {
        m_window = window;
    }

    void SetPacing(DataRate, DataRate rate)
    {
        m_pacing = static_cast<double>(rate.GetBitRate());
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        socket->SetRecvCallback(MakeCallback(&Flow::Receive, this));
        socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::Came, this));
    }

    void Came(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() > 0)
        {
            m_arrived += packet->GetSize() + header.GetSerializedSize() + 20;
        }
    }

    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0)
            {
                break;
            }
            m_read += packet->GetSize();
        }
    }

    const int m_number;
    const FlowRow& m_row;
    Ptr<Node> m_source;
    const Address m_end;
    std::vector<RttSample>& m_rtts;
    Ptr<Socket> m_listener;
    Ptr<Socket> m_socket;
    RoundTrips m_trips;
    Ptr<TargetRtt> m_target;
    Ptr<CappedHtcp> m_capped;
    int64_t m_start = 0;
    uint64_t m_arrived = 0;
    uint64_t m_read = 0;
    uint32_t m_window = 0;
    double m_pacing = 0.0;
};

/// Packets at random times (Poisson).
class CrossTraffic
{
  public:
    CrossTraffic(Ptr<Node> source, Ptr<Node> target, Ipv4Address end)
    {
        const Address place = InetSocketAddress(end, kFirstPort - 1);
        m_sink = Socket::CreateSocket(target, UdpSocketFactory::GetTypeId());
        m_sink->Bind(place);
        m_sink->SetRecvCallback(MakeCallback(&CrossTraffic::Receive, this));
        m_socket = Socket::CreateSocket(source, UdpSocketFactory::GetTypeId());
        m_socket->Bind();
        m_socket->Connect(place);
        m_pause = CreateObject<ExponentialRandomVariable>();
        m_pause->SetAttribute("Mean", DoubleValue(8e9 * kPacketSize / kCrossRate));
        Next();
    }

    CrossTraffic(const CrossTraffic&) = delete;
    CrossTraffic& operator=(const CrossTraffic&) = delete;

  private:
    void Next()
    {
        Simulator::Schedule(NanoSeconds(static_cast<int64_t>(m_pause->GetValue())), &CrossTraffic::Send, this);
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(kPacketSize - kUdpHeaders));
        Next();
    }

    void Receive(Ptr<Socket> socket)
    {
        while (socket->Recv())
        {
        }
    }

    Ptr<Socket> m_sink;
    Ptr<Socket> m_socket;
    Ptr<ExponentialRandomVariable> m_pause;
};

} // namespace netctrl

#endif // NETCTRL_PACING_FLOWS_H
