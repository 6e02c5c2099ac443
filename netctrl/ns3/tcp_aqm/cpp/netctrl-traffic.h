// What sends and receives: bulk flows and web sessions, a TCP connection for each flow and object; and packets that
// nothing acknowledges.

#pragma once

#include "netctrl-files.h"
#include "netctrl-senders.h"
#include "netctrl-sockets.h"
#include "scenario.h"

#include "ns3/double.h"
#include "ns3/random-variable-stream.h"
#include "ns3/string.h"

#include <cstdio>
#include <functional>
#include <memory>
#include <unordered_map>

namespace netctrl
{

using namespace ns3;

constexpr uint16_t kPort = 5000;
constexpr uint32_t kUdpHeaders = 28; ///< IPv4 and UDP [byte]

/// A sample of the RTT, as FOLDER/rtts.bin has it.
struct RttSample
{
    int64_t group;
    int64_t time; ///< [ns]
    int64_t rtt;  ///< [ns]
};

/// Where the data of a group ends; counts payload, and knows which connection belongs to which transfer.
class Sink
{
  public:
    using Receiver = std::function<void(uint32_t)>;

    Sink(Ptr<Node> node, uint32_t address, const GroupRow& group)
        : end(Ipv4Address(address), kPort)
    {
        if (group.rate > 0.0)
        {
            m_datagrams = std::make_unique<UdpSink>(node, end);
            return;
        }
        m_listener = Listen(node, end, MakeCallback(&Sink::Accept, this));
        m_listener->SetAttribute("UseEcn", StringValue(group.ecn ? "On" : "Off"));
    }

    /// Payload, of packets without acknowledgements as of TCP [byte].
    uint64_t Received() const
    {
        return m_datagrams ? m_datagrams->packets * Segment() : m_received;
    }

    /// IP packets that came, of those that are watched [byte].
    uint64_t Arrived() const
    {
        return m_datagrams ? m_datagrams->packets * kPacketSize : m_arrived;
    }

    const InetSocketAddress end;
    double roundTrips = 0.0; ///< that its endless flows have measured, all together [s]
    uint64_t measured = 0;   ///< how many
    double newest = 0.0;     ///< RTTs of a demand's flows, the newest at each acknowledgement, all together [s]
    uint64_t answers = 0;    ///< these acknowledgements

    /// What arrives from this sender goes to `receiver` until Forget.
    void Expect(uint64_t sender, Receiver receiver)
    {
        m_receivers[sender] = std::move(receiver);
    }

    void Forget(uint64_t sender)
    {
        m_receivers.erase(sender);
    }

    /// `taken` is told when each of a group's packets left that carry the time.
    void Watch(std::function<void(int64_t)> taken)
    {
        m_datagrams->left = std::move(taken);
    }

    static uint64_t Sender(uint32_t address, uint16_t port)
    {
        return uint64_t{address} << 16 | port;
    }

  private:
    void Accept(Ptr<Socket> socket, const Address& from)
    {
        const InetSocketAddress peer = InetSocketAddress::ConvertFrom(from);
        const uint64_t sender = Sender(peer.GetIpv4().Get(), peer.GetPort());
        socket->SetRecvCallback(Callback<void, Ptr<Socket>>([this, sender](Ptr<Socket> it) { Read(it, sender); }));
        const Callback<void, Ptr<Socket>> close([](Ptr<Socket> it) { it->Close(); });
        socket->SetCloseCallbacks(close, MakeNullCallback<void, Ptr<Socket>>());
        if (kWatched)
        {
            socket->TraceConnectWithoutContext("Rx", MakeCallback(&Sink::Came, this));
        }
    }

    void Came(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        if (packet->GetSize() > 0)
        {
            m_arrived += packet->GetSize() + header.GetSerializedSize() + 20;
        }
    }

    void Read(Ptr<Socket> socket, uint64_t sender)
    {
        const uint32_t bytes = TakeAll(socket);
        m_received += bytes;
        const auto found = m_receivers.find(sender);
        if (bytes > 0 && found != m_receivers.end())
        {
            const Receiver receiver = found->second; // it may forget itself
            receiver(bytes);
        }
    }

