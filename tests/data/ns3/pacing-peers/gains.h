// Made by netctrl export ns3: do not edit.
// The law of pacing rates with its parameters; what they mean is in netctrl-pacing-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-pacing-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [\"netctrl\", \"a \134\"quote\134\" \052/\"], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Sets the rates of paced flows: parameters, then the state before the first sample.
inline const Pacer kLaw = ArxPacer{
    {
        1.0, // psi
        100.0, // xi
        0.01, // period: T [s]
        0.001, // min_rate: In the law's unit
        1.0, // max_rate: R, in the law's unit
        5.0, // past_rtts: p
        6.0, // places: k = p + q
        0.5, // step: alpha
        1.0, // normalised: 1: alpha is divided by |phi|^2
        0.5, // smoothing: gamma
        1.0, // guarded: 1: yes
        10000000.0, // rate_unit: [bit/s]
        0.1, // first_slope: b_1 at the start
        0.001, // slope_floor: b_1 below which a rate is held
        0.0001, // deviation_floor: Least deviation over the mean RTT
        100.0, // theta_limit: |theta| beyond which the estimate begins again
        0.5, // start_rate: In the law's unit
    },
    {
        -HUGE_VAL, // time_s: Of the newest sample that was used [s]
        -HUGE_VAL, // applied_s: Of the newest rate [s]
        5000000.0, // rate: In force [bit/s]
        0.0, // mean_rtt: In the law's unit
        0.0, // variance
        0.0, // mean_rate: In the law's unit
        0.0, // prediction: Of the RTT, in the law's unit
        0.0, // rtt_unit: [s]; 0: the first RTT will be
        0.0, // samples
        0.0, // free: Eq. (7) before its bounds, in the law's unit
        0.0, // bad_rtt: RTTs that are none
        0.0, // bad_time: Times that go backwards
        0.0, // held: Rates held for want of a number or of an effect
        0.0, // floored: Rates that would have been below the least one
        0.0, // resets: Estimates that exploded and started again
    },
    std::vector<double>(12), // theta, then phi
};

/// In front of the bottleneck.
inline const QueueSettings kQueue =
    {"ns3::CoDelQueueDisc",
     {
        {"UseEcn", "true"},
        {"MinBytes", "1500"}, // [byte]
        {"Target", "5000000ns"},
        {"Interval", "100000000ns"},
     }};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
