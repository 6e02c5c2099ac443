// What is written of links and groups: a series; sums of links under demands; and of connections that are watched,
// connections.csv.

#pragma once

#include "netctrl-demands.h"
#include "netctrl-files.h"
#include "netctrl-queues.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/point-to-point-net-device.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace netctrl
{

using namespace ns3;

/// How long packets wait for a link, and how many at most.
class WaitMeter
{
  public:
    WaitMeter(Ptr<QueueDisc> queue, Ptr<PointToPointNetDevice> device)
        : m_queue(queue)
    {
        queue->TraceConnectWithoutContext("Dequeue", MakeCallback(&WaitMeter::Leaves, this));
        queue->TraceConnectWithoutContext("DropAfterDequeue", MakeCallback(&WaitMeter::Stays, this));
        device->TraceConnectWithoutContext("PhyTxBegin", MakeCallback(&WaitMeter::Begins, this));
        queue->TraceConnectWithoutContext("BytesInQueue", MakeCallback(&WaitMeter::Holds, this));
    }

    WaitMeter(const WaitMeter&) = delete;
    WaitMeter& operator=(const WaitMeter&) = delete;

    /// Since the last call: the mean wait [s], and the longest queue [byte].
    void Write(Table& table)
    {
        table.Put(m_departed > 0 ? m_waited / static_cast<double>(m_departed) : 0.0, "%.12g");
        table.Put(m_most);
        m_waited = 0.0;
        m_departed = 0;
        m_most = m_queue->GetNBytes();
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

    void Holds(uint32_t, uint32_t bytes)
    {
        m_most = std::max(m_most, bytes);
    }

    Ptr<QueueDisc> m_queue;
    std::deque<Time> m_came; ///< at the queue, of packets that wait in the device
    double m_waited = 0.0;   ///< [s]
    int64_t m_departed = 0;
    uint32_t m_most = 0; ///< [byte]
};

/// What a link did from one count to another, rates over an interval.
inline Measured
Between(const LinkCounters& before, const LinkCounters& now, int64_t interval)
{
    const double bitPerSecond = 8e9 / static_cast<double>(interval); // of a byte an interval
    return {bitPerSecond * static_cast<double>(now.departed - before.departed),
            bitPerSecond * static_cast<double>(now.backlog),
            bitPerSecond * static_cast<double>(now.arrived - before.arrived),
            bitPerSecond * static_cast<double>(now.lost - before.lost)};
}

/// What is written of.
struct Counted
{
    std::vector<LinkQueue> queues;
    std::vector<std::unique_ptr<WaitMeter>> waits; ///< of each link, if they are watched
    std::vector<std::unique_ptr<Sink>> sinks;      ///< of each group
    std::vector<std::unique_ptr<BulkFlow>> bulk;
    std::vector<std::unique_ptr<Demand>> demands;
    std::vector<std::unique_ptr<IpMeter>> meters; ///< of demands' flows of TCP
};

/// Writes the series: a row a sample, differences of counters that run on; and at the end the sums of links under demands.
class Recorder
{
  public:
    /// @param end of the names of a run's files
    /// @param series whether they are written
    Recorder(const std::string& folder, const std::string& end, bool series, const Counted& counted)
        : m_folder(folder),
          m_end(end),
          m_table(series ? std::make_unique<Table>(folder + "/series" + end) : nullptr),
          m_counted(counted),
          m_links(counted.queues.size()),
          m_start(m_links),
          m_sums(counted.queues.size()),
          m_groups(counted.sinks.size()),
          m_flows(counted.sinks.size())
    {
        for (const auto& flow : counted.bulk)
        {
            m_flows[flow->group] = flow.get();
        }
        if (m_table)
        {
            PutHeads();
        }
        if (counted.demands.empty()) // else their control tells when
        {
            Simulator::Schedule(NanoSeconds(kSample), &Recorder::SampleAgain, this);
        }
    }

    void Sample()
    {
        std::vector<LinkCounters> now;
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            now.push_back(m_counted.queues[i].Count());
            Add(i, Between(m_links[i], now[i], kSample));
        }
        if (m_table)
        {
            WriteRow(now);
        }
        m_links = now;
        if (Simulator::Now() == NanoSeconds(kWarmup))
        {
            m_start = now;
            m_ends = CountEnds();
        }
        if (!m_counted.demands.empty() && Simulator::Now() == NanoSeconds(kDuration))
        {
            WriteSums();
        }
    }

    /// At the end, of connections that are watched.
    void WriteConnections() const
    {
        Table table(m_folder + "/connections.csv");
        for (std::size_t i = 0; i < m_flows.size(); ++i)
        {
            if (const BulkFlow* flow = m_flows[i])
            {
                const Transfer* transfer = flow->transfer.get();
                table.Put(i);
                table.Put(flow->start);
                table.Put(m_counted.sinks[i]->Received());
                table.Put(transfer ? transfer->trips.sent : 0);
                table.Put(transfer ? transfer->trips.again : 0);
                table.PutAll(transfer ? transfer->Events() : std::array<int64_t, 5>{});
                table.EndRow();
            }
        }
    }

  private:
    struct Sums
    {
        double backlog = 0.0;
        double rateSquare = 0.0;
        double backlogSquare = 0.0;
    };

    struct Ended
    {
        uint64_t received = 0;
        uint64_t arrived = 0;
    };

    /// Of a demand's flows of TCP since the start [byte].
    struct TcpEnd
    {
        uint64_t arrived = 0;
        uint64_t sent = 0;
        uint64_t again = 0;
        uint64_t answers = 0;
        double roundTrips = 0.0; ///< [s]
    };

    /// Of all demands since the start, with headers [byte].
    struct Ends
    {
        uint64_t offered = 0;
        uint64_t delivered = 0;
        std::vector<TcpEnd> tcp;
    };

    Ends CountEnds() const
    {
        Ends ends;
        for (const auto& demand : m_counted.demands)
        {
            ends.offered += demand->offered;
            ends.delivered += demand->Delivered();
        }
        for (const auto& meter : m_counted.meters)
        {
            ends.offered += meter->offered;
            ends.delivered += meter->delivered;
        }
        for (std::size_t i = 0; i < kGroups.size(); ++i)
        {
            if (kGroups[i].demand >= 0)
            {
                const Sink& sink = *m_counted.sinks[i];
                ends.tcp.push_back({sink.Received(), 0, 0, sink.answers, sink.newest});
                for (const auto& flow : m_counted.bulk)
                {
                    const bool counts = flow->transfer && flow->group == static_cast<int>(i);
                    ends.tcp.back().sent += counts ? flow->transfer->trips.sent : 0;
                    ends.tcp.back().again += counts ? flow->transfer->trips.again : 0;
                }
            }
        }
        return ends;
    }

    /// Sums of what counts: what was after the warmup.
    void Add(std::size_t link, const Measured& measured)
    {
        if (Simulator::Now() > NanoSeconds(kWarmup))
        {
            const double rate = measured.rate - kLinks[link].nominal;
            const double backlog = measured.backlog - kLaw.setpoint;
            m_sums[link].backlog += measured.backlog;
            m_sums[link].rateSquare += rate * rate;
            m_sums[link].backlogSquare += backlog * backlog;
        }
    }

    /// First what demands sent and what came to their ends, then a row a link, then one of each TCP; bytes,
    /// and means of squares.
    void WriteSums() const
    {
        Table result(m_folder + "/result" + m_end);
        const Ends ends = CountEnds();
        result.Row(ends.offered - m_ends.offered, ends.delivered - m_ends.delivered, 0, 0, 0, 0, 0);
        const auto count = static_cast<double>((kDuration - kWarmup) / kSample);
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            const LinkCounters &start = m_start[i], &now = m_links[i];
            result.Row(now.arrived - start.arrived,
                       now.departed - start.departed,
                       now.lost - start.lost,
                       static_cast<int64_t>(now.backlog - start.backlog),
                       m_sums[i].backlog / count / (8e9 / static_cast<double>(kSample)),
                       m_sums[i].rateSquare / count,
                       m_sums[i].backlogSquare / count);
        }
        for (std::size_t i = 0; i < ends.tcp.size(); ++i)
        {
            const TcpEnd start = i < m_ends.tcp.size() ? m_ends.tcp[i] : TcpEnd{};
            const TcpEnd& end = ends.tcp[i];
            const auto answers = static_cast<double>(end.answers - start.answers);
            const double roundTrip = answers > 0.0 ? (end.roundTrips - start.roundTrips) / answers : 0.0;
            result.Row(end.arrived - start.arrived, end.sent - start.sent, end.again - start.again, roundTrip, 0, 0, 0);
        }
    }

    void PutHeads()
    {
        m_table->Put("time_s");
        PutNames({"backlog:", "arrived:", "departed:", "lost:", "marked:", "probability:"}, kLinks);
        PutNames({"carried:"}, kGroups);
        PutNames({"rtt:"}, kGroups);
        if (kWatched)
        {
            PutNames({"delay:", "most:"}, kLinks);
            PutNames({"delivered:", "pace:", "window:"}, kGroups);
        }
        m_table->EndRow();
    }

    template <class Rows>
    void PutNames(std::initializer_list<const char*> columns, const Rows& rows)
    {
        for (const auto& row : rows)
        {
            for (const char* column : columns)
            {
                m_table->Put(column + row.id);
            }
        }
    }

    void SampleAgain()
    {
        Sample();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::SampleAgain, this);
    }

    void WriteRow(const std::vector<LinkCounters>& now)
    {
        m_table->Put(Simulator::Now().GetSeconds(), "%.9f");
        for (std::size_t i = 0; i < now.size(); ++i)
        {
            WriteLink(m_counted.queues[i], m_links[i], now[i]);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            m_table->Put(m_counted.sinks[i]->Received() - m_groups[i].received);
            m_groups[i].received = m_counted.sinks[i]->Received();
        }
        for (const auto& sink : m_counted.sinks)
        {
            m_table->Put(sink->measured > 0 ? sink->roundTrips / sink->measured : 0.0);
            sink->roundTrips = 0.0;
            sink->measured = 0;
        }
        for (const auto& wait : m_counted.waits)
        {
            wait->Write(*m_table);
        }
        for (std::size_t i = 0; kWatched && i < m_groups.size(); ++i)
        {
            const Transfer* transfer = m_flows[i] ? m_flows[i]->transfer.get() : nullptr;
            m_table->Put(m_counted.sinks[i]->Arrived() - m_groups[i].arrived);
            m_table->Put(transfer ? transfer->Rate() : 0.0, "%.12g");
            m_table->Put(transfer ? transfer->window : 0);
            m_groups[i].arrived = m_counted.sinks[i]->Arrived();
        }
        m_table->EndRow();
    }

    void WriteLink(const LinkQueue& queue, const LinkCounters& before, const LinkCounters& now)
    {
        const uint64_t packets = now.packets - before.packets;
        const double chosen = packets > 0 ? static_cast<double>(now.chosen - before.chosen) / packets : 0.0;
        m_table->Put(now.backlog);
        m_table->Put(now.arrived - before.arrived);
        m_table->Put(now.departed - before.departed);
        m_table->Put(now.lost - before.lost);
        m_table->Put(now.marked - before.marked);
        m_table->Put(queue.samplesProbability ? queue.law->GetProbability() : chosen);
    }

    const std::string m_folder;
    const std::string m_end;
    std::unique_ptr<Table> m_table; ///< null: no series
    const Counted& m_counted;
    std::vector<LinkCounters> m_links; ///< at the last sample
    std::vector<LinkCounters> m_start; ///< at the end of the warmup
    std::vector<Sums> m_sums;
    Ends m_ends; ///< of the warmup
    std::vector<Ended> m_groups;
    std::vector<const BulkFlow*> m_flows; ///< the last of each group, which is its only one where it is watched
};

} // namespace netctrl
