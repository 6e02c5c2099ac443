// What premium packets see: moving averages of delay and jitter, and means over a period, without ns-3. C++17.
//
// Source: CONNET paper, Section 3.2; netctrl.sim.access.kernel.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PREMIUM_H
#define NETCTRL_PREMIUM_H

#include <cmath>
#include <cstdint>

namespace netctrl
{

/// Times in seconds.
class PremiumMeter
{
  public:
    struct Reading
    {
        double delay; ///< moving average; 0 before the first packet
        double jitter;
        double meanDelay; ///< over the period; the moving average where no packet came
        double meanJitter;
        int64_t received; ///< in the period
    };

    /// @param base added to each delay [s]
    explicit PremiumMeter(double base)
        : m_base(base)
    {
    }

    /// One more packet.
    void Take(double delay)
    {
        m_delay = m_all == 0 ? delay : m_delay;
        m_last = m_all == 0 ? delay : m_last;
        const double change = std::fabs(delay - m_last);
        m_delay += kGain * (delay - m_delay);
        m_jitter += kGain * (change - m_jitter);
        m_last = delay;
        m_delays += delay;
        m_jitters += change;
        ++m_received;
        ++m_all;
    }

    /// A period ends.
    Reading Read()
    {
        const auto count = static_cast<double>(m_received);
        const double delay = m_all == 0 ? 0.0 : m_delay + m_base;
        const Reading reading = {delay,
                                 m_jitter,
                                 m_received == 0 ? delay : m_delays / count + m_base,
                                 m_received == 0 ? m_jitter : m_jitters / count,
                                 m_received};
        m_delays = m_jitters = 0.0;
        m_received = 0;
        return reading;
    }

  private:
    static constexpr double kGain = 0.125; ///< d += (d_i - d)/8

    double m_base;
    double m_delay = 0.0;
    double m_jitter = 0.0;
    double m_last = 0.0;
    double m_delays = 0.0;  ///< sum over the period
    double m_jitters = 0.0; ///< sum over the period
    int64_t m_received = 0; ///< in the period
    int64_t m_all = 0;      ///< since the beginning
};

} // namespace netctrl

#endif // NETCTRL_PREMIUM_H
