// The types of the tables in scenario.h, and the flows of a run. Bytes, bit/s, nanoseconds.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FABRIC_TABLES_H
#define NETCTRL_FABRIC_TABLES_H

#include "netctrl-files.h"
#include "netctrl-window-law.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace netctrl
{

constexpr int kMostPorts = 6; ///< on a path, the host's own included
constexpr int kMostHops = kMostPorts - 1;

/// One end of a link: what a node sends there. Hosts are the first nodes.
struct PortRow
{
    int source;
    int target;
    uint64_t rate;
    int64_t delay;
    int reverse;       ///< the port at the other end
    int watch;         ///< place among those whose queue is kept; -1: it isn't
    int64_t markLow;   ///< packets that find more are marked by chance [byte]
    int64_t markHigh;  ///< those that find more are all marked [byte]
};

/// A kind of path, as gains.h has it.
struct PathRow
{
    Path path;                 ///< as the law takes it
    double lineRate;           ///< of its senders [bit/s]
    double startWindow;        ///< [byte]; HUGE_VAL: no limit
    std::vector<double> table; ///< what the law looks up
};

/// One flow; its ports there and back, -1 after the last.
struct FlowRow
{
    int64_t source;
    int64_t target;
    int64_t size; ///< payload
    int64_t start;
    int64_t kind;  ///< of path, in gains.h
    int64_t watch; ///< place among those whose acknowledgements are kept; -1: they aren't
    std::array<int64_t, kMostPorts> there;
    std::array<int64_t, kMostPorts> back;
};

/// The flows of FOLDER/run-RUN.bin, in order of their start: their number, then each one's numbers, 64 bits each,
/// little-endian.
inline std::vector<FlowRow>
ReadFlows(const std::string& path)
{
    static_assert(sizeof(FlowRow) == (6 + 2 * kMostPorts) * sizeof(int64_t), "a row has no gaps");
    RunFile file(path, "flows");
    const std::vector<FlowRow> flows = file.TakeCounted<FlowRow>(0, uint64_t{1} << 25);
    file.End();
    return flows;
}

} // namespace netctrl

#endif // NETCTRL_FABRIC_TABLES_H
