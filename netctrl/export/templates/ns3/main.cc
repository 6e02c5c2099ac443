// Runs the scenario of scenario.h with the queues of gains.h on stock ns-3.
//
// Usage: scenario FOLDER [RUN]. Compiles against ns-3.37 and ns-3.44.
//
// Each link of the scenario has a channel of its own. Forward it carries the link's queue; its other direction is idle
// and carries the acknowledgements of groups that name no links for them. Hosts of one group differ in their
// round-trip time, which the delay of their access line makes up.
//
// Fixed: netctrl copies this file as it is.

#include "gains.h"
#include "netctrl-queue-discs.h"
#include "netctrl-tables.h"
#include "scenario.h"

#include "ns3/boolean.h"
#include "ns3/codel-queue-disc.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/fifo-queue-disc.h"
#include "ns3/inet-socket-address.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/node-container.h"
#include "ns3/pie-queue-disc.h"
#include "ns3/point-to-point-channel.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/point-to-point-net-device.h"
#include "ns3/red-queue-disc.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/string.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-prr-recovery.h"
#include "ns3/tcp-socket-base.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/uinteger.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <sys/resource.h>
#include <unordered_map>

using namespace ns3;

namespace netctrl
{

constexpr uint16_t kPort = 5000;
constexpr uint32_t kSegment = kPacketSize - 40; // IP and TCP without options
constexpr uint32_t kInitialWindow = 10;         // [segment], RFC 6928
constexpr uint32_t kPppHeader = 2;   // what a point-to-point device adds
constexpr int kMaxHosts = 64;        // of a group: 64 subnets /30 fill its /24
constexpr double kAccessSpeed = 10.0; // of access lines, in capacities of the fastest link
constexpr double kLeastAccess = 1e9;  // [bit/s]

// ---------------------------------------------------------------------------------------------------------------------
// Network. Group g's senders are in 10.x.y.0/24 with x.y = g, a subnet /30 each; its sink is in 11.x.y.0/30, the
// channel of link k in 12.x.y.0/30. One route a group and router is then enough in each direction.

uint32_t
Subnet(uint32_t kind, int number, int host = 0)
{
    return kind << 24 | static_cast<uint32_t>(number) << 8 | static_cast<uint32_t>(host) << 2;
}

const Ipv4Mask kNarrow("/30");
const Ipv4Mask kWide("/24");

uint32_t
AddAddress(Ptr<NetDevice> device, uint32_t address)
{
    // By hand: Ipv4AddressHelper would install a FqCoDel on each device that has no queue disc.
    Ptr<Ipv4> ipv4 = device->GetNode()->GetObject<Ipv4>();
    const uint32_t interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), kNarrow));
    ipv4->SetMetric(interface, 1);
    ipv4->SetUp(interface);
    return interface;
}

Ptr<Ipv4StaticRouting>
Routes(Ptr<Node> node)
{
    return Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>());
}

/// The end of a line at a node.
struct End
{
    Ptr<PointToPointNetDevice> device;
    uint32_t interface;
    uint32_t address;

    void Route(uint32_t network, Ipv4Mask mask) const
    {
        Routes(device->GetNode())->AddNetworkRouteTo(Ipv4Address(network), mask, interface);
    }
};

/// A line with two ends; `near` has the lower address.
struct Line
{
    End near;
    End far;
    Ptr<PointToPointChannel> channel;
};

/// The rate of a device whose full packets leave as if there were no PPP header.
DataRate
DeviceRate(uint64_t capacity)
{
    const double full = kPacketSize;
    return DataRate(static_cast<uint64_t>(std::llround(capacity * ((full + kPppHeader) / full))));
}

