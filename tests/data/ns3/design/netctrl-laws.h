// Made by netctrl export ns3: do not edit.
// Laws of queues, and a queue disc of ns-3 around each: printed from the Python that netctrl simulates.

#ifndef NETCTRL_LAWS_H
#define NETCTRL_LAWS_H

#include "netctrl-law-queue-disc.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

/// A probability, from 0 to 1.
inline double
Clip(double probability)
{
    return std::min(std::max(probability, 0.0), 1.0);
}

/// ARC: p <- p + alpha (b - gamma (d C - (q - q0))) each epoch d. Source: ARC paper, Algorithm 2.
struct ArcLaw
{
    double alpha;       ///< Gain [1/packet]
    double utilization; ///< Target utilization gamma
    double targetQueue; ///< q0 [packet]

    struct State
    {
        double probability = 0.0; ///< Of marking a packet
    };

    State Next(const State& state, const Seen& seen) const
    {
        const double served = seen.elapsed * seen.capacity;
        const double excess = seen.backlog - targetQueue;
        return State{Clip(state.probability + alpha * (seen.arrived - utilization * (served - excess)))};
    }
};

/// A queue disc that runs ArcLaw.
class ArcQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::ArcQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<ArcQueueDisc>()
                .AddAttribute("Alpha",
                              "Gain [1/packet]",
                              DoubleValue(1.42e-05),
                              MakeDoubleAccessor(&ArcQueueDisc::m_alpha),
                              MakeDoubleChecker<double>())
                .AddAttribute("Utilization",
                              "Target utilization gamma",
                              DoubleValue(0.98),
                              MakeDoubleAccessor(&ArcQueueDisc::m_utilization),
                              MakeDoubleChecker<double>())
                .AddAttribute("TargetQueue",
                              "q0 [packet]",
                              DoubleValue(0.0),
                              MakeDoubleAccessor(&ArcQueueDisc::m_targetQueue),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = ArcLaw{m_alpha, m_utilization, m_targetQueue}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_alpha;
    double m_utilization;
    double m_targetQueue;
    ArcLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(ArcQueueDisc);

} // namespace netctrl

#endif // NETCTRL_LAWS_H
