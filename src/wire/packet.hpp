// Packets: what travels between two NICs in one datagram, where the medium may drop, duplicate,
// reorder or corrupt it (docs/design/protocol.md). Little-endian. parse_*() refuses every byte
// string that no emit_*() makes, and looks at no byte beyond the length it is given.
//
// Every packet, of every version, for ever:
//   0 CRC32C of all bytes from 4 on   4 version   5 kind   6 zero (2 bytes)
//   8 connection: the identifier by which the receiver knows it
// A data packet goes on with
//  16 packet number, then chunks, one behind the other:
//   0 kind   1 flags or count   2 length of what follows the prefix
//   frame: 4 frame number, then the frame (wire/frame.hpp) with its payload
//   part:  4 frame number   8 place in the frame   10 length of the frame, then bytes of the frame
//   ack:   4 delay   8 largest   16 ranges of 8 bytes: packets missing, packets there
//   ping:  nothing    padding: bytes of no meaning
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"

namespace via::wire {

constexpr std::uint8_t packet_version = 1;

enum class PacketKind : std::uint8_t {
    query = 1,    ///< to a host: where does somebody listen to this discriminator?
    answer,       ///< to a query
    hello,        ///< to a data port: let us have a path; first without, then with a cookie
    retry,        ///< to a hello without a good cookie: here is one
    welcome,      ///< to a hello: the path exists
    refuse,       ///< to a hello: no path, and why
    unsupported,  ///< to a packet of a version that is not spoken here
    data,         ///< numbered: frames and acknowledgements
    close,        ///< the sender has ended the path
    rails,        ///< of a path that is up: where else its sender takes its packets
};
constexpr std::uint8_t packet_kind_max = static_cast<std::uint8_t>(PacketKind::rails);

enum class PacketError : std::uint8_t { none, truncated, checksum, version, kind, contents };
const char* to_string(PacketError error);

constexpr std::uint32_t packet_prefix_length = 16;
/// The shortest packet of any version: what says `unsupported` is not longer.
constexpr std::uint32_t packet_length_least = 20;
/// Of a data packet, before its chunks.
constexpr std::uint32_t data_header_length = 24;
/// The smallest datagram that every path carries: IPv4's least MTU without its headers.
constexpr std::uint32_t packet_length_min = 548;
/// The largest one.
constexpr std::uint32_t packet_length_max = 65507;

struct PacketPrefix {
    PacketKind kind{};
    std::uint64_t connection = 0;
};

/// Checks length, checksum, version, kind and zero, in this order; `prefix.connection` is set also
/// when the version is wrong, for the answer. `unsupported` is read whatever its version, so that
/// it never is answered by another one.
PacketError parse_prefix(std::span<const std::byte> packet, PacketPrefix& prefix);
/// The same of a packet that was authenticated: without a look at its checksum.
PacketError parse_authentic_prefix(std::span<const std::byte> packet, PacketPrefix& prefix);
/// Bytes of a packet that still lie elsewhere.
struct Body {
    const std::byte* bytes = nullptr;  ///< nullptr: all are where the packet is
    std::uint32_t at = 0;              ///< their place in the packet, behind its first 16 bytes
    std::uint32_t length = 0;
    std::size_t more = 0;  ///< bytes behind them that other packets will take soon
};

/// Bytes 4 to 7 as one word: version, kind, zero.
constexpr std::uint32_t packet_word(PacketKind kind) {
    return packet_version | std::uint32_t{static_cast<std::uint8_t>(kind)} << 8;
}

/// Fills bytes 0 to 15 of a packet whose rest is there, or in `body`, which is copied to its place;
/// computes the checksum last. Others may write to the body meanwhile: its sum is the copy's.
void seal(std::span<std::byte> packet, const PacketPrefix& prefix, const Body& body = {});
/// Fills them with no checksum (zero): of a packet whose tag takes its place.
void put_packet_prefix(std::span<std::byte> packet, const PacketPrefix& prefix);

// Packets of connecting ---------------------------------------------------------------------------

/// What one end tells the other about itself.
struct PathOffer {
    std::uint64_t instance = 0;      ///< of the sender's NIC: another one for each opening
    std::uint32_t receive_room = 0;  ///< bytes that may be under way to it at once
    std::uint32_t ack_delay_us = 0;  ///< it acknowledges within this
    std::uint16_t datagram_max = 0;  ///< bytes of the longest datagram it takes
    std::uint16_t nic_port = 0;      ///< of its NIC address (VIPL 1.4); the host is the sender's
};

struct Query {
    Discriminator discriminator;
};
enum class AnswerCode : std::uint32_t { found = 1, no_match };
struct Answer {
    AnswerCode code{};
    std::uint16_t port = 0;  ///< found: where the listener's NIC takes packets; else 0
    std::uint64_t instance = 0;
};
/// Proves that its owner receives packets at the address that it sends from. All zero: none.
struct Cookie {
    std::uint64_t moment = 0;
    std::uint64_t proof = 0;

