// Made by netctrl export ns3: do not edit.
// Laws of queues, and a queue disc of ns-3 around each: printed from the Python that netctrl simulates.

#ifndef NETCTRL_LAWS_H
#define NETCTRL_LAWS_H

#include "netctrl-law-queue-disc.h"
#include "netctrl-dual-queue-disc.h"
#include "netctrl-scalable-window.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

namespace netctrl
{

/// A probability, from 0 to 1.
inline double
Clip(double probability)
{
    return std::min(std::max(probability, 0.0), 1.0);
}

/// Gains are smaller while p is small (RFC 8033, Section 4.2).
inline double
PieScale(double p)
{
    if (p < 1e-6)
    {
        return 1.0 / 2048.0;
    }
    if (p < 1e-5)
    {
        return 1.0 / 512.0;
    }
    if (p < 0.0001)
    {
        return 1.0 / 128.0;
    }
    if (p < 0.001)
    {
        return 1.0 / 32.0;
    }
    if (p < 0.01)
    {
        return 1.0 / 8.0;
    }
    if (p < 0.1)
    {
        return 1.0 / 2.0;
    }
    return 1.0;
}

/// Factor of the gains at an output: PIE's below .1, and larger ones above it.
///
/// Examples
/// --------
/// >>> [docsis_scale(p) for p in (0.05, 0.5, 5.0, 13.0)]
/// [0.5, 2.0, 8.0, 32.0]
inline double
DocsisScale(double p)
{
    if (p < 0.1)
    {
        return PieScale(p);
    }
    if (p < 1.0)
    {
        return 2.0;
    }
    if (p < 10.0)
    {
        return 8.0;
    }
    return 32.0;
}

/// Mean share of packets that is dropped: each with the probability p from the `first` after a drop on, surely at
/// the number `sure`.
inline double
DropShare(double p, double first, double sure)
{
    return 1.0 / (first - 1.0 + (1.0 - std::pow(1.0 - p, sure - first + 1.0)) / p);
}

/// Mean share of packets that is dropped where each has the probability p, at most .85, and drops are spread.
///
/// The m-th packet since a drop is the first with m p >= .85, the M-th the first with M p >= 8.5; from one drop to the
/// next it is m - 1 + (1 - (1 - p)^(M - m + 1))/p packets on average, some 1.85/p for small p.
///
/// Examples
/// --------
/// >>> f"{spread_rate(0.01):.5f}, {spread_rate(0.85):.5f}"
/// '0.00544, 0.85000'
inline double
SpreadRate(double p)
{
    if (p < 1e-9)
    {
        return p / 1.85;
    }
    double first = static_cast<double>(static_cast<int64_t>(0.85 / p));
    if (first * p < 0.85)
    {
        first = first + 1.0;
    }
    double sure = static_cast<double>(static_cast<int64_t>(8.5 / p));
    if (sure * p < 8.5)
    {
        sure = sure + 1.0;
    }
    return DropShare(p, first, sure);
}

/// p' <- p' + alpha (D - target) + beta (D - D_old), from 0 to 1 (RFC 9332, Appendix A).
inline double
Pi2Base(double base, double delay, double oldDelay, double target, double alpha, double beta)
{
    return Clip(base + alpha * (delay - target) + beta * (delay - oldDelay));
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

/// DOCSIS-PIE: x <- x + scale (A (D - target) + B (D - D_old)) each interval, D = q/C (RFC 8034, Appendix A).
struct DocsisPieLaw
{
    double target;   ///< Delay [s]
    double alpha;    ///< Gain on the delay [1/s]
    double beta;     ///< Gain on its change [1/s]
    double maxBurst; ///< Time without drops after the first one [s]
    double size;     ///< Of a packet over 1024 bytes
    double spared;   ///< Backlog up to which nothing is dropped [packet]
    double third;    ///< Of the buffer [packet]

    struct State
    {
        double probability = 0.0;     ///< Of dropping a packet: 0 while drops are suppressed
        double dropProbability = 0.0; ///< RFC 8034's drop_prob_, up to 13.6
        double oldDelay = 0.0;        ///< Of the update before [s]
        double allowance = 0.0;       ///< Left of the time without drops [s]
        double reset = 0.0;           ///< How long the queue has been quiet [s]
        double activity = 0.0;        ///< 0: INACTIVE, 1: QUIESCENT, 2: ACTIVE
        double due = 0.0;             ///< Expected number of drops while QUIESCENT
        double passed = 0.0;          ///< Sum of probabilities since the last drop, on packets
    };

    State Next(const State& state, const Seen& seen) const
    {
        const double delay = seen.backlog / seen.capacity;
        double activity = state.activity;
        double allowance = state.allowance;
        double due = state.due;
        if (activity == 0.0 && seen.backlog >= third)
        {
            activity = 1.0;
            due = 0.0;
        }
        else if (activity == 1.0)
        {
            due = due + state.probability * seen.arrived;
            if (due >= 1.0)
            {
                activity = 2.0;
                allowance = maxBurst;
            }
        }
        double x = 0.0;
        if (allowance > 0.0)
        {
            allowance = std::max(allowance - seen.elapsed, 0.0);
        }
        else
        {
            x = state.dropProbability;
            double rise = (alpha * (delay - target) + beta * (delay - state.oldDelay)) * DocsisScale(x);
            if (x >= 0.1)
            {
                rise = std::min(rise, 0.02);
            }
            x = x + rise;
            if (delay < 0.005 && state.oldDelay < 0.005)
            {
                x = x * 0.98;
            }
            else if (delay > 0.2)
            {
                x = x + 0.02;
            }
            x = std::min(std::max(x, 0.0), 13.6);
        }
        double reset = state.reset;
        if (delay < 0.5 * target && state.oldDelay < 0.5 * target && x == 0.0 && allowance == 0.0)
        {
            if (activity == 2.0)
            {
                activity = 1.0;
                reset = 0.0;
                due = 0.0;
            }
            else if (activity == 1.0)
            {
                reset = reset + seen.elapsed;
                if (reset > 1.0)
                {
                    activity = 0.0;
                    reset = 0.0;
                }
            }
        }
        else if (activity == 1.0)
        {
            reset = 0.0;
        }
        double rate = SpreadRate(std::min(x * size, 0.85));
        if (allowance > 0.0 || activity == 0.0 || seen.backlog <= spared || (delay < 0.5 * target && x < 0.2))
        {
            rate = 0.0;
        }
        return State{rate, x, delay, allowance, reset, activity, due, state.passed};
    }
};

/// A queue disc that runs DocsisPieLaw.
class DocsisPieQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::DocsisPieQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<DocsisPieQueueDisc>()
                .AddAttribute("Target",
                              "Delay [s]",
                              DoubleValue(0.01),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_target),
                              MakeDoubleChecker<double>())
                .AddAttribute("Alpha",
                              "Gain on the delay [1/s]",
                              DoubleValue(0.25),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_alpha),
                              MakeDoubleChecker<double>())
                .AddAttribute("Beta",
                              "Gain on its change [1/s]",
                              DoubleValue(2.5),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_beta),
                              MakeDoubleChecker<double>())
                .AddAttribute("MaxBurst",
                              "Time without drops after the first one [s]",
                              DoubleValue(0.142),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_maxBurst),
                              MakeDoubleChecker<double>())
                .AddAttribute("Size",
                              "Of a packet over 1024 bytes",
                              DoubleValue(0.9765625),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_size),
                              MakeDoubleChecker<double>())
                .AddAttribute("Spared",
                              "Backlog up to which nothing is dropped [packet]",
                              DoubleValue(2.048),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_spared),
                              MakeDoubleChecker<double>())
                .AddAttribute("Third",
                              "Of the buffer [packet]",
                              DoubleValue(166.66666666666666),
                              MakeDoubleAccessor(&DocsisPieQueueDisc::m_third),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = DocsisPieLaw{m_target, m_alpha, m_beta, m_maxBurst, m_size, m_spared, m_third}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_target;
    double m_alpha;
    double m_beta;
    double m_maxBurst;
    double m_size;
    double m_spared;
    double m_third;
    DocsisPieLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(DocsisPieQueueDisc);

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

/// PI2: p' from D = q/C; p'^2 for classic packets, k p' for those of scalable senders (De Schepper et al. 2016).
struct Pi2Law
{
    double target;   ///< Delay [s]
    double alpha;    ///< Gain on the delay [1/s]
    double beta;     ///< Gain on its change [1/s]
    double coupling; ///< k

    struct State
    {
        double probability = 0.0;         ///< Of marking a classic packet, p'²
        double scalableProbability = 0.0; ///< Of marking a packet of a scalable sender, k p', at most 1
        double baseProbability = 0.0;     ///< p'
        double oldDelay = 0.0;            ///< Of the update before [s]
    };

    State Next(const State& state, const Seen& seen) const
    {
        const double delay = seen.backlog / seen.capacity;
        const double base = Pi2Base(state.baseProbability, delay, state.oldDelay, target, alpha, beta);
        return State{base * base, std::min(coupling * base, 1.0), base, delay};
    }
};

/// A queue disc that runs Pi2Law.
class Pi2QueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::Pi2QueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<Pi2QueueDisc>()
                .AddAttribute("Target",
                              "Delay [s]",
                              DoubleValue(0.015),
                              MakeDoubleAccessor(&Pi2QueueDisc::m_target),
                              MakeDoubleChecker<double>())
                .AddAttribute("Alpha",
                              "Gain on the delay [1/s]",
                              DoubleValue(0.16),
                              MakeDoubleAccessor(&Pi2QueueDisc::m_alpha),
                              MakeDoubleChecker<double>())
                .AddAttribute("Beta",
                              "Gain on its change [1/s]",
                              DoubleValue(3.2),
                              MakeDoubleAccessor(&Pi2QueueDisc::m_beta),
                              MakeDoubleChecker<double>())
                .AddAttribute("Coupling",
                              "k",
                              DoubleValue(2.0),
                              MakeDoubleAccessor(&Pi2QueueDisc::m_coupling),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = Pi2Law{m_target, m_alpha, m_beta, m_coupling}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_target;
    double m_alpha;
    double m_beta;
    double m_coupling;
    Pi2Law::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(Pi2QueueDisc);

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

/// p = 1 while q > K, else 0.
struct ThresholdLaw
{
    double threshold; ///< K [packet]

    struct State
    {
        double probability = 0.0; ///< Of marking a packet, 0 or 1
    };

    State Next(const State&, const Seen& seen) const
    {
        return State{seen.backlog > threshold ? 1.0 : 0.0};
    }
};

/// A queue disc that runs ThresholdLaw.
class ThresholdQueueDisc final : public LawQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::ThresholdQueueDisc")
                .SetParent<LawQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<ThresholdQueueDisc>()
                .AddAttribute("Threshold",
                              "K [packet]",
                              DoubleValue(30.0),
                              MakeDoubleAccessor(&ThresholdQueueDisc::m_threshold),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    double Act(const Seen& seen) override
    {
        m_state = ThresholdLaw{m_threshold}.Next(m_state, seen);
        return m_state.probability;
    }

    double m_threshold;
    ThresholdLaw::State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(ThresholdQueueDisc);

struct DualPi2State
{
    double baseProbability = 0.0; ///< p'
    double oldDelay = 0.0;        ///< Of the update before [s]
    double credit = 0.0;          ///< Of the C queue: it is next while this is above 0 [% byte]
    double target = 0.0;          ///< Delay [s]
    double alpha = 0.0;           ///< Gain on the delay [1/s]
    double beta = 0.0;            ///< Gain on its change [1/s]
    double coupling = 0.0;        ///< k
    double step = 0.0;            ///< [s]
    double stepBytes = 0.0;       ///< What a packet has to find in the L queue for the step to apply to it [byte]
    double weight = 0.0;          ///< Of the C queue, that of the L queue being 100 less it [%]
    double packet = 0.0;          ///< A full one [byte]
};

/// Credit while both queues are empty: the L queue is first, unless the C queue has more than half the link.
inline double
FreshCredit(double weight, double packet)
{
    return packet * (weight - (100.0 - weight));
}

/// Whether the C queue's first packet is next; one of the two has one.
inline bool
ClassicIsNext(double credit, bool lowWaits, bool classicWaits)
{
    return classicWaits && (!lowWaits || credit > 0.0);
}

/// Credit after a packet of `size` bytes was sent while the other queue had one too.
inline double
SpendCredit(double credit, double weight, bool classic, double size)
{
    return classic ? credit - (100.0 - weight) * size : credit + weight * size;
}

/// The next p', from the age of the older of both first packets [s].
inline void
UpdateDualpi2(DualPi2State& state, double delay)
{
    const double old = state.oldDelay;
    state.baseProbability = Pi2Base(state.baseProbability, delay, old, state.target, state.alpha, state.beta);
    state.oldDelay = delay;
}

/// What becomes of the packet that was taken from a queue: SEND, MARK or DROP.
///
/// Parameters
/// ----------
/// state : DualPi2State
/// low : bool
///     It was in the L queue.
/// capable : bool
///     It can be marked.
/// late : bool
///     The step applies to it, and it has waited longer than that.
/// backlog : float
///     What else waits in both queues [byte].
/// draw : float
///     Drawn evenly from [0, 1).
inline int64_t
JudgePacket(const DualPi2State& state, bool low, bool capable, bool late, double backlog, double draw)
{
    bool chosen = low && late;
    if (backlog >= 2.0 * state.packet)
    {
        const bool overload = state.coupling * state.baseProbability >= 1.0;
        const bool squared = draw < state.baseProbability * state.baseProbability;
        if (squared && overload)
        {
            return 2;
        }
        const bool coupled = draw < state.coupling * state.baseProbability;
        chosen = chosen || (low && coupled) || (!low && squared);
    }
    if (chosen)
    {
        return (capable ? 1 : 2);
    }
    return 0;
}

/// DualPI2: a queue disc that runs these functions.
class DualPi2QueueDisc final : public DualQueueDisc
{
  public:
    static ns3::TypeId GetTypeId()
    {
        using namespace ns3;
        static TypeId tid =
            TypeId("netctrl::DualPi2QueueDisc")
                .SetParent<DualQueueDisc>()
                .SetGroupName("TrafficControl")
                .AddConstructor<DualPi2QueueDisc>()
                .AddAttribute("Target",
                              "Delay [s]",
                              DoubleValue(0.015),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_target),
                              MakeDoubleChecker<double>())
                .AddAttribute("Alpha",
                              "Gain on the delay [1/s]",
                              DoubleValue(0.16),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_alpha),
                              MakeDoubleChecker<double>())
                .AddAttribute("Beta",
                              "Gain on its change [1/s]",
                              DoubleValue(3.2),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_beta),
                              MakeDoubleChecker<double>())
                .AddAttribute("Coupling",
                              "k",
                              DoubleValue(2.0),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_coupling),
                              MakeDoubleChecker<double>())
                .AddAttribute("Step",
                              "[s]",
                              DoubleValue(0.001),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_step),
                              MakeDoubleChecker<double>())
                .AddAttribute("StepBytes",
                              "What a packet has to find in the L queue for the step to apply to it [byte]",
                              DoubleValue(1000.0),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_stepBytes),
                              MakeDoubleChecker<double>())
                .AddAttribute("Weight",
                              "Of the C queue, that of the L queue being 100 less it [%]",
                              DoubleValue(10.0),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_weight),
                              MakeDoubleChecker<double>())
                .AddAttribute("Packet",
                              "A full one [byte]",
                              DoubleValue(1000.0),
                              MakeDoubleAccessor(&DualPi2QueueDisc::m_packet),
                              MakeDoubleChecker<double>());
        return tid;
    }

  private:
    void Start() override
    {
        m_state.target = m_target;
        m_state.alpha = m_alpha;
        m_state.beta = m_beta;
        m_state.coupling = m_coupling;
        m_state.step = m_step;
        m_state.stepBytes = m_stepBytes;
        m_state.weight = m_weight;
        m_state.packet = m_packet;
        Idle();
    }

    void Idle() override
    {
        m_state.credit = FreshCredit(m_state.weight, m_state.packet);
    }

    bool ClassicNext(bool low, bool classic) const override
    {
        return ClassicIsNext(m_state.credit, low, classic);
    }

    void Spend(bool classic, double size) override
    {
        m_state.credit = SpendCredit(m_state.credit, m_state.weight, classic, size);
    }

    bool Steps(double found) const override
    {
        return found >= m_state.stepBytes;
    }

    bool Late(double waited) const override
    {
        return waited > m_state.step;
    }

    int64_t Judge(bool low, bool capable, bool late, double backlog, double draw) const override
    {
        return JudgePacket(m_state, low, capable, late, backlog, draw);
    }

    double Update(double delay) override
    {
        UpdateDualpi2(m_state, delay);
        return m_state.baseProbability * m_state.baseProbability;
    }

    double m_target;
    double m_alpha;
    double m_beta;
    double m_coupling;
    double m_step;
    double m_stepBytes;
    double m_weight;
    double m_packet;
    DualPi2State m_state;
};

