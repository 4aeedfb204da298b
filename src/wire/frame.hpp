// Frames as two NICs exchange them: a fixed header, and behind it the payload. Little-endian, as
// the architectures we run on. `Header` is what a frame means; emit() and parse() turn it into
// bytes and back; parse() refuses every byte string that no emit() makes.
//
//   0 kind   1 flags   2 version   3 zero   4 VI at the receiver   8 message number
//  12 immediate data or a code
//  16 message length  20 offset            (flag extent)
//  24 remote address  32 remote handle  36 read number   (flag remote, which implies extent)
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "wire/bytes.hpp"

namespace via::wire {

constexpr std::uint8_t protocol_version = 1;

enum class FrameKind : std::uint8_t {
    request = 1,     ///< payload: ConnectMessage; vi is the target's 0; code: understood
    accept,          ///< payload: ConnectMessage; code: understood
    refuse,          ///< code: RefuseCode; payload: private data
    withdraw,        ///< the requester gave up; payload: none, vi 0, message: requester's VI
    disconnect,      ///< the sender's VI has left the connection; message: the first that it lacks;
                     ///< code: of the nak that it answers, else 0
    send,            ///< part of a message for the receive queue
    rdma_write,      ///< part of a message for remote memory
    read_request,    ///< asks for remote memory
    read_reply,      ///< part of the answer, or of an atomic operation's; remote address and handle
                     ///< are zero
    ack,             ///< every message up to `message` was placed
    nak,             ///< message `message` was refused, code: NakCode; the connection is broken
    peer_request,    ///< as request, to a VI that asks for us too (VIPL 4.22)
    credit,          ///< message: receives posted since the connection was made
    attach_request,  ///< asks to map a segment; message: which question; code: 1: to write to it
    attach_refuse,   ///< message: which question; code: AttachRefusal
    pulled,          ///< message `message` was pulled; code 1: it could not be, send it
    skip,            ///< no flags: in place of a lost frame; `vi`: its connection is over, or 0
    compare_swap,  ///< changes a word of remote memory; payload: what is expected there, what shall
                   ///< be; answered by the word as it was, in a read_reply
    fetch_add,     ///< the same; payload: what is added
};
constexpr std::uint8_t frame_kind_max = static_cast<std::uint8_t>(FrameKind::fetch_add);

/// What atomic operations are about, and the words that come with one.
constexpr std::uint32_t atomic_length = 8;
constexpr std::uint32_t operands_length(FrameKind kind) {
    return kind == FrameKind::compare_swap ? 2 * atomic_length : atomic_length;
}

/// The last three: two VIs that ask for each other do not fit (VIPL 4.21, 4.22).
enum class RefuseCode : std::uint32_t {
    no_match = 1,
    rejected,
    reliability,
    transfer_length,
    qos,
};
enum class NakCode : std::uint32_t {
    no_receive = 1,  ///< no receive was posted, or it failed: the sender's REMOTE_DESC
    protection = 2,  ///< the remote memory may not be touched so: RDMA_PROT
    protocol = 3,    ///< the message broke a rule of the protocol: TRANSPORT
};
enum class AttachRefusal : std::uint32_t {
    no_right = 1,       ///< handle, address, tag or rights do not allow it, or it is no segment
    not_supported = 2,  ///< the way between the two does not share memory
    no_resource = 3,
};

namespace flag {
constexpr std::uint8_t first = 1;      ///< first frame of its message
constexpr std::uint8_t last = 2;       ///< last frame of its message
constexpr std::uint8_t immediate = 4;  ///< the message carries immediate data
constexpr std::uint8_t extent = 8;     ///< message length and offset are present
constexpr std::uint8_t remote = 16;    ///< remote address and handle are present
constexpr std::uint8_t placed = 32;    ///< the sender wrote the bytes itself; only the news travel
constexpr std::uint8_t pull = 64;      ///< the payload says where the receiver may pull the bytes
constexpr std::uint8_t all = 127;
}  // namespace flag

constexpr std::uint32_t header_length_base = 16;
constexpr std::uint32_t header_length_extent = 24;
constexpr std::uint32_t header_length_remote = 40;

struct Header {
    FrameKind kind{};
    std::uint8_t flags = 0;
    std::uint32_t vi = 0;
    std::uint32_t message = 0;
    std::uint32_t immediate_or_code = 0;
    std::uint32_t message_length = 0;
    std::uint32_t offset = 0;
    std::uint64_t remote_address = 0;
    std::uint32_t remote_handle = 0;
    std::uint32_t read_number = 0;