    Ptr<Socket> m_listener;
    std::unique_ptr<UdpSink> m_datagrams;
    uint64_t m_received = 0; ///< payload [byte]
    uint64_t m_arrived = 0;  ///< with headers [byte]
    std::unordered_map<uint64_t, Receiver> m_receivers;
};

/// A host as transfers see it.
struct Host
{
    int group;
    Ptr<Node> node;
    uint32_t address;
    Sink* sink;
};

/// A TCP connection that sends `size` bytes, or without end until Stop. Tries again where a connection fails.
class Transfer
{
  public:
    static constexpr uint64_t kEndless = std::numeric_limits<uint64_t>::max();

    /// @param fillsBuffer whether endless data fills TCP's buffer; else TCP holds some windows, so that Stop acts soon,
    ///                    which can be too few for a moment after losses
    /// @param rtts where samples of the RTT are kept; null: nowhere
    Transfer(const Host& host,
             uint64_t size,
             std::function<void()> done,
             bool fillsBuffer = false,
             std::FILE* rtts = nullptr)
        : m_host(host),
          m_group(kGroups[host.group]),
          m_size(size),
          m_done(std::move(done)),
          m_fillsBuffer(fillsBuffer),
          m_rtts(rtts)
    {
        Open();
    }

    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    ~Transfer()
    {
        m_again.Cancel();
        Detach();
    }

    /// No more data; what TCP holds already is still sent, about two windows.
    void Stop()
    {
        m_again.Cancel();
        if (m_unsent > 0 && m_socket)
        {
            m_unsent = 0;
            m_socket->Close();
        }
    }

    /// In force, of whole packets [bit/s]; 0: nothing paces them.
    double Rate() const
    {
        return m_paced ? m_paced->Rate() : m_pacing * PacketsOfPayload();
    }

    std::array<int64_t, 5> Events() const
    {
        return m_paced ? m_paced->Events() : std::array<int64_t, 5>{};
    }

    uint32_t window = 0; ///< of payload, once it has changed [byte]
    RoundTrips trips;

