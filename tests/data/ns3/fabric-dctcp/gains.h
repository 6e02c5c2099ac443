// Made by netctrl export ns3: do not edit.
// The law of windows with its gains; what they mean is in netctrl-mpcc.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-mpcc.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// The window's law.
inline const MpccLaw kLaw = {
    Variant::fixed, // variant
    0.0, // packet of (A.1) [byte]
    0.0, // W of (A.1) [byte], with gains by number of flows; 0: the flow's own
    1, // P [acknowledgement]
    1.0, // W_Q
    1.0, // W_R
    1, // windows that are remembered
};

/// P_BD [byte], D [ns], R_in [bit/s], first window [byte]; K of 0, 1, .. flows.
inline const std::vector<MpccPath> kPaths = {
    {1.0, 1.0, 1.0, 10000.0,
     {}},
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
