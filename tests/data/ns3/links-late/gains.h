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
        {24891568.9284092, 5403702.971018229},
        {0, 6, 12},
        {
            // from 0: rates; from 2: backlogs; from 4: backlog news; from 6: rate news
            // "L1": 2.48916e+07 bit/s plus
            {0, 0, -0.5194622281160656},
            {0, 1, -0.03626082990950948},
            {0, 2, -0.03626082990950948},
            {1, 0, 0.03626082990950948},
            {2, 1, 0.46507098325180135},
            {3, 1, -0.03626082990950948},
            // "L2": 5.4037e+06 bit/s plus
            {0, 0, 0.16629950191876555},
            {0, 1, 0.49596906239259514},
            {0, 2, 0.49596906239259514},
            {1, 0, -0.49596906239259514},
            {2, 1, 0.07765409167012707},
            {3, 1, 0.49596906239259514},
        }}, // control
    {16000000.0, 16000000.0}, // nominal [bit/s]
    0.0, // standing [bit/s]
    {0.0, 0.0}, // expected [bit/s]
    false, // alone
    {0, 0, 1}, // feedStart
    {{0, 1, 1.0}}, // feeds: link, delay [interval], share
};

/// Where messages may be late, lost or out of step.
inline const HearingTable kHearing = {
    8, // ticks
    {
        {0.0, 0.0},
        {0, 0, 0},
        {
            // from 0: rates; from 2: backlogs; from 4: backlog news; from 6: rate news
        }}, // predicted
    true, // central
    2, // messages
    {0, 1, 0, 1}, // line
    {1, 1, 1, 1}, // least [interval]
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
