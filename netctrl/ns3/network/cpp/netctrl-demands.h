// What demands send: packets, evenly spaced at the rate of each interval; and the table of a run that says the rates.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_DEMANDS_H
#define NETCTRL_DEMANDS_H

#include "gains.h"
#include "netctrl-files.h"
#include "netctrl-sockets.h"
#include "scenario.h"

#include <cmath>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

constexpr uint16_t kPort = 5000;
constexpr uint32_t kHeaders = 28; ///< IP and UDP [byte]

/// What differs between runs: in the file FOLDER/run-RUN.bin, little-endian, in this order.
struct RunTable
{
    std::vector<double> rates;  ///< [bit/s], kSteps times the demands
    std::vector<int64_t> phase; ///< of each link: tick of the interval at which it acts

    explicit RunTable(const std::string& path)
        : phase(kLinks.size())
    {
        RunFile file(path);
        rates = file.Take<double>(kSteps * kDemands.size());
        if (kMayBeLate)
        {
            const auto ticks = file.Take<int32_t>(kLinks.size());
            phase.assign(ticks.begin(), ticks.end());
            m_late = file.Take<int32_t>(kSteps * kLaw.messages);
            m_received = file.Take<uint8_t>(kSteps * kLinks.size());
        }
        file.End();
    }

    /// By how many ticks each message of an interval is late, or -1: it is lost.
    std::vector<int64_t> Late(int64_t step) const
    {
        const auto first = m_late.begin() + step * kLaw.messages;
        return {first, first + kLaw.messages};
    }

    /// Whether a central controller's command of an interval reaches each link.
    std::vector<bool> Received(int64_t step) const
    {
        const auto links = static_cast<int64_t>(kLinks.size());
        if (!kMayBeLate)
        {
            return std::vector<bool>(kLinks.size(), true);
        }
        return {m_received.begin() + step * links, m_received.begin() + (step + 1) * links};
    }

  private:
    std::vector<int32_t> m_late; ///< kSteps times the messages; these two only where messages may be late
    std::vector<uint8_t> m_received; ///< kSteps times the links
};

/// Sends packets of kPacketSize; what is no whole packet in an interval is left for the next.
class DemandSource
{
  public:
    DemandSource(Ptr<Node> node, const InetSocketAddress& end)
        : m_socket(UdpTo(node, end))
    {
    }

    uint64_t bytes = 0; ///< sent

    /// An interval begins, in which this is the rate [bit/s].
    void Begin(double rate)
    {
        while (m_left > 0) // of the very end of the last one, by rounding
        {
            SendOne();
        }
        m_begin = Simulator::Now().GetNanoSeconds();
        const double before = m_waiting;
        m_waiting += rate * 1e-9 * kInterval / 8.0;
        m_left = static_cast<int64_t>(m_waiting / kPacketSize);
        m_waiting -= static_cast<double>(m_left) * kPacketSize;
        if (m_left > 0)
        {
            m_gap = 8e9 * kPacketSize / rate;
            m_at = m_gap - 8e9 * before / rate;
            Plan();
        }
    }

  private:
    void Plan()
    {
        const int64_t at = m_begin + std::llround(m_at);
        m_next = Simulator::Schedule(NanoSeconds(at) - Simulator::Now(), &DemandSource::Send, this);
        m_at += m_gap;
    }

    void Send()
    {
        SendOne();
        if (m_left > 0)
        {
            Plan();
        }
    }

    void SendOne()
    {
        m_next.Cancel();
        --m_left;
        bytes += kPacketSize;
        m_socket->Send(Create<Packet>(kPacketSize - kHeaders));
    }

    Ptr<Socket> m_socket;
    EventId m_next;
    int64_t m_begin = 0;
    int64_t m_left = 0;     ///< packets of this interval
    double m_waiting = 0.0; ///< less than a packet [byte]
    double m_gap = 0.0;     ///< [ns]
    double m_at = 0.0;      ///< of the next packet, after the beginning [ns]
};

} // namespace netctrl

#endif // NETCTRL_DEMANDS_H
