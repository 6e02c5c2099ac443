// A scalable sender's law that is printed from Python, as a congestion control of ns-3: ECT(1), and each packet's mark
// echoed.

#pragma once

#include "ns3/boolean.h"
#include "ns3/simulator.h"
#include "ns3/tcp-dctcp.h"
#include "ns3/tcp-socket-state.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace netctrl
{

using namespace ns3;

/// What a law does to its window: `Law` has State, Acked, Echoed, and static Grow, Cut, Mark and Echo.
///
/// Of TcpDctcp there is what makes a receiver echo each mark. ns-3 enters CWR at a mark, which leaves the window alone
/// where a congestion control has its own control; repair and timeouts are ns-3's.
template <class Law>
class ScalableWindow : public TcpDctcp
{
  public:
    ScalableWindow()
    {
        m_state.threshold = m_state.minRtt = HUGE_VAL;
    }

    void Init(Ptr<TcpSocketState> state) override
    {
        SetAttribute("UseEct0", BooleanValue(false));
        TcpDctcp::Init(state);
    }

    bool HasCongControl() const override
    {
        return true;
    }

    void CongControl(Ptr<TcpSocketState> state,
                     const TcpRateOps::TcpRateConnection&,
                     const TcpRateOps::TcpRateSample&) override
    {
        Set(state);
    }

    void IncreaseWindow(Ptr<TcpSocketState>, uint32_t) override
    {
    }

    void PktsAcked(Ptr<TcpSocketState> state, uint32_t segments, const Time& rtt) override
    {
        Take(state);
        if (rtt.IsStrictlyPositive())
        {
            m_state.rtt = rtt.GetSeconds();
            m_state.minRtt = std::min(m_state.minRtt, m_state.rtt);
        }
        const bool marked = state->m_ecnState == TcpSocketState::ECN_ECE_RCVD;
        const double packets = segments;
        const double sent = state->m_highTxMark.Get() - state->m_lastAckedSeq;
        Law::Echo(m_state, {marked, packets, sent / state->m_segmentSize});
        if (state->m_congState == TcpSocketState::CA_RECOVERY)
        {
            return;
        }
        if (marked)
        {
            Law::Mark(m_state);
        }
        else if (segments > 0)
        {
            // In slow start by two at most: RFC 3465, section 2.2.
            const double grown = m_state.window < m_state.threshold ? std::min(packets, 2.0) : packets;
            Law::Grow(m_state, {grown, Simulator::Now().GetSeconds() - m_state.cutS, m_state.rtt, true});
        }
        Set(state);
    }

    /// Called at marks too, which change nothing here; at a loss after the state is set to recovery.
    uint32_t GetSsThresh(Ptr<const TcpSocketState> state, uint32_t) override
    {
        if (m_lost)
        {
            m_lost = false;
            Lose();
        }
        return std::max(Bytes(state), 2 * state->m_segmentSize);
    }

    void CongestionStateSet(Ptr<TcpSocketState>, const TcpSocketState::TcpCongState_t to) override
    {
        m_lost = to == TcpSocketState::CA_RECOVERY;
        if (to == TcpSocketState::CA_LOSS)
        {
            Lose();
        }
    }

  private:
    void Lose()
    {
        Law::Cut(m_state);
        m_state.threshold = m_state.window;
        m_state.cutS = Simulator::Now().GetSeconds();
    }

    uint32_t Bytes(Ptr<const TcpSocketState> state) const
    {
        return static_cast<uint32_t>(std::min(m_state.window * state->m_segmentSize, 4294967295.0));
    }

    /// The window that ns-3 has set: the first one, or that after a timeout.
    void Take(Ptr<TcpSocketState> state)
    {
        if (state->m_cWnd.Get() != m_set)
        {
            m_state.window = static_cast<double>(state->m_cWnd.Get()) / state->m_segmentSize;
        }
    }

    void Set(Ptr<TcpSocketState> state)
    {
        m_set = Bytes(state);
        state->m_cWnd = m_set;
    }

    typename Law::State m_state;
    uint32_t m_set = 0; ///< [byte]
    bool m_lost = false;
};

} // namespace netctrl
