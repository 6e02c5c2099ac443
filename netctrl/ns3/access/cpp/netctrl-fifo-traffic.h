// What hosts send: premium packets, evenly spaced, and flows behind regulators; where packets end, and what hops do.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FIFO_TRAFFIC_H
#define NETCTRL_FIFO_TRAFFIC_H

#include "netctrl-access-laws.h"
#include "netctrl-lines.h"
#include "netctrl-regulator.h"
#include "netctrl-sockets.h"
#include "scenario.h"

#include "ns3/ppp-header.h"
#include "ns3/udp-header.h"

#include <cmath>
#include <cstring>
#include <utility>
#include <vector>

namespace netctrl
{

using namespace ns3;

constexpr uint16_t kPort = 5000;                  ///< of premium packets; flow f, from 0, has kPort + 1 + f
constexpr uint32_t kHeaders = 20 + 8 + kPppHeader; ///< IP, UDP and PPP [byte]
constexpr uint64_t kHostRate = 1000000000000U;    ///< of a host's line: a packet takes nanoseconds

/// At a time in seconds, to the nanosecond.
template <class... Arguments>
EventId
ScheduleAt(double time, Arguments&&... arguments)
{
    const int64_t at = std::max<int64_t>(std::llround(1e9 * time), Simulator::Now().GetNanoSeconds());
    return Simulator::Schedule(NanoSeconds(at) - Simulator::Now(), std::forward<Arguments>(arguments)...);
}

/// Sends a flow's packets when its regulator lets them through.
class FlowSource
{
  public:
    FlowSource(Ptr<Node> host, const InetSocketAddress& sink, std::vector<double> pauses)
        : m_socket(UdpTo(host, sink)),
          m_regulator(std::move(pauses), 8.0 * kSize, kSpacing)
    {
    }

    void Command(double time, double rate, int burst)
    {
        m_regulator.Command(time, rate, burst);
        m_event.Cancel();
        Plan();
    }

  private:
    void Plan()
    {
        if (m_regulator.Next() <= kSeconds)
        {
            m_event = ScheduleAt(m_regulator.Next(), &FlowSource::Send, this);
        }
    }

    void Send()
    {
        m_socket->Send(Create<Packet>(kSize - kHeaders));
        m_regulator.Release();
        Plan();
    }

    Ptr<Socket> m_socket;
    Regulator m_regulator;
    EventId m_event;
};

/// Sends premium packets that carry the time of their entrance into the first node.
class PremiumSource
{
  public:
    PremiumSource(Ptr<Node> host, const InetSocketAddress& sink, double phase)
        : m_socket(UdpTo(host, sink)),
          m_phase(phase)
    {
        Plan();
    }

  private:
    void Plan()
    {
        ScheduleAt(m_phase + static_cast<double>(m_sent) * kPremiumPeriod, &PremiumSource::Send, this);
    }

    void Send()
    {
        const Time line = DataRate(kHostRate).CalculateBytesTxTime(kPremiumSize);
        const int64_t entrance = (Simulator::Now() + line).GetNanoSeconds();
        std::vector<uint8_t> payload(kPremiumSize - kHeaders);
        std::memcpy(payload.data(), &entrance, sizeof entrance);
        m_socket->Send(Create<Packet>(payload.data(), static_cast<uint32_t>(payload.size())));
        ++m_sent;
        Plan();
    }

    Ptr<Socket> m_socket;
    double m_phase;
    int64_t m_sent = 0;
};

/// Where premium packets end, and their delays and jitters are measured.
class PremiumSink
{
  public:
    PremiumSink(Ptr<Node> node, const InetSocketAddress& end)
        : m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind(end);
        m_socket->SetRecvCallback(MakeCallback(&PremiumSink::Take, this));
    }

    /// A period ends.
    PremiumReading Read()
    {
        const PremiumReading reading = ReadPremium(m_measured, kBaseDelay, m_empty);
        std::fill(m_measured.begin() + kDelaySum, m_measured.end(), 0.0);
        return reading;
    }

  private:
    void Take(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            int64_t entrance = 0;
            packet->CopyData(reinterpret_cast<uint8_t*>(&entrance), sizeof entrance);
            Observe(m_measured, 1e-9 * static_cast<double>(Simulator::Now().GetNanoSeconds() - entrance), m_empty);
            m_empty = false;
        }
    }

    Ptr<Socket> m_socket;
    std::vector<double> m_measured = std::vector<double>(kMeasured + 1);
    bool m_empty = true; ///< since the beginning
};

/// Packets of a hop since the beginning. A packet that finds kLimit of them, the one being sent included, is lost; one that
/// has been sent at the very time at which another comes makes room for it, whichever of the two events is first.
class Hop
{
  public:
    struct Counters
    {
        int64_t arrived = 0;
        int64_t departed = 0;
        int64_t lostPremium = 0;
        int64_t lostRegulated = 0;
        int64_t lostCross = 0;
        double bits = 0.0; ///< that left
    };

    explicit Hop(Ptr<PointToPointNetDevice> device)
        : m_queue(device->GetQueue())
    {
        device->TraceConnectWithoutContext("MacTx", MakeCallback(&Hop::Arrive, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&Hop::Begin, this));
        device->TraceConnectWithoutContext("MacTxDrop", MakeCallback(&Hop::Drop, this));
        device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Hop::Depart, this));
    }

    int64_t Backlog() const
    {
        const int64_t lost = count.lostPremium + count.lostRegulated + count.lostCross;
        return count.arrived - count.departed - lost;
    }

    Counters count;

  private:
    /// A packet is about to enter the device's queue, where those wait that aren't being sent.
    void Arrive(Ptr<const Packet>)
    {
        ++count.arrived;
        const bool leaves = m_end == Simulator::Now();
        m_queue->SetMaxSize(QueueSize(QueueSizeUnit::PACKETS, leaves ? kLimit : kLimit - 1));
    }

    void Begin(Ptr<const Packet> packet)
    {
        m_end = Simulator::Now() + DataRate(kCapacity).CalculateBytesTxTime(packet->GetSize());
    }

    void Depart(Ptr<const Packet> packet)
    {
        ++count.departed;
        count.bits += 8.0 * packet->GetSize();
    }

    void Drop(Ptr<const Packet> packet)
    {
        Ptr<Packet> opened = packet->Copy();
        PppHeader ppp;
        Ipv4Header ip;
        UdpHeader udp;
        opened->RemoveHeader(ppp);
        opened->RemoveHeader(ip);
        opened->RemoveHeader(udp);
        const int kind = udp.GetDestinationPort() - kPort;
        int64_t& lost = kind == 0         ? count.lostPremium
                        : kind <= kFlows ? count.lostRegulated
                                         : count.lostCross;
        ++lost;
    }

    Ptr<Queue<Packet>> m_queue;
    Time m_end; ///< of the packet that is being sent
};

} // namespace netctrl

#endif // NETCTRL_FIFO_TRAFFIC_H
