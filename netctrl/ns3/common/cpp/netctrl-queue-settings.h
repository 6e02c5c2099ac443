// What a queue is set to: a type of ns-3's and its attributes, as text.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_QUEUE_SETTINGS_H
#define NETCTRL_QUEUE_SETTINGS_H

#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace netctrl
{

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max(); ///< as a buffer: 4 GiB, the most that ns-3 counts

struct QueueSettings
{
    const char* type;
    std::vector<std::pair<const char*, const char*>> attributes;
};

} // namespace netctrl

#endif // NETCTRL_QUEUE_SETTINGS_H
