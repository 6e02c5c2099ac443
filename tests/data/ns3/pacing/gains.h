// Made by netctrl export ns3: do not edit.
// The law of pacing rates with its parameters; what they mean is in netctrl-pacing-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-pacing-laws.h"
#include "netctrl-queue-settings.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Why the law can be trusted, at 1e+08 bit/s and 0.02 s: the
/// certificate of the Design.
namespace design
{
inline constexpr const char* kStatus = "admissible";
inline constexpr double kSampling = 0.005; ///< between two rates [s]
inline constexpr double kStepLimit = 2.0; ///< of alpha
inline constexpr double kTargetRtt = 0.02108376058663443; ///< [s]
inline constexpr double kClosedLoopPole = 0.875; ///< of what is in flight, from one rate to the next
inline constexpr double kIntervalMargin = 16.0; ///< factor by which rates may come later
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";
} // namespace design

/// Sets the rates of paced flows.
inline const PacingTable kLaw = TargetTable{
    1.0, // psi
    1.0, // xi
    0.0001, // T [s]
    10000.0, // least rate [bit/s]
    100000000000.0, // greatest rate [bit/s]
    1000000.0, // rate at the start [bit/s]
    1500.0, // packet [byte]
    0.09, // share of the least RTT that is to wait
    0.007, // its slope over ln(window)
    0.01, // least share
    0.25, // between two rates, over the least RTT
    2.0, // H over the least RTT
    2.0, // growth until a queue is seen
    1.25, // growth where no queue is seen
    0.5, // least rate over the delivered rate
    1.0, // between two drains [s]
    50.0, // the same, in least RTTs
    0.94, // share of the pipe to which a drain goes
    false, // competitive
};

/// In front of the bottleneck.
inline const QueueSettings kQueue =
    {"ns3::FifoQueueDisc", {}};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
