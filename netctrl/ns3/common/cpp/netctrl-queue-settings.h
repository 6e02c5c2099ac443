// What a queue is set to: a type of ns-3's and its attributes, as text.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_QUEUE_SETTINGS_H
#define NETCTRL_QUEUE_SETTINGS_H

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

namespace netctrl
{

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max(); ///< as a buffer: 4 GiB, the most that ns-3 counts

struct QueueSettings
{
    std::string type;
    std::vector<std::pair<std::string, std::string>> attributes;
};

} // namespace netctrl

#endif // NETCTRL_QUEUE_SETTINGS_H