Line
Connect(Ptr<Node> near, Ptr<Node> far, uint32_t subnet, DataRate rate, int64_t delay, const char* nearQueue)
{
    PointToPointHelper helper;
    helper.SetDeviceAttribute("DataRate", DataRateValue(rate));
    helper.SetDeviceAttribute("Mtu", UintegerValue(std::max<uint32_t>(kPacketSize, 1500)));
    helper.SetChannelAttribute("Delay", TimeValue(NanoSeconds(delay)));
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue("1000000p")); // no loss but at the links' queues
    const NetDeviceContainer devices = helper.Install(near, far);
    auto one = DynamicCast<PointToPointNetDevice>(devices.Get(0));
    auto two = DynamicCast<PointToPointNetDevice>(devices.Get(1));
    one->GetQueue()->SetMaxSize(QueueSize(nearQueue));
    return {{one, AddAddress(one, subnet + 1), subnet + 1},
            {two, AddAddress(two, subnet + 2), subnet + 2},
            DynamicCast<PointToPointChannel>(one->GetChannel())};
}

double
AccessRate()
{
    double fastest = kLeastAccess / kAccessSpeed;
    for (const LinkRow& link : kLinks)
    {
        fastest = std::max(fastest, static_cast<double>(link.capacity));
    }
    return kAccessSpeed * fastest;
}

// ---------------------------------------------------------------------------------------------------------------------
// Queues.

/// A queue disc, with what is its own to say: its probability, or which of its packets its law chose.
struct LinkQueue
{
    Ptr<QueueDisc> disc;
    Ptr<LawQueueDisc> law;         ///< null: one of ns-3's own
    bool samplesProbability;       ///< else the part of the packets that the law chose is written
    const char* lawDrop = nullptr; ///< reasons with which the law drops; null: none
    const char* hardDrop = nullptr;
};

/// A queue disc of ns-3's own that marks.
template <class Disc>
Ptr<Disc>
Marking()
{
    Ptr<Disc> disc = CreateObject<Disc>();
    disc->SetAttribute("UseEcn", BooleanValue(true));
    return disc;
}

LinkQueue
MakeQueue(const FifoSettings&, const LinkRow&)
{
    return {CreateObject<FifoQueueDisc>(), nullptr, false};
}

template <class Law>
LinkQueue
MakeQueue(const Law& law, const LinkRow&)
{
    auto disc = CreateObject<EpochQueueDisc<Law>>();
    disc->SetLaw(law);
    return {disc, disc, true};
}

LinkQueue
MakeQueue(const AvqLaw& law, const LinkRow&)
{
    auto disc = CreateObject<AvqQueueDisc>();
    disc->SetLaw(law);
    return {disc, disc, false, LawQueueDisc::LAW_DROP};
}

LinkQueue
MakeQueue(const RedSettings& red, const LinkRow& link)
{
    auto disc = Marking<RedQueueDisc>();
    disc->SetAttribute("Gentle", BooleanValue(true));
    disc->SetAttribute("MeanPktSize", UintegerValue(kPacketSize));
    disc->SetAttribute("LinkBandwidth", DataRateValue(DataRate(link.capacity))); // for its idle time
    disc->SetAttribute("MinTh", DoubleValue(red.minThreshold));                  // in the unit of MaxSize: bytes
    disc->SetAttribute("MaxTh", DoubleValue(red.maxThreshold));
    disc->SetAttribute("LInterm", DoubleValue(1.0 / red.maxProbability));
    disc->SetAttribute("QW", DoubleValue(red.weight));
    return {disc, nullptr, false, RedQueueDisc::UNFORCED_DROP, RedQueueDisc::FORCED_DROP};
}

LinkQueue
MakeQueue(const PieSettings& pie, const LinkRow&)
{
    auto disc = Marking<PieQueueDisc>();
    disc->SetAttribute("MeanPktSize", UintegerValue(kPacketSize));
    disc->SetAttribute("QueueDelayReference", TimeValue(NanoSeconds(pie.target)));
    disc->SetAttribute("Tupdate", TimeValue(NanoSeconds(pie.update)));
    disc->SetAttribute("A", DoubleValue(pie.alpha));
    disc->SetAttribute("B", DoubleValue(pie.beta));
    disc->SetAttribute("MaxBurstAllowance", TimeValue(NanoSeconds(pie.burst)));
    disc->SetAttribute("MarkEcnThreshold", DoubleValue(0.1)); // RFC 8033, Section 5.1: above it, drop
    return {disc, nullptr, false, PieQueueDisc::UNFORCED_DROP};
}

