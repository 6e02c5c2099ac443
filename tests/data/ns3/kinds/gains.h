// Made by netctrl export ns3: do not edit.
// The queue of each link with its gains; what they mean is in netctrl-laws.h and netctrl-tables.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// In the order of kLinks (scenario.h).
inline const QueueSettings kQueues[] = {
    // arc, 4e+06 bit/s
    ArcLaw{
        1.42e-05, // alpha [1/packet]
        1.0, // epoch [s]
        0.98, // target utilization
        0.0, // target queue [byte]
        1000.0, // packet size [byte]
        {1000000.0, 0.5, 10.0}, // rate error: amplitude [bit/s], frequency [rad/s], start [s]
    },
    // pi, 4e+06 bit/s
    PiLaw{
        1.822e-05, // alpha [1/packet]
        1.816e-05, // beta [1/packet]
        0.0058823529411764705, // epoch [s], 1/frequency
        50000.0, // reference queue [byte]
        1000.0, // packet size [byte]
    },
    // avq, 4e+06 bit/s
    AvqLaw{
        0.98, // target utilization
        0.15, // damping [1/s]
        100000.0, // virtual buffer [byte]
    },
    // sfc, 4e+06 bit/s
    SfcLaw{
        0.0005, // k1 [1/packet]
        0.2, // k2
        1.0, // epoch [s]
        0.0, // target queue [byte]
        1000.0, // packet size [byte]
    },
    // codel, 4e+06 bit/s
    CodelSettings{
        5000000, // target [ns]
        100000000, // interval [ns]
    },
    // back, 4e+06 bit/s
    FifoSettings{},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
