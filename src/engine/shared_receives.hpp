// Shared receive queues: receives that several VIs of a NIC take, each the oldest one when a
// message comes for it. From then on it is a receive of that VI's own queue.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/atomic.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "engine/news.hpp"
#include "engine/region_use.hpp"
#include "engine/vi.hpp"
#include "memory/handle.hpp"
#include "memory/table.hpp"
#include "queue/work_queue.hpp"

namespace via::engine {

/// What a shared receive queue is made to be.
struct SharedShape {
    memory::ProtectionTag tag = memory::no_tag;  ///< its VIs have the same one
    std::uint32_t descriptors_max = 0;           ///< posted, and taken by no VI
    std::uint32_t quota = 0;  ///< receives in the queue of one VI, completed ones included
};

/// The work queue is as any other; its taker is the NIC, too.
struct SharedReceiveQueue {
    queue::WorkQueue work;        ///< what was posted and no VI has taken
    SharedShape shape;            ///< constant while it exists
    Atomic<Vi*> rings{nullptr};   ///< any VI that gets credits from it: posts ring its doorbell
    Atomic<bool> reached{false};  ///< the limit was, and nobody was told; cleared by the turn
    std::uint32_t limit = 0;      ///< fewer receives than that are an event, once; 0: none
    std::uint32_t vis = 0;        ///< that take from it
    std::uint32_t waiting = 0;    ///< of these, that have no receive to tell their peer of
    Vi* first_waiting = nullptr;
    Vi* last_waiting = nullptr;
    std::uint64_t given = 0;
    RegionUse use;

    std::uint32_t left() const { return work.posted_count() - work.taken_count(); }
};

/// Owns the shared receive queues, by name: index in the low 16 bits, generation above. They live
/// as long as the NIC: a late post finds an empty one, not freed memory.
class SharedReceives {
public:
    SharedReceives(const NicLimits& limits, News& news, std::uint32_t first_generation);

    /// error_resource: there are as many as may be, or no memory.
    Result<std::uint64_t> open(const SharedShape& shape);
    /// nullptr: there is none of that name (any more). Any thread.
    SharedReceiveQueue* find(std::uint64_t name) const;
    /// What is posted is the program's again. error_resource while a VI takes from it.
    Status close(std::uint64_t name);
    /// nullptr: the VI has its own receives only. invalid_state unless it is idle; invalid_ptag.
    Status attach(Vi& vi, SharedReceiveQueue* to);
    /// Tells once when fewer than `limit` are left, from now on; 0: never.
    void arm(SharedReceiveQueue& queue, std::uint32_t limit);

    /// The oldest receive becomes the last one of the VI's own queue. False: there is none, or the
    /// VI has its quota.
    bool give(Vi& vi);
    /// Of the common message, where the VI has no receive: what it may be placed in, or nullptr.
    [[gnu::noinline]] queue::WorkEntry* oldest_for(Vi& vi);
    /// Has the VI's own queue hold some before messages come: one, or its share of what is left.
    /// With none at all the VI waits.
    void fill(Vi& vi);
    bool anybody_waits() const { return waiting_ != 0; }
    /// Calls each(vi) for VIs that wait, in the order of their waiting, while there are receives.
    template <class Serve>
    void serve(Serve each);
    /// It waits no more.
    void forget(Vi& vi);

    std::uint32_t with_tag(memory::ProtectionTag tag) const;
    /// As Engine::uses_region(); `suspended`: so is the region.
    bool uses(memory::MemoryHandle handle, bool suspended, bool& fenced, std::uint64_t& looked_at);

private:
    struct Slot {
        Atomic<std::uint32_t> generation{0};  ///< odd: exists
        std::unique_ptr<SharedReceiveQueue> queue;
    };
    bool exists(std::uint32_t index) const {
        return (slots_[index].generation.load(std::memory_order_relaxed) & 1) != 0;
    }
    void note_limit(SharedReceiveQueue& queue);
    Vi& next_waiting(SharedReceiveQueue& queue);

    std::uint32_t max_;
    News& news_;
    std::unique_ptr<Slot[]> slots_;
    std::uint32_t made_ = 0;
    std::uint32_t waiting_ = 0;  ///< VIs, of all queues
    std::deque<std::uint32_t> free_;
};

template <class Serve>
void SharedReceives::serve(Serve each) {
    for (std::uint32_t index = 0; index < made_; ++index) {
        SharedReceiveQueue& queue = *slots_[index].queue;
        for (std::uint32_t n = queue.waiting; n != 0 && queue.work.has_current(); --n)
            each(next_waiting(queue));
    }
}

}  // namespace via::engine
