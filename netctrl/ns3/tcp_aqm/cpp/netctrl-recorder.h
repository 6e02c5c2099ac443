// What is written of links and groups: series.csv; and of connections that are watched, connections.csv.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_RECORDER_H
#define NETCTRL_RECORDER_H

#include "netctrl-files.h"
#include "netctrl-queues.h"
#include "netctrl-traffic.h"
#include "scenario.h"

#include "ns3/point-to-point-net-device.h"

#include <algorithm>
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

/// Writes series.csv: a row a sample, differences of counters that run on.
class Recorder
{
  public:
    Recorder(const std::string& folder,
             const std::vector<LinkQueue>& queues,
             const std::vector<std::unique_ptr<WaitMeter>>& waits,
             const std::vector<std::unique_ptr<Sink>>& sinks,
             const std::vector<std::unique_ptr<BulkFlow>>& flows)
        : m_folder(folder),
          m_table(folder + "/series.csv"),
          m_queues(queues),
          m_waits(waits),
          m_sinks(sinks),
          m_links(queues.size()),
          m_groups(sinks.size()),
          m_flows(sinks.size())
    {
        for (const auto& flow : flows)
        {
            m_flows[flow->group] = flow.get();
        }
        m_table.Put("time_s");
        for (const LinkRow& link : kLinks)
        {
            for (const char* column : {"backlog:", "arrived:", "departed:", "lost:", "marked:", "probability:"})
            {
                m_table.Put(std::string(column) + link.id);
            }
        }
        PutNames("carried:", kGroups);
        PutNames("rtt:", kGroups);
        if (kWatched)
        {
            for (const LinkRow& link : kLinks)
            {
                m_table.Put("delay:" + link.id);
                m_table.Put("most:" + link.id);
            }
            for (const GroupRow& group : kGroups)
            {
                for (const char* column : {"delivered:", "pace:", "window:"})
                {
                    m_table.Put(column + group.id);
                }
            }
        }
        m_table.EndRow();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
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
                table.Put(m_sinks[i]->Received());
                table.Put(transfer ? transfer->trips.sent : 0);
                table.Put(transfer ? transfer->trips.again : 0);
                table.PutAll(transfer ? transfer->Events() : std::array<int64_t, 5>{});
                table.EndRow();
            }
        }
    }

  private:
    struct Counters
    {
        uint64_t arrived = 0;
        uint64_t departed = 0;
        uint64_t lost = 0;
        uint64_t marked = 0;
        uint64_t packets = 0;
        uint64_t chosen = 0;
    };

    struct Ended
    {
        uint64_t received = 0;
        uint64_t arrived = 0;
    };

    template <class Rows>
    void PutNames(const std::string& column, const Rows& rows)
    {
        for (const auto& row : rows)
        {
            m_table.Put(column + row.id);
        }
    }

    static Counters Read(const LinkQueue& queue)
    {
        const QueueDisc::Stats& stats = queue.disc->GetStats();
        Counters now;
        now.arrived = stats.nTotalReceivedBytes;
        now.departed = stats.nTotalDequeuedBytes - stats.nTotalDroppedBytesAfterDequeue;
        now.lost = stats.nTotalDroppedBytes;
        for (const auto& reason : stats.nMarkedBytes) // the total has 32 bits only
        {
            now.marked += reason.second;
        }
        now.packets = stats.nTotalReceivedPackets;
        now.chosen = stats.nTotalMarkedPackets;
        for (const char* reason : queue.lawDrops)
        {
            now.chosen += stats.GetNDroppedPackets(reason);
        }
        return now;
    }

    void WriteLink(const LinkQueue& queue, Counters& before)
    {
        const Counters now = Read(queue);
        const uint64_t packets = now.packets - before.packets;
        const double chosen = packets > 0 ? static_cast<double>(now.chosen - before.chosen) / packets : 0.0;
        m_table.Put(queue.disc->GetNBytes());
        m_table.Put(now.arrived - before.arrived);
        m_table.Put(now.departed - before.departed);
        m_table.Put(now.lost - before.lost);
        m_table.Put(now.marked - before.marked);
        m_table.Put(queue.samplesProbability ? queue.law->GetProbability() : chosen);
        before = now;
    }

    void Sample()
    {
        m_table.Put(Simulator::Now().GetSeconds(), "%.9f");
        for (std::size_t i = 0; i < m_links.size(); ++i)
        {
            WriteLink(m_queues[i], m_links[i]);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            m_table.Put(m_sinks[i]->Received() - m_groups[i].received);
            m_groups[i].received = m_sinks[i]->Received();
        }
        for (const auto& sink : m_sinks)
        {
            m_table.Put(sink->measured > 0 ? sink->roundTrips / sink->measured : 0.0);
            sink->roundTrips = 0.0;
            sink->measured = 0;
        }
        if (kWatched)
        {
            WriteWatched();
        }
        m_table.EndRow();
        Simulator::Schedule(NanoSeconds(kSample), &Recorder::Sample, this);
    }

    void WriteWatched()
    {
        for (const auto& wait : m_waits)
        {
            wait->Write(m_table);
        }
        for (std::size_t i = 0; i < m_groups.size(); ++i)
        {
            const Transfer* transfer = m_flows[i] ? m_flows[i]->transfer.get() : nullptr;
            m_table.Put(m_sinks[i]->Arrived() - m_groups[i].arrived);
            m_table.Put(transfer ? transfer->Rate() : 0.0, "%.12g");
            m_table.Put(transfer ? transfer->window : 0);
            m_groups[i].arrived = m_sinks[i]->Arrived();
        }
    }

    const std::string m_folder;
    Table m_table;
    const std::vector<LinkQueue>& m_queues;
    const std::vector<std::unique_ptr<WaitMeter>>& m_waits;
    const std::vector<std::unique_ptr<Sink>>& m_sinks;
    std::vector<Counters> m_links;
    std::vector<Ended> m_groups;
    std::vector<const BulkFlow*> m_flows; ///< the last of each group, which is its only one where it is watched
};

} // namespace netctrl

#endif // NETCTRL_RECORDER_H
