// Tables of laws that are printed from Python. C++17.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_GRID_H
#define NETCTRL_GRID_H

#include <cstddef>
#include <cstdint>
#include <vector>

namespace netctrl
{

/// Row by row.
template <class Value>
struct Grid
{
    int64_t columns = 0;
    std::vector<Value> values;

    Value& operator()(int64_t row, int64_t column)
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }

    const Value& operator()(int64_t row, int64_t column) const
    {
        return values[static_cast<std::size_t>(row * columns + column)];
    }
};

} // namespace netctrl

#endif // NETCTRL_GRID_H