LinkQueue
MakeQueue(const CodelSettings& codel, const LinkRow&)
{
    auto disc = Marking<CoDelQueueDisc>();
    disc->SetAttribute("MinBytes", UintegerValue(kPacketSize));
    disc->SetAttribute("Target", TimeValue(NanoSeconds(codel.target)));
    disc->SetAttribute("Interval", TimeValue(NanoSeconds(codel.interval)));
    return {disc, nullptr, false, CoDelQueueDisc::TARGET_EXCEEDED_DROP};
}

LinkQueue
InstallQueue(const QueueSettings& settings, const LinkRow& link, Ptr<NetDevice> device)
{
    LinkQueue queue = std::visit([&](const auto& kind) { return MakeQueue(kind, link); }, settings);
    queue.disc->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, link.buffer));
    if (queue.law)
    {
        queue.law->SetCapacity(link.capacity);
    }
    device->GetNode()->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(device, queue.disc);
    return queue;
}

// ---------------------------------------------------------------------------------------------------------------------
// Transfers: one TCP connection each.

/// Where the data of a group ends; counts payload, and knows which connection belongs to which transfer.
class Sink
{
  public:
    using Receiver = std::function<void(uint32_t)>;

    void Listen(Ptr<Node> node, uint32_t address, bool ecn)
    {
        m_address = address;
        m_listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_listener->SetAttribute("UseEcn", StringValue(ecn ? "On" : "Off"));
        m_listener->Bind(InetSocketAddress(Ipv4Address(address), kPort));
        m_listener->Listen();
        m_listener->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                      MakeCallback(&Sink::Accept, this));
    }

    InetSocketAddress Address4() const
    {
        return InetSocketAddress(Ipv4Address(m_address), kPort);
    }

    /// What arrives from this sender goes to `receiver` until Forget.
    void Expect(uint64_t sender, Receiver receiver)
    {
        m_receivers[sender] = std::move(receiver);
    }

    void Forget(uint64_t sender)
    {
        m_receivers.erase(sender);
    }

    uint64_t Received() const
    {
        return m_received;
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
        uint32_t bytes = 0;
        while (Ptr<Packet> packet = socket->Recv())
        {
            if (packet->GetSize() == 0) // the end of the connection
            {
                break;
            }
            bytes += packet->GetSize();
        }
        m_received += bytes;
        const auto found = m_receivers.find(sender);
        if (bytes > 0 && found != m_receivers.end())
        {
            const Receiver receiver = found->second; // it may forget itself
            receiver(bytes);
        }
    }

    uint32_t m_address = 0;
    Ptr<Socket> m_listener;
    uint64_t m_received = 0;
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
        m_window = kInitialWindow * kSegment;
        m_socket = Socket::CreateSocket(m_host.node, TcpSocketFactory::GetTypeId());
        m_socket->SetAttribute("UseEcn", StringValue(kGroups[m_host.group].ecn ? "On" : "Off"));
        m_socket->Bind();
        m_socket->SetConnectCallback(MakeCallback(&Transfer::Fill, this), MakeCallback(&Transfer::Fail, this));
        m_socket->SetCloseCallbacks(MakeNullCallback<void, Ptr<Socket>>(), MakeCallback(&Transfer::Fail, this));
        m_socket->SetSendCallback(MakeCallback(&Transfer::Room, this));
        if (m_size == kEndless)
        {
            m_socket->TraceConnectWithoutContext("CongestionWindow", MakeCallback(&Transfer::NewWindow, this));
        }
        Address local;
        m_socket->GetSockName(local);
        m_sender = Sink::Sender(m_host.address, InetSocketAddress::ConvertFrom(local).GetPort());
        m_host.sink->Expect(m_sender, [this](uint32_t bytes) { Arrived(bytes); });
        m_socket->Connect(m_host.sink->Address4());
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

    void Room(Ptr<Socket> socket, uint32_t)
    {
        Fill(socket);
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
            const uint64_t wanted = 4 * uint64_t{m_window} + 16 * kSegment; // in fast recovery two windows are held
            room = std::min(room, wanted > held ? wanted - held : 0);
            room -= room % kSegment; // no small packets
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
    WebSession(const FlowRow& flow, const Host& host, int64_t stream, std::FILE* responses)
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
        std::fprintf(m_responses,
                     "%d,%.9f,%llu,%.9f\n",
                     m_host.group,
                     object.asked.GetSeconds(),
                     static_cast<unsigned long long>(object.size),
                     (Simulator::Now() - object.asked).GetSeconds());
        if (--m_missing == 0)
        {
            Simulator::ScheduleNow(&WebSession::Think, this); // not inside a transfer that it ends
        }
    }

    const Host& m_host;
    const WebSettings& m_web;
    const int64_t m_stop;
    std::FILE* m_responses;
    Ptr<UniformRandomVariable> m_random;
    std::vector<Object> m_page;
    int m_missing = 0;
};

