// Frames of a path that the medium may lose, until the peer's NIC has them: what each was, and
// where its bytes are. No bytes are kept but those of connecting.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "memory/handle.hpp"
#include "queue/work_queue.hpp"
#include "wire/frame.hpp"

namespace via::engine {

struct FrameRecord {
    enum class Source : std::uint8_t {
        none,    ///< the header is all
        entry,   ///< a posted descriptor's segments
        region,  ///< memory that the peer reads
        word,    ///< what an atomic operation found: computed once, kept until the peer has it
        copy,    ///< bytes of connecting
    };
    wire::Header header;
    Source source = Source::none;
    bool delivered = false;
    bool queued = false;     ///< waits to be emitted again
    bool completes = false;  ///< its delivery is that of its message
    bool answer = false;     ///< of connecting, and a frame of the peer brought it about
    std::uint32_t vi = 0;    ///< number of our VI; entry, region
    std::uint32_t payload_length = 0;
    queue::Cursor entry;
    std::uint64_t address = 0;  ///< region; of a word, where it was found
    std::uint64_t word = 0;
    memory::MemoryHandle handle = 0;
    std::vector<std::byte> copy;
};

/// Records by frame number, the oldest first. Grows to its deepest use.
class UnderWay {
public:
    bool empty() const { return first_ == end_; }
    std::uint32_t first() const { return first_; }
    FrameRecord& front() { return records_[first_ & mask()]; }
    void pop() {
        if (front().copy.capacity() != 0) std::vector<std::byte>().swap(front().copy);
        ++first_;
    }
    /// nullptr: not under way (any more).
    FrameRecord* find(std::uint32_t number) {
        return number - first_ < end_ - first_ ? &records_[number & mask()] : nullptr;
    }
    /// The device counts frames as we do.
    FrameRecord& add(std::uint32_t number) {
        VIA_ASSERT(number == end_);
        if (end_ - first_ == records_.size()) grow();
        FrameRecord& record = records_[end_++ & mask()];
        record.header = {};
        record.source = FrameRecord::Source::none;  // then there is no more to it than its header
        record.delivered = record.queued = record.completes = record.answer = false;
        record.payload_length = 0;
        return record;
    }

private:
    std::uint32_t mask() const { return static_cast<std::uint32_t>(records_.size()) - 1; }
    void grow() {
        std::vector<FrameRecord> wider(records_.empty() ? 64 : 2 * records_.size());
        const auto wider_mask = static_cast<std::uint32_t>(wider.size()) - 1;
        for (std::uint32_t number = first_; number != end_; ++number)
            wider[number & wider_mask] = std::move(records_[number & mask()]);
        records_ = std::move(wider);
    }

    std::vector<FrameRecord> records_;
    std::uint32_t first_ = 0;
    std::uint32_t end_ = 0;
};

}  // namespace via::engine
