// Flows of the fabric over ns-3's own DCTCP, a peer of MPCC: TcpDctcp, and RED that marks all above K, at switches.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FABRIC_TCP_H
#define NETCTRL_FABRIC_TCP_H

#include "gains.h"
#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-recorder.h"
#include "netctrl-fabric-tables.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/inet-socket-address.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/string.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace netctrl
{

using namespace ns3;

constexpr int64_t kTcpOverhead = 42; ///< PPP, IPv4 and TCP without options [byte]

inline void
SetTcpDefaults()
{
    const auto segment = static_cast<uint32_t>(kPayload);
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpDctcp::GetTypeId()));
    Config::SetDefault("ns3::TcpDctcp::DctcpShiftG", DoubleValue(kDctcpGain));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(NanoSeconds(kRetransmission)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(segment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(NanoSeconds(kRetransmission)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(1000));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000)); // senders never give up
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1U << 24));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1U << 24));
}

/// One flow: a connection that is made when it starts.
class TcpFlow
{
  public:
    TcpFlow(uint32_t number, const FlowRow& flow, Recorder& recorder)
        : m_number(number),
          m_flow(flow),
          m_recorder(recorder),
          m_left(flow.size)
    {
    }

    TcpFlow(const TcpFlow&) = delete;
    TcpFlow& operator=(const TcpFlow&) = delete;

    void Start(Ptr<Node> source, Ptr<Node> target, Ipv4Address end)
    {
        const auto port = static_cast<uint16_t>(kTcpPort + m_number);
        m_listener = Socket::CreateSocket(target, TcpSocketFactory::GetTypeId());
        m_listener->Bind(InetSocketAddress(end, port));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&TcpFlow::Accept, this));
        m_socket = Socket::CreateSocket(source, TcpSocketFactory::GetTypeId());
        const double segments = std::max(1.0, std::floor(kPaths[m_flow.kind].startWindow / kPayload));
        m_socket->SetAttribute("InitialCwnd", UintegerValue(static_cast<uint32_t>(std::min(segments, 1e5))));
        if (!kSlowStart)
        {
            const double window = std::min(segments, 1e5) * static_cast<double>(kPayload);
            m_socket->SetAttribute("InitialSlowStartThreshold", UintegerValue(static_cast<uint32_t>(window)));
        }
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_socket->SetConnectCallback(MakeCallback(&TcpFlow::Fill, this), MakeNullCallback<void, Ptr<Socket>>());
        m_socket->SetSendCallback(MakeCallback(&TcpFlow::Room, this));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&TcpFlow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&TcpFlow::Sent, this));
        m_socket->Connect(InetSocketAddress(end, port));
    }

  private:
    void Room(Ptr<Socket> socket, uint32_t)
    {
        Fill(socket);
    }

    void Fill(Ptr<Socket> socket)
    {
        while (m_left > 0)
        {
            const int64_t room = socket->GetTxAvailable();
            // Whole segments: what is left over waits for more room.
            const int64_t bytes = m_left <= room ? m_left : room - room % kPayload;
            if (bytes <= 0 || socket->Send(Create<Packet>(static_cast<uint32_t>(bytes))) < 0)
            {
                return;
            }
            m_left -= bytes;
            if (m_left == 0)
            {
                socket->Close();
            }
        }
    }

    void Accept(Ptr<Socket> socket, const Address&)
    {
        m_accepted = socket;
        socket->SetRecvCallback(MakeCallback(&TcpFlow::Read, this));
    }

    void Read(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            const int64_t bytes = packet->GetSize();
            if (bytes == 0)
            {
                break;
            }
            m_arrived += bytes;
            const int64_t segments = (bytes + kPayload - 1) / kPayload;
            m_recorder.Carried(m_flow, bytes + segments * kTcpOverhead, Now());
            if (m_arrived == m_flow.size)
            {
                m_recorder.Finished(m_number, Now());
                m_accepted->Close();
                m_listener->Close();
            }
        }
    }

    void Acknowledged(Ptr<const Packet>, const TcpHeader&, Ptr<const TcpSocketBase>)
    {
        ++m_recorder.counters.acks;
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        const SequenceNumber32 behind = header.GetSequenceNumber() + packet->GetSize();
        if (packet->GetSize() > 0 && !(m_newest < behind))
        {
            ++m_recorder.counters.again;
        }
        m_newest = std::max(m_newest, behind);
    }

    const uint32_t m_number;
    const FlowRow& m_flow;
    Recorder& m_recorder;
    int64_t m_left;        ///< that TCP wasn't given yet [byte]
    int64_t m_arrived = 0; ///< [byte]
    Ptr<Socket> m_listener;
    Ptr<Socket> m_socket;
    Ptr<Socket> m_accepted;
    SequenceNumber32 m_newest{0};
};

} // namespace netctrl

#endif // NETCTRL_FABRIC_TCP_H