// ---------------------------------------------------------------------------------------------------------------------
// What is written.

/// Writes series.csv: a row a sample, differences of counters that run on.
class Recorder
{
  public:
    Recorder(std::FILE* file, const std::vector<LinkQueue>& queues, const std::vector<std::unique_ptr<Sink>>& sinks)
        : m_file(file),
          m_queues(queues),
          m_sinks(sinks),
          m_links(queues.size()),
          m_groups(sinks.size())
    {
        std::fprintf(m_file, "time_s");
        for (const LinkRow& link : kLinks)
        {
            for (const char* column : {"backlog", "arrived", "departed", "lost", "marked", "probability"})
            {
                std::fprintf(m_file, ",%s:%s", column, link.id);
            }
        }
        for (const GroupRow& group : kGroups)
        {
            std::fprintf(m_file, ",carried:%s", group.id);
        }
        std::fprintf(m_file, "\n");
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

  private:
    struct Counters
    {
        uint64_t arrived = 0;
        uint64_t departed = 0;
        uint64_t lost = 0;
        uint64_t marked = 0;
        uint64_t packets = 0;
        uint64_t chosen = 0;
    };

    static Counters Read(const LinkQueue& queue)
    {
        const QueueDisc::Stats& stats = queue.disc->GetStats();
        Counters now;
        now.arrived = stats.nTotalReceivedBytes;
        now.departed = stats.nTotalDequeuedBytes - stats.nTotalDroppedBytesAfterDequeue;
        now.lost = stats.nTotalDroppedBytes;
        for (const auto& reason : stats.nMarkedBytes) // the total has 32 bits only
        {
            now.marked += reason.second;
        }
        now.packets = stats.nTotalReceivedPackets;
        now.chosen = stats.nTotalMarkedPackets;
        for (const char* reason : {queue.lawDrop, queue.hardDrop})
        {
            now.chosen += reason ? stats.GetNDroppedPackets(reason) : 0;
        }
        return now;
    }

    void WriteLink(const LinkQueue& queue, Counters& before)
    {
        const Counters now = Read(queue);
        const uint64_t packets = now.packets - before.packets;
        double probability = packets > 0 ? static_cast<double>(now.chosen - before.chosen) / packets : 0.0;
        if (queue.samplesProbability)
        {
            probability = queue.law->GetProbability();
        }
        std::fprintf(m_file,
                     ",%u,%llu,%llu,%llu,%llu,%.17g",
                     queue.disc->GetNBytes(),
                     static_cast<unsigned long long>(now.arrived - before.arrived),
                     static_cast<unsigned long long>(now.departed - before.departed),
                     static_cast<unsigned long long>(now.lost - before.lost),
                     static_cast<unsigned long long>(now.marked - before.marked),
                     probability);
        before = now;
    }

    void Sample()
    {
        const Time now = Simulator::Now();
        std::fprintf(m_file, "%.9f", now.GetSeconds());
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            WriteLink(m_queues[i], m_links[i]);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            const uint64_t received = m_sinks[i]->Received();
            std::fprintf(m_file, ",%llu", static_cast<unsigned long long>(received - m_groups[i]));
            m_groups[i] = received;
        }
        std::fprintf(m_file, "\n");
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

    std::FILE* m_file;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<Sink>>& m_sinks;
    std::vector<Counters> m_links;
    std::vector<uint64_t> m_groups;
};

void
Progress(int percent)
{
    std::printf("progress %d\n", percent);
    std::fflush(stdout);
    Simulator::Schedule(NanoSeconds(kDuration / 100 + 1), &Progress, percent + 1);
}

std::FILE*
Create(const std::string& folder, const char* name)
{
    const std::string path = folder + "/" + name;
    std::FILE* file = std::fopen(path.c_str(), "w");
    if (!file)
    {
        std::perror(path.c_str());
        std::exit(1);
    }
    return file;
}

void
Close(std::FILE* file)
{
    if (std::ferror(file) || std::fclose(file) != 0)
    {
        std::perror("results");
        std::exit(1);
    }
}

// ---------------------------------------------------------------------------------------------------------------------
// The whole.

void
SetDefaults()
{
    RngSeedManager::SetSeed(1 + kSeed % 4294967086U); // ns-3's generator takes 1 to 4294967086
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpNewReno::GetTypeId()));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType", TypeIdValue(TcpPrrRecovery::GetTypeId()));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::MaxSegLifetime", DoubleValue(1.0)); // closed connections leave memory soon
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(kSegment));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(kInitialWindow));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1000)); // senders never give up
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(kSocketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(kSocketBuffer));
}

