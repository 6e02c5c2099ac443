// Made by netctrl export ns3: do not edit.
// What packets of a measured flow see: printed from the Python that netctrl simulates.

#ifndef NETCTRL_DELAY_LAWS_H
#define NETCTRL_DELAY_LAWS_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace netctrl
{

constexpr int64_t kDelay = 0;
constexpr int64_t kJitter = 1;
constexpr int64_t kLastDelay = 2;
constexpr int64_t kDelaySum = 3;
constexpr int64_t kJitterSum = 4;
constexpr int64_t kMeasured = 5;

struct PremiumReading
{
    double delay;      ///< Moving average; 0 before the first packet
    double jitter;
    double meanDelay;  ///< Over the period; the moving average where no packet came
    double meanJitter;
    double received;   ///< In the period
};

/// Moving average after one more packet: d += (d_i - d)/8.
///
/// Source: CONNET paper, Section 3.2; RFC 3550, Section 6.4.1, has a gain of 1/16.
inline double
Averaged(double average, double value)
{
    return average + 0.125 * (value - average);
}

/// One more premium packet, and its difference from the one before.
inline void
Observe(std::vector<double>& measured, double delay, bool first)
{
    if (first)
    {
        measured[kDelay] = delay;
        measured[kLastDelay] = delay;
    }
    const double change = std::fabs(delay - measured[kLastDelay]);
    measured[kDelay] = Averaged(measured[kDelay], delay);
    measured[kJitter] = Averaged(measured[kJitter], change);
    measured[kLastDelay] = delay;
    measured[kDelaySum] += delay;
    measured[kJitterSum] += change;
    measured[kMeasured] += 1.0;
}

/// Averages of a period, `base` being added to each delay; empty: no packet has come since the beginning.
inline PremiumReading
ReadPremium(const std::vector<double>& measured, double base, bool empty)
{
    const double count = measured[kMeasured];
    const double delay = empty ? 0.0 : measured[kDelay] + base;
    const double meanDelay = count > 0.0 ? measured[kDelaySum] / count + base : delay;
    const double meanJitter = count > 0.0 ? measured[kJitterSum] / count : measured[kJitter];
    return PremiumReading{delay, measured[kJitter], meanDelay, meanJitter, count};
}

} // namespace netctrl

#endif // NETCTRL_DELAY_LAWS_H
