// Made by netctrl export ns3: do not edit.

#ifndef NETCTRL_SCENARIO_H
#define NETCTRL_SCENARIO_H

#include "netctrl-fifo-tables.h"

namespace netctrl
{

inline constexpr const char* kScenario = "busy";
inline constexpr double kInterval = 1.0; ///< Ts [s]
inline constexpr int64_t kPeriods = 9;
inline constexpr int64_t kOpenPeriods = 2; ///< in which regulators are open, before the law is switched on
inline constexpr int64_t kDuration = 9000000000; ///< [ns]
inline constexpr double kSeconds = 9.0; ///< [s]
inline constexpr uint64_t kCapacity = 100000000U; ///< of each hop [bit/s]
inline constexpr int kHops = 2;
inline constexpr int kFlows = 6; ///< behind regulators
inline constexpr uint32_t kLimit = 20U; ///< packets in a node, the one being sent included
inline constexpr uint32_t kSize = 1000U; ///< of packets that are not premium, on the wire [byte]
inline constexpr uint32_t kPremiumSize = 200U; ///< of premium packets, on the wire [byte]
inline constexpr uint32_t kPacketSize = 998U; ///< of the largest IP packets [byte]
inline constexpr double kPremiumPeriod = 0.0016; ///< between premium packets [s]
inline constexpr double kSpacing = 8e-05; ///< between packets of a burst [s]
inline constexpr double kBaseDelay = 0.00036; ///< added to each delay [s]
inline constexpr double kRateUnit = 1000000.0; ///< of the law's first input [bit/s]

/// What is measured in a period, at its end.
struct Columns
{
    double timeS;
    double rateBitPerS;
    double burst;
    double delayMs;
    double jitterMs;
    double meanDelayMs;
    double meanJitterMs;
    double premiumReceived;
    double premiumLost;
    double premiumBitPerS;
    double otherBitPerS;
    double otherLost;
    double utilization;
};

inline constexpr Column kColumns[] = {
    {"time_s", &Columns::timeS},
    {"rate_bit_per_s", &Columns::rateBitPerS},
    {"burst", &Columns::burst},
    {"delay_ms", &Columns::delayMs},
    {"jitter_ms", &Columns::jitterMs},
    {"mean_delay_ms", &Columns::meanDelayMs},
    {"mean_jitter_ms", &Columns::meanJitterMs},
    {"premium_received", &Columns::premiumReceived},
    {"premium_lost", &Columns::premiumLost},
    {"premium_bit_per_s", &Columns::premiumBitPerS},
    {"other_bit_per_s", &Columns::otherBitPerS},
    {"other_lost", &Columns::otherLost},
    {"utilization", &Columns::utilization},
};

/// flows, burst, share, offered [bit/s]
inline const std::vector<SourceRow> kSources = {
    {2, 10, 0.5, 100000000.0},
    {1, 3, 0.2, 30000000.0},
    {3, 20, 0.3, 100000000.0},
};

/// source, start [s], stop [s], rate [bit/s]
inline const std::vector<FailureRow> kFailures = {
    {0, 5.3, 7.7, 50000000.0},
};

/// hop, rate [bit/s], burst
inline const std::vector<CrossRow> kCross = {
    {0, 5000000.0, 4},
    {1, 20000000.0, 10},
};

/// outputs of the law: measurement, and what one of its unit is in the law's
inline const std::vector<Signal> kSignals = {
    {&Columns::meanDelayMs, 1.0},
    {&Columns::otherBitPerS, 1e-06},
};

/// from a period on: what is asked for, in the law's units
inline const std::vector<ReferenceRow> kReferences = {
    {0, {0.6, 59.0}},
    {3, {0.7, 50.0}},
    {6, {0.6, 59.0}},
};

} // namespace netctrl

#endif // NETCTRL_SCENARIO_H
