// Made by netctrl export ns3: do not edit.
// The queue of each link with its gains; their laws are in netctrl-laws.h.

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
    {"netctrl::ArcQueueDisc",
     {
        {"Alpha", "1.42e-05"}, // Gain [1/packet]
        {"Utilization", "0.98"}, // Target utilization gamma
        {"TargetQueue", "0.0"}, // q0 [packet]
        {"MeanPktSize", "1000"}, // [byte]
        {"Epoch", "1000000000ns"},
        {"RateErrorAmplitude", "1000000.0"}, // [bit/s]
        {"RateErrorFrequency", "0.5"}, // [rad/s]
        {"RateErrorStart", "10.0"}, // [s]
     }},
    // pi, 4e+06 bit/s
    {"netctrl::PiQueueDisc",
     {
        {"Alpha", "1.822e-05"}, // Gain on the queue [1/packet]
        {"Beta", "1.816e-05"}, // Gain on the queue of the epoch before [1/packet]
        {"ReferenceQueue", "50.0"}, // q_ref [packet]
        {"MeanPktSize", "1000"}, // [byte]
        {"Epoch", "5882353ns"},
     }},
    // avq, 4e+06 bit/s
    {"netctrl::AvqQueueDisc",
     {
        {"Utilization", "0.98"}, // Target utilization gamma
        {"Damping", "0.15"}, // Gain of the virtual capacity [1/s]
        {"VirtualBuffer", "100.0"}, // Of the virtual queue [packet]
        {"MeanPktSize", "1000"}, // [byte]
     }},
    // sfc, 4e+06 bit/s
    {"netctrl::SfcQueueDisc",
     {
        {"K1", "0.0005"}, // Gain on the queue [1/packet]
        {"K2", "0.2"}, // Gain on the rate over the capacity
        {"TargetQueue", "0.0"}, // q0 [packet]
        {"MeanPktSize", "1000"}, // [byte]
        {"Epoch", "1000000000ns"},
     }},
    // codel, 4e+06 bit/s
    {"ns3::CoDelQueueDisc",
     {
        {"UseEcn", "true"},
        {"MinBytes", "1000"}, // [byte]
        {"Target", "5000000ns"},
        {"Interval", "100000000ns"},
     }},
    // back, 4e+06 bit/s
    {"ns3::FifoQueueDisc", {}},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
