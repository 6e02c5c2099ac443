// What packets carry, as packet tags: which flow and which bytes; at each switch its telemetry; all of it in the
// acknowledgement.
//
// Room for it is in the scenario's sizes of packets. Tags rather than headers: Packet::AddPacketTag is const, so that a
// trace of a device's queue may write one into the packet that leaves.
//
// Fixed: netctrl copies this file as it is.

#ifndef NETCTRL_FABRIC_TAGS_H
#define NETCTRL_FABRIC_TAGS_H

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

/// A tag that holds plain data; packets may have one of each Number.
template <class Content, int Number = 0>
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
        static TypeId tid = TypeId((std::string("netctrl::") + Content::kName + std::to_string(Number)).c_str())
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

/// What a switch port says when a packet leaves it.
struct PortWord : Hop
{
    static constexpr const char* kName = "PortWord";
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

/// One more port: ns-3 takes no two tags of a kind, so that each hop's has a type of its own.
template <int Hop = 0>
void
AddWord(const Ptr<const Packet>& packet, const PortWord& word)
{
    if constexpr (Hop < kMostHops)
    {
        ContentTag<PortWord, Hop> there;
        if (packet->PeekPacketTag(there))
        {
            AddWord<Hop + 1>(packet, word);
        }
        else
        {
            packet->AddPacketTag(ContentTag<PortWord, Hop>(word));
        }
    }
}

/// What all ports on the way wrote.
template <int Hop = 0>
void
ReadWords(const Ptr<const Packet>& packet, Telemetry& found)
{
    if constexpr (Hop < kMostHops)
    {
        ContentTag<PortWord, Hop> there;
        if (packet->PeekPacketTag(there))
        {
            found.hops[found.count++] = there.content;
            ReadWords<Hop + 1>(packet, found);
        }
    }
}

} // namespace netctrl::fabric

#endif // NETCTRL_FABRIC_TAGS_H
