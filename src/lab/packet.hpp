// What travels: descriptors to the NIC, packets between NICs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "lab/ledger.hpp"

namespace via::lab {

using NodeId = std::uint32_t;
using ViId = std::uint32_t;

/// Memory of a host: where it begins within the host's address space, and how long it is.
struct Buffer {
    std::int64_t address = 0;
    std::int64_t length = 0;
};

/// What the NIC gets of a descriptor that was posted.
struct PhysicalDescriptor {
    ViId vi = 0;
    MessageId message = no_message;  ///< of a receive: none
    Buffer buffer;
    bool payload_inside = false;  ///< the payload itself instead of its address
};

struct Packet {
    NodeId from = 0;
    NodeId to = 0;
    ViId vi = 0;
    MessageId message = no_message;
    std::int64_t offset = 0;  ///< within the message
    std::int64_t length = 0;  ///< of payload, without headers
    bool last = false;
    Time tail{};  ///< when its last byte is there, where it is now
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