  private:
    void Open()
    {
        m_unsent = m_size;
        m_arrived = 0;
        window = 0;
        trips = {};
        m_socket = TcpSender(m_host.node, MakeCallback(&Transfer::Fill, this));
        const Ptr<TcpCongestionOps> control = MakeControl(m_group, trips);
        m_paced = dynamic_cast<const PacingRate*>(PeekPointer(control));
        DynamicCast<TcpSocketBase>(m_socket)->SetCongestionControlAlgorithm(control);
        m_socket->SetAttribute("UseEcn", StringValue(m_group.ecn ? "On" : "Off"));
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Transfer::Fill, this), MakeCallback(&Transfer::Fail, this));
        m_socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(), MakeCallback(&Transfer::Fail, this));
        if (m_size == kEndless)
        {
            m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Transfer::NewWindow, this));
            m_socket->TraceConnectWithoutContext("RTT", MakeCallback(&Transfer::NewRoundTrip, this));
        }
        if (kWatched || m_group.demand >= 0 || !KnownToNs3(m_group.sender))
        {
            m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Transfer::Sent, this));
            m_socket->TraceConnectWithoutContext("Rx", MakeCallback(&Transfer::Acknowledged, this));
        }
        if (m_group.sender == "ns3::TcpBbr")
        {
            m_socket->TraceConnectWithoutContext("PacingRate", MakeCallback(&Transfer::NewPacing, this));
        }
        Address local;
        m_socket->GetSockName(local);
        m_sender = Sink::Sender(m_host.address, InetSocketAddress::ConvertFrom(local).GetPort());
        m_host.sink->Expect(m_sender, [this](uint32_t bytes) { Arrived(bytes); });
        m_socket->Connect(m_host.sink->end);
    }

    /// Let go of the connection, which may still have to say goodbye.
    void Detach()
    {
        if (!m_socket)
        {
            return;
        }
        m_host.sink->Forget(m_sender);
        const auto nobody = MakeNullCallback<void, Ptr<Socket>>();
        m_socket->SetConnectCallback(nobody, nobody);
        m_socket->SetCloseCallbacks(nobody, nobody);
        m_socket->SetSendCallback(MakeNullCallback<void, Ptr<Socket>, uint32_t>());
        if (m_size == kEndless)
        {
            m_socket->TraceDisconnectWithoutContext("CongestionWindow", MakeCallback(&Transfer::NewWindow, this));
            m_socket->TraceDisconnectWithoutContext("RTT", MakeCallback(&Transfer::NewRoundTrip, this));
        }
        m_socket = nullptr;
    }

    void Fail(Ptr<Socket>)
    {
        if (m_size != kEndless || m_unsent > 0)
        {
            m_again.Cancel();
            m_again = Simulator::ScheduleNow(&Transfer::Again, this); // not inside the socket's own call
        }
    }

    void Again()
    {
        Detach();
        Open();
    }

    void NewWindow(uint32_t, uint32_t now)
    {
        window = now;
    }

    void NewPacing(DataRate, DataRate rate)
    {
        m_pacing = static_cast<double>(rate.GetBitRate());
    }

    void Sent(Ptr<const Packet> packet, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        trips.Sent(packet->GetSize(), header);
    }

    void Acknowledged(Ptr<const Packet>, const TcpHeader& header, Ptr<const TcpSocketBase>)
    {
        trips.Received(header);
        if (m_group.demand >= 0 && m_newest.IsStrictlyPositive())
        {
            m_host.sink->newest += m_newest.GetSeconds();
            ++m_host.sink->answers;
        }
        if (m_rtts && trips.IsFresh())
        {
            const RttSample sample{m_host.group, Simulator::Now().GetNanoSeconds(), trips.Newest().GetNanoSeconds()};
            std::fwrite(&sample, sizeof sample, 1, m_rtts);
        }
    }

    /// ns-3 tells of those that differ from the one before.
    void NewRoundTrip(Time, Time trip)
    {
        m_newest = trip;
        m_host.sink->roundTrips += trip.GetSeconds();
        m_host.sink->measured++;
    }

    /// Hand TCP what it has room for.
    void Fill(Ptr<Socket> socket)
    {
        if (m_unsent == 0)
        {
            return;
        }
        uint64_t room = socket->GetTxAvailable();
        if (m_size == kEndless && !m_fillsBuffer)
        {
            const uint64_t held = kSocketBuffer - room;
            const uint64_t told = window > 0 ? window : kInitialWindow * Segment();
            const uint64_t wanted = 4 * told + 16 * Segment(); // in fast recovery two windows are held
            room = std::min(room, wanted > held ? wanted - held : 0);
        }
        if (m_size == kEndless)
        {
            room -= room % Segment(); // no small packets
        }
        const auto size = static_cast<uint32_t>(std::min(room, m_unsent));
        if (size > 0 && socket->Send(Create<Packet>(size)) == static_cast<int>(size) && m_size != kEndless)
        {
            m_unsent -= size;
            if (m_unsent == 0)
            {
                socket->Close();
            }
        }
    }

    void Arrived(uint32_t bytes)
    {
        m_arrived += bytes;
        if (m_arrived == m_size && m_done)
        {
            m_again.Cancel();
            m_done();
        }
    }

    const Host& m_host;
    const GroupRow& m_group;
    const uint64_t m_size;
    const std::function<void()> m_done;
    const bool m_fillsBuffer;
    std::FILE* m_rtts;
    const PacingRate* m_paced = nullptr; ///< the socket's control, where it has a rate
    double m_pacing = 0.0;               ///< of ns-3's BBR, payload [bit/s]
    uint64_t m_unsent = 0;
    uint64_t m_arrived = 0;
    uint64_t m_sender = 0;
    Ptr<Socket> m_socket;
    EventId m_again;
    Time m_newest; ///< RTT
};

/// A bulk flow, from its start to its stop.
class BulkFlow
{
  public:
    BulkFlow(int64_t at, const FlowRow& flow, const Host& host, std::FILE* rtts)
        : start(at),
          group(host.group)
    {
        const bool fillsBuffer = (kWatched || kGroups[group].demand >= 0) && flow.stop == kForever;
        Simulator::Schedule(NanoSeconds(start), [this, &host, fillsBuffer, rtts] {
            const std::function<void()> nothing;
            transfer = std::make_unique<Transfer>(host, Transfer::kEndless, nothing, fillsBuffer, rtts);
        });
        if (flow.stop < kDuration)
        {
            Simulator::Schedule(NanoSeconds(flow.stop), [this] { transfer->Stop(); });
        }
    }

