// Goes through the bytes of a descriptor's data segments, in pieces of any size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/assert.hpp"
#include "queue/work_queue.hpp"

namespace via::queue {

class ByteWalk {
public:
    ByteWalk() = default;
    /// Begins at data segment `first` of the entry at `cursor`.
    ByteWalk(const Cursor& cursor, std::uint32_t first) : segments_(cursor, first) {}
    /// The same in place: a copy of what was just written waits for the writing.
    void begin(const Cursor& cursor, std::uint32_t first) {
        std::construct_at(this, cursor, first);
    }

    /// Calls piece(address, length) for the next `bytes` bytes, which must be there.
    template <class Visit>
    void take(std::uint64_t bytes, Visit piece) {
        while (bytes != 0) {
            const Piece here = next(bytes);
            piece(here.data, std::size_t{here.length});
            bytes -= here.length;
        }
    }

    /// How many of the next bytes lie together; 0: none are left.
    std::uint32_t together() {
        while (left_ == 0 && !segments_.done()) begin_segment();
        return left_;
    }

    /// The next bytes that lie together, at most `bytes`, of which there must be more than 0.
    struct Piece {
        std::byte* data;
        std::uint32_t length;
    };
    Piece next(std::uint64_t bytes) {
        Piece piece{};
        while (left_ == 0) {
            VIA_ASSERT(!segments_.done());
            begin_segment();
        }
        piece.data = reinterpret_cast<std::byte*>(address_);
        piece.length = bytes < left_ ? static_cast<std::uint32_t>(bytes) : left_;
        address_ += piece.length;
        left_ -= piece.length;
        return piece;
    }

    /// Region of the piece that take() is calling with.
    memory::MemoryHandle handle() { return segments_.latest().handle; }

private:
    void begin_segment() {
        const Segment& segment = segments_.next();
        address_ = segment.address;
        left_ = segment.length;
    }

    SegmentWalk segments_;
    std::uint64_t address_ = 0;
    std::uint32_t left_ = 0;
};

}  // namespace via::queue
