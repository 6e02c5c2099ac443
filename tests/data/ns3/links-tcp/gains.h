// Made by netctrl export ns3: do not edit.
// The law of the links' rates with its gains; what they mean is in netctrl-link-law.h.

#ifndef NETCTRL_GAINS_H
#define NETCTRL_GAINS_H

#include "netctrl-link-law.h"

namespace netctrl
{

/// How this export was made, as JSON.
inline constexpr const char* kProvenance = "{\"netctrl\": \"0.1.0\", \"git_revision\": null, \"argv\": [], \"seed\": 1, \"input_hashes\": {}, \"python\": \"3.11\", \"libraries\": {}}";

/// In the order of kLinks (scenario.h); rates and backlogs, over the interval, in bit/s.
/// Series are from 0: rates; from 5: backlogs; from 10: innovations of backlogs; from 15: innovations of rates.
inline const LinkRates kLaw = {
    {19000000.0, 38000000.0, 28500000.0, 28500000.0, 9500000.0}, // nominal: (N) rates around which links are controlled
    0.0, // setpoint: backlog around which they are
    { // control: of the rates
        {0, 0, 0, 0, 0, 0}, // start: (N + 1) where each link's taps start
        {}, // series: (P)
        {}, // lag: (P) [sample]
        {}, // coefficient: (P)
        {20900000.0, 41800000.0, 31350000.000000004, 31350000.000000004, 10450000.0}, // offset: (N) [bit/s]
    },
    { // predicted: of each link's own backlog, from innovations; no taps where the law takes none
        {0, 0, 0, 0, 0, 0}, // start: (N + 1) where each link's taps start
        {}, // series: (P)
        {}, // lag: (P) [sample]
        {}, // coefficient: (P)
        {0.0, 0.0, 0.0, 0.0, 0.0}, // offset: (N) [bit/s]
    },
    false, // foresees: whether the law takes what came unforeseen and what wasn't sent instead: all must be heard in time
    {0.0, 0.0, 0.0, 0.0, 0.0}, // expected: (N) what is foreseen to arrive at each link, beside what others feed
    { // feeds: of links, by those that feed them
        {0, 0, 0, 0, 0, 0}, // start: (N + 1)
        {}, // link: that feeds
        {}, // delay: of it [sample]
        {}, // share: of what it sends that comes here
    },
    false, // central: whether one controller hears of all and tells all links what to send
    1, // ticks: of an interval
    0, // messages: sent in an interval; 0: all is heard in time
    {0, {}}, // line: (N, N) number of the messages by which link l hears of link k; -1: of none
    {0, {}}, // least: (N, N) age from which on link l hears what link k measured; what the law takes earlier is known without
    1, // mask: samples that are remembered, a power of 2, less one
};

} // namespace netctrl

#endif // NETCTRL_GAINS_H
