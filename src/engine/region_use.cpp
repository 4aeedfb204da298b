#include "engine/region_use.hpp"

#include "base/assert.hpp"
#include "queue/descriptor.hpp"

namespace via::engine {

namespace {

/// Behind so many completions positions might have come round: each passes 64 cells at most.
constexpr std::uint64_t progress_max = 1U << 25;

}  // namespace

/// Notes what the descriptor at `at` uses and passes it. True: the region, too.
bool RegionUse::look(queue::Cursor& at, memory::MemoryHandle handle, bool sends) {
    const queue::WorkEntry& entry = at.cell();
    seen_.set(place_of(entry.handle));
    bool found = entry.handle == handle;
    const std::uint16_t operation = entry.control & queue::control::operation_mask;
    const bool remote = sends && operation != queue::control::send_receive;
    // Behind the second one of an atomic operation there are words, no memory.
    std::uint32_t left = sends && operation == queue::control::atomic ? 1 : ~0U;
    for (queue::SegmentWalk walk(at, remote ? 1 : 0); !walk.done() && left != 0; --left) {
        const queue::Segment& segment = walk.next();
        if (segment.length == 0) continue;
        seen_.set(place_of(segment.handle));
        found = found || segment.handle == handle;
    }
    at.pass();
    return found;
}

bool RegionUse::uses(queue::WorkQueue& work, memory::MemoryHandle handle, bool sends,
                     std::uint64_t progress, std::uint64_t& looked_at) {
    VIA_ASSERT(work.is_in_order());
    const std::uint32_t posted = work.posted();
    const std::uint32_t oldest = work.oldest().position();
    const bool knows = asked_ && progress - progress_ < progress_max &&
                       next_.position() - oldest <= posted - oldest;
    asked_ = true;
    progress_ = progress;
    if (!knows) {  // what was seen is completed
        seen_.reset();
        next_ = work.oldest();
    }
    for (; next_.position() != posted; ++looked_at) look(next_, handle, sends);
    if (!seen_.test(place_of(handle))) return false;
    // One of them may, or one that is completed did.
    seen_.reset();
    bool found = false;
    for (queue::Cursor at = work.oldest(); at.position() != posted; ++looked_at)
        found = look(at, handle, sends) || found;
    return found;
}

}  // namespace via::engine
