// SPDX-License-Identifier: Apache-2.0
// What a program asks of an endpoint for datagrams.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rdm/completions.hpp"
#include "rdm/wire.hpp"

namespace via::fabric::rdm {

/// What the program sends.
struct Sending {
    fi_addr_t to;
    const void* bytes;
    std::size_t length;
    std::uint64_t tag;
    std::uint64_t data;
    std::uint8_t flags;  ///< of the header
    void* context;
    bool told;               ///< with a completion
    bool may_copy = true;    ///< it is done when it is copied
    bool must_copy = false;  ///< it was injected
    bool confirmed = false;  ///< it is done when it has arrived
};

inline Header header_of(Kind kind, const Sending& sending) {
    return {sending.tag, static_cast<std::uint32_t>(sending.data), kind, sending.flags, 0};
}

inline std::uint64_t kind_of(std::uint8_t flags) {
    return FI_SEND | ((flags & flag::tagged) != 0 ? FI_TAGGED : FI_MSG);
}

inline Completion sent(const Sending& sending) {
    Completion completion;
    completion.context = sending.context;
    completion.flags = kind_of(sending.flags);
    return completion;
}

/// What the program moves by RDMA: from `bytes` to the peer's memory, or the other way.
struct Moving {
    fi_addr_t with;
    bool reads;
    void* bytes;
    std::size_t length;
    std::uint64_t address;
    std::uint64_t key;
    std::uint64_t data;
    bool has_data;  ///< the peer's program is told, with `data`
    void* context;
    bool told;
    bool must_copy = false;
    bool confirmed = false;  ///< a write is done when it is there

    std::uint64_t flags() const { return FI_RMA | (reads ? FI_READ : FI_WRITE); }
};

/// Of an atomic operation; nullptr: it has none.
struct AtomicValues {
    const std::byte* operands;
    const std::byte* compares;
    std::byte* results;
};
struct Atomic {
    fi_addr_t with;
    AtomicCall call;
    AtomicValues values;
    void* context;
    bool told;

    std::uint64_t flags() const {
        return FI_ATOMIC | (values.results != nullptr ? FI_READ : FI_WRITE);
    }
};

}  // namespace via::fabric::rdm
