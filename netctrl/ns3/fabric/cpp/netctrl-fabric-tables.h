// A data centre as scenario.txt has it, and the flows of a run. Bytes, bit/s, nanoseconds.

#pragma once

#include "netctrl-centre.h"
#include "netctrl-files.h"
#include "netctrl-records.h"
#include "netctrl-window-laws.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netctrl::fabric
{

constexpr int kMostPorts = 6; ///< on a path, the host's own included
constexpr int kMostHops = kMostPorts - 1;

/// One end of a link: what a node sends there. Hosts are the first nodes.
struct PortRow
{
    int source = From().Take<int>("source");
    int target = From().Take<int>("target");
    uint64_t rate = From().Take<uint64_t>("rate");
    int64_t delay = From().Take<int64_t>("delay");
    int reverse = From().Take<int>("reverse"); ///< the port at the other end
    int watch = From().Take("watch", -1); ///< place among those whose queue is kept; -1: it isn't
    int64_t markLow = From().Take("mark_low", int64_t{0}); ///< packets that find more are marked by chance [byte]
    int64_t markHigh = From().Take("mark_high", int64_t{0}); ///< those that find more are all marked [byte]
    /// Before the device, of TCP; without a type none.
    QueueSettings queue{From().Take("queue", std::string()), From().TakeRest()};
};

/// A kind of path.
struct PathRow
{
    double lineRate = From().Take<double>("rate"); ///< of its senders [bit/s]
    double startWindow = From().Take<double>("window"); ///< [byte]; HUGE_VAL: no limit
    Path path = TakePath();                             ///< as the law takes it
    std::vector<double> table = From().TakeNumbers("table"); ///< what the law looks up

  private:
    static Path TakePath()
    {
        Path taken{};
        ForEach(taken, [](const char* field, double& value) { value = From().Take<double>(field); });
        const std::vector<double> rates = From().TakeNumbers("rates");
        std::copy(rates.begin(), rates.end(), taken.rates.begin());
        return taken;
    }
};

/// A flow's law at its sender, with its state and what it keeps besides.
class FlowLaw
{
  public:
    virtual ~FlowLaw() = default;

    /// That of a flow on a kind of path, before its first packet.
    virtual std::unique_ptr<FlowLaw> Begin(const PathRow& kind) const = 0;
    virtual double Window() const = 0; ///< bytes that may be under way
    virtual double Rate() const = 0;   ///< [bit/s]
    virtual void Acknowledge(const Acknowledged& seen, const PathRow& kind) = 0;
    virtual void Send(double now, double bytes, const PathRow& kind) = 0;
};

template <class Law>
class FlowLawOf final : public FlowLaw
{
  public:
    FlowLawOf(const Law& law, std::size_t memory)
        : m_law(law),
          m_memory(memory)
    {
    }

    std::unique_ptr<FlowLaw> Begin(const PathRow& kind) const override
    {
        auto begun = std::make_unique<FlowLawOf>(*this);
        begun->m_state.window = kind.startWindow;
        begun->m_state.rate = kind.lineRate;
        return begun;
    }

    double Window() const override
    {
        return m_state.window;
    }

    double Rate() const override
    {
        return m_state.rate;
    }

    void Acknowledge(const Acknowledged& seen, const PathRow& kind) override
    {
        m_state = m_law.Next(m_state, seen, kind.path, kind.table, m_memory);
    }

    void Send(double now, double bytes, const PathRow& kind) override
    {
        m_state = m_law.Sent(m_state, now, bytes, kind.path);
    }

  private:
    Law m_law;
    typename Law::State m_state;
    std::vector<double> m_memory;
};

inline std::unique_ptr<FlowLaw>
TakeFlowLaw(Record& record)
{
    std::unique_ptr<FlowLaw> made;
    const std::string name = record.Take("law");
    const auto memory = record.Take<std::size_t>("memory");
    const bool known = WithLaw(name, [&](auto law) {
        ForEach(law, [&](const char* field, double& value) { value = record.Take<double>(field); });
        made = std::make_unique<FlowLawOf<decltype(law)>>(law, memory);
    });
    if (!known)
    {
        record.Refuse("has law " + name + ", which this program does not have");
    }
    return made;
}

inline Centre
TakeCentre(Record& record)
{
    Centre centre;
    ForEach(centre, [&](const char* field, auto& value) { record.TakeInto(field, value); });
    return centre;
}

/// How many flows pass a switch port: those of which a packet came within a time [ns]. Times never go back.
///
/// Source: MPCC thesis, Section 4.2; netctrl.sim.packet.links.ports.
class FlowCounter
{
  public:
    /// @param timeout a flow counts so long after its last packet
    explicit FlowCounter(int64_t timeout)
        : m_timeout(timeout)
    {
    }

    /// A packet of a flow came.
    void See(uint32_t flow, int64_t now)
    {
        const auto found = m_places.find(flow);
        if (found == m_places.end())
        {
            m_places.emplace(flow, m_seen.insert(m_seen.end(), {now, flow}));
            return;
        }
        found->second->first = now;
        m_seen.splice(m_seen.end(), m_seen, found->second);
    }

    /// Flows that were seen at `now` less the timeout, or later.
    int64_t Count(int64_t now)
    {
        while (!m_seen.empty() && m_seen.front().first < now - m_timeout)
        {
            m_places.erase(m_seen.front().second);
            m_seen.pop_front();
        }
        return static_cast<int64_t>(m_seen.size());
    }

  private:
    using Seen = std::list<std::pair<int64_t, uint32_t>>; // in order of time

    int64_t m_timeout;
    Seen m_seen;
    std::unordered_map<uint32_t, Seen::iterator> m_places;
};

inline Centre kCentre;
inline std::vector<PathRow> kPaths;
inline std::vector<PortRow> kPorts;
inline std::unique_ptr<FlowLaw> kFlowLaw; ///< before the first packet of a flow

/// One flow; its ports there and back, -1 after the last.
struct FlowRow
{
    int64_t source;
    int64_t target;
    int64_t size; ///< payload
    int64_t start;
    int64_t kind;  ///< of path
    int64_t watch; ///< place among those whose acknowledgements are kept; -1: they aren't
    std::array<int64_t, kMostPorts> there;
    std::array<int64_t, kMostPorts> back;
};

/// The flows of FOLDER/run-RUN.bin, in order of their start: their number, then each one's numbers, 64 bits each,
/// little-endian.
inline std::vector<FlowRow>
ReadFlows(const std::string& path)
{
    static_assert(sizeof(FlowRow) == (6 + 2 * kMostPorts) * sizeof(int64_t), "a row has no gaps");
    RunFile file(path, "flows");
    const std::vector<FlowRow> flows = file.TakeCounted<FlowRow>(0, uint64_t{1} << 25);
    file.End();
    return flows;
}

} // namespace netctrl::fabric
