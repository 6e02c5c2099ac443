// The congestion control of a group: ns-3's, a window that is printed from Python, H-TCP by its draft; and TCP whose
// pacing rate a law sets, the paper's on top of H-TCP, the own rate's by itself.
//
// Laws count whole IP packets: a rate of the bottleneck's capacity is the capacity. ns-3 paces payload, so rates are
// handed over in proportion.

#pragma once

#include "netctrl-htcp.h"
#include "netctrl-pacers.h"
#include "netctrl-tcp-defaults.h"
#include "netctrl-tcp-windows.h"
#include "scenario.h"

#include "ns3/data-rate.h"
#include "ns3/object-factory.h"
#include "ns3/simulator.h"
#include "ns3/tcp-congestion-ops.h"
#include "ns3/tcp-socket-state.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>

namespace netctrl
{

using namespace ns3;

/// Size of whole packets over that of their payload.
inline double
PacketsOfPayload()
{
    return static_cast<double>(kPacketSize) / Segment();
}

/// A rate of whole packets as ns-3 is to have it, of payload.
inline DataRate
PayloadRate(double rate)
{
    return DataRate(static_cast<uint64_t>(std::max(std::llround(rate / PacketsOfPayload()), 1LL)));
}

/// A rate that a law may set, and what the law counted.
class PacingRate
{
  public:
    virtual ~PacingRate() = default;

    /// Of whole packets [bit/s].
    virtual double Rate() const = 0;
    virtual std::array<int64_t, 5> Events() const = 0;
};

/// H-TCP with a cap on its pacing rate: as in Linux the rate is that of the window, 1.2 windows a round trip (2 in slow
/// start), but no more than the cap.
class CappedHtcp final : public DraftHtcp, public PacingRate
{
  public:
    CappedHtcp(RoundTrips& trips, double cap)
        : DraftHtcp(trips),
          m_trips(trips),
          m_cap(cap)
    {
    }

    /// A cap that is the law's.
    CappedHtcp(RoundTrips& trips, const ArxPacer& law)
        : CappedHtcp(trips, law.state.rate)
    {
        m_law = std::make_unique<ArxPacer>(law);
    }

    double Rate() const override
    {
        return m_cap;
    }

    std::array<int64_t, 5> Events() const override
    {
        return m_law ? EventsOf(m_law->state) : std::array<int64_t, 5>{};
    }

    void Init(Ptr<TcpSocketState> state) override
    {
        DraftHtcp::Init(state);
        state->m_pacing = true;
        state->m_paceInitialWindow = true;
        state->m_maxPacingRate = PayloadRate(m_cap);
        state->m_pacingRate = state->m_maxPacingRate;
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t segments, const Time& rtt) override
    {
        DraftHtcp::PktsAcked(state, segments, rtt);
        const Time sample = m_trips.Fresh();
        if (m_law && sample.IsStrictlyPositive())
        {
            const double now = Simulator::Now().GetSeconds();
            m_cap = ArxPacingStep(m_law->state, m_law->parameters, m_law->memory, now, sample.GetSeconds());
            state->m_maxPacingRate = PayloadRate(m_cap);
        }
    }

    /// A window that the cap keeps empty doesn't grow, as in Linux (RFC 7661): it would reach any size.
    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segments) override
    {
        if (state->m_cWnd.Get() < 2 * state->m_bytesInFlight.Get())
        {
            DraftHtcp::IncreaseWindow(state, segments);
        }
    }

  private:
    RoundTrips& m_trips;
    double m_cap; ///< [bit/s]
    std::unique_ptr<ArxPacer> m_law;
};

/// The law's rate, and no more in flight than the law allows; beside that, a window of three times what it sends in a
/// round trip, for acknowledgements that stay out.
class OwnRate final : public TcpCongestionOps, public PacingRate
{
  public:
    OwnRate(RoundTrips& trips, const OwnRatePacer& law)
        : m_trips(trips),
          m_law(law)
    {
    }

    double Rate() const override
    {
        return m_law.state.rate;
    }

    std::array<int64_t, 5> Events() const override
    {
        return EventsOf(m_law.state);
    }

    std::string GetName() const override
    {
        return "OwnRate";
    }

    void Init(Ptr<TcpSocketState> state) override
    {
        state->m_pacing = true;
        state->m_paceInitialWindow = true;
        state->m_pacingRate = PayloadRate(Rate());
    }

    bool HasCongControl() const override
    {
        return true;
    }

    void CongControl(Ptr<TcpSocketState> state,
                     const TcpRateOps::TcpRateConnection& connection,
                     const TcpRateOps::TcpRateSample& sample) override
    {
        const Time rtt = m_trips.Fresh();
        if (state->m_ecnState == TcpSocketState::ECN_ECE_RCVD)
        {
            m_marked += sample.m_ackedSacked;
        }
        if (rtt.IsStrictlyPositive())
        {
            OwnRateLawStep(m_law.state,
                           m_law.parameters,
                           Simulator::Now().GetSeconds(),
                           rtt.GetSeconds(),
                           PacketsOfPayload() * static_cast<double>(connection.m_delivered),
                           PacketsOfPayload() * state->m_bytesInFlight.Get(),
                           PacketsOfPayload() * static_cast<double>(m_trips.again),
                           PacketsOfPayload() * m_marked);
            state->m_pacingRate = PayloadRate(Rate());
        }
        const double trip = Rate() / PacketsOfPayload() / 8.0 * m_trips.Newest().GetSeconds();
        const double usual = std::max(kWindows * trip, static_cast<double>(kFirstWindow * Segment()));
        const double window = std::min(usual, m_law.state.mostInFlight / PacketsOfPayload());
        state->m_cWnd = static_cast<uint32_t>(std::min(window, static_cast<double>(kSocketBuffer)));
    }

    uint32_t GetSsThresh(Ptr<const TcpSocketState>, uint32_t inFlight) override
    {
        return std::max(inFlight, 2 * Segment());
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CreateObject<TcpNewReno>(); // of sockets that listen, which send nothing
    }

  private:
    static constexpr double kWindows = 3.0;
    static constexpr uint32_t kFirstWindow = 10; ///< [segment], RFC 6928

    RoundTrips& m_trips;
    OwnRatePacer m_law;
    double m_marked = 0.0; ///< acknowledged by what told of marks [byte]
};

/// The control of a flow of a group, which sees these round trips.
inline Ptr<TcpCongestionOps>
MakeControl(const GroupRow& group, RoundTrips& trips)
{
    if (KnownToNs3(group.sender))
    {
        return ObjectFactory(group.sender).Create<TcpCongestionOps>();
    }
    if (group.pacer >= 0)
    {
        if (const auto* own = std::get_if<OwnRatePacer>(&kPacers[group.pacer]))
        {
            return CreateObject<OwnRate>(trips, *own);
        }
        return CreateObject<CappedHtcp>(trips, std::get<ArxPacer>(kPacers[group.pacer]));
    }
    if (group.cap > 0.0)
    {
        return CreateObject<CappedHtcp>(trips, group.cap);
    }
    if (group.sender == "htcp")
    {
        return CreateObject<DraftHtcp>(trips);
    }
    return MakeWindow(group.sender, trips);
}

} // namespace netctrl
