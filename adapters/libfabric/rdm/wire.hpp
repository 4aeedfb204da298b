// SPDX-License-Identifier: Apache-2.0
// What two endpoints for datagrams say to each other: when they connect, and in front of messages.
#pragma once

#include "common.hpp"

namespace via::fabric::rdm {

/// What a receive has room for. Longer messages are pulled by their receiver, and some shorter
/// ones (eager_size()).
inline constexpr std::size_t eager_max = 65536;
/// Receives that a connection has posted; so many messages may be on their way.
inline constexpr std::uint32_t receives_max = 64;
/// What a connection can have under way to the peer.
inline constexpr std::uint32_t sends_max = 128;
/// Bytes copied when they are sent: the message is done at once.
inline constexpr std::size_t inject_max = 1024;

enum class Kind : std::uint8_t {
    eager = 1,     ///< the message follows
    offer = 2,     ///< an Offer follows: where to pull the message
    finished = 3,  ///< the offer with the cookie in `tag` was pulled, or is not wanted
    written = 4,   ///< what was written by RDMA before, `tag` bytes, is there
    atomic = 5,    ///< an AtomicCall follows, then its operands, then what they are compared to
    answer = 6,    ///< to the call with the cookie in `tag`: what was there; `data`: FI_E..., or 0
    moved = 7,     ///< the RDMA before it is done: a read if `data` is 1, a write if it is 0
};

namespace flag {
inline constexpr std::uint8_t tagged = 1;
inline constexpr std::uint8_t data = 2;  ///< `data` is the program's
/// Bits 2 to 7: how many messages were taken out of the peer's lines, modulo taken_modulus
/// (shared_lines.hpp).
inline constexpr unsigned taken_shift = 2;
inline constexpr std::uint8_t taken_modulus = 64;
}  // namespace flag

struct Header {
    std::uint64_t tag;
    std::uint32_t data;
    Kind kind;
    std::uint8_t flags;
    std::uint16_t number;  ///< of the sender's messages to this peer, from 0
};
static_assert(sizeof(Header) == 16);

struct Offer {
    std::uint64_t length;
    std::uint64_t address;
    std::uint64_t cookie;
    std::uint32_t key;
    std::uint32_t zero;
};
static_assert(sizeof(Offer) == 32);

/// To be carried out on memory of the receiver (arithmetic.hpp).
struct AtomicCall {
    std::uint64_t address;
    std::uint32_t key;
    std::uint32_t count;
    std::uint8_t datatype;
    std::uint8_t operation;
    std::uint8_t form;
    std::uint8_t zero;
    std::uint32_t unused = 0;
};
static_assert(sizeof(AtomicCall) == 24);

/// Bytes of the longest message that a connection carries.
inline constexpr std::size_t packet_max = sizeof(Header) + eager_max;

/// Goes along with a request, and with the answer to it.
struct Hello {
    static constexpr std::uint32_t magic_word = 0x4d445256;  // "VRDM"
    static constexpr std::uint16_t version_now = 6;

    std::uint32_t magic = magic_word;
    std::uint16_t version = version_now;
    std::uint16_t port = 0;           ///< the sender's own; its host is known
    std::uint32_t packet = 0;         ///< packet_max, which must agree
    std::uint32_t crossed = 0;        ///< 1, in a rejection: a request the other way is preferred
    std::uint64_t incarnation = 0;    ///< tells an endpoint from an earlier one at the same address
    std::uint64_t lines_address = 0;  ///< in an acceptance: SharedLines to attach to; 0: none
    std::uint32_t lines_handle = 0;
    std::uint16_t wants_lines = 0;   ///< 1, in a request: of use to who asks
    std::uint16_t counts_moves = 0;  ///< 1: say so when its memory was read or written
};
static_assert(sizeof(Hello) == 40 && sizeof(Hello) <= connect_data_max);

}  // namespace via::fabric::rdm
