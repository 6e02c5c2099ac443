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

/// AVQ: a packet that would overflow the virtual queue is marked, and not added to it (SIGCOMM 2001, Figure 2).
struct AvqLaw
{
    double utilization;   ///< Target utilization gamma
    double damping;       ///< Gain of the virtual capacity [1/s]
    double virtualBuffer; ///< Of the virtual queue [packet]

    struct State
    {
        double probability = 0.0; ///< Of marking what arrives now: 0 or 1 for a packet
        double backlog = 0.0;     ///< Of the virtual queue [packet]
        double capacity = 0.0;    ///< Of the virtual queue [packet/s]
        double begun = 0.0;       ///< 0 before the first arrival, then 1
    };

    State Next(const State& state, const Seen& seen) const
    {
        const double served = state.begun > 0.0 ? state.capacity : seen.capacity;
        const double drained = std::max(state.backlog - seen.elapsed * served, 0.0);
        const double grown = std::min(served + damping * utilization * seen.capacity * seen.elapsed, seen.capacity);
        const double capacity = std::max(grown - damping * seen.offered, 0.0);
        if (drained + seen.offered > virtualBuffer)
        {
            return State{1.0, drained, capacity, 1.0};
        }
        return State{0.0, drained + seen.offered, capacity, 1.0};
    }
};

/// A queue disc that runs AvqLaw.
class AvqQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::AvqQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<AvqQueueDisc>()
                .AddAttribute("Utilization",
                              "Target utilization gamma",
                              DoubleValue(0.98),
                              MakeDoubleAccessor(&AvqQueueDisc::m_utilization),
                              MakeDoubleChecker<double>())
                .AddAttribute("Damping",
                              "Gain of the virtual capacity [1/s]",
                              DoubleValue(0.15),
                              MakeDoubleAccessor(&AvqQueueDisc::m_damping),
                              MakeDoubleChecker<double>())
                .AddAttribute("VirtualBuffer",
                              "Of the virtual queue [packet]",
                              DoubleValue(500.0),
                              MakeDoubleAccessor(&AvqQueueDisc::m_virtualBuffer),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = AvqLaw{m_utilization, m_damping, m_virtualBuffer}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_utilization;
    double m_damping;
    double m_virtualBuffer;
    AvqLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(AvqQueueDisc);

/// PI: p <- p + alpha (q - q_ref) - beta (q_old - q_ref). Source: Hollot, Misra, Towsley, Gong, INFOCOM 2001.
struct PiLaw
{
    double alpha;          ///< Gain on the queue [1/packet]
    double beta;           ///< Gain on the queue of the epoch before [1/packet]
    double referenceQueue; ///< q_ref [packet]

    struct State
    {
        double probability = 0.0; ///< Of marking a packet
        double oldBacklog = 0.0;  ///< q_old [packet]
    };

    State Next(const State& state, const Seen& seen) const
    {
        const double rise = alpha * (seen.backlog - referenceQueue) - beta * (state.oldBacklog - referenceQueue);
        return State{Clip(state.probability + rise), seen.backlog};
    }
};

/// A queue disc that runs PiLaw.
class PiQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::PiQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<PiQueueDisc>()
                .AddAttribute("Alpha",
                              "Gain on the queue [1/packet]",
                              DoubleValue(1.822e-05),
                              MakeDoubleAccessor(&PiQueueDisc::m_alpha),
                              MakeDoubleChecker<double>())
                .AddAttribute("Beta",
                              "Gain on the queue of the epoch before [1/packet]",
                              DoubleValue(1.816e-05),
                              MakeDoubleAccessor(&PiQueueDisc::m_beta),
                              MakeDoubleChecker<double>())
                .AddAttribute("ReferenceQueue",
                              "q_ref [packet]",
                              DoubleValue(50.0),
                              MakeDoubleAccessor(&PiQueueDisc::m_referenceQueue),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = PiLaw{m_alpha, m_beta, m_referenceQueue}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_alpha;
    double m_beta;
    double m_referenceQueue;
    PiLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(PiQueueDisc);

/// SFC: p = k1 (q - q0) + k2 (r/C - 1), r counted over the epoch (Gao, Hou, INFOCOM 2003; the form is assumed).
struct SfcLaw
{
    double k1;          ///< Gain on the queue [1/packet]
    double k2;          ///< Gain on the rate over the capacity
    double targetQueue; ///< q0 [packet]

    struct State
    {
        double probability = 0.0; ///< Of marking a packet
    };

    State Next(const State&, const Seen& seen) const
    {
        const double load = seen.arrived / (seen.elapsed * seen.capacity);
        return State{Clip(k1 * (seen.backlog - targetQueue) + k2 * (load - 1.0))};
    }
};

/// A queue disc that runs SfcLaw.
class SfcQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::SfcQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<SfcQueueDisc>()
                .AddAttribute("K1",
                              "Gain on the queue [1/packet]",
                              DoubleValue(0.0005),
                              MakeDoubleAccessor(&SfcQueueDisc::m_k1),
                              MakeDoubleChecker<double>())
                .AddAttribute("K2",
                              "Gain on the rate over the capacity",
                              DoubleValue(0.2),
                              MakeDoubleAccessor(&SfcQueueDisc::m_k2),
                              MakeDoubleChecker<double>())
                .AddAttribute("TargetQueue",
                              "q0 [packet]",
                              DoubleValue(0.0),
                              MakeDoubleAccessor(&SfcQueueDisc::m_targetQueue),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = SfcLaw{m_k1, m_k2, m_targetQueue}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_k1;
    double m_k2;
    double m_targetQueue;
    SfcLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(SfcQueueDisc);

} // namespace netctrl

#endif // NETCTRL_LAWS_H
