// What a queue is set to: the types of the queues in gains.h. Times in ns, sizes in bytes.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_QUEUE_SETTINGS_H
#define NETCTRL_QUEUE_SETTINGS_H

#include "netctrl-laws.h"

#include <cstdint>
#include <limits>
#include <variant>

namespace netctrl
{

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max(); ///< as a buffer: 4 GiB, the most that ns-3 counts

/// ns-3's own FifoQueueDisc.
struct FifoSettings
{
};

/// ns-3's own RedQueueDisc, gentle.
struct RedSettings
{
    double minThreshold;   ///< [byte]
    double maxThreshold;   ///< [byte]
    double maxProbability; ///< at maxThreshold
    double weight;         ///< of one packet in the moving average
};

/// ns-3's own PieQueueDisc.
struct PieSettings
{
    int64_t target; ///< [ns]
    int64_t update; ///< [ns]
    double alpha;   ///< [1/s]
    double beta;    ///< [1/s]
    int64_t burst;  ///< [ns]
};

/// ns-3's own CoDelQueueDisc.
struct CodelSettings
{
    int64_t target;   ///< [ns]
    int64_t interval; ///< [ns]
};

using QueueSettings =
    std::variant<FifoSettings, ArcLaw, PiLaw, SfcLaw, AvqLaw, RedSettings, PieSettings, CodelSettings>;

} // namespace netctrl

#endif // NETCTRL_QUEUE_SETTINGS_H
