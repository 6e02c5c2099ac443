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
#include "netctrl-program.h"
#include "netctrl-queues.h"
#include "scenario.h"

#include "ns3/rng-seed-manager.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

using namespace ns3;

namespace netctrl
{

/// Hosts, one router, the far end. Host i is in 10.x.y.0/30 with x.y = i, the bottleneck's channel 12.0.0.0/30.
class Network
{
  public:
    Network()
        : far(MakeNode()),
          m_router(MakeNode())
    {
        const Line line = Connect(m_router, far, Subnet(12, 0), DeviceRate(kCapacity), 0, "1p");
        line.far.device->SetDataRate(DataRate(kAccessRate)); // acknowledgements never wait
        line.far.Route(0, 0);
        line.near.Route(Subnet(12, 0), 30);
        end = Ipv4Address(line.far.address);
        queue = MakeQueue(kQueue, kCapacity, kBuffer).disc;
        line.near.SetQueue(queue);
        device = line.near.device;
    }

    Ptr<Node> AddHost(int64_t delay)
    {
        Ptr<Node> host = MakeNode();
        ConnectHost(m_router, host, Subnet(10, m_hosts++), kAccessRate, delay);
        return host;
    }

    Ptr<Node> far;
    Ipv4Address end;
    Ptr<QueueDisc> queue;
    Ptr<PointToPointNetDevice> device; ///< of the queue

  private:
    Ptr<Node> m_router;
    int m_hosts = 0;
};

void
Run(const std::string& folder, const std::string& run)
{
    // ns-3's generator takes runs from 1 on.
    RngSeedManager::SetRun(1 + std::strtoull(run.c_str(), nullptr, 10));
    SetLinuxDefaults(kSocketBuffer);
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
    PacingRecorder recorder(folder, run, flows, network.queue, network.device);
    Simulate();
    recorder.Write(rtts);
    Simulator::Destroy();
}

} // namespace netctrl

int
main(int argc, char* argv[])
{
    return netctrl::Program(argc, argv, "1", &netctrl::Run);
}
