// What a program asked of VIA: registrations and posts of all its processes, in order, without any
// payload. The bytes that a trace is kept as are described in docs/design/lab.md.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace via::lab::study {

struct TracePiece {
    std::uint64_t address = 0;
    std::uint64_t length = 0;
    bool operator==(const TracePiece&) const = default;
};

enum class TraceKind : std::uint8_t {
    register_memory,
    deregister_memory,
    receive,  ///< posted
    send,
    rdma_write,
    rdma_read,
};
constexpr std::uint8_t trace_kinds = 6;

struct TraceEvent {
    TraceKind kind = TraceKind::send;
    std::uint32_t process = 0;
    std::uint32_t connection = 0;  ///< of posts
    std::uint64_t remote = 0;      ///< of RDMA: address in the peer's memory
    std::vector<TracePiece> pieces;
    bool operator==(const TraceEvent&) const = default;
    std::uint64_t length() const {
        std::uint64_t sum = 0;
        for (const TracePiece& piece : pieces) sum += piece.length;
        return sum;
    }
};

/// Between two processes, or within one.
struct TraceConnection {
    std::uint32_t from = 0;
    std::uint32_t to = 0;
    bool operator==(const TraceConnection&) const = default;
};

struct Trace {
    std::uint32_t processes = 0;
    std::vector<TraceConnection> connections;
    std::vector<TraceEvent> events;
    std::uint32_t peer_of(const TraceEvent& event) const {
        const TraceConnection& connection = connections[event.connection];
        return connection.from == event.process ? connection.to : connection.from;
    }
};

constexpr std::uint32_t trace_processes_max = 4096;
constexpr std::uint64_t trace_connections_max = 1 << 20;
constexpr std::uint64_t trace_pieces_max = 252;
constexpr std::uint64_t trace_piece_max = std::uint64_t{1} << 40;    ///< bytes, also registered
constexpr std::uint64_t trace_message_max = std::uint64_t{1} << 30;  ///< bytes: a NIC's most
/// Bytes of all messages: what the slowest machine replays in some minutes.
constexpr std::uint64_t trace_messages_max = std::uint64_t{1} << 36;
constexpr std::uint64_t trace_address_max = std::uint64_t{1} << 57;  ///< of its end

std::string encode(const Trace& trace);
/// Refuses whatever encode() does not make, and what nobody could replay; the error says what, of
/// which event, and at which byte.
std::expected<Trace, std::string> decode(std::string_view bytes);

}  // namespace via::lab::study
