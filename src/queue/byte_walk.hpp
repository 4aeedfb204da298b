// Goes through the bytes of a descriptor's data segments, in pieces of any size.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/assert.hpp"
#include "queue/work_queue.hpp"

namespace via::queue {

class ByteWalk {
public:
    ByteWalk() = default;
    /// Begins at data segment `first` of the entry at `cursor`.
    ByteWalk(const Cursor& cursor, std::uint32_t first) : segments_(cursor, first) {}

    /// Calls piece(address, length) for the next `bytes` bytes, which must be there.
    template <class Piece>
    void take(std::uint64_t bytes, Piece piece) {
        while (bytes != 0) {
            while (left_ == 0) {
                VIA_ASSERT(!segments_.done());
                const Segment& segment = segments_.next();
                address_ = segment.address;
                left_ = segment.length;
            }
            const std::uint32_t here = bytes < left_ ? static_cast<std::uint32_t>(bytes) : left_;
            piece(reinterpret_cast<std::byte*>(address_), std::size_t{here});
            address_ += here;
            left_ -= here;
            bytes -= here;
        }
    }

    /// Region of the piece that take() is calling with.
    memory::MemoryHandle handle() { return segments_.latest().handle; }

private:
    SegmentWalk segments_;
    std::uint64_t address_ = 0;
    std::uint32_t left_ = 0;
};

}  // namespace via::queue