    bool has(std::uint8_t bit) const { return (flags & bit) != 0; }
};

constexpr std::uint32_t header_length(std::uint8_t flags) {
    return (flags & flag::remote) != 0   ? header_length_remote
           : (flags & flag::extent) != 0 ? header_length_extent
                                         : header_length_base;
}

/// Writes header_length(header.flags) bytes.
void emit(const Header& header, std::byte* bytes);

/// How a send that is whole in one frame begins: kind, flags, version, zero.
constexpr std::uint32_t whole_send_word = static_cast<std::uint32_t>(FrameKind::send) |
                                          (flag::first | flag::last) << 8 | protocol_version << 16;
/// The same as emit() of that frame, and whether parse() would find it.
inline void emit_whole_send(std::uint32_t vi, std::uint32_t message, std::byte* bytes) {
    put(bytes + 4, vi);
    put(bytes + 8, message);
    put(bytes + 12, std::uint32_t{0});
    put(bytes, whole_send_word);
}
/// The same bytes as two words.
constexpr std::uint64_t whole_send_low(std::uint32_t vi) {
    return std::uint64_t{vi} << 32 | whole_send_word;
}
constexpr std::uint64_t whole_send_high(std::uint32_t message) { return message; }
inline bool is_whole_send(const std::byte* bytes, std::size_t length) {
    return length >= header_length_base && get<std::uint32_t>(bytes) == whole_send_word;
}

/// A frame of a message, whole or in part.
inline bool is_of_message(const std::byte* bytes, std::size_t length) {
    if (length < header_length_base) return false;
    const auto kind = static_cast<FrameKind>(bytes[0]);
    return kind == FrameKind::send || kind == FrameKind::rdma_write;
}

/// A frame of a message behind which more frames of it come.
inline bool goes_on(const std::byte* bytes, std::size_t length) {
    if (length < header_length_base) return false;
    const auto kind = static_cast<FrameKind>(bytes[0]);
    return kind >= FrameKind::send && kind <= FrameKind::read_reply &&
           kind != FrameKind::read_request &&
           (static_cast<std::uint8_t>(bytes[1]) & flag::last) == 0;
}

/// A frame that is neither its message's first nor its last, of a message that goes on by itself,
/// without immediate data.
inline bool is_inner(const std::byte* bytes, std::size_t length) {
    constexpr auto word = [](FrameKind kind, std::uint8_t flags) {
        return static_cast<std::uint32_t>(kind) | std::uint32_t{flags} << 8 |
               std::uint32_t{protocol_version} << 16;
    };
    if (length < header_length_extent) return false;
    const auto begins = get<std::uint32_t>(bytes);
    return begins == word(FrameKind::send, flag::extent) ||
           begins == word(FrameKind::rdma_write, flag::extent | flag::remote) ||
           begins == word(FrameKind::read_reply, flag::extent | flag::remote);
}

/// Where the frame's payload lies in its message; of frames with an extent.
inline std::uint32_t offset_of(const std::byte* bytes) { return get<std::uint32_t>(bytes + 20); }
inline void put_offset(std::byte* bytes, std::uint32_t offset) { put(bytes + 20, offset); }

/// Is the second frame's header the same as the first one's, an inner frame's, but for a place
/// `payload_length` further on in the message?
inline bool continues(const std::byte* first, const std::byte* second,
                      std::uint32_t payload_length) {
    const std::uint32_t length = header_length(std::to_integer<std::uint8_t>(first[1]));
    return std::memcmp(first, second, 20) == 0 &&
           offset_of(second) - offset_of(first) == payload_length &&
           (length == header_length_extent ||
            std::memcmp(first + header_length_extent, second + header_length_extent,
                        header_length_remote - header_length_extent) == 0);
}

enum class ParseError : std::uint8_t { none, truncated, version, kind, flags };
/// Reads a header from `length` bytes of private memory. On success its length is
/// header_length(header.flags) <= length.
ParseError parse(const std::byte* bytes, std::size_t length, Header& header);
const char* to_string(ParseError error);

namespace connect_feature {
constexpr std::uint32_t credits = 1;  ///< wants to send only what finds a receive
constexpr std::uint32_t all = 1;
}  // namespace connect_feature

/// What a NIC understands that others may not: immediate_or_code of requests and acceptances. Older
/// ones send 0 there and look at nothing of it, while they refuse a connect_feature that they do
/// not know. So nobody refuses bits here, and what is not known of the peer is not sent to it.
namespace understood {
constexpr std::uint32_t atomics = 1;  ///< compare_swap and fetch_add
constexpr std::uint32_t all = 1;
}  // namespace understood

/// Private data of the program with a request, acceptance or rejection, in bytes at most.
constexpr std::uint32_t private_length_max = 256;

/// Payload of requests and accept, private data behind it. Checked by the engine value by value.
struct ConnectMessage {
    std::uint32_t vi;  ///< the sender's VI number
    std::uint32_t transfer_length_max;
    std::uint16_t reliability;  ///< VIPL's bit
    std::uint8_t rdma_write_enabled;
    std::uint8_t rdma_read_enabled;
    std::uint32_t features;  ///< connect_feature bits
    std::uint64_t qos;
    std::uint16_t local_length;   ///< of the requester's discriminator
    std::uint16_t remote_length;  ///< of the discriminator asked for
    std::uint8_t local_discriminator[64];
    std::uint8_t remote_discriminator[64];
    std::uint32_t private_length;  ///< bytes that follow
};
static_assert(sizeof(ConnectMessage) == 160);
/// Payload of a frame with flag pull: this, and behind it where the message lies, piece by piece.
struct PullPlace {
    std::uint64_t address;
    std::uint64_t length;
};
struct PullHead {
    std::uint64_t proof_address;  ///< of a word that holds `proof` as long as the bytes are there
    std::uint64_t proof;
};
constexpr std::uint32_t pull_places_max = 32;

/// Every device carries at least this.
constexpr std::uint32_t connect_payload_max = sizeof(ConnectMessage) + private_length_max;

/// One line for people, for instance "send first last vi=3.1 message=7 length=40". Writes at most
/// `size` bytes, zero-terminated, and returns the length written.
std::size_t print(const Header& header, std::size_t payload_length, char* text, std::size_t size);

}  // namespace via::wire
