// Made by netctrl export ns3: do not edit.
// Laws of queues, and a queue disc of ns-3 around each: printed from the Python that netctrl simulates.

#ifndef NETCTRL_LAWS_H
#define NETCTRL_LAWS_H

#include "netctrl-law-queue-disc.h"

#include <algorithm>
#include <cmath>

namespace netctrl
{

} // namespace netctrl

#endif // NETCTRL_LAWS_H
