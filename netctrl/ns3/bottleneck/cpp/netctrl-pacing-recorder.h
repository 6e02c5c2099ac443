// What a run writes: a row a bin, a row a flow, all RTTs.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_PACING_RECORDER_H
#define NETCTRL_PACING_RECORDER_H

#include "netctrl-files.h"
#include "netctrl-pacing-flows.h"
#include "scenario.h"

#include "ns3/point-to-point-net-device.h"
#include "ns3/queue-disc.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

class PacingRecorder
{
  public:
    PacingRecorder(const std::string& folder,
                   const std::string& run,
                   const std::vector<std::unique_ptr<Flow>>& flows,
                   Ptr<QueueDisc> queue,
                   Ptr<PointToPointNetDevice> device)
        : m_folder(folder),
          m_run(run),
          m_series(folder + "/series-" + run + ".csv"),
          m_flows(flows),
          m_queue(queue),
          m_arrived(kFlows.size(), 0)
    {
        queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&PacingRecorder::Leaves, this));
        queue->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&PacingRecorder::Stays, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&PacingRecorder::Begins, this));
        queue->TraceConnectWithoutContext("Drop", MakeCallback(&PacingRecorder::Lost, this));
        queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&PacingRecorder::Holds, this));
        Simulator::Schedule(NanoSeconds(kBin), &PacingRecorder::Sample, this);
    }

    /// At the end.
    void Write(const std::vector<RttSample>& rtts) const
    {
        Table table(m_folder + "/flows-" + m_run + ".csv");
        for (const auto& flow : m_flows)
        {
            table.Put(flow->start);
            table.Put(flow->read);
            table.Put(flow->trips.sent);
            table.Put(flow->trips.again);
            table.PutAll(flow->Events());
            table.EndRow();
        }
        std::FILE* file = Open(m_folder + "/rtts-" + m_run + ".bin", "w");
        std::fwrite(rtts.data(), sizeof(RttSample), rtts.size(), file);
        Close(file);
    }

  private:
    /// A packet goes to the device, which has room for one: it waits there until the one before it is sent.
    void Leaves(Ptr<const QueueDiscItem> item)
    {
        m_came.push_back(item->GetTimeStamp());
    }

    void Stays(Ptr<const QueueDiscItem>, const char*)
    {
        m_came.pop_back();
    }

    void Begins(Ptr<const Packet>)
    {
        m_waited += (Simulator::Now() - m_came.front()).GetSeconds();
        m_came.pop_front();
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
        m_series.Put(Simulator::Now().GetSeconds(), "%.9f");
        m_series.Put(m_departed > 0 ? m_waited / static_cast<double>(m_departed) : 0.0, "%.12g");
        m_series.Put(m_most);
        m_series.Put(m_lost);
        for (std::size_t i = 0; i < m_flows.size(); ++i)
        {
            m_series.Put(m_flows[i]->arrived - m_arrived[i]);
            m_series.Put(m_flows[i]->Rate(), "%.12g");
            m_series.Put(m_flows[i]->window);
            m_arrived[i] = m_flows[i]->arrived;
        }
        m_series.EndRow();
        m_waited = 0.0;
        m_departed = 0;
        m_lost = 0;
        m_most = m_queue->GetNBytes();
        Simulator::Schedule(NanoSeconds(kBin), &PacingRecorder::Sample, this);
    }

    const std::string m_folder;
    const std::string m_run;
    Table m_series;
    const std::vector<std::unique_ptr<Flow>>& m_flows;
    Ptr<QueueDisc> m_queue;
    std::vector<uint64_t> m_arrived;
    std::deque<Time> m_came; ///< at the queue, of packets that wait in the device
    double m_waited = 0.0;   ///< in this bin [s]
    int64_t m_departed = 0;
    uint64_t m_lost = 0; ///< [byte]
    uint32_t m_most = 0; ///< [byte]
};

} // namespace netctrl

#endif // NETCTRL_PACING_RECORDER_H
