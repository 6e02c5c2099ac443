// What is written of a fabric's run: flows, ports, queues, acknowledgements, throughput, counts.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FABRIC_RECORDER_H
#define NETCTRL_FABRIC_RECORDER_H

#include "netctrl-fabric-ports.h"
#include "netctrl-fabric-tables.h"
#include "netctrl-fabric-tags.h"
#include "netctrl-program.h"
#include "scenario.h"

#include "ns3/simulator.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
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
        : m_folder(folder),
          m_run(run),
          m_finish(flows.size(), -1),
          m_carried(kWatchedFlows, std::vector<int64_t>(kWatchedFlows > 0 ? kBins : 0)),
          m_histogram(kHistogramBins),
          m_queues(OpenTable("queues")),
          m_acks(OpenTable("acknowledgements"))
    {
    }

    void Finished(uint32_t flow, int64_t now)
    {
        m_finish[flow] = now;
    }

    void Carried(const FlowRow& flow, int64_t size, int64_t now)
    {
        if (flow.watch >= 0 && now / kBin < kBins)
        {
            m_carried[flow.watch][now / kBin] += size;
        }
    }

    void Acknowledged(const FlowRow& flow, const Telemetry& seen, double window, double rate, int64_t roundTrip)
    {
        if (flow.watch < 0 || m_logged >= kMostAcknowledgements)
        {
            return;
        }
        ++m_logged;
        int best = 0;
        for (int h = 1; h < seen.count; ++h)
        {
            best = seen.hops[h].queue > seen.hops[best].queue ? h : best;
        }
        const PortWord word = seen.count > 0 ? seen.hops[best] : PortWord{};
        std::fprintf(m_acks,
                     "%lld,%lld,%llu,%lld,%d,%lld,%.17g,%.17g,%lld\n",
                     static_cast<long long>(Now()),
                     static_cast<long long>(flow.watch),
                     static_cast<unsigned long long>(word.queue),
                     static_cast<long long>(word.flows),
                     best,
                     static_cast<long long>(word.time),
                     window,
                     rate,
                     static_cast<long long>(roundTrip));
    }

    /// All switch queues, from now on every interval.
    void Sample(const std::vector<std::unique_ptr<Port>>& ports)
    {
        m_watched.assign(kWatchedPorts, 0);
        for (const auto& port : ports)
        {
            if (port->OfSwitch())
            {
                const int64_t bin = (port->Queue() + kHistogramBytes - 1) / kHistogramBytes;
                ++m_histogram[std::min(bin, kHistogramBins - 1)];
                if (port->Row().watch >= 0)
                {
                    m_watched[port->Row().watch] = port->Queue();
                }
            }
        }
        WriteRow(m_queues, m_watched);
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this, std::ref(ports));
    }

    /// The end; `waiting` acknowledgements are at hosts.
    void Write(const std::vector<std::unique_ptr<Port>>& ports, int64_t waiting)
    {
        Close(m_queues);
        Close(m_acks);
        std::FILE* finish = OpenTable("flows");
        for (const int64_t time : m_finish)
        {
            WriteRow(finish, {time});
        }
        Close(finish);
        std::FILE* histogram = OpenTable("histogram");
        WriteRow(histogram, m_histogram);
        Close(histogram);
        std::FILE* throughput = OpenTable("throughput");
        for (const auto& row : m_carried)
        {
            WriteRow(throughput, row);
        }
        Close(throughput);
        WritePorts(ports);
        WriteCounts(ports, waiting);
    }

    Counters counters;

  private:
    std::FILE* OpenTable(const std::string& name) const
    {
        return Open(m_folder, name + "-" + m_run + ".csv");
    }

    static void WriteRow(std::FILE* file, const std::vector<int64_t>& row)
    {
        for (std::size_t i = 0; i < row.size(); ++i)
        {
            std::fprintf(file, i > 0 ? ",%lld" : "%lld", static_cast<long long>(row[i]));
        }
        std::fputc('\n', file);
    }

    void WritePorts(const std::vector<std::unique_ptr<Port>>& ports) const
    {
        std::FILE* file = OpenTable("ports");
        for (const auto& port : ports)
        {
            const PortCounts& counts = port->Counts();
            std::fprintf(file,
                         "%lld,%.17g,%lld,%lld\n",
                         static_cast<long long>(counts.bytes),
                         port->Area(kDuration) / static_cast<double>(kDuration),
                         static_cast<long long>(counts.most),
                         static_cast<long long>(counts.drops));
        }
        Close(file);
    }

    /// What is under way is counted where it is: in queues, on wires, at hosts.
    void WriteCounts(const std::vector<std::unique_ptr<Port>>& ports, int64_t waiting) const
    {
        int64_t hops = 0, drops = 0, droppedBytes = 0, marked = 0;
        int64_t live = waiting, liveBytes = waiting * kAckSize;
        for (const auto& port : ports)
        {
            const PortCounts& counts = port->Counts();
            const PortCounts& other = ports[port->Row().reverse]->Counts();
            hops += counts.packets;
            drops += counts.drops;
            marked += port->Marked();
            droppedBytes += counts.droppedBytes;
            live += port->Waiting() + counts.packets - other.cameIn;
            liveBytes += port->Queue() + counts.bytes - other.bytesIn;
        }
        std::FILE* file = OpenTable("counts");
        WriteRow(file,
                 {counters.sent,
                  counters.received,
                  drops,
                  counters.sentBytes,
                  counters.receivedBytes,
                  droppedBytes,
                  counters.acks,
                  counters.again,
                  marked,
                  hops,
                  static_cast<int64_t>(Simulator::GetEventCount()),
                  live,
                  liveBytes,
                  counters.mostUnderWay});
        Close(file);
    }

    const std::string m_folder;
    const std::string m_run;
    std::vector<int64_t> m_finish; ///< of each flow [ns]; -1: not yet
    std::vector<std::vector<int64_t>> m_carried;
    std::vector<int64_t> m_histogram;
    std::vector<int64_t> m_watched; ///< of the last sample
    std::FILE* m_queues;
    std::FILE* m_acks;
    int64_t m_logged = 0;
};

} // namespace netctrl

#endif // NETCTRL_FABRIC_RECORDER_H
