// The regulator of one flow, without ns-3: bursts at the access rate, and pauses between them. C++17.
//
// Times in seconds, as in netctrl.sim.access.kernel and netctrl.sim.access.problem, whose draws it is given.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_REGULATOR_H
#define NETCTRL_REGULATOR_H

#include "netctrl-access-laws.h"

#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

namespace netctrl
{

class Regulator
{
  public:
    /// @param pauses of the flow, over their means: the first is what is left of the pause in which it starts
    /// @param bits of a packet
    /// @param spacing between the packets of a burst [s]
    Regulator(std::vector<double> pauses, double bits, double spacing)
        : m_pauses(std::move(pauses)),
          m_bits(bits),
          m_spacing(spacing),
          m_held(m_pauses.at(0))
    {
    }

    /// When the next packet goes [s]; HUGE_VAL while the rate is 0.
    double Next() const
    {
        return m_next;
    }

    /// From `time` on this is the rate [bit/s]. A pause that goes on is stretched by the ratio of the means; a burst that
    /// goes on is finished.
    void Command(double time, double rate, int burst)
    {
        const double mean = PauseMean(rate, burst, m_bits, m_spacing);
        if (mean == m_pause && burst == m_burst)
        {
            return;
        }
        if (m_pausing && m_next > time)
        {
            m_held = std::isinf(m_next) ? m_held : (m_next - time) / m_pause;
            m_next = std::isinf(mean) ? HUGE_VAL : time + m_held * mean;
            m_left = burst;
        }
        m_pause = mean;
        m_burst = burst;
    }

    /// The packet goes that was next.
    void Release()
    {
        --m_left;
        m_pausing = m_left == 0;
        if (!m_pausing)
        {
            m_next += m_spacing;
            return;
        }
        if (++m_used == m_pauses.size())
        {
            std::fprintf(stderr, "a flow has sent more bursts than its table has pauses\n");
            std::exit(1);
        }
        m_held = m_pauses[m_used];
        m_left = m_burst;
        m_next = std::isinf(m_pause) ? HUGE_VAL : m_next + m_held * m_pause;
    }

  private:
    std::vector<double> m_pauses;
    double m_bits;
    double m_spacing;
    double m_held;             ///< the last pause over its mean
    double m_next = HUGE_VAL;  ///< [s]
    double m_pause = HUGE_VAL; ///< mean [s]
    int m_burst = 1;
    int m_left = 1;        ///< packets of the burst
    bool m_pausing = true; ///< whether the next packet is the first of a burst
    std::size_t m_used = 0;
};

} // namespace netctrl

#endif // NETCTRL_REGULATOR_H
