// Runs the access link of scenario.h with the law of gains.h on stock ns-3.
//
// Usage: scenario FOLDER [RUN]: reads FOLDER/run-RUN.bin, writes FOLDER/result-RUN.csv. Compiles against ns-3.37 and
// ns-3.44.
//
//   premium host --+
//   source hosts --+-- node 0 == hop 0 == node 1 == hop 1 == ... == node H, where premium and regulated traffic ends
//                              cross traffic enters at a node and leaves at the next one
//
// Regulators are in the source hosts. Every period the law is given what was measured at node H, and sets them.
//
// Fixed: netctrl copies this file as it is.

#include "gains.h"
#include "netctrl-fifo-recorder.h"
#include "netctrl-fifo-traffic.h"
#include "netctrl-lines.h"
#include "netctrl-program.h"
#include "netctrl-tracking.h"
#include "scenario.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl
{

/// Nodes, hosts and hops. The channel of hop k is in 12.x.y.0/30 with x.y = k, the line of host i in 11.x.y.0/30.
class Network
{
  public:
    explicit Network(const RunTable& table)
    {
        for (int k = 0; k <= kHops; ++k)
        {
            m_nodes.push_back(MakeNode());
        }
        for (int k = 0; k < kHops; ++k)
        {
            AddHop(k);
        }
        const InetSocketAddress end(Ipv4Address(m_lines.back().far.address), kPort);
        premium = std::make_unique<PremiumSink>(m_nodes[kHops], end);
        m_premium = std::make_unique<PremiumSource>(AddHost(0), end, table.phase);
        for (const SourceRow& row : kSources)
        {
            const Ptr<Node> host = AddHost(0);
            for (int i = 0; i < row.flows; ++i)
            {
                AddFlow(host, kHops, table);
            }
        }
        for (const CrossRow& row : kCross)
        {
            AddFlow(AddHost(row.hop), row.hop + 1, table);
            flows.back()->Command(0.0, row.rate, row.burst);
        }
    }

    std::vector<std::unique_ptr<Hop>> hops;
    std::unique_ptr<PremiumSink> premium;
    std::vector<std::unique_ptr<FlowSource>> flows; ///< regulated ones, source by source, then cross traffic
    std::vector<std::unique_ptr<UdpSink>> sinks;

  private:
    void AddHop(int k)
    {
        // What is full drops, and tells so, rather than stop what is above it.
        const Line line = Connect(m_nodes[k], m_nodes[k + 1], Subnet(12, k), DataRate(kCapacity), 0, "1p", false);
        line.near.Route(0, 0);
        hops.push_back(std::make_unique<Hop>(line.near.device));
        m_lines.push_back(line);
    }

    Ptr<Node> AddHost(int at)
    {
        Ptr<Node> host = MakeNode();
        const Line line = Connect(host, m_nodes[at], Subnet(11, m_hosts++), DataRate(kHostRate), 0, "1000000p");
        line.near.Route(0, 0);
        return host;
    }

    void AddFlow(Ptr<Node> host, int to, const RunTable& table)
    {
        const std::size_t flow = flows.size();
        const Ipv4Address address(m_lines[to - 1].far.address);
        const InetSocketAddress end(address, static_cast<uint16_t>(kPort + 1 + flow));
        sinks.push_back(std::make_unique<UdpSink>(m_nodes[to], end));
        flows.push_back(std::make_unique<FlowSource>(host, end, table.pauses[flow]));
    }

    std::vector<Ptr<Node>> m_nodes;
    std::vector<Line> m_lines;
    std::unique_ptr<PremiumSource> m_premium;
    int m_hosts = 0;
};

/// The loop: a period's measurement, the law's step, the rates of the next period.
class Loop
{
  public:
    Loop(Network& network, Recorder& recorder)
        : m_network(network),
          m_recorder(recorder),
          m_tracker(kLaw, kGovernor, kSchedule, kStart),
          m_hops(kHops),
          m_sinks(kFlows, 0)
    {
        Begin();
    }

  private:
    static double At(int64_t period)
    {
        return static_cast<double>(period) * kInterval;
    }

    /// What happens at the same time has happened before a period ends.
    void Tick()
    {
        Simulator::ScheduleNow(&Loop::End, this);
    }

    void End()
    {
        const Sample sample = Measure();
        Vector measured(kSignals.size());
        for (std::size_t i = 0; i < kSignals.size(); ++i)
        {
            measured[i] = sample.*kSignals[i].field * kSignals[i].scale;
        }
        const Vector& wanted = Wanted();
        if (m_period < kOpenPeriods)
        {
            m_recorder.Write(sample, wanted, measured, Vector(std::nan(""), kLaw.low.size()));
        }
        else
        {
            const Vector commanded = m_tracker.state.commanded;
            m_tracker.Step(measured, wanted);
            m_recorder.Write(sample, m_tracker.given, measured, commanded);
        }
        if (++m_period < kPeriods)
        {
            Begin();
        }
    }

    void Begin()
    {
        const Vector& applied = m_tracker.state.applied;
        const bool open = m_period < kOpenPeriods;
        m_rate = open ? HUGE_VAL : std::max(applied[0] * kRateUnit, 0.0);
        m_burst = open || applied.size() < 2 ? 0 : std::max(1, static_cast<int>(std::nearbyint(applied[1])));
        Command(At(m_period));
        for (const FailureRow& failure : kFailures)
        {
            for (const double turn : {failure.start, failure.stop})
            {
                if (At(m_period) < turn && turn < At(m_period + 1))
                {
                    ScheduleAt(turn, &Loop::Command, this, turn);
                }
            }
        }
        ScheduleAt(At(m_period + 1), &Loop::Tick, this);
    }

    void Command(double time)
    {
        std::size_t flow = 0;
        for (std::size_t place = 0; place < kSources.size(); ++place)
        {
            const SourceRow& source = kSources[place];
            double rate = std::min(m_rate * source.share, source.offered);
            for (const FailureRow& failure : kFailures)
            {
                const bool failed = failure.start <= time && time < failure.stop;
                rate = static_cast<std::size_t>(failure.source) == place && failed ? failure.rate : rate;
            }
            for (int i = 0; i < source.flows; ++i)
            {
                m_network.flows[flow++]->Command(time, rate / source.flows, m_burst > 0 ? m_burst : source.burst);
            }
        }
    }

    const Vector& Wanted() const
    {
        const auto after = std::upper_bound(kReferences.begin(),
                                            kReferences.end(),
                                            m_period,
                                            [](int64_t period, const ReferenceRow& row) { return period < row.period; });
        return std::prev(after)->values;
    }

    Sample Measure()
    {
        const PremiumReading premium = m_network.premium->Read();
        Sample sample{};
        sample.timeS = At(m_period + 1);
        sample.rateBitPerS = m_rate;
        sample.burst = m_burst;
        sample.delayMs = 1e3 * premium.delay;
        sample.jitterMs = 1e3 * premium.jitter;
        sample.meanDelayMs = 1e3 * premium.meanDelay;
        sample.meanJitterMs = 1e3 * premium.meanJitter;
        sample.premiumReceived = premium.received;
        sample.premiumBitPerS = 8.0 * kPremiumSize * premium.received / kInterval;
        std::size_t flow = 0;
        for (const SourceRow& source : kSources)
        {
            int64_t packets = 0;
            for (int i = 0; i < source.flows; ++i, ++flow)
            {
                const int64_t now = m_network.sinks[flow]->packets;
                packets += now - m_sinks[flow];
                m_sinks[flow] = now;
            }
            sample.sourceBitPerS.push_back(8.0 * kSize * static_cast<double>(packets) / kInterval);
            sample.otherBitPerS += sample.sourceBitPerS.back();
        }
        for (std::size_t k = 0; k < m_hops.size(); ++k)
        {
            const Hop::Counters& now = m_network.hops[k]->count;
            const double sent = (now.bits - m_hops[k].bits) / kInterval;
            sample.utilization = std::max(sample.utilization, sent / static_cast<double>(kCapacity));
            sample.premiumLost += now.lostPremium - m_hops[k].lostPremium;
            sample.otherLost += now.lostRegulated - m_hops[k].lostRegulated;
            sample.backlog.push_back(m_network.hops[k]->Backlog());
            m_hops[k] = now;
        }
        return sample;
    }

    Network& m_network;
    Recorder& m_recorder;
    Tracker m_tracker;
    int64_t m_period = 0;
    double m_rate = 0.0; ///< of all regulators [bit/s]
    int m_burst = 0;     ///< 0: each source's own
    std::vector<Hop::Counters> m_hops; ///< when the period began
    std::vector<int64_t> m_sinks;
};

void
Run(const std::string& folder, const std::string& run)
{
    const RunTable table(folder + "/run-" + run + ".bin", kFlows + kCross.size());
    Network network(table);
    Recorder recorder(folder + "/result-" + run + ".csv");
    Loop loop(network, recorder);
    Simulate();
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    return netctrl::Program(argc, argv, "1", &netctrl::Run);
}
