// MPCC, one acknowledgement at a time: the closed form of its quadratic program, without ns-3. C++17.
//
//   W = clip(c - K(N) Q, 1 byte, P_BD), c = min(R_out/(R_in N), 1) P_BD
//
// K from a table by the number of flows N, or by the scalar Riccati recursion at each step. Bytes, bit/s, nanoseconds.
//
// Source: MPCC thesis, (3.4) to (3.7), Algorithm 1, (A.1); netctrl.laws.window.mpcc.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_MPCC_H
#define NETCTRL_MPCC_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace netctrl
{

enum class Variant
{
    delayFree,
    delayed,     ///< of the queue that (3.7) predicts
    feedForward, ///< K = 0: W = c(N)
    hold,        ///< while all queues are empty the window stays
    fixed        ///< no law: the window stays
};

/// What all flows share.
struct MpccLaw
{
    Variant variant;
    double packet;       ///< of (A.1) [byte]
    double stepWindow;   ///< W of (A.1) [byte], with a table of gains; 0: the flow's own, without
    int horizon;         ///< P [acknowledgement]
    double queueWeight;  ///< W_Q
    double windowWeight; ///< W_R
    std::size_t history; ///< windows that are remembered, for `delayed`
};

/// A kind of path.
struct MpccPath
{
    double bdp;         ///< P_BD [byte]
    double roundTrip;   ///< D, without queues [ns]
    double lineRate;    ///< R_in [bit/s]
    double startWindow; ///< [byte]; HUGE_VAL: no limit
    std::vector<double> gains; ///< K of 0, 1, .. flows; the last stands for all above. Empty: by the recursion
};

/// What a switch port told.
struct HopSeen
{
    double queue; ///< [byte]
    int64_t flows;
    double rate; ///< R_out [bit/s]
};

/// The port that counts.
struct Bottleneck
{
    double queue;
    int64_t flows;
    double share; ///< R_out/(R_in N)
};

/// The hop with the longest queue (Algorithm 1); where all are empty, that with the least fair share.
inline Bottleneck
FindBottleneck(double lineRate, const HopSeen* hops, int count)
{
    Bottleneck least{0.0, 1, std::numeric_limits<double>::infinity()};
    int best = -1;
    double queue = 0.0;
    for (int h = 0; h < count; ++h)
    {
        if (hops[h].queue > queue)
        {
            best = h;
            queue = hops[h].queue;
        }
    }
    const int first = best < 0 ? 0 : best;
    const int last = best < 0 ? count : best + 1;
    for (int h = first; h < last; ++h)
    {
        const int64_t flows = std::max<int64_t>(hops[h].flows, 1);
        const double share = hops[h].rate / (lineRate * static_cast<double>(flows));
        if (share < least.share)
        {
            least = {queue, flows, share};
        }
    }
    return least;
}

/// K_P: P - 1 times s = W_Q + s W_R/(W_R + B^2 s), then B s/(W_R + B^2 s).
///
/// With s = W_Q p/q and t = B^2 W_Q/W_R: p, q = q + (1 + t) p, q + t p, K_P = t p/((q + t p) B), and one division in all.
///
/// @param ratio W_Q/W_R
inline double
HorizonGain(double B, int horizon, double ratio)
{
    const double t = B * B * ratio;
    double p = 1.0;
    double q = 1.0;
    for (int i = 1; i < horizon; ++i)
    {
        const double grown = q + t * p;
        p = q + (1.0 + t) * p;
        q = grown;
        if (p > 1e200) // only their ratio counts
        {
            p *= 1e-200;
            q *= 1e-200;
        }
    }
    return t * p / ((q + t * p) * B);
}

/// A flow's window.
class MpccWindow
{
  public:
    /// Both are kept by reference.
    MpccWindow(const MpccLaw& law, const MpccPath& path)
        : m_law(law),
          m_path(path),
          m_window(path.startWindow),
          m_scale(law.packet * path.roundTrip * path.lineRate / (8e9 * path.bdp)),
          m_ratio(law.queueWeight / law.windowWeight),
          m_steps(law.stepWindow / law.packet),
          m_history(law.variant == Variant::delayed ? std::max<std::size_t>(law.history, 1) : 0)
    {
    }

    double Window() const
    {
        return m_window;
    }

    /// The window after an acknowledgement that tells of these hops.
    double Step(const HopSeen* hops, int count)
    {
        if (m_law.variant == Variant::fixed || count == 0)
        {
            return m_window;
        }
        const Bottleneck seen = FindBottleneck(m_path.lineRate, hops, count);
        const double fair = std::min(seen.share, 1.0) * m_path.bdp;
        if (m_law.variant == Variant::feedForward)
        {
            return m_window = std::max(fair, 1.0);
        }
        if (m_law.variant == Variant::hold && seen.queue == 0.0)
        {
            return m_window;
        }
        const bool tabled = m_law.stepWindow > 0.0;
        // In a round trip come W/packet acknowledgements (A.1); at less than a packet it would be none.
        const double step = tabled ? m_law.stepWindow : std::max(m_window, m_law.packet);
        const bool delayed = m_law.variant == Variant::delayed;
        const double B = tabled && !delayed ? 0.0 : m_scale * static_cast<double>(seen.flows) / step;
        const double queue = delayed ? Predict(seen.queue, B, fair, step) : seen.queue;
        const double gain = tabled ? m_path.gains[std::min(static_cast<std::size_t>(seen.flows), m_path.gains.size() - 1)]
                                   : HorizonGain(B, m_law.horizon, m_ratio);
        // 1 byte: a sender with nothing under way may send one packet, else it would never hear again.
        m_window = std::min(std::max(fair - gain * queue, 1.0), m_path.bdp);
        if (delayed)
        {
            m_history[m_next] = m_window;
            m_next = m_next + 1 == m_history.size() ? 0 : m_next + 1;
            m_fed += m_fed < m_history.size();
        }
        return m_window;
    }

  private:
    /// Q + B sum of (W(k - i) - c), oldest first, never below 0 on its way (3.7).
    double Predict(double queue, double B, double fair, double step) const
    {
        const double steps = m_law.stepWindow > 0.0 ? m_steps : step / m_law.packet;
        const std::size_t count = std::min(static_cast<std::size_t>(steps), m_fed);
        std::size_t place = m_next >= count ? m_next - count : m_next + m_history.size() - count;
        for (std::size_t i = 0; i < count; ++i)
        {
            queue = std::max(queue + B * (m_history[place] - fair), 0.0);
            place = place + 1 == m_history.size() ? 0 : place + 1;
        }
        return queue;
    }

    const MpccLaw& m_law;
    const MpccPath& m_path;
    double m_window;
    double m_scale; ///< B times the window that it is for, of one flow: packet D R_in/(8 P_BD)
    double m_ratio; ///< W_Q/W_R
    double m_steps; ///< under way with a given W of (A.1)
    std::vector<double> m_history; ///< ring
    std::size_t m_next = 0; ///< place in it of the next
    std::size_t m_fed = 0;  ///< how many are in it
};

} // namespace netctrl

#endif // NETCTRL_MPCC_H
