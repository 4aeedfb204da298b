// Packets of version 2: those of version 1 that tell or do something, under the keys of their path.
// The prefix is bare, as in every version, and authenticated. Little-endian.
//   hello, without a cookie: as of version 1
//   hello: 16 instance meant   24 cookie   40 cipher   41 zero (7 bytes)
//          48 the handshake's first message, which holds the hello of version 1 without a cookie
//         216 admission: 16 bytes of a keyed hash of all before it, from byte 4 on
//   welcome: 16 the handshake's second message, which holds the welcome of version 1
//   data, close, rails: 16 number   24 what stands behind the prefix in version 1, sealed; no sum
#pragma once

#include "wire/packet.hpp"

namespace via::wire::sealed {

constexpr std::uint8_t version = 2;
constexpr std::uint32_t hello_target = 16;
constexpr std::uint32_t hello_moment = 24;
constexpr std::uint32_t hello_proof = 32;
constexpr std::uint32_t hello_cipher = 40;
constexpr std::uint32_t hello_zero = 41;
constexpr std::uint32_t hello_message = 48;
constexpr std::uint32_t bare_hello_length = 72;
constexpr std::uint32_t hello_message_length = 96 + bare_hello_length;
constexpr std::uint32_t hello_admission = hello_message + hello_message_length;
constexpr std::uint32_t admission_length = 16;
constexpr std::uint32_t hello_length = hello_admission + admission_length;
constexpr std::uint32_t bare_welcome_length = 56;
constexpr std::uint32_t welcome_message = 16;
constexpr std::uint32_t welcome_length = welcome_message + 48 + bare_welcome_length;
static_assert(welcome_length <= hello_length, "nobody gets others to send more than he sent");
constexpr std::uint32_t number = 16;
constexpr std::uint32_t text = 24;
constexpr std::uint32_t tag_length = 16;  ///< behind the text
/// Of data and close: there is something in them.
constexpr std::uint32_t text_least = 4;

}  // namespace via::wire::sealed
