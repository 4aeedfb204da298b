// Which regions the posted descriptors of a queue use: asked when a region is to go (VIPL 4.8). A
// post and a message do nothing for it; what is posted is looked at once, however many regions go,
// but where it may use the one that does.
#pragma once

#include <bitset>
#include <cstdint>

#include "memory/handle.hpp"
#include "queue/work_queue.hpp"

namespace via::engine {

class RegionUse {
public:
    /// Does a descriptor that is posted and not completed lie in the region or name it? `sends`: of
    /// RDMA the first segment names the peer's memory. `progress`: counts at least the completed
    /// descriptors of the queue. Adds to `looked_at` the descriptors that were looked at.
    bool uses(queue::WorkQueue& work, memory::MemoryHandle handle, bool sends,
              std::uint64_t progress, std::uint64_t& looked_at);

private:
    using Seen = std::bitset<256>;
    static std::size_t place_of(memory::MemoryHandle handle) {
        return (handle ^ handle >> memory::handle_index_bits) % Seen().size();
    }
    bool look(queue::Cursor& at, memory::MemoryHandle handle, bool sends);

    Seen seen_;  ///< by place_of(): regions of the descriptors before next_
    queue::Cursor next_;
    std::uint64_t progress_ = 0;  ///< when it was asked the last time
    bool asked_ = false;
};

}  // namespace via::engine
