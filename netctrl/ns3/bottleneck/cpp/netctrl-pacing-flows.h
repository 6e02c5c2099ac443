// Endless flows with all that they are measured by, and cross traffic.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_FLOWS_H
#define NETCTRL_PACING_FLOWS_H

#include "gains.h"
#include "netctrl-paced-tcp.h"
#include "netctrl-sockets.h"
#include "netctrl-tcp-windows.h"
#include "scenario.h"

#include "ns3/double.h"
#include "ns3/random-variable-stream.h"
#include "ns3/tcp-bbr.h"

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
          m_end(end, static_cast<uint16_t>(kFirstPort + number)),
          m_rtts(rtts),
          m_listener(Listen(target, m_end, MakeCallback(&Flow::Accept, this)))
    {
    }

    Flow(const Flow&) = delete;
    Flow& operator=(const Flow&) = delete;

    void Start(int64_t at)
    {
        start = at;
        Simulator::Schedule(NanoSeconds(at), &Flow::Open, this);
    }

    /// In force, of whole packets [bit/s]; 0: nothing paces them.
    double Rate() const
    {
        return m_paced ? m_paced->Rate() : m_pacing * kPacketsOfPayload;
    }

    std::array<int64_t, 5> Events() const
    {
        return m_paced ? m_paced->Events() : std::array<int64_t, 5>{};
    }

    RoundTrips trips;
    int64_t start = 0;    ///< [ns]
    uint64_t arrived = 0; ///< IP packets that came [byte]
    uint64_t read = 0;    ///< payload that the receiver took [byte]
    uint32_t window = 0;  ///< payload [byte]

  private:
    Ptr<TcpCongestionOps> MakeControl()
    {
        switch (m_row.control)
        {
        case Control::kPaced:
            if (const auto* law = std::get_if<TargetPacer>(&kLaw))
            {
                return Paced(CreateObject<TargetRtt>(trips, *law));
            }
            return Paced(CreateObject<CappedHtcp>(trips, std::get<ArxPacer>(kLaw)));
        case Control::kCap:
            return Paced(CreateObject<CappedHtcp>(trips, m_row.cap));
        case Control::kHtcp:
            return CreateObject<DraftHtcp>(trips);
        case Control::kCubic:
            return CreateObject<Cubic>();
        case Control::kBbr:
            return CreateObject<TcpBbr>();
        case Control::kWindow:
            return MakeWindow(m_row.window, trips);
        case Control::kReno:
            break;
        }
        return CreateObject<TcpNewReno>();
    }

    template <class Control>
    Ptr<TcpCongestionOps> Paced(Ptr<Control> control)
    {
        m_paced = PeekPointer(control);
        return control;
    }

    void Open()
    {
        m_socket = TcpSender(m_source, MakeCallback(&Flow::Fill, this));
        DynamicCast<TcpSocketBase>(m_socket)->SetCongestionControlAlgorithm(MakeControl());
        m_socket->Bind();
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Flow::Sent, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Flow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Flow::SetWindow, this));
        if (m_row.control == Control::kBbr)
        {
            m_socket->TraceConnectWithoutContext("PacingRate", MakeCallback(&Flow::SetPacing, this));
        }
        m_socket->Connect(m_end);
    }

    void Fill(Ptr<Socket> socket)
    {
        if (m_row.stop < 0 || Simulator::Now() < NanoSeconds(m_row.stop))
        {
            FillWhole(socket, Segment());
        }
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        trips.Sent(packet->GetSize(), header);
    }

    void Acknowledged(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        trips.Received(header);
        if (trips.IsFresh())
        {
            m_rtts.push_back({m_number, Simulator::Now().GetNanoSeconds(), trips.Newest().GetNanoSeconds()});
        }
    }

    void SetWindow(uint32_t, uint32_t now)
    {
        window = now;
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
            arrived += packet->GetSize() + header.GetSerializedSize() + 20;
        }
    }

    void Receive(Ptr<Socket> socket)
    {
        read += TakeAll(socket);
    }

    const int m_number;
    const FlowRow& m_row;
    Ptr<Node> m_source;
    const InetSocketAddress m_end;
    std::vector<RttSample>& m_rtts;
    Ptr<Socket> m_listener;
    Ptr<Socket> m_socket;
    const PacingRate* m_paced = nullptr; ///< the socket's control, where it has a rate
    double m_pacing = 0.0;
};

/// Packets at random times (Poisson).
class CrossTraffic
{
  public:
    CrossTraffic(Ptr<Node> source, Ptr<Node> target, Ipv4Address end)
        : m_sink(target, InetSocketAddress(end, kFirstPort - 1)),
          m_socket(UdpTo(source, InetSocketAddress(end, kFirstPort - 1))),
          m_pause(CreateObject<ExponentialRandomVariable>())
    {
        m_pause->SetAttribute("Mean", DoubleValue(8e9 * kPacketSize / kCrossRate));
        Next();
    }

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

    UdpSink m_sink;
    Ptr<Socket> m_socket;
    Ptr<ExponentialRandomVariable> m_pause;
};

} // namespace netctrl

#endif // NETCTRL_PACING_FLOWS_H
