// What is written of a fabric's run: flows, ports, queues, acknowledgements, throughput, counts.

#pragma once

#include "netctrl-fabric-ports.h"
#include "netctrl-files.h"
#include "scenario.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace netctrl::fabric
{

using namespace ns3;

/// Packets of all hosts; sizes are those on the wire.
struct Counters
{
    int64_t sent = 0;
    int64_t sentBytes = 0;
    int64_t received = 0;
    int64_t receivedBytes = 0;
    int64_t acks = 0;
    int64_t again = 0; ///< data packets that were sent before
    int64_t mostUnderWay = 0;

    void Made(int64_t size)
    {
        ++sent;
        sentBytes += size;
        mostUnderWay = std::max(mostUnderWay, sent - received);
    }

    void Came(int64_t size)
    {
        ++received;
        receivedBytes += size;
    }
};

class Recorder
{
  public:
    Recorder(const std::string& folder, const std::string& run, const std::vector<FlowRow>& flows)
        : m_folder(folder + "/"),
          m_end("-" + run + ".csv"),
          m_finish(flows.size(), -1),
          m_carried(kCentre.watchedFlows, std::vector<int64_t>(kCentre.watchedFlows > 0 ? kCentre.bins : 0)),
          m_histogram(kCentre.histogramBins),
          m_queues(m_folder + "queues" + m_end),
          m_acks(m_folder + "acknowledgements" + m_end)
    {
    }

    void Finished(uint32_t flow, int64_t now)
    {
        m_finish[flow] = now;
    }

    void Carried(const FlowRow& flow, int64_t size, int64_t now)
    {
        if (flow.watch >= 0 && now / kCentre.bin < kCentre.bins)
        {
            m_carried[flow.watch][now / kCentre.bin] += size;
        }
    }

    void Acknowledged(const FlowRow& flow, const Letter& seen, const FlowLaw& law)
    {
        if (flow.watch < 0 || m_logged >= kCentre.mostAcknowledgements)
        {
            return;
        }
        ++m_logged;
        int best = 0;
        for (int h = 1; h < seen.count; ++h)
        {
            best = seen.hops[h].queue > seen.hops[best].queue ? h : best;
        }
        const Hop word = seen.count > 0 ? seen.hops[best] : Hop{};
        m_acks.Row(Now(),
                   flow.watch,
                   static_cast<int64_t>(word.queue),
                   static_cast<int64_t>(word.flows),
                   best,
                   static_cast<int64_t>(word.time),
                   law.Window(),
                   law.Rate(),
                   Now() - seen.sent);
    }

    /// All switch queues, from now on every interval.
    void Sample(const std::vector<std::unique_ptr<Port>>& ports)
    {
        m_watched.assign(kCentre.watchedPorts, 0);
        for (const auto& port : ports)
        {
            if (port->OfSwitch())
            {
                const int64_t bin = (port->counts.queue + kCentre.histogramBytes - 1) / kCentre.histogramBytes;
                ++m_histogram[std::min(bin, kCentre.histogramBins - 1)];
                if (port->row.watch >= 0)
                {
                    m_watched[port->row.watch] = port->counts.queue;
                }
            }
        }
        m_queues.PutAll(m_watched);
        m_queues.EndRow();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this, std::ref(ports));
    }

    /// The end; `waiting` acknowledgements are at hosts. What else is under way is in queues and on wires, between ports.
    void Write(const std::vector<std::unique_ptr<Port>>& ports, int64_t waiting)
    {
        Table finish(m_folder + "flows" + m_end);
        for (const int64_t time : m_finish)
        {
            finish.Row(time);
        }
        Table histogram(m_folder + "histogram" + m_end);
        histogram.PutAll(m_histogram);
        histogram.EndRow();
        Table throughput(m_folder + "throughput" + m_end);
        for (const auto& row : m_carried)
        {
            throughput.PutAll(row);
            throughput.EndRow();
        }
        Table table(m_folder + "ports" + m_end);
        for (const auto& port : ports)
        {
            const PortCounts& counts = port->counts;
            table.Row(counts.packets, counts.bytes, counts.cameIn, counts.bytesIn, counts.waiting, counts.queue,
                      port->Area(kDuration), counts.most, counts.drops, counts.droppedBytes, port->Marked());
        }
        Table(m_folder + "counts" + m_end)
            .Row(counters.sent, counters.received, counters.sentBytes, counters.receivedBytes, counters.acks,
                 counters.again, Simulator::GetEventCount(), waiting, counters.mostUnderWay);
    }

    Counters counters;

  private:
    const std::string m_folder;
    const std::string m_end;
    std::vector<int64_t> m_finish; ///< of each flow [ns]; -1: not yet
    std::vector<std::vector<int64_t>> m_carried;
    std::vector<int64_t> m_histogram;
    std::vector<int64_t> m_watched; ///< of the last sample
    Table m_queues;
    Table m_acks;
    int64_t m_logged = 0;
};

} // namespace netctrl::fabric
