// SPDX-License-Identifier: Apache-2.0
// What libfabric's atomic operations do with values of which type.
#pragma once

#include <rdma/fi_atomic.h>

#include "common.hpp"
#include "rdm/wire.hpp"

namespace via::fabric::rdm {

/// fi_atomic(), fi_fetch_atomic(), fi_compare_atomic().
enum class Form : std::uint8_t { plain, fetch, compare };

/// Bytes of the values of one call; with what they are compared to they fit into one message.
inline constexpr std::size_t atomic_bytes_max = 480;

/// Is there that operation, in that form? Any numbers may be asked for.
bool is_atomic(Form form, std::uint32_t datatype, std::uint32_t operation);
/// Is that a call with its values behind it, `length` bytes together? What a peer asks for may be
/// anything.
bool is_call(const AtomicCall& call, std::size_t length);
/// Of one value of a type that there is.
std::size_t atomic_size(std::uint32_t datatype);
std::size_t atomic_alignment(std::uint32_t datatype);

/// One call's values; none need be aligned but the target.
struct Calculation {
    std::uint32_t datatype;
    std::uint32_t operation;
    std::size_t count;
    std::byte* target;
    const std::byte* operands;  ///< of FI_ATOMIC_READ: there are none
    const std::byte* compares;  ///< of those that compare
    std::byte* results;         ///< what was there before; nullptr: nobody wants it
};
/// Each value by itself, and at once for everybody who does the same in this process. Integers and
/// real numbers of up to 8 bytes also for who uses the processor's atomic operations.
void carry_out(const Calculation& calculation);

}  // namespace via::fabric::rdm
