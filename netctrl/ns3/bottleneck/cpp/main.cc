// Runs the flows of scenario.h through one bottleneck, with the pacing law of gains.h, on stock ns-3.
//
// Usage: scenario FOLDER [RUN]: writes FOLDER/*-RUN.csv and FOLDER/rtts-RUN.bin; RUN is the seed. Compiles against
// ns-3.37 and ns-3.44.
//
// Each flow has a host, whose access line has the flow's delay; all end at the far side of the bottleneck, from which
// acknowledgements return over its idle other direction.
//
// Fixed: netctrl copies this file as it is.

#include "gains.h"
#include "netctrl-lines.h"
#include "netctrl-pacing-flows.h"
#include "netctrl-pacing-recorder.h"
#include "netctrl-pacing-tables.h"
#include "netctrl-program.h"
#include "netctrl-queues.h"
#include "netctrl-routing.h"
#include "scenario.h"

#include "ns3/global-value.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/ipv4.h"
#include "ns3/random-variable-stream.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/string.h"
#include "ns3/traffic-control-layer.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl
{

/// Access lines are so fast that nothing waits there.
uint64_t
AccessRate()
{
    return std::max<uint64_t>(10 * kCapacity, 1000000000);
}

/// Hosts, one router, the far end. Host i is in 10.x.y.0/30 with x.y = i, the bottleneck's channel 12.0.0.0/30.
class Network
{
  public:
    Network()
    {
        m_stack.SetIpv6StackInstall(false);
        m_stack.SetRoutingHelper(Ipv4StaticRoutingHelper());
        m_router = NewNode();
        far = NewNode();
        const Line line = Connect(m_router, far, Subnet(12, 0), DeviceRate(kCapacity), 0, "1p");
        line.far.device->SetDataRate(DataRate(AccessRate())); // acknowledgements never wait
        line.far.Route(0, 0);
        line.near.Route(Subnet(12, 0), 30);
        end = Ipv4Address(line.far.address);
        queue = MakeQueue(kQueue, kCapacity, kBuffer).disc;
        m_router->GetObject<TrafficControlLayer>()->SetRootQueueDiscOnDevice(line.near.device, queue);
    }

    Ptr<Node> AddHost(int64_t delay)
    {
        Ptr<Node> host = NewNode();
        const uint32_t subnet = Subnet(10, m_hosts++);
        const Line line = Connect(m_router, host, subnet, DataRate(AccessRate()), delay, "1000000p");
        line.far.Route(0, 0);
        line.near.Route(subnet, 30);
        return host;
    }

    Ptr<Node> far;
    Ipv4Address end;
    Ptr<QueueDisc> queue;

  private:
    Ptr<Node> NewNode()
    {
        Ptr<Node> node = CreateObject<Node>();
        m_stack.Install(node);
        node->GetObject<Ipv4>()->SetRoutingProtocol(CreateObject<TableRouting>());
        return node;
    }

    InternetStackHelper m_stack;
    Ptr<Node> m_router;
    int m_hosts = 0;
};

void
Run(const std::string& folder, const std::string& run)
{
    // ns-3's generator takes runs from 1 on.
    RngSeedManager::SetRun(1 + std::strtoull(run.c_str(), nullptr, 10));
    GlobalValue::Bind("SchedulerType", StringValue("ns3::PriorityQueueScheduler")); // the same order in less time
    SetTcpDefaults(kSegment, kSocketBuffer);
    Network network;
    std::vector<RttSample> rtts;
    std::vector<std::unique_ptr<Flow>> flows;
    auto late = CreateObject<UniformRandomVariable>();
    for (const FlowRow& row : kFlows)
    {
        const Ptr<Node> host = network.AddHost(row.delay);
        flows.push_back(
            std::make_unique<Flow>(static_cast<int>(flows.size()), row, host, network.far, network.end, rtts));
        flows.back()->Start(row.start + static_cast<int64_t>(late->GetValue() * static_cast<double>(kStartSpread)));
    }
    std::unique_ptr<CrossTraffic> cross;
    if (kCrossRate > 0.0)
    {
        cross = std::make_unique<CrossTraffic>(network.AddHost(0), network.far, network.end);
    }
    PacingRecorder recorder(folder, run, flows);
    recorder.Watch(network.queue);
    Simulator::ScheduleNow(&Progress, 0);
    // One nanosecond more: events at the very end count, the last sample among them.
    Simulator::Stop(NanoSeconds(kDuration + 1));
    Simulator::Run();
    recorder.Write(rtts);
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    return netctrl::Program(argc, argv, "1", &netctrl::Run);
}
