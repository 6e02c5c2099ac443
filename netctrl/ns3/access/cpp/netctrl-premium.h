// What premium packets see, measured one by one, without ns-3. C++17.
//
// Fixed: netctrl copies this file as it is. The averages are in netctrl-access-laws.h.

#ifndef NETCTRL_PREMIUM_H
#define NETCTRL_PREMIUM_H

#include "netctrl-access-laws.h"

#include <vector>

namespace netctrl
{

/// Times in seconds.
class PremiumMeter
{
  public:
    /// @param base added to each delay [s]
    explicit PremiumMeter(double base)
        : m_base(base)
    {
    }

    /// One more packet.
    void Take(double delay)
    {
        Observe(m_measured, delay, m_empty);
        m_empty = false;
    }

    /// A period ends.
    PremiumReading Read()
    {
        const PremiumReading reading = ReadPremium(m_measured, m_base, m_empty);
        std::fill(m_measured.begin() + kDelaySum, m_measured.end(), 0.0);
        return reading;
    }

  private:
    double m_base;
    std::vector<double> m_measured = std::vector<double>(kMeasured + 1);
    bool m_empty = true; ///< since the beginning
};

} // namespace netctrl

#endif // NETCTRL_PREMIUM_H