NS_OBJECT_ENSURE_REGISTERED(DualPi2QueueDisc);

namespace prague
{

struct PragueState
{
    double window = 0.0;
    double threshold = 0.0;
    double rtt = 0.0;
    double minRtt = 0.0;
    double maxRtt = 0.0;
    double cutS = 0.0;
    double recoveredS = 0.0;
    double timedOut = 0.0;
    double even = 0.0;
    double unmarked = 0.0;
    double left = 0.0;
    double acks = 0.0;
    double marks = 0.0;
    double spared = 0.0;     ///< To be acknowledged before the window may be cut again [packet]
    double heard = 0.0;      ///< 1: a mark has come
};

struct Acked
{
    double packets; ///< That were acknowledged
    double since;   ///< The last cut [s]
    double rtt;     ///< With queueing [s]
    bool recovered; ///< The round trip of the last cut is over
};

struct Echoed
{
    bool marked;        ///< The packet that it acknowledges was marked
    double packets;     ///< Acknowledged by now, since the acknowledgement before
    double outstanding; ///< Sent and not acknowledged in order [packet]
};

struct Averaged
{
    double unmarked;
    double left;
    double acks;
    double marks;
};

/// The window after `acknowledged` packets more: slow start below `threshold`, else a packet a window [packet].
///
/// Source: RFC 5681, eqs. 2 and 3.
inline double
RenoWindow(double window, double acknowledged, double threshold)
{
    return window < threshold ? window + acknowledged : window + acknowledged / window;
}

/// Round trips in a virtual one, V/R with V = max(R, 25 ms).
inline double
VirtualTrips(double rtt)
{
    return std::max(0.025 / rtt, 1.0);
}

/// By 1/W for each packet, over (V/R)^2; in slow start as Reno.
inline void
Grow(PragueState& state, const Acked& acked)
{
    if (acked.recovered)
    {
        const double grown = RenoWindow(state.window, acked.packets, state.threshold);
        const double trips = state.window < state.threshold ? 1.0 : VirtualTrips(state.rtt);
        state.window += (grown - state.window) / (trips * trips);
    }
}

/// W after a loss [packet]; once for all losses of a round trip.
///
/// Source: RFC 5681, eq. 4; RFC 6582, section 3.2.
inline double
RenoCut(double window)
{
    return std::max(0.5 * window, 2.0);
}

/// At a loss, Reno's; a mark doesn't cut it again in this virtual round trip.
inline void
Cut(PragueState& state)
{
    state.window = RenoCut(state.window);
    state.spared = state.window * VirtualTrips(state.rtt);
}

/// W (1 - alpha/2) after a mark, alpha = 1 - unmarked [packet]. Source: RFC 8257, section 3.3.
inline double
DctcpCut(double window, double unmarked)
{
    return std::max(0.5 * (1.0 + unmarked) * window, 2.0);
}

/// W (1 - alpha/2), once in a virtual round trip.
inline void
Mark(PragueState& state)
{
    if (state.spared <= 0.0)
    {
        state.window = DctcpCut(state.window, state.unmarked);
        state.threshold = state.window;
        state.spared = state.window * VirtualTrips(state.rtt);
    }
}

/// alpha <- (1 - g) alpha + g M once in `trips` windows of data, M the part of their acknowledgements with a mark.
///
/// Takes the fields of `DctcpState` with these names. Source: RFC 8257, section 3.3.
inline Averaged
DctcpAverage(double unmarked, double left, double acks, double marks, const Echoed& echoed, double trips)
{
    acks += 1.0;
    if (echoed.marked)
    {
        marks += 1.0;
    }
    left -= echoed.packets;
    if (left > 0.0)
    {
        return Averaged{unmarked, left, acks, marks};
    }
    return Averaged{unmarked + 0.0625 * (1.0 - marks / acks - unmarked), trips * echoed.outstanding, 0.0, 0.0};
}

/// DCTCP's alpha, once in a virtual round trip; 1 until the first mark.
inline void
Echo(PragueState& state, const Echoed& echoed)
{
    state.spared -= echoed.packets;
    if (echoed.marked)
    {
        state.heard = 1.0;
    }
    if (state.heard > 0.0)
    {
        const double trips = VirtualTrips(state.rtt);
        const Averaged after = DctcpAverage(state.unmarked, state.left, state.acks, state.marks, echoed, trips);
        state.unmarked = after.unmarked;
        state.left = after.left;
        state.acks = after.acks;
        state.marks = after.marks;
    }
}

struct Law
{
    using State = PragueState;
    static constexpr auto Grow = &prague::Grow;
    static constexpr auto Cut = &prague::Cut;
    static constexpr auto Mark = &prague::Mark;
    static constexpr auto Echo = &prague::Echo;
};

} // namespace prague

class Prague final : public ScalableWindow<prague::Law>
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::Prague")
                                .SetParent<TcpDctcp>()
                                .SetGroupName("Internet")
                                .AddConstructor<Prague>();
        return tid;
    }

    std::string GetName() const override
    {
        return "Prague";
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<Prague>(this);
    }
};

NS_OBJECT_ENSURE_REGISTERED(Prague);

} // namespace netctrl

#endif // NETCTRL_LAWS_H