/// Routers, links, hosts and sinks with their addresses and routes.
class Network
{
  public:
    Network()
    {
        m_stack.SetIpv6StackInstall(false);
        m_stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        m_routers.Create(kRouters);
        m_stack.Install(m_routers);
        for (std::size_t i = 0; i < std::size(kLinks); ++i)
        {
            AddLink(static_cast<int>(i));
        }
        for (std::size_t i = 0; i < kGroups.size(); ++i)
        {
            AddGroup(static_cast<int>(i));
        }
        std::vector<int> counts(kGroups.size(), 0);
        for (const HostRow& row : kHosts)
        {
            AddHost(row, counts[row.group]++);
        }
        for (const ChangeRow& change : kChanges)
        {
            Simulator::Schedule(NanoSeconds(change.at), &Network::Apply, this, std::cref(change));
        }
    }

    const Host& GetHost(int index) const
    {
        return *hosts[index];
    }

    std::vector<LinkQueue> queues;
    std::vector<std::unique_ptr<Sink>> sinks;
    std::vector<std::unique_ptr<Host>> hosts;

  private:
    void AddLink(int index)
    {
        const LinkRow& row = kLinks[index];
        const Line line = Connect(m_routers.Get(row.source),
                                  m_routers.Get(row.target),
                                  Subnet(12, index),
                                  DeviceRate(row.capacity),
                                  row.delay,
                                  "1p"); // the queue is the queue disc's
        line.far.device->SetDataRate(DataRate(static_cast<uint64_t>(AccessRate()))); // acknowledgements never wait
        queues.push_back(InstallQueue(kQueues[index], row, line.near.device));
        m_lines.push_back(line);
    }

    Ptr<Node> NewNode()
    {
        Ptr<Node> node = CreateObject<Node>();
        m_stack.Install(node);
        return node;
    }

