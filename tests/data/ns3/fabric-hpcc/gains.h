// Made by netctrl export ns3: do not edit.
// The law of senders with its gains; it stands in netctrl-window-law.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-fabric-tables.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// The senders' law.
inline const Law kLaw = {
    0.95, // target: eta
    5.0, // stages: maxStage
    80.0, // increase: W_AI [byte]
    8240.0, // rtt: T [ns]
    1.0, // paced: 1: sends at W/T
};

inline constexpr std::size_t kMemory = 1; ///< numbers that it keeps besides its state

/// base_rtt Round trip without queues [ns], bdp The round trip in bytes at line rate, line_rate The sender's [bit/s], hops Switch ports on it, rates Theirs [bit/s]; line rate and first window of senders;
/// what the law looks up.
inline const std::vector<PathRow> kPaths = {
    {{4192.0, 52400.0, 100000000000.0, 1.0, {100000000000.0, 0.0, 0.0, 0.0, 0.0}}, 100000000000.0, 52400.0,
     {}},
    {{8240.0, 103000.0, 100000000000.0, 3.0, {400000000000.0, 400000000000.0, 100000000000.0, 0.0, 0.0}}, 100000000000.0, 103000.0,
     {}},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
