// Hosts of the fabric: senders with windows [byte] and rates over UDP, and receivers.
//
// A host's port sends acknowledgements first, then one packet of each flow that may send, in turn. Loss is recovered as
// in RDMA: a receiver takes packets in order only, and the sender goes back to the first missing byte.

#pragma once

#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-recorder.h"
#include "netctrl-sockets.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <vector>

namespace netctrl::fabric
{

using namespace ns3;

constexpr uint32_t kOverhead = 30; ///< PPP, IPv4 and UDP [byte]
constexpr uint16_t kUdpPort = 9;
constexpr double kLongestGap = 60e9; ///< between packets of a flow [ns]

/// A flow at its sender.
struct Sender
{
    explicit Sender(const FlowRow& flow)
        : flow(flow),
          kind(kPaths[flow.kind]),
          law(kFlowLaw->Begin(kind))
    {
    }

    /// Less than a window is under way, and there is more.
    bool MaySend() const
    {
        return next < flow.size && static_cast<double>(next - acknowledged) < law->Window();
    }

    const FlowRow& flow;
    const PathRow& kind;
    const std::unique_ptr<FlowLaw> law;
    int64_t next = 0; ///< first byte that wasn't sent
    int64_t acknowledged = 0;
    int64_t farthest = 0; ///< first byte that was never sent
    int64_t progress = 0; ///< when something was last acknowledged
    int64_t pace = 0;     ///< when the next packet may leave
    bool ready = false;   ///< among those that wait for their turn
    bool waits = false;   ///< for its pace
    EventId timer;
};

/// A flow at its receiver.
struct Receiver
{
    int64_t expected = 0; ///< first byte that didn't come
    bool told = false;    ///< the sender knows that it is missing
    int64_t notified = -kCentre.notification; ///< when the sender was last notified of a mark
};

class Host;

/// What all hosts have in common.
struct Traffic
{
    const std::vector<FlowRow>& flows;
    Recorder& recorder;
    std::vector<Receiver> receivers;
    std::vector<std::unique_ptr<Sender>> senders; ///< null: not yet, or done
    std::vector<std::unique_ptr<Host>> hosts;
    std::vector<Ipv4Address> addresses; ///< of hosts
};

class Host
{
  public:
    Host(int number, const Ptr<Node>& node, const Port& port, Traffic& traffic)
        : m_number(number),
          m_traffic(traffic),
          m_rate(static_cast<double>(port.row.rate)),
          m_socket(Socket::CreateSocket(node, UdpSocketFactory::GetTypeId()))
    {
        m_socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), kUdpPort));
        m_socket->SetRecvCallback(MakeCallback(&Host::Receive, this));
        port.device->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&Host::Free, this));
    }

    void Start(uint32_t number)
    {
        auto& sender = m_traffic.senders[number];
        sender = std::make_unique<Sender>(m_traffic.flows[number]);
        sender->progress = Now();
        Arm(number);
        Offer(number);
    }

    int64_t WaitingAcks() const
    {
        return static_cast<int64_t>(m_acks.size());
    }

  private:
    /// The wire is free; the device first has to end what it does.
    void Free(Ptr<const Packet>)
    {
        m_busy = false;
        Simulator::ScheduleNow(&Host::Serve, this);
    }

    /// A flow may send perhaps: now, or when its pace lets it.
    void Offer(uint32_t number)
    {
        Sender& sender = *m_traffic.senders[number];
        if (sender.ready || !sender.MaySend())
        {
            return;
        }
        if (sender.pace > std::max(Now(), m_free))
        {
            if (!sender.waits)
            {
                sender.waits = true;
                Simulator::Schedule(NanoSeconds(sender.pace - Now()), &Host::Wake, this, number);
            }
            return;
        }
        sender.ready = true;
        m_ready.push_back(number);
        Serve();
    }

    void Wake(uint32_t number)
    {
        if (Sender* sender = m_traffic.senders[number].get())
        {
            sender->waits = false;
            Offer(number);
        }
    }

    void Serve()
    {
        if (m_busy)
        {
            return;
        }
        if (!m_acks.empty())
        {
            const Letter answer = m_acks.front();
            m_acks.pop_front();
            Ptr<Packet> packet = Create<Packet>(static_cast<uint32_t>(kCentre.ack) - kOverhead);
            Send(packet, answer, m_traffic.flows[answer.flow].source);
            return;
        }
        while (!m_ready.empty() && !m_busy)
        {
            const uint32_t number = m_ready.front();
            m_ready.pop_front();
            Sender* sender = m_traffic.senders[number].get();
            if (sender)
            {
                sender->ready = false;
                if (sender->MaySend())
                {
                    SendNext(number, *sender);
                }
            }
        }
    }

    void SendNext(uint32_t number, Sender& sender)
    {
        const int64_t bytes = std::min(kCentre.payload, sender.flow.size - sender.next);
        const Letter letter{number, false, false, false, false, sender.next, bytes, Now(), 0, {}};
        Counters& counters = m_traffic.recorder.counters;
        counters.again += sender.next < sender.farthest;
        sender.next += bytes;
        sender.farthest = std::max(sender.farthest, sender.next);
        const int64_t size = bytes + kCentre.overhead;
        counters.Made(size);
        sender.law->Send(static_cast<double>(Now()), static_cast<double>(bytes), sender.kind);
        if (sender.law->Rate() < sender.kind.lineRate) // the wire itself keeps line rate
        {
            const double gap = static_cast<double>(size) * 8e9 / sender.law->Rate();
            sender.pace = Now() + static_cast<int64_t>(std::min(gap, kLongestGap));
        }
        Send(Create<Packet>(static_cast<uint32_t>(size - kOverhead)), letter, sender.flow.target);
        Offer(number);
    }

    void Send(const Ptr<Packet>& packet, const Letter& letter, int64_t to)
    {
        packet->AddPacketTag(LetterTag(letter));
        m_busy = true;
        m_free = Now() + std::llround(static_cast<double>(packet->GetSize() + kOverhead) * 8e9 / m_rate);
        if (m_socket->SendTo(packet, 0, InetSocketAddress(m_traffic.addresses[to], kUdpPort)) < 0)
        {
            std::fprintf(stderr, "host %d can't send: socket error %d\n", m_number, m_socket->GetErrno());
            std::exit(1);
        }
    }

    void Receive(Ptr<Socket> socket)
    {
        while (Ptr<Packet> packet = socket->Recv())
        {
            LetterTag letter;
            packet->PeekPacketTag(letter);
            m_traffic.recorder.counters.Came(packet->GetSize() + kOverhead);
            if (letter.content.ack)
            {
                Acknowledge(letter.content);
            }
            else
            {
                Deliver(packet->GetSize() + kOverhead, letter.content);
            }
        }
    }

    /// Data came, of a size on the wire: its acknowledgement takes along what it carries.
    void Deliver(int64_t size, const Letter& letter)
    {
        const FlowRow& flow = m_traffic.flows[letter.flow];
        Receiver& receiver = m_traffic.receivers[letter.flow];
        Letter answer = letter;
        answer.ack = true;
        if (kCentre.notification > 0 && letter.marked && Now() - receiver.notified >= kCentre.notification)
        {
            receiver.notified = Now();
            answer.notified = true;
        }
        if (letter.sequence == receiver.expected)
        {
            receiver.expected += letter.bytes;
            receiver.told = false;
            if (receiver.expected == flow.size)
            {
                m_traffic.recorder.Finished(letter.flow, Now());
            }
            m_traffic.recorder.Carried(flow, size, Now());
        }
        else if (letter.sequence > receiver.expected && !receiver.told)
        {
            receiver.told = answer.missing = true;
        }
        answer.bytes = receiver.expected;
        m_traffic.recorder.counters.Made(kCentre.ack);
        m_acks.push_back(answer);
        Serve();
    }

    void Acknowledge(const Letter& letter)
    {
        ++m_traffic.recorder.counters.acks;
        Sender* sender = m_traffic.senders[letter.flow].get();
        if (!sender)
        {
            return;
        }
        const int64_t newly = std::max<int64_t>(letter.bytes - sender->acknowledged, 0);
        if (newly > 0)
        {
            sender->acknowledged = letter.bytes;
            sender->next = std::max(sender->next, sender->acknowledged);
            sender->progress = Now();
        }
        if (letter.missing)
        {
            sender->next = sender->acknowledged;
        }
        const netctrl::Acknowledged seen{static_cast<double>(Now()),
                                         static_cast<double>(sender->acknowledged),
                                         static_cast<double>(sender->next),
                                         static_cast<double>(newly),
                                         static_cast<double>(Now() - letter.sent),
                                         letter.marked,
                                         letter.notified,
                                         letter.missing,
                                         letter.hops};
        sender->law->Acknowledge(seen, sender->kind);
        m_traffic.recorder.Acknowledged(sender->flow, letter, *sender->law);
        if (sender->acknowledged == sender->flow.size)
        {
            sender->timer.Cancel();
            m_traffic.senders[letter.flow].reset();
        }
        else
        {
            Offer(letter.flow);
        }
    }

    void Arm(uint32_t number)
    {
        m_traffic.senders[number]->timer =
            Simulator::Schedule(NanoSeconds(kCentre.retransmission), &Host::TimeOut, this, number);
    }

    /// Without progress since, all is sent again that isn't acknowledged.
    void TimeOut(uint32_t number)
    {
        Sender& sender = *m_traffic.senders[number];
        if (sender.progress + kCentre.retransmission <= Now() && sender.next > sender.acknowledged)
        {
            sender.next = sender.acknowledged;
            sender.progress = Now();
        }
        Arm(number);
        Offer(number);
    }

    const int m_number;
    Traffic& m_traffic;
    const double m_rate; ///< of its wire [bit/s]
    Ptr<Socket> m_socket;
    std::deque<Letter> m_acks;
    std::deque<uint32_t> m_ready; ///< flows that wait for their turn
    bool m_busy = false;          ///< the wire
    int64_t m_free = 0;           ///< when it is free again
};

} // namespace netctrl::fabric