    const int64_t start; ///< [ns]
    const int group;
    std::unique_ptr<Transfer> transfer; ///< null until it starts
};

/// Packets that nothing acknowledges: at random times (Poisson), or evenly spaced from a random time on.
class Stream
{
  public:
    Stream(int64_t start, const FlowRow& flow, const Host& host)
        : m_stop(flow.stop),
          m_even(kGroups[host.group].even),
          m_gap(8e9 * kPacketSize / kGroups[host.group].rate),
          m_socket(UdpTo(host.node, host.sink->end)),
          m_pause(CreateObject<ExponentialRandomVariable>()),
          m_phase(m_even ? CreateObject<UniformRandomVariable>() : nullptr)
    {
        m_pause->SetAttribute("Mean", DoubleValue(m_gap));
        Simulator::Schedule(NanoSeconds(start), [this] { Next(m_even ? m_gap * m_phase->GetValue() : Pause()); });
    }

  private:
    double Pause()
    {
        return m_even ? m_gap : m_pause->GetValue();
    }

    void Next(double pause)
    {
        Simulator::Schedule(NanoSeconds(static_cast<int64_t>(pause)), &Stream::Send, this);
    }

    void Send()
    {
        if (Simulator::Now().GetNanoSeconds() < m_stop)
        {
            m_socket->Send(Create<Packet>(kPacketSize - kUdpHeaders));
            Next(Pause());
        }
    }

    const int64_t m_stop; ///< [ns]
    const bool m_even;
    const double m_gap; ///< mean [ns]
    Ptr<Socket> m_socket;
    Ptr<ExponentialRandomVariable> m_pause;
    Ptr<UniformRandomVariable> m_phase;
};

/// Loads a page of objects at once, thinks, and loads the next; thinks first. Its random numbers are its own, so that
/// it asks for the same objects whatever the queues do.
class WebSession
{
  public:
    WebSession(const FlowRow& flow, const Host& host, int64_t stream, Table& responses)
        : m_host(host),
          m_web(kGroups[host.group].web),
          m_stop(flow.stop),
          m_responses(responses),
          m_random(CreateObject<UniformRandomVariable>())
    {
        m_random->SetStream(stream);
        Simulator::Schedule(NanoSeconds(flow.start), &WebSession::Think, this);
    }

  private:
    struct Object
    {
        uint64_t size;
        Time asked;
        std::unique_ptr<Transfer> transfer;
    };

    /// Uniform in (0, 1].
    double Chance()
    {
        return 1.0 - m_random->GetValue();
    }

    void Think()
    {
        m_page.clear();
        Simulator::Schedule(Seconds(-m_web.thinkTime * std::log(Chance())), &WebSession::Load, this);
    }

    void Load()
    {
        if (Simulator::Now().GetNanoSeconds() >= m_stop)
        {
            return;
        }
        m_missing = m_web.objectsPerPage;
        m_page.resize(m_missing);
        for (Object& object : m_page)
        {
            const double pareto = m_web.paretoScale * std::pow(Chance(), -1.0 / m_web.paretoShape);
            object.size = static_cast<uint64_t>(std::ceil(std::min(pareto, m_web.maxObject)));
            object.asked = Simulator::Now();
            object.transfer = std::make_unique<Transfer>(m_host, object.size, [this, &object] { Done(object); });
        }
    }

    void Done(const Object& object)
    {
        m_responses.Put(m_host.group);
        m_responses.Put(object.asked.GetSeconds(), "%.9f");
        m_responses.Put(object.size);
        m_responses.Put((Simulator::Now() - object.asked).GetSeconds(), "%.9f");
        m_responses.EndRow();
        if (--m_missing == 0)
        {
            Simulator::ScheduleNow(&WebSession::Think, this); // not inside a transfer that it ends
        }
    }

    const Host& m_host;
    const WebSettings& m_web;
    const int64_t m_stop;
    Table& m_responses;
    Ptr<UniformRandomVariable> m_random;
    std::vector<Object> m_page;
    int m_missing = 0;
};

} // namespace netctrl