    bool is_given() const { return moment != 0 || proof != 0; }
};
struct Hello {
    std::uint64_t target = 0;  ///< instance that is meant
    /// Grows with every path that the sender asks for; not 0. Where it joins one, the identifier by
    /// which the target knows that.
    std::uint64_t attempt = 0;
    Cookie cookie;
    PathOffer offer;
    bool joins = false;  ///< what is asked for is no path of its own, but a rail of another one
};
struct Welcome {
    std::uint64_t connection = 0;  ///< by which the sender knows the path; not 0
    std::uint64_t attempt = 0;     ///< of the hello
    PathOffer offer;
};
enum class PathRefusal : std::uint32_t {
    unknown_instance = 1,  ///< the NIC that is meant is not here (any more)
    no_resource,
    not_admitted,  ///< the asker has not the key that is wanted here
};
enum class CloseReason : std::uint32_t { left = 1, broke_the_protocol, unknown_path };
/// Networks of one NIC, at most.
constexpr std::uint32_t rails_max = 4;
/// Where the sender takes packets, an address in each of its networks.
struct Rails {
    bool asks = false;  ///< the same is wanted of the other
    std::uint8_t count = 0;
    std::array<HostAddress, rails_max> addresses{};
};

/// Each fills `packet` whole, checksum included, and returns its length: at most
/// connecting_length_max. `connection`: the asker's identifier; in a close the receiver's.
constexpr std::uint32_t connecting_length_max = 112;
using ConnectingBytes = std::span<std::byte, connecting_length_max>;
std::uint32_t emit_query(std::uint64_t connection, const Query& query, ConnectingBytes packet);
std::uint32_t emit_answer(std::uint64_t connection, const Answer& answer, ConnectingBytes packet);
std::uint32_t emit_hello(std::uint64_t connection, const Hello& hello, ConnectingBytes packet);
std::uint32_t emit_retry(std::uint64_t connection, const Cookie& cookie, ConnectingBytes packet);
std::uint32_t emit_welcome(std::uint64_t connection, const Welcome& welcome,
                           ConnectingBytes packet);
std::uint32_t emit_refuse(std::uint64_t connection, PathRefusal why, ConnectingBytes packet);
std::uint32_t emit_unsupported(std::uint64_t connection, ConnectingBytes packet);
std::uint32_t emit_close(std::uint64_t connection, CloseReason why, ConnectingBytes packet);
std::uint32_t emit_rails(std::uint64_t connection, const Rails& rails, ConnectingBytes packet);

/// What follows the prefix of a packet of that kind, of exactly its length: contents, or none.
PacketError parse_query(std::span<const std::byte> packet, Query& query);
PacketError parse_answer(std::span<const std::byte> packet, Answer& answer);
PacketError parse_hello(std::span<const std::byte> packet, Hello& hello);
PacketError parse_retry(std::span<const std::byte> packet, Cookie& cookie);
PacketError parse_welcome(std::span<const std::byte> packet, Welcome& welcome);
PacketError parse_refuse(std::span<const std::byte> packet, PathRefusal& why);
PacketError parse_close(std::span<const std::byte> packet, CloseReason& why);
PacketError parse_rails(std::span<const std::byte> packet, Rails& rails);
/// Versions that the other one speaks, the least and the greatest.
struct Versions {
    std::uint8_t least = 0;
    std::uint8_t greatest = 0;
};
PacketError parse_unsupported(std::span<const std::byte> packet, Versions& versions);

// Data packets ------------------------------------------------------------------------------------

enum class ChunkKind : std::uint8_t { padding = 0, frame, ack, ping, part };

namespace chunk_flag {
/// The frame is sent again when it is lost, and delivered in the order of frame numbers. Without
/// it the frame number is 0 and the frame is delivered at once or never.
constexpr std::uint8_t reliable = 1;
}  // namespace chunk_flag

constexpr std::uint32_t chunk_prefix_length = 4;
/// Before a frame's own header.
constexpr std::uint32_t frame_chunk_overhead = 8;
constexpr std::uint32_t frame_length_max =
    packet_length_max - data_header_length - frame_chunk_overhead;
/// Before a part's bytes. All parts of a frame but the last have `part_length` of them: a packet
/// with one of them is as long as every path carries.
constexpr std::uint32_t part_chunk_overhead = 12;
constexpr std::uint32_t part_length = packet_length_min - data_header_length - part_chunk_overhead;
constexpr std::uint32_t parts_of(std::uint32_t frame_length) {
    return (frame_length + part_length - 1) / part_length;
}
constexpr std::uint32_t parts_max = parts_of(frame_length_max);
constexpr std::uint32_t ack_ranges_max = 32;
constexpr std::uint32_t ack_length_least = 16 + 8;
constexpr std::uint32_t ack_length_max = 16 + 8 * ack_ranges_max;
/// Unit of Ack::delay.
constexpr std::int64_t ack_delay_unit_ns = 1000;

/// Packet numbers that have arrived, from the largest down: `there` packets, then `missing` ones
/// below, and so on. The first range's `missing` is 0.
struct AckRange {
    std::uint32_t missing = 0;
    std::uint32_t there = 0;  ///< not 0
};
struct Ack {
    std::uint64_t largest = 0;
    std::uint32_t delay = 0;  ///< since the largest one came, at most; ack_delay_unit_ns
    std::uint8_t count = 0;   ///< of ranges; not 0
    AckRange ranges[ack_ranges_max];
};

struct Chunk {
    ChunkKind kind{};
    bool reliable = false;
    std::uint32_t frame_number = 0;
    std::span<const std::byte> frame;  ///< header and payload, or a part of them; not empty
    std::uint32_t at = 0;              ///< of a part: its place in the frame
    std::uint32_t whole = 0;           ///< of a part: length of the frame, more than part_length
    Ack ack;                           ///< of an ack chunk
};

/// Goes through the chunks of a data packet whose prefix was parsed.
class ChunkReader {
public:
    /// The whole packet. A packet too short to hold its number has no chunk and is bad.
    explicit ChunkReader(std::span<const std::byte> packet);
    std::uint64_t packet_number() const { return number_; }
    /// False: there is no further chunk, or the rest is malformed.
    bool next(Chunk& chunk);
    bool bad() const { return bad_; }

private:
    std::span<const std::byte> rest_;
    std::uint64_t number_ = 0;
    bool bad_ = false;
};

/// A data packet as most are: one frame that must arrive, and behind it perhaps an acknowledgement
/// of one range.
struct CommonPacket {
    std::uint64_t connection;
    std::uint64_t number;
    std::uint32_t frame_number;
    std::span<const std::byte> frame;  ///< header and payload, not empty
};
/// Reads one, `ack` too: count 0 where it has none. False: it is another packet, or what nobody
/// sends; ChunkReader would tell. Either way its checksum was not looked at: see has_checksum().
bool read_common(std::span<const std::byte> packet, CommonPacket& common, Ack& ack);
/// Does the checksum of a packet that is long enough hold?
bool has_checksum(std::span<const std::byte> packet);
/// Is `second` what comes behind the common packet `first`, whose frame is an inner one, as a long
/// message goes on: of the same length and path, with the next packet and frame number, and a frame
/// that continues() the other? Neither checksum is looked at.
bool follows(std::span<const std::byte> first, std::span<const std::byte> second);

/// Each writes one chunk to the beginning of `to`, which is long enough, and returns its length.
std::uint32_t emit_ack_chunk(const Ack& ack, std::byte* to);
std::uint32_t emit_ping_chunk(std::byte* to);
/// `length`: of the chunk altogether, from chunk_prefix_length on.
std::uint32_t emit_padding_chunk(std::uint32_t length, std::byte* to);
/// The prefix and number of a frame chunk; the frame's `length` bytes follow behind
/// frame_chunk_overhead.
void emit_frame_chunk(bool reliable, std::uint32_t frame_number, std::uint32_t length,
                      std::byte* to);
/// The n-th part of a reliable frame, which is longer than part_length; copies its bytes.
std::uint32_t emit_part_chunk(std::uint32_t frame_number, std::uint32_t n,
                              std::span<const std::byte> frame, std::byte* to);
/// Header and checksum of a data packet whose chunks stand behind data_header_length.
void seal_data(std::span<std::byte> packet, std::uint64_t connection, std::uint64_t number,
               const Body& body = {});
/// The header alone, with no checksum.
void put_data_header(std::span<std::byte> packet, std::uint64_t connection, std::uint64_t number);

inline std::uint32_t ack_length(const Ack& ack) { return 16 + 8 * std::uint32_t{ack.count}; }

/// One line for people, for instance "data #17 frame 5 send (40) ack 3-9"; of an envelope also from
/// whom and to whom. Writes at most `size` bytes, zero-terminated, and returns the length written.
/// Any bytes may be given.
std::size_t print_packet(std::span<const std::byte> packet, char* text, std::size_t size);

/// CRC32C (Castagnoli) of the bytes.
std::uint32_t crc32c(std::span<const std::byte> bytes);
/// Of bytes behind those whose CRC32C is `sum`.
std::uint32_t crc32c(std::uint32_t sum, std::span<const std::byte> bytes);
/// Copies them to `to`, too: each is read once, the sum is the copy's. `more`: bytes behind them
/// that will be wanted soon.
std::uint32_t crc32c_copy(std::uint32_t sum, std::span<const std::byte> bytes, std::byte* to,
                          std::size_t more = 0);
/// The same, on processors without an instruction for it; for tests.
std::uint32_t crc32c_by_table(std::span<const std::byte> bytes);

}  // namespace via::wire
