// ns-3's Cubic without what it does wrong after timeouts.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_CUBIC_H
#define NETCTRL_CUBIC_H

#include "ns3/tcp-cubic.h"

#include <algorithm>
#include <string>

namespace netctrl
{

using namespace ns3;

/// ns-3's Cubic, whose window grows by one segment at most for each acknowledgement.
///
/// That of ns-3.37 and 3.44 adds, in slow start, all that an acknowledgement covers, however far that takes the window above its
/// threshold. After a timeout one that fills a hole covers what a whole timeout's time sent and was selectively
/// acknowledged long ago: windows of thousands of segments are sent at once, and lost. RFC 5681, eq. (2), allows one
/// segment; ns-3's NewReno and Vegas do so. Receivers here acknowledge each packet, so that nothing else changes.
class OneByOneCubic final : public TcpCubic
{
  public:
    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId("netctrl::OneByOneCubic")
                                .SetParent<TcpCubic>()
                                .SetGroupName("Internet")
                                .AddConstructor<OneByOneCubic>();
        return tid;
    }

    std::string GetName() const override
    {
        return "OneByOneCubic";
    }

    void IncreaseWindow(Ptr<TcpSocketState> state, uint32_t segmentsAcked) override
    {
        TcpCubic::IncreaseWindow(state, std::min(segmentsAcked, 1U));
    }

    Ptr<TcpCongestionOps> Fork() override
    {
        return CopyObject<OneByOneCubic>(this);
    }
};

} // namespace netctrl

#endif // NETCTRL_CUBIC_H
