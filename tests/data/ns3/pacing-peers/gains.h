// Made by netctrl export ns3: do not edit.
// The law of pacing rates with its parameters; what they mean is in netctrl-pacing-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-pacing-laws.h"
#include "netctrl-queue-settings.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [\"netctrl\", \"a \134\"quote\134\" \052/\"], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// Sets the rates of paced flows.
inline const PacingTable kLaw = ArxTable{
    1.0, // psi
    100.0, // xi
    0.01, // T [s]
    0.001, // least rate, in the law's unit
    1.0, // R, in the law's unit
    5000000.0, // rate at the start [bit/s]
    5, // p
    1, // q
    0.5, // alpha
    true, // alpha is divided by |phi|^2
    0.5, // gamma
    true, // guarded
    0.0, // unit of RTTs [s]; 0: the first RTT
    10000000.0, // unit of rates [bit/s]
    0.1, // b_1 at the start
    0.001, // b_1 below which a rate is held
    0.0001, // least deviation over the mean RTT
    100.0, // |theta| beyond which the estimate begins again
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
