// What a run writes: a row a bin, a row a flow, all RTTs.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_RECORDER_H
#define NETCTRL_PACING_RECORDER_H

#include "netctrl-pacing-flows.h"
#include "netctrl-program.h"
#include "scenario.h"

#include "ns3/packet.h"
#include "ns3/queue-disc.h"
#include "ns3/simulator.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

class PacingRecorder
{
  public:
    PacingRecorder(const std::string& folder, const std::string& run, std::vector<std::unique_ptr<Flow>>& flows)
        : m_folder(folder),
          m_run(run),
          m_series(netctrl::Open(folder, "series-" + run + ".csv")),
          m_flows(flows),
          m_arrived(kFlows.size(), 0)
    {
        Simulator::Schedule(NanoSeconds(kBin), &PacingRecorder::Sample, this);
    }

    void Watch(Ptr<QueueDisc> queue)
    {
        m_queue = queue;
        queue->TraceConnectWithoutContext("SojournTime", MakeCallback(&PacingRecorder::Waited, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&PacingRecorder::Lost, this));
        queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&PacingRecorder::Holds, this));
    }

    /// At the end.
    void Write(const std::vector<RttSample>& rtts)
    {
        netctrl::Close(m_series);
        std::FILE* file = netctrl::Open(m_folder, "flows-" + m_run + ".csv");
        for (const auto& flow : m_flows)
        {
            const RoundTrips& trips = flow->Trips();
            const PacingEvents events = flow->Events();
            std::fprintf(file,
                         "%" PRId64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
                         ",%" PRId64 "\n",
                         flow->StartTime(),
                         flow->Read(),
                         trips.SentBytes(),
                         trips.AgainBytes(),
                         events.badRtt,
                         events.badTime,
                         events.held,
                         events.floored,
                         events.resets);
        }
        netctrl::Close(file);
        file = netctrl::Open(m_folder, "rtts-" + m_run + ".bin");
        std::fwrite(rtts.data(), sizeof(RttSample), rtts.size(), file);
        netctrl::Close(file);
    }

  private:
    void Waited(Time time)
    {
        m_waited += time.GetSeconds();
        ++m_departed;
    }

    void Lost(Ptr<const QueueDiscItem> item)
    {
        m_lost += item->GetSize();
    }

    void Holds(uint32_t, uint32_t bytes)
    {
        m_most = std::max(m_most, bytes);
    }

    void Sample()
    {
        const double delay = m_departed > 0 ? m_waited / static_cast<double>(m_departed) : 0.0;
        std::fprintf(m_series,
                     "%.9f,%.12g,%" PRIu32 ",%" PRIu64,
                     Simulator::Now().GetSeconds(),
                     delay,
                     m_most,
                     m_lost);
        for (std::size_t i = 0; i < m_flows.size(); ++i)
        {
            const uint64_t arrived = m_flows[i]->Arrived();
            std::fprintf(m_series,
                         ",%" PRIu64 ",%.12g,%" PRIu32,
                         arrived - m_arrived[i],
                         m_flows[i]->Rate(),
                         m_flows[i]->Window());
            m_arrived[i] = arrived;
        }
        std::fprintf(m_series, "\n");
        m_waited = 0.0;
        m_departed = 0;
        m_lost = 0;
        m_most = m_queue->GetNBytes();
        Simulator::Schedule(NanoSeconds(kBin), &PacingRecorder::Sample, this);
    }

    const std::string m_folder;
    const std::string m_run;
    std::FILE* m_series;
    std::vector<std::unique_ptr<Flow>>& m_flows;
    Ptr<QueueDisc> m_queue;
    std::vector<uint64_t> m_arrived;
    double m_waited = 0.0; ///< in this bin [s]
    int64_t m_departed = 0;
    uint64_t m_lost = 0; ///< [byte]
    uint32_t m_most = 0; ///< [byte]
};

} // namespace netctrl

#endif // NETCTRL_PACING_RECORDER_H
