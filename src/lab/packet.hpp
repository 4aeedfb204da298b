// What travels: descriptors to the NIC, packets between NICs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/ledger.hpp"

namespace via::lab {

using NodeId = std::uint32_t;
using ViId = std::uint32_t;

/// How a resource of a host is called.
inline std::string named(NodeId host, const char* what) {
    return "host " + std::to_string(host) + " " + what;
}

/// Memory of a host: where it begins within the host's address space, and how long it is.
struct Buffer {
    std::int64_t address = 0;
    std::int64_t length = 0;
};

/// What becomes of a message at its receiver. As it is here: a send's.
struct Landing {
    bool consumes = true;       ///< it takes the VI's next receive descriptor
    bool named = false;         ///< it says itself where its bytes go: at `address`
    bool reports = true;        ///< a status for the host follows its bytes
    std::int64_t address = 0;   ///< translated on arrival
    std::uint32_t process = 0;  ///< of the receiver: whose memory that is
    std::int64_t buffer = 0;    ///< and which buffer of its
};

/// Where a message goes, if not to where its VI is connected.
struct Target {
    NodeId node = 0;
    ViId vi = 0;  ///< at the receiver
    Landing landing;
};

/// What the NIC gets of a descriptor that was posted.
struct PhysicalDescriptor {
    ViId vi = 0;
    MessageId message = no_message;  ///< of a receive: none
    Buffer buffer;
    bool payload_inside = false;  ///< the payload itself instead of its address
    std::optional<Target> target;
    bool own = false;           ///< the firmware's own message: no descriptor was posted for it
    std::int64_t place = 0;     ///< where the program's descriptor lies in the host's memory
    std::uint32_t process = 0;  ///< whose it is
    std::int64_t acknowledges = -1;  ///< it says that so many messages were taken
};

/// Whose a packet is: a VI's, or of a window into another host's memory.
enum class PacketKind : std::uint8_t {
    message,
    store,  ///< bytes for the receiver's memory
    load,   ///< asks for some
    answer  ///< to one of these two
};

struct Packet {
    PacketKind kind = PacketKind::message;
    NodeId from = 0;
    NodeId to = 0;
    ViId vi = 0;
    MessageId message = no_message;
    std::int64_t offset = 0;  ///< within the message
    std::int64_t length = 0;  ///< of payload, without headers
    bool last = false;
    Landing landing;
    Time tail{};                     ///< when its last byte is there, where it is now
    std::int64_t sequence = -1;      ///< of its message between the two NICs; -1: it has none
    std::int64_t acknowledges = -1;  ///< as in its descriptor
};

/// Cuts a buffer into pieces of at most `most` bytes that cross no page. At least one piece.
inline std::vector<Buffer> cut(const Buffer& buffer, std::int64_t most, std::int64_t page) {
    std::vector<Buffer> pieces;
    std::int64_t done = 0;
    do {
        const std::int64_t address = buffer.address + done;
        const std::int64_t length = std::min({most, page - address % page, buffer.length - done});
        pieces.push_back({address, length});
        done += length;
    } while (done < buffer.length);
    return pieces;
}

}  // namespace via::lab
