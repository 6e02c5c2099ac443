// Flows of the fabric over ns-3's own DCTCP, a peer of MPCC: TcpDctcp, and RED that marks all above K, at switches.

#pragma once

#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-recorder.h"
#include "netctrl-sockets.h"
#include "scenario.h"

#include "ns3/uinteger.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace netctrl::fabric
{

using namespace ns3;

constexpr int64_t kTcpOverhead = 42; ///< PPP, IPv4 and TCP without options [byte]

/// One flow: a connection that is made when it starts.
class TcpFlow
{
  public:
    TcpFlow(uint32_t number,
            const FlowRow& flow,
            Recorder& recorder,
            Ptr<Node> source,
            Ptr<Node> target,
            Ipv4Address end)
        : m_number(number),
          m_flow(flow),
          m_recorder(recorder),
          m_left(flow.size)
    {
        const auto port = static_cast<uint16_t>(kTcpPort + m_number);
        m_listener = Listen(target, InetSocketAddress(end, port), MakeCallback(&TcpFlow::Accept, this));
        m_socket = TcpSender(source, MakeCallback(&TcpFlow::Fill, this));
        const double first = std::floor(kPaths[m_flow.kind].startWindow / kCentre.payload);
        const auto segments = static_cast<uint32_t>(std::clamp(first, 1.0, 1e5));
        m_socket->SetAttribute("InitialCwnd", UintegerValue(segments));
        if (!kCentre.slowStart)
        {
            m_socket->SetAttribute("InitialSlowStartThreshold", UintegerValue(segments * kCentre.payload));
        }
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&TcpFlow::Acknowledged, this));
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&TcpFlow::Sent, this));
        m_socket->Connect(InetSocketAddress(end, port));
    }

    TcpFlow(const TcpFlow&) = delete;
    TcpFlow& operator=(const TcpFlow&) = delete;

  private:
    void Fill(Ptr<Socket> socket)
    {
        while (m_left > 0)
        {
            const int64_t room = socket->GetTxAvailable();
            // Whole segments: what is left over waits for more room.
            const int64_t bytes = m_left <= room ? m_left : room - room % kCentre.payload;
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
        socket->SetRecvCallback(MakeCallback(&TcpFlow::Read, this));
    }

    void Read(Ptr<Socket> socket)
    {
        const int64_t bytes = TakeAll(socket);
        const int64_t segments = (bytes + kCentre.payload - 1) / kCentre.payload;
        m_arrived += bytes;
        m_recorder.Carried(m_flow, bytes + segments * kTcpOverhead, Now());
        if (bytes > 0 && m_arrived == m_flow.size)
        {
            m_recorder.Finished(m_number, Now());
            socket->Close();
            m_listener->Close();
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
    SequenceNumber32 m_newest{0};
};

} // namespace netctrl::fabric
