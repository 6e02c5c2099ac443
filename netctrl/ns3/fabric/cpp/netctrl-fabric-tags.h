// What packets carry, as packet tags: which flow and which bytes; at each switch its telemetry; all of it in the
// acknowledgement.
//
// Room for it is in the scenario's sizes of packets. Tags rather than headers: a trace of a device's queue may write one into
// the packet that leaves.

#pragma once

#include "netctrl-fabric-tables.h"

#include "ns3/packet.h"
#include "ns3/tag.h"

#include <array>
#include <cstdint>
#include <ostream>
#include <string>
#include <type_traits>

namespace netctrl::fabric
{

using namespace ns3;

/// A tag that holds plain data.
template <class Content>
class ContentTag final : public Tag
{
    static_assert(std::is_trivially_copyable_v<Content>, "it is copied byte by byte");

  public:
    ContentTag() = default;

    explicit ContentTag(const Content& given)
        : content(given)
    {
    }

    static TypeId GetTypeId()
    {
        static TypeId tid = TypeId((std::string("netctrl::") + Content::kName).c_str())
                                .SetParent<Tag>()
                                .template AddConstructor<ContentTag>();
        return tid;
    }

    TypeId GetInstanceTypeId() const override
    {
        return GetTypeId();
    }

    uint32_t GetSerializedSize() const override
    {
        return sizeof(Content);
    }

    void Serialize(TagBuffer buffer) const override
    {
        buffer.Write(reinterpret_cast<const uint8_t*>(&content), sizeof(Content));
    }

    void Deserialize(TagBuffer buffer) override
    {
        buffer.Read(reinterpret_cast<uint8_t*>(&content), sizeof(Content));
    }

    void Print(std::ostream& os) const override
    {
        os << Content::kName;
    }

    Content content{};
};

/// Of what a packet is part.
struct Letter
{
    static constexpr const char* kName = "Letter";
    uint32_t flow;
    bool ack;
    bool missing;     ///< of an acknowledgement: a packet before this one didn't come
    bool marked;      ///< of an acknowledgement: its packet was
    bool notified;    ///< of an acknowledgement: it carries a notification (CNP)
    int64_t sequence; ///< first byte of the data
    int64_t bytes;    ///< of data: how many; of an acknowledgement: all that came in order
    int64_t sent;     ///< when the data left [ns]
};

/// All that a packet was told.
struct Telemetry
{
    static constexpr const char* kName = "Telemetry";
    int count;
    std::array<Hop, kMostHops> hops;
};

/// A packet found a long queue.
struct Mark
{
    static constexpr const char* kName = "Mark";
};

using LetterTag = ContentTag<Letter>;
using TelemetryTag = ContentTag<Telemetry>;
using MarkTag = ContentTag<Mark>;

/// A switch port says what it knows when a packet leaves it. Its queue's trace shows a packet that isn't to be changed; of
/// tags this is no more than AddPacketTag does.
inline void
AddHop(const Ptr<const Packet>& packet, const Hop& hop)
{
    TelemetryTag telemetry;
    packet->PeekPacketTag(telemetry);
    if (telemetry.content.count < kMostHops)
    {
        telemetry.content.hops[telemetry.content.count++] = hop;
        ConstCast<Packet>(packet)->ReplacePacketTag(telemetry);
    }
}

} // namespace netctrl::fabric
