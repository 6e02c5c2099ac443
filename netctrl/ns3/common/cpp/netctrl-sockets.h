// Sockets that send and receive: what kinds of traffic share.

#pragma once

#include "ns3/inet-socket-address.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/simulator.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/udp-socket-factory.h"

#include <cstdint>
#include <functional>

namespace netctrl
{

using namespace ns3;

/// Sends UDP to an address.
inline Ptr<Socket>
UdpTo(Ptr<Node> node, const InetSocketAddress& end)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, UdpSocketFactory::GetTypeId());
    socket->Bind();
    socket->SetIpTtl(255);
    socket->Connect(end);
    return socket;
}

/// Where UDP ends: counts what comes.
class UdpSink
{
  public:
    UdpSink(Ptr<Node> node, const InetSocketAddress& end)
        : m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind(end);
        m_socket->SetRecvCallback(MakeCallback(&UdpSink::Take, this));
    }

    UdpSink(const UdpSink&) = delete;
    UdpSink& operator=(const UdpSink&) = delete;

    int64_t packets = 0;
    uint64_t payload = 0; ///< [byte]
    std::function<void(int64_t)> left; ///< is told what time packets carry [ns]; empty: they carry none

  private:
    void Take(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            ++packets;
            payload += packet->GetSize();
            if (left)
            {
                int64_t at = 0;
                packet->CopyData(reinterpret_cast<uint8_t*>(&at), sizeof at);
                left(at);
            }
        }
    }

    Ptr<Socket> m_socket;
};

/// Waits for connections of TCP; `accepted` is given each with the sender's address.
inline Ptr<Socket>
Listen(Ptr<Node> node, const InetSocketAddress& end, Callback<void, Ptr<Socket>, const Address&> accepted)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->Bind(end);
    socket->SetIpTtl(255);
    socket->Listen();
    socket->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(), accepted);
    return socket;
}

/// A sender of TCP, not connected yet; `fill` is to hand it data whenever it has room.
inline Ptr<Socket>
TcpSender(Ptr<Node> node, const Callback<void, Ptr<Socket>>& fill)
{
    Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
    socket->SetIpTtl(255);
    socket->SetConnectCallback(fill, MakeNullCallback<void, Ptr<Socket>>());
    socket->SetSendCallback(
        Callback<void, Ptr<Socket>, uint32_t>([fill](Ptr<Socket> sender, uint32_t) { fill(sender); }));
    return socket;
}

/// Takes what came over a connection of TCP [byte].
inline uint32_t
TakeAll(Ptr<Socket> socket)
{
    uint32_t bytes = 0;
    while (Ptr<Packet> packet = socket->Recv())
    {
        if (packet->GetSize() == 0) // the end of the connection
        {
            break;
        }
        bytes += packet->GetSize();
    }
    return bytes;
}

} // namespace netctrl
