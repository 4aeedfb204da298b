// Memory that two processes share: how its owner offers it, and what it is for the one who attached
// to it. Values that agent, device, engine and NIC hand to each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/atomic.hpp"

namespace via {

/// A segment at its owner.
struct SharedMemory {
    std::byte* base = nullptr;
    std::uint64_t length = 0;     ///< bytes
    int descriptor = -1;          ///< sealed memfd, the owner's; -1: not of the operating system
    std::shared_ptr<void> owner;  ///< what keeps it alive
    bool writable = true;         ///< false: it is sealed, nobody else can map it for writing
};

/// A peer's segment in our address space.
struct Attachment {
    std::byte* base = nullptr;  ///< nullptr: the offer could not be taken, for want of resources
    std::uint64_t length = 0;   ///< bytes
    bool writable = false;
    /// The owner's word, `granted` as long as we may use the segment. It is the owner's memory: it
    /// goes with the path.
    const Atomic<std::uint32_t>* grant = nullptr;
    std::uint32_t granted = 0;
    std::shared_ptr<void> owner;  ///< what keeps it mapped

    /// The right lasts. Plain stores of the program are not held back by this.
    bool holds() const { return grant->load(std::memory_order_acquire) == granted; }
};

}  // namespace via
