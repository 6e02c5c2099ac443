// Runs the network of scenario.h with the law of gains.h on stock ns-3.
//
// Usage: scenario FOLDER [RUN [series]]: reads FOLDER/run-RUN.bin, writes FOLDER/result-RUN.csv. Compiles against ns-3.37
// and ns-3.44.
//
// Each link has a channel of its own, whose other direction is idle. At its near end a pacer lets packets go at the
// link's capacity or at the rate of its law, which is asked every interval.
//
// Fixed: netctrl copies this file as it is.

#include "gains.h"
#include "netctrl-demands.h"
#include "netctrl-lines.h"
#include "netctrl-link-controllers.h"
#include "netctrl-link-recorder.h"
#include "netctrl-pacer.h"
#include "netctrl-program.h"
#include "netctrl-queues.h"
#include "netctrl-split-routing.h"
#include "netctrl-tcp.h"
#include "scenario.h"

#include "ns3/rng-seed-manager.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl
{

/// Nodes, links and the ends of demands. The channel of link k is in 12.x.y.0/30 with x.y = k; demand i ends at 11.x.y.1,
/// and where it is TCP begins at 13.x.y.1.
class Network
{
  public:
    Network()
    {
        for (int i = 0; i < kNodes; ++i)
        {
            m_nodes.push_back(MakeNode(CreateObject<SplitRouting>()));
        }
        for (std::size_t i = 0; i < kLinks.size(); ++i)
        {
            AddLink(kLinks[i], static_cast<int>(i));
        }
        for (std::size_t i = 0; i < kDemands.size(); ++i)
        {
            AddDemand(kDemands[i], static_cast<int>(i));
        }
        for (const SplitRow& row : kSplits)
        {
            const uint32_t end = Subnet(11, row.demand) + 1;
            Ptr<Ipv4Route> route = m_lines[row.link].near.RouteTo(end);
            route->SetSource(Ipv4Address(Subnet(13, row.demand) + 1)); // which a TCP socket takes for its own
            RoutingAt(kLinks[row.link].source)->Add(end, route, row.share, IsTcp(row.demand));
        }
        auto random = CreateObject<UniformRandomVariable>();
        random->SetStream(0);
        for (const TcpRow& row : kTcp)
        {
            AddTcp(row, random);
        }
    }

    std::vector<Counters> Count() const
    {
        std::vector<Counters> now;
        for (const Ptr<PacerQueueDisc>& pacer : pacers)
        {
            now.push_back(Counters::Of(pacer));
        }
        return now;
    }

    LinkRecorder::Ends CountEnds() const
    {
        LinkRecorder::Ends ends;
        for (std::size_t i = 0; i < sources.size(); ++i)
        {
            ends.offered += sources[i]->bytes;
            ends.delivered += m_sinks[i]->payload + kHeaders * m_sinks[i]->packets;
        }
        for (const auto& tcp : m_tcp)
        {
            ends.tcp.push_back(tcp->counters);
            ends.offered += ends.tcp.back().offered;
            ends.delivered += ends.tcp.back().delivered;
        }
        return ends;
    }

    std::vector<Ptr<PacerQueueDisc>> pacers;
    std::vector<std::unique_ptr<DemandSource>> sources;

  private:
    void AddLink(const LinkRow& row, int index)
    {
        const Line line = Connect(m_nodes[row.source],
                                  m_nodes[row.target],
                                  Subnet(12, index),
                                  DeviceRate(row.capacity),
                                  row.delay,
                                  "1p"); // packets wait in the pacer's child
        auto pacer = CreateObject<PacerQueueDisc>();
        pacer->SetChild(MakeQueue(kQueue, row.capacity, row.buffer).disc);
        pacer->SetRate(static_cast<double>(row.capacity));
        line.near.SetQueue(pacer);
        pacers.push_back(pacer);
        m_lines.push_back(line);
    }

    void AddDemand(const DemandRow& row, int index)
    {
        const uint32_t address = Subnet(11, index) + 1;
        const InetSocketAddress end(Ipv4Address(address), kPort);
        AddOwn(m_nodes[row.target], address);
        m_sinks.push_back(std::make_unique<UdpSink>(m_nodes[row.target], end));
        sources.push_back(std::make_unique<DemandSource>(m_nodes[row.source], end));
    }

    void AddTcp(const TcpRow& row, Ptr<UniformRandomVariable> random)
    {
        const DemandRow& demand = kDemands[row.demand];
        const uint32_t begin = Subnet(13, row.demand) + 1;
        AddOwn(m_nodes[demand.source], begin);
        for (int at = demand.source; at != demand.target;) // acknowledgements take the idle way back of the greatest share
        {
            const SplitRow& way = Greatest(row.demand, at);
            at = kLinks[way.link].target;
            RoutingAt(at)->Add(begin, m_lines[way.link].far.RouteTo(begin), 1.0, false);
        }
        m_tcp.push_back(std::make_unique<TcpDemand>(m_nodes[demand.source],
                                                    m_nodes[demand.target],
                                                    Ipv4Address(Subnet(11, row.demand) + 1),
                                                    row,
                                                    random));
    }

    static bool IsTcp(int demand)
    {
        return std::any_of(kTcp.begin(), kTcp.end(), [&](const TcpRow& row) { return row.demand == demand; });
    }

    static const SplitRow& Greatest(int demand, int node)
    {
        const auto share = [&](const SplitRow& row) {
            return row.demand == demand && kLinks[row.link].source == node ? row.share : -1.0;
        };
        return *std::max_element(kSplits.begin(), kSplits.end(), [&](const SplitRow& one, const SplitRow& other) {
            return share(one) < share(other);
        });
    }

    Ptr<SplitRouting> RoutingAt(int node) const
    {
        return DynamicCast<SplitRouting>(m_nodes[node]->GetObject<Ipv4>()->GetRoutingProtocol());
    }

    std::vector<Ptr<Node>> m_nodes;
    std::vector<Line> m_lines;
    std::vector<std::unique_ptr<UdpSink>> m_sinks;
    std::vector<std::unique_ptr<TcpDemand>> m_tcp;
};

/// The controllers: every tick, of which an interval has one, or several where links act out of step.
class Controllers
{
  public:
    Controllers(Network& network, const RunTable& table, LinkRecorder& recorder)
        : m_network(network),
          m_table(table),
          m_recorder(recorder),
          m_controllers(kLaw, table.phase),
          m_interval(kLinks.size()),
          m_acted(kLinks.size()),
          m_measured(kLinks.size())
    {
        Set(kLaw.nominal);
        Simulator::ScheduleNow(&Controllers::Tick, this, int64_t{0});
    }

  private:
    /// What was measured up to now is looked at before anything new happens.
    void Tick(int64_t tick)
    {
        const int64_t step = tick / kLaw.ticks;
        const bool begins = tick % kLaw.ticks == 0;
        const std::vector<Counters> now = m_network.Count();
        if (begins)
        {
            EndInterval(step, now);
        }
        if (step == kSteps)
        {
            return;
        }
        Set(Act(tick, step, now));
        if (begins)
        {
            for (std::size_t i = 0; i < m_network.sources.size(); ++i)
            {
                m_network.sources[i]->Begin(m_table.rates[step * m_network.sources.size() + i]);
            }
        }
        const int64_t ends = tick + 1;
        const int64_t next = ends / kLaw.ticks * kInterval + ends % kLaw.ticks * kInterval / kLaw.ticks;
        Simulator::Schedule(NanoSeconds(next) - Simulator::Now(), &Controllers::Tick, this, ends);
    }

    void EndInterval(int64_t step, const std::vector<Counters>& now)
    {
        for (std::size_t link = 0; link < now.size(); ++link)
        {
            m_measured[link] = now[link].Since(m_interval[link]);
        }
        m_interval = now;
        if (step > 0)
        {
            m_recorder.Add(step - 1, m_measured);
        }
        if (step == kWarmupSteps)
        {
            m_recorder.Start(now, m_network.CountEnds());
        }
        if (step == kSteps)
        {
            m_recorder.Write(now, m_network.CountEnds());
        }
    }

    const std::vector<double>& Act(int64_t tick, int64_t step, const std::vector<Counters>& now)
    {
        std::vector<Measured> measured(now.size());
        for (std::size_t link = 0; link < now.size(); ++link)
        {
            if (m_controllers.ActsAt(link, tick))
            {
                measured[link] = now[link].Since(m_acted[link]);
                if (step == 0) // before the start all sent at their nominal rates
                {
                    const auto phase = static_cast<double>(m_table.phase[link]);
                    const double before = 1.0 - phase / static_cast<double>(kLaw.ticks);
                    measured[link].rate += before * kLaw.nominal[link];
                }
                m_acted[link] = now[link];
            }
        }
        return m_controllers.Act(tick, measured, m_table.Late(step), m_table.Received(step));
    }

    void Set(const std::vector<double>& rates)
    {
        for (std::size_t link = 0; link < kLinks.size(); ++link)
        {
            const auto capacity = static_cast<double>(kLinks[link].capacity);
            m_network.pacers[link]->SetRate(kLinks[link].paced ? std::clamp(rates[link], 0.0, capacity) : capacity);
        }
    }

    Network& m_network;
    const RunTable& m_table;
    LinkRecorder& m_recorder;
    LinkControllers m_controllers;
    std::vector<Counters> m_interval; ///< when the interval began
    std::vector<Counters> m_acted;    ///< when each link last acted
    std::vector<Measured> m_measured; ///< in the interval that ended
};

void
Run(const std::string& folder, const std::string& run, bool watched)
{
    RngSeedManager::SetSeed(1 + kSeed % 4294967086U); // ns-3's generator takes 1 to 4294967086
    RngSeedManager::SetRun(std::strtoull(run.c_str(), nullptr, 10));
    SetLinuxDefaults(kSocketBuffer);
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(Seconds(1)));
    Config::SetDefault("ns3::TcpSocket::ConnCount", UintegerValue(20));
    const RunTable table(folder + "/run-" + run + ".bin");
    Network network;
    LinkRecorder recorder(folder, run, watched);
    Controllers controllers(network, table, recorder);
    Simulate();
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    const bool watched = argc == 4 && argv[3] == std::string("series");
    const auto work = [&](const std::string& folder, const std::string& run) { netctrl::Run(folder, run, watched); };
    return netctrl::Program(argc - watched, argv, "0", work, "FOLDER [RUN [series]]");
}
