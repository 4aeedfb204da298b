// What a frame of the product is to a NIC: who makes its descriptor, and where its bytes go.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/packet.hpp"

namespace via::lab::carrier {

enum class Maker : std::uint8_t {
    program,   ///< a descriptor that was posted
    driver,    ///< connecting, which the kernel does
    firmware,  ///< an answer to a message: the program has no part in it
};

struct FrameUse {
    Maker maker = Maker::program;
    std::uint32_t vi = 0;  ///< the receiver's, without the count of its connections
    Landing landing;
    bool in_memory = false;  ///< landing.address is one of the receiver's memory
};

/// Of a frame that an engine emitted.
FrameUse use_of(const std::byte* header, std::size_t length);

}  // namespace via::lab::carrier
