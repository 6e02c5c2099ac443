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
        {18937600.0, 38816000.0, 27927500.0, 28372900.0, 10451400.0},
        {0, 2, 4, 6, 8, 10},
        {
            // from 0: rates; from 5: backlogs; from 10: surpluses; from 15: shortfalls
            // "e1": 1.89376e+07 bit/s plus
            {0, 0, -0.012},
            {5, 0, 0.363},
            // "e2": 3.8816e+07 bit/s plus
            {1, 0, -0.03},
            {6, 0, 0.405},
            // "s13": 2.79275e+07 bit/s plus
            {2, 0, -0.007},
            {7, 0, 0.965},
            // "s23": 2.83729e+07 bit/s plus
            {3, 0, -0.021},
            {8, 0, 0.907},
            // "s21": 1.04514e+07 bit/s plus
            {4, 0, -0.158},
            {9, 0, 0.687},
        }}, // control
    {19000000.0, 38000000.0, 28500000.0, 28500000.0, 9500000.0}, // nominal [bit/s]
    800000.0, // standing [bit/s]
    {19000000.0, 38000000.0, 0.0, 0.0, 0.0}, // expected [bit/s]
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
