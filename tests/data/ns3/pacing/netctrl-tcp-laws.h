// Made by netctrl export ns3: do not edit.
// TCP's laws: printed from the Python that netctrl simulates.

#ifndef NETCTRL_TCP_LAWS_H
#define NETCTRL_TCP_LAWS_H

#include <algorithm>
#include <cmath>

namespace netctrl
{

/// alpha, packets a round trip: 2(1 - beta) times 1 up to a second after the loss, then 1 + 10(Delta - Delta_L) + (Delta - Delta_L)^2/4.
///
/// Source: draft-leith-tcp-htcp-06, section 3. Linux scales it down where RTTs are below 0.1 s; here it isn't.
inline double
HtcpIncrease(double since, double backoff)
{
    const double late = std::max(since - 1.0, 0.0);
    return 2.0 * (1.0 - backoff) * (1.0 + 10.0 * late + 0.25 * late * late);
}

/// beta, by which the window is multiplied: 1/2 where the throughput at a loss is off by more than a fifth from that at
/// the one before, else RTT_min/RTT_max, so that the queue just empties; within 0.5 and 0.8.
///
/// Parameters
/// ----------
/// min_rtt, max_rtt : float
///     Of the flow, and since its last loss [s].
/// rate, rate_before : float
///     Throughput at this loss and at the one before, in one unit; 0 before the first.
///
/// Source: draft-leith-tcp-htcp-06, section 3.
inline double
HtcpBackoff(double minRtt, double maxRtt, double rate, double rateBefore)
{
    if (std::fabs(rate - rateBefore) > 0.2 * rateBefore)
    {
        return 0.5;
    }
    return std::min(std::max(minRtt / maxRtt, 0.5), 0.8);
}

} // namespace netctrl

#endif // NETCTRL_TCP_LAWS_H