    Line Access(Ptr<Node> router, Ptr<Node> node, uint32_t subnet, int64_t delay)
    {
        const DataRate rate(static_cast<uint64_t>(AccessRate()));
        const Line line = Connect(router, node, subnet, rate, delay, "1000000p");
        Routes(node)->SetDefaultRoute(Ipv4Address(line.near.address), line.far.interface);
        return line;
    }

    void AddGroup(int index)
    {
        const GroupRow& group = kGroups[index];
        Ptr<Node> node = NewNode();
        Ptr<Node> router = m_routers.Get(kLinks[group.path.back()].target);
        const Line access = Access(router, node, Subnet(11, index), 0);
        for (const int link : group.path)
        {
            m_lines[link].near.Route(Subnet(11, index), kNarrow);
            if (group.ackPath.empty())
            {
                m_lines[link].far.Route(Subnet(10, index), kWide);
            }
        }
        for (const int link : group.ackPath)
        {
            m_lines[link].near.Route(Subnet(10, index), kWide);
        }
        sinks.push_back(std::make_unique<Sink>());
        sinks.back()->Listen(node, access.far.address, group.ecn);
    }

    void AddHost(const HostRow& row, int number)
    {
        if (number >= kMaxHosts)
        {
            NS_FATAL_ERROR("group " << kGroups[row.group].id << " has more than " << kMaxHosts << " hosts");
        }
        Ptr<Node> router = m_routers.Get(kLinks[kGroups[row.group].path.front()].source);
        Ptr<Node> node = NewNode();
        const Line access = Access(router, node, Subnet(10, row.group, number), row.accessDelay);
        hosts.push_back(
            std::make_unique<Host>(Host{row.group, node, access.far.address, sinks[row.group].get()}));
    }

    void Apply(const ChangeRow& change)
    {
        if (change.capacity > 0)
        {
            m_lines[change.link].near.device->SetDataRate(DeviceRate(change.capacity));
            if (queues[change.link].law)
            {
                queues[change.link].law->SetCapacity(change.capacity);
            }
        }
        if (change.delay >= 0)
        {
            m_lines[change.link].channel->SetAttribute("Delay", TimeValue(NanoSeconds(change.delay)));
        }
    }

    InternetStackHelper m_stack;
    NodeContainer m_routers;
    std::vector<Line> m_lines;
};

void
Run(const std::string& folder)
{
    std::FILE* series = Create(folder, "series.csv");
    std::FILE* responses = Create(folder, "responses.csv");
    Network network;
    std::vector<std::unique_ptr<BulkFlow>> bulk;
    std::vector<std::unique_ptr<WebSession>> web;
    for (const FlowRow& flow : kFlows)
    {
        const Host& host = network.GetHost(flow.host);
        if (kGroups[host.group].web.objectsPerPage == 0)
        {
            bulk.push_back(std::make_unique<BulkFlow>(flow, host));
        }
        else
        {
            const auto stream = static_cast<int64_t>(web.size());
            web.push_back(std::make_unique<WebSession>(flow, host, stream, responses));
        }
    }
    Recorder recorder(series, network.queues, network.sinks);
    Simulator::ScheduleNow(&Progress, 0);
    // One nanosecond more: events at the very end count, the last sample among them.
    Simulator::Stop(NanoSeconds(kDuration + 1));
    Simulator::Run();
    Close(series);
    Close(responses);
    bulk.clear();
    web.clear();
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    if (argc < 2 || argc > 3)
    {
        std::fprintf(stderr, "usage: %s FOLDER [RUN]\n", argv[0]);
        return 2;
    }
    RngSeedManager::SetRun(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1);
    const auto start = std::chrono::steady_clock::now();
    netctrl::SetDefaults();
    netctrl::Run(argv[1]);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - start;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("wall_s %.3f\npeak_rss_kib %ld\n", wall.count(), usage.ru_maxrss);
    return 0;
}
