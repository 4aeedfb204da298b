// The bytes of a connection in memory: what its two ends store and read. No system calls but those
// that get more memory.
#pragma once

#include <algorithm>
#include <bit>

#include "arena.hpp"
#include "buffers.hpp"

namespace via::sockets {

/// How bytes are taken.
struct Taking {
    bool look_only = false;  ///< MSG_PEEK
    bool discard = false;    ///< MSG_TRUNC: into no buffer
};

/// One end of a pipe, as one process sees it. A value.
class PipeEnd {
public:
    static constexpr std::uint32_t first_lines = 64;
    static constexpr std::uint32_t usual_lines = 2048;
    static constexpr std::uint32_t eager_lines = 32768;
    static constexpr std::uint32_t most_lines = 65536;

    PipeEnd(Arena& arena, Pipe& pipe, int side) : arena_(&arena), pipe_(&pipe), side_(side) {}

    /// A pipe with rings, and its offset in the arena; 0: no memory.
    static std::uint64_t make(Arena& arena, const Ends& ends);
    static void destroy(Arena& arena, Pipe& pipe);

    SendEnd& sending() const { return pipe_->send[side_]; }
    ReadEnd& reading() const { return pipe_->read[1 - side_]; }
    SendEnd& peer_sending() const { return pipe_->send[1 - side_]; }
    /// Of what the peer sent.
    Pipe::Again& again() const { return pipe_->again[1 - side_]; }
    PipeEnd other() const { return {*arena_, *pipe_, 1 - side_}; }
    Side& own() const { return pipe_->side[side_]; }
    Side& peer() const { return pipe_->side[1 - side_]; }
    Pipe& pipe() const { return *pipe_; }
    Arena& arena() const { return *arena_; }
    int side() const { return side_; }

    /// With the lock of sending(): as much as there is room for.
    std::size_t store(Buffers& from) const;
    /// With the lock of sending(): a larger ring, if there may be one.
    bool grow() const;
    std::size_t bytes_when_grown() const;
    bool has_room() const;
    /// Also when there would be, in a larger ring.
    bool may_have_room() const { return sending().lines < eager_lines || has_room(); }
    /// With the lock of reading(). Sets `room` when the sender may want to know of it.
    std::size_t take(Buffers& to, Taking how, bool& room) const;
    bool has_bytes() const;
    /// With the lock of reading().
    std::size_t bytes_waiting() const;

private:
    static constexpr std::size_t most_block_bytes = 16384;
    static constexpr std::size_t line_bytes = sizeof(detail::StoreLine);

    struct Cursor {
        std::uint64_t place, ring;
        std::uint32_t offset, lines;
    };
    /// Whatever a peer wrote, a number of lines that a ring can have.
    static std::uint32_t lines_in(const std::uint32_t& written) {
        return std::min(std::bit_floor(detail::load(const_cast<std::uint32_t&>(written)) | 1),
                        most_lines);
    }
    /// Where a line may be, whatever a peer wrote.
    std::byte* begin_of(std::uint64_t ring) const {
        return reinterpret_cast<std::byte*>(arena_->at<detail::StoreLine>(ring));
    }
    detail::StoreRing ring_at(std::uint64_t offset, std::uint32_t lines) const {
        return {{begin_of(offset), detail::StoreRing::segment_size(lines)}, lines};
    }
    std::uint64_t free_lines() const;
    std::uint32_t next_size() const;
    std::byte* line_at(std::uint64_t ring, std::uint32_t lines, std::uint64_t place) const {
        return begin_of(ring) + detail::StoreRing::segment_size(0) +
               (place & (lines - 1)) * sizeof(detail::StoreLine);
    }
    std::uint64_t make_ring(std::uint32_t lines, std::uint64_t place) const;
    Cursor cursor() const {
        const ReadEnd& end = reading();
        return {end.place, end.ring, end.offset, lines_in(end.lines)};
    }
    struct Message {
        std::size_t length = 0;  ///< 0: there is none
        bool block = false;      ///< see store_block()
        std::uint64_t lines() const;
    };
    Message next_message(Cursor& at) const;
    void copy(const Cursor& at, const Message& message, std::span<std::byte> to) const;
    std::size_t longest_block() const;
    void store_block(std::span<const std::byte> bytes) const;
    void make_next_empty(std::uint64_t place) const;
    void commit(const Cursor& at, bool& room) const;

    Arena* arena_;
    Pipe* pipe_;
    int side_;
};

}  // namespace via::sockets
