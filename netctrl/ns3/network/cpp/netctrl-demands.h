// What demands send: packets, evenly spaced at the rate of each interval; or flows of TCP, which are counted here.

#pragma once

#include "netctrl-sockets.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/ipv4-l3-protocol.h"

#include <cmath>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// Sends packets of kPacketSize from one router to another; what is no whole packet in an interval is left for the next.
class Demand
{
  public:
    Demand(Ptr<Node> source, Ptr<Node> target, const InetSocketAddress& end)
        : m_sink(target, end),
          m_socket(UdpTo(source, end))
    {
    }

    uint64_t offered = 0; ///< sent [byte]

    /// That came to its end [byte].
    uint64_t Delivered() const
    {
        return m_sink.payload + kUdpHeaders * m_sink.packets;
    }

    /// An interval begins, in which this is the rate [bit/s].
    void Begin(double rate)
    {
        while (m_left > 0) // of the very end of the last one, by rounding
        {
            SendOne();
        }
        m_begin = Simulator::Now().GetNanoSeconds();
        const double before = m_waiting;
        m_waiting += rate * 1e-9 * kSample / 8.0;
        m_left = static_cast<int64_t>(m_waiting / kPacketSize);
        m_waiting -= static_cast<double>(m_left) * kPacketSize;
        if (m_left > 0)
        {
            m_gap = 8e9 * kPacketSize / rate;
            m_at = m_gap - 8e9 * before / rate;
            Plan();
        }
    }

  private:
    void Plan()
    {
        const int64_t at = m_begin + std::llround(m_at);
        m_next = Simulator::Schedule(NanoSeconds(at) - Simulator::Now(), &Demand::Send, this);
        m_at += m_gap;
    }

    void Send()
    {
        SendOne();
        if (m_left > 0)
        {
            Plan();
        }
    }

    void SendOne()
    {
        m_next.Cancel();
        --m_left;
        offered += kPacketSize;
        m_socket->Send(Create<Packet>(kPacketSize - kUdpHeaders));
    }

    UdpSink m_sink;
    Ptr<Socket> m_socket;
    EventId m_next;
    int64_t m_begin = 0;
    int64_t m_left = 0;     ///< packets of this interval
    double m_waiting = 0.0; ///< less than a packet [byte]
    double m_gap = 0.0;     ///< [ns]
    double m_at = 0.0;      ///< of the next packet, after the beginning [ns]
};

/// Counts IP packets to an address: those that a node sends, and those that come to another.
class IpMeter
{
  public:
    IpMeter(Ptr<Node> source, Ptr<Node> target, Ipv4Address end)
        : m_end(end)
    {
        source->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("SendOutgoing",
                                                                        MakeCallback(&IpMeter::Offered, this));
        target->GetObject<Ipv4L3Protocol>()->TraceConnectWithoutContext("LocalDeliver",
                                                                        MakeCallback(&IpMeter::Delivered, this));
    }

    IpMeter(const IpMeter&) = delete;
    IpMeter& operator=(const IpMeter&) = delete;

    uint64_t offered = 0;   ///< with headers [byte]
    uint64_t delivered = 0; ///< with headers [byte]

  private:
    void Offered(const Ipv4Header& header, Ptr<const Packet>, uint32_t)
    {
        offered += Size(header);
    }

    void Delivered(const Ipv4Header& header, Ptr<const Packet>, uint32_t)
    {
        delivered += Size(header);
    }

    uint64_t Size(const Ipv4Header& header) const
    {
        return header.GetDestination() == m_end ? header.GetPayloadSize() + header.GetSerializedSize() : 0;
    }

    const Ipv4Address m_end;
};

} // namespace netctrl
