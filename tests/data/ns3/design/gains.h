// Made by netctrl export ns3: do not edit.
// The queue of each link with its gains; their laws are in netctrl-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Why the gains can be trusted: the certificate of the Design.
namespace design
{
inline constexpr const char* kStatus = "admissible";
inline constexpr const char* kMethod = "arc";
inline constexpr double kDesignCapacity = 10000000.0; ///< [bit/s]
inline constexpr double kAlphaLimit = 2.27662337e-05; ///< [1/packet], sampled loop of plant noq
inline constexpr double kGainMargin = 11.9750055; ///< [dB]; HUGE_VAL: unlimited
inline constexpr double kPhaseMargin = 45.0; ///< [degree]
inline constexpr double kDelayMargin = 3.51844491; ///< [s]
inline constexpr double kSpectralRadius = 0.882852913; ///< of one epoch
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [\"netctrl\", \"design\", \"arc\"], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";
} // namespace design

/// In the order of kLinks (scenario.h).
inline const QueueSettings kQueues[] = {
    // bottleneck, 1e+07 bit/s
    {"netctrl::ArcQueueDisc",
     {
        {"Alpha", "5.73509893643e-06"}, // Gain [1/packet]
        {"Utilization", "0.98"}, // Target utilization gamma
        {"TargetQueue", "0.0"}, // q0 [packet]
        {"MeanPktSize", "1000"}, // [byte]
        {"Epoch", "1000000000ns"},
     }},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
