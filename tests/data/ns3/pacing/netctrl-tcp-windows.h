// Made by netctrl export ns3: do not edit.
// Windows of TCP: printed from the Python that netctrl simulates.

#ifndef NETCTRL_TCP_WINDOWS_H
#define NETCTRL_TCP_WINDOWS_H

#include "netctrl-window.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

/// Number `law` of these, for a flow with these round trips.
inline Ptr<TcpCongestionOps>
MakeWindow(int, RoundTrips&)
{
    return nullptr;
}

} // namespace netctrl

#endif // NETCTRL_TCP_WINDOWS_H
