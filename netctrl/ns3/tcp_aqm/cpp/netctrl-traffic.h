// What sends and receives: bulk flows and web sessions, a TCP connection for each flow and object.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_TRAFFIC_H
#define NETCTRL_TRAFFIC_H

#include "netctrl-files.h"
#include "netctrl-sockets.h"
#include "netctrl-tcp-defaults.h"
#include "scenario.h"

#include "ns3/random-variable-stream.h"
#include "ns3/string.h"

#include <functional>
#include <memory>
#include <unordered_map>

namespace netctrl
{

using namespace ns3;

constexpr uint16_t kPort = 5000;

/// Where the data of a group ends; counts payload, and knows which connection belongs to which transfer.
class Sink
{
  public:
    using Receiver = std::function<void(uint32_t)>;

    Sink(Ptr<Node> node, uint32_t address, bool ecn)
        : end(Ipv4Address(address), kPort),
          m_listener(Listen(node, end, MakeCallback(&Sink::Accept, this)))
    {
        m_listener->SetAttribute("UseEcn", StringValue(ecn ? "On" : "Off"));
    }

    const InetSocketAddress end;
    uint64_t received = 0; ///< payload [byte]
    double roundTrips = 0.0; ///< that its endless flows have measured, all together [s]
    uint64_t measured = 0;   ///< how many

    /// What arrives from this sender goes to `receiver` until Forget.
    void Expect(uint64_t sender, Receiver receiver)
    {
        m_receivers[sender] = std::move(receiver);
    }

    void Forget(uint64_t sender)
    {
        m_receivers.erase(sender);
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
    }

    void Read(Ptr<Socket> socket, uint64_t sender)
    {
        const uint32_t bytes = TakeAll(socket);
        received += bytes;
        const auto found = m_receivers.find(sender);
        if (bytes > 0 && found != m_receivers.end())
        {
            const Receiver receiver = found->second; // it may forget itself
            receiver(bytes);
        }
    }

    Ptr<Socket> m_listener;
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

    Transfer(const Host& host, uint64_t size, std::function<void()> done = {})
        : m_host(host),
          m_size(size),
          m_done(std::move(done))
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

  private:
    void Open()
    {
        m_unsent = m_size;
        m_arrived = 0;
        m_window = kInitialWindow * Segment();
        m_socket = TcpSender(m_host.node, MakeCallback(&Transfer::Fill, this));
        m_socket->SetAttribute("UseEcn", StringValue(kGroups[m_host.group].ecn ? "On" : "Off"));
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Transfer::Fill, this), MakeCallback(&Transfer::Fail, this));
        m_socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(), MakeCallback(&Transfer::Fail, this));
        if (m_size == kEndless)
        {
            m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Transfer::NewWindow, this));
            m_socket->TraceConnectWithoutContext("RTT", MakeCallback(&Transfer::NewRoundTrip, this));
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

    void NewWindow(uint32_t, uint32_t window)
    {
        m_window = window;
    }

    /// ns-3 tells of those that differ from the one before.
    void NewRoundTrip(Time, Time trip)
    {
        m_host.sink->roundTrips += trip.GetSeconds();
        m_host.sink->measured++;
    }

    /// Hand TCP what it has room for. Of endless data no more than some windows, so that Stop acts soon.
    void Fill(Ptr<Socket> socket)
    {
        if (m_unsent == 0)
        {
            return;
        }
        uint64_t room = socket->GetTxAvailable();
        if (m_size == kEndless)
        {
            const uint64_t held = kSocketBuffer - room;
            const uint64_t wanted = 4 * uint64_t{m_window} + 16 * Segment(); // in fast recovery two windows are held
            room = std::min(room, wanted > held ? wanted - held : 0);
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
    const uint64_t m_size;
    const std::function<void()> m_done;
    uint64_t m_unsent = 0;
    uint64_t m_arrived = 0;
    uint32_t m_window = 0;
    uint64_t m_sender = 0;
    Ptr<Socket> m_socket;
    EventId m_again;
};

/// A bulk flow, from its start to its stop.
class BulkFlow
{
  public:
    BulkFlow(const FlowRow& flow, const Host& host)
    {
        Simulator::Schedule(NanoSeconds(flow.start), [this, &host] {
            m_transfer = std::make_unique<Transfer>(host, Transfer::kEndless);
        });
        if (flow.stop < kDuration)
        {
            Simulator::Schedule(NanoSeconds(flow.stop), [this] { m_transfer->Stop(); });
        }
    }

  private:
    std::unique_ptr<Transfer> m_transfer;
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

#endif // NETCTRL_TRAFFIC_H
