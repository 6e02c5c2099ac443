// Made by netctrl export ns3: do not edit.
// The law of the links' rates with its gains; what they mean is in netctrl-link-laws.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-link-laws.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// In the order of kLinks (scenario.h).
inline const LawTable kLaw = {
    {
        {20900000.0, 41800000.0, 31350000.000000004, 31350000.000000004, 10450000.0},
        {0, 0, 0, 0, 0, 0},
        {
            // from 0: rates; from 5: backlogs; from 10: surpluses; from 15: shortfalls
        }}, // control
    {19000000.0, 38000000.0, 28500000.0, 28500000.0, 9500000.0}, // nominal [bit/s]
    0.0, // standing [bit/s]
    {0.0, 0.0, 0.0, 0.0, 0.0}, // expected [bit/s]
    false, // alone
    {0, 0, 0, 2, 3, 4}, // feedStart
    {{0, 0, 1.0}, {4, 1, 1.0}, {1, 0, 0.75}, {1, 0, 0.25}}, // feeds: link, delay [interval], share
};

/// Where messages may be late, lost or out of step.
inline const HearingTable kHearing = {
    0, // ticks
    {}, // predicted
    false, // central
    0, // messages
    {}, // line
    {}, // least
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
