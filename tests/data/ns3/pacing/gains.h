// Made by netctrl export ns3: do not edit.
// The law of pacing rates with its parameters; what they mean is in netctrl-pacing-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-pacing-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Why the gains can be trusted, at 1e+08 bit/s and 0.02 s: the certificate of the Design.
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

/// Sets the rates of paced flows: parameters, then the state before the first sample.
inline const Pacer kLaw = TargetPacer{
    {
        1.0, // psi
        1.0, // xi
        0.0001, // period: T [s]
        10000.0, // min_rate: [bit/s]
        100000000000.0, // max_rate: [bit/s]
        1500.0, // packet: [byte]
        0.09, // queue_share: Of the least RTT that is to wait
        0.007, // queue_share_slope: Over ln(window)
        0.01, // min_queue_share
        0.25, // interval_share: Between two rates, over the least RTT
        2.0, // start_growth: Until a queue is seen
        1.25, // growth: Where no queue is seen
        0.5, // decrease: Least rate over the delivered rate
        1.0, // probe_s: Between two drains [s]
        50.0, // probe_rtts: The same, in least RTTs
        0.94, // drain_share: Of the pipe, to which a drain goes
        0.0, // competitive: 1: finds foreign queues
        1000000.0, // start_rate: [bit/s]
        2.0, // horizon_rtts: H over the least RTT
    },
    {
        -HUGE_VAL, // time_s: Of the newest sample [s]
        -HUGE_VAL, // applied_s: Of the newest rate [s]
        1000000.0, // rate: In force [bit/s]
        HUGE_VAL, // min_rtt: [s]
        0.0, // target_rtt: [s]
        0.0, // delivered_rate: [bit/s]
        0.0, // prediction: Of the RTT to come [s]
        0.0, // samples
        0.0, // phase: 0: start; 1: cruise; 2: drain; 3: drained
        HUGE_VAL, // recent_rtt: Least since the last rate [s]
        0.0, // free_since_s: A queue stood last [s]
        0.0, // probe_s: The next drain begins [s]
        0.0, // drain_until_s: [s]
        HUGE_VAL, // lowest_rtt: Of this period [s]
        HUGE_VAL, // lowest_rtt_before: Of the one before [s]
        0.0, // highest_rtt: Since the last loss, or of this period [s]
        0.0, // highest_rate: Delivered, of this period [bit/s]
        0.0, // highest_rate_before: Of the one before [bit/s]
        0.0, // foreign: 1: the queue is somebody else's
        0.0, // marks: That the rings were given
        0.0, // delivered_bytes
        -1.0, // lost_bytes: -1: not known yet
        0.0, // cubic_highest: Window at the last cut [packet]
        0.0, // cubic_cut_s: [s]
        0.0, // cubic_until_s: It isn't cut again before [s]
        HUGE_VAL, // room_s: Half of the queue at the last loss [s]
        -HUGE_VAL, // cut_until_s: The rate is halved until [s]
        HUGE_VAL, // most_in_flight: What may be [byte]
        0.0, // bad_rtt: RTTs that are none
        0.0, // bad_time: Times that go backwards
        0.0, // held: Rates held for want of a number
        0.0, // floored: Rates that would have been below the least one
        0.0, // resets
    },
};

/// In front of the bottleneck.
inline const QueueSettings kQueue =
    {"ns3::FifoQueueDisc", {}};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
