// A NIC: what VipOpenNic opens. Calls that change anything are made under the turn; post and done
// try to take it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "base/address.hpp"
#include "base/counters.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "engine/engine.hpp"
#include "memory/copy.hpp"
#include "memory/table.hpp"
#include "nic/turns.hpp"
#include "queue/completion_queue.hpp"

namespace via::nic {

/// Owns what programs call: posts and done, control calls, listeners by name. It is a Turns, and
/// has none: agents and the C API layer ask a Nic for its engine, memory, turn and sleep, so that
/// each of these thirty-odd functions would stand here once more, to call the same of a member.
class Nic : public Turns {
public:
    /// As Turns.
    Nic(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
        std::uint32_t first_generation = 0);
    ~Nic();

    // Data path (any thread) ----------------------------------------------------------------------
    /// VIPL 4.9 to 4.12. `descriptor` is the program's; invalid_parameter for what cannot be read.
    Status post_send(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle);
    Status post_receive(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle);
    /// As post_send(), of an atomic operation, of which the descriptor says where: first the peer's
    /// word, then eight bytes for what was there.
    Status post_atomic(engine::Vi& vi, void* descriptor, memory::MemoryHandle handle,
                       const memory::WordChange& change);
    /// Several in order, in one go. `posted`: how many were; the status is of the next one.
    Status post_many(engine::Vi& vi, bool receive, std::span<void* const> descriptors,
                     const memory::MemoryHandle* handles, std::uint32_t& posted);
    /// VIPL 4.13: success, descriptor_error (faulty, or *descriptor nullptr: nothing is posted),
    /// not_done.
    Status done(engine::ViQueue& queue, void*& descriptor) {
        const Done done = this->done(queue);
        descriptor = done.descriptor;
        return done.status;
    }
    struct Done {
        void* descriptor;
        Status status;
    };
    [[gnu::always_inline]] Done done(engine::ViQueue& queue) {
        queue::Taken taken;
        if (queue.work.has_done() && queue.work.take(taken)) return done_of(taken);
        return done_after_poll(queue);
    }
    /// The oldest that are done, up to and with the first that is faulty (descriptor_error), at
    /// most as many as `descriptors` has room for, which is one at least. Else as done().
    Status done_many(engine::ViQueue& queue, std::span<void*> descriptors, std::uint32_t& taken);
    /// success or not_done. `completion.vi` is the VI handle's number.
    Status completion_done(queue::CompletionQueue& queue, queue::Completion& completion);

    // Control (waits for the turn) ----------------------------------------------------------------
    /// VI idle -> connect_pending; the outcome is in vi.connect_status when the state has changed.
    /// briefly: where nobody takes requests it is made again for some milliseconds; insisting: a
    /// listener that is there, but takes no requests just now, is asked again until its time is up.
    enum class Asking : std::uint8_t { once, briefly, insisting };
    /// `number`: vi.requests while this is the last request.
    Status connect(engine::Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                   std::span<const std::byte> data = {}, Asking asking = Asking::once,
                   std::uint32_t* number = nullptr);
    /// The same with a VI that asks for us (VIPL 4.22); error_resource: the discriminator is
    /// another process's.
    Status connect_peer(engine::Vi& vi, const NetAddress& local, const NetAddress& remote,
                        Time deadline, std::span<const std::byte> data = {});
    /// Registers with engine and devices. error_resource: the discriminator is another process's.
    Status listen(engine::Listener& listener);
    /// True when a request had been given to the listener already.
    bool unlisten(engine::Listener& listener);
    /// Begins to listen, until destroy_listener(). Its name: index in the low 16 bits, generation
    /// above. error_resource: the discriminator is another process's, or there are too many.
    Result<std::uint64_t> create_listener(const Discriminator& discriminator,
                                          std::uint32_t backlog);
    /// nullptr: there is none of that name (any more). The caller holds the turn; what it gets
    /// lives as long as the NIC.
    engine::Backlog* listener(std::uint64_t name);
    /// The oldest request: success, not_done, or invalid_state: the listener is gone. `waits` is
    /// what to look at until there is one.
    Status take_request(std::uint64_t name, engine::Offer& offer, engine::Backlog*& waits);
    Status destroy_listener(std::uint64_t name);
    /// The queue's name: index in the low 16 bits, generation above.
    Result<std::uint64_t> create_completion_queue(std::uint32_t entries);
    /// nullptr: there is none of that name (any more). Any thread.
    queue::CompletionQueue* completion_queue(std::uint64_t name) const {
        return completion_queues_.find(name);
    }
    /// error_resource while a VI is bound to it.
    Status destroy_completion_queue(std::uint64_t name);
    Status resize_completion_queue(std::uint64_t name, std::uint32_t entries);
    Result<memory::MemoryHandle> register_memory(std::uint64_t address, std::uint64_t length,
                                                 const memory::MemoryAttributes& attributes);
    /// May peers change words of the region by atomic operations? When it returns none is under way
    /// that may no more. invalid_parameter: no region, or one that may not be written.
    Status allow_atomics(memory::MemoryHandle handle, std::uint64_t address, bool allowed);
    /// As MemoryTable's; of windows.
    Result<memory::MemoryHandle> bind_window(memory::MemoryHandle region, std::uint64_t address,
                                             std::uint64_t length,
                                             const memory::MemoryAttributes& attributes);
    /// When it returns no peer's access by that handle is under way any more, and none begins.
    Status end_window(memory::MemoryHandle handle);
    /// error_resource while posted descriptors use the region, as for deregister().
    Status change_region(memory::MemoryHandle handle, std::uint64_t address,
                         const memory::MemoryAttributes& attributes);
    Status deregister(memory::MemoryHandle handle, std::uint64_t address);

    // Shared receive queues (shared_receives.cpp)
    // --------------------------------------------------
    /// invalid_ptag: there is no such tag.
    Result<std::uint64_t> create_shared_receives(const engine::SharedShape& shape);
    Status destroy_shared_receives(std::uint64_t name);
    /// As post_receive(), any thread; but a descriptor with a fault is not posted:
    /// descriptor_error, and its status says why.
    Status post_shared_receive(std::uint64_t name, void* descriptor, memory::MemoryHandle handle);
    /// From now on the limit is an event once, when fewer receives than that are left.
    Status arm_shared_receives(std::uint64_t name, std::uint32_t limit);
    /// success, once: the limit was reached. not_done; invalid_state: there is none of that name.
    Status take_limit(std::uint64_t name);

    // Shared segments -----------------------------------------------------------------------------
    /// Registers memory that peers may attach to. The NIC keeps it until remove_segment().
    Result<memory::MemoryHandle> add_segment(const SharedMemory& memory,
                                             const memory::MemoryAttributes& attributes);
    /// Ends its registration if that still stands (error_resource as for deregister()), and lets
    /// the memory go, but for what the answer holds. invalid_parameter: no segment begins there.
    struct RemovedSegment {
        memory::MemoryHandle handle;  ///< of the region that ended with it; 0: it had ended before
        std::shared_ptr<void> owner;
    };
    Result<RemovedSegment> remove_segment(const std::byte* base);
    /// Asks the peer of `vi` for its segment; vi.attaches_decided reaches the answer when there is
    /// an outcome for finish_import(), which must follow.
    Result<std::uint32_t> begin_import(engine::Vi& vi, memory::MemoryHandle handle,
                                       std::uint64_t address, bool writable);
    /// success: `memory` is mapped until release_import(). timeout: there is no answer yet.
    Status finish_import(engine::Vi& vi, std::uint32_t number, Attachment& memory);
    /// invalid_parameter: no import begins there.
    Status release_import(const std::byte* base);

private:
    Status end_region(memory::MemoryHandle handle, std::uint64_t address);
    template <bool receive, std::size_t count>
    bool post_common(engine::Vi& vi, queue::Descriptor* descriptor, memory::MemoryHandle handle,
                     queue::ControlSegment control,
                     const std::array<queue::Segment, count>& segments,
                     const memory::Region& region);
    template <bool receive>
    void note_refused(engine::Vi& vi, const queue::ControlSegment& control,
                      const queue::Segment* segments) noexcept;
    Status post_shared_locked(engine::SharedReceiveQueue& to, void* address,
                              memory::MemoryHandle handle);
    template <bool receive>
    Status post_any(engine::Vi& vi, void* address, memory::MemoryHandle handle,
                    const memory::Region& region, queue::ControlSegment control, bool settled);
    template <bool receive>
    Status post_locked(engine::Vi& vi, void* address, memory::MemoryHandle handle, bool settled);
    template <bool receive, class Locked>
    Status post_settled(engine::Vi& vi, void* address, memory::MemoryHandle handle, Locked locked);
    template <bool receive>
    Status post(engine::Vi& vi, void* address, memory::MemoryHandle handle);
    Status post_atomic_locked(engine::Vi& vi, void* address, memory::MemoryHandle handle,
                              const memory::WordChange& change, bool settled);
    template <bool receive>
    Status post_all(engine::Vi& vi, std::span<void* const> descriptors,
                    const memory::MemoryHandle* handles, std::uint32_t& posted);
    void answer_post(engine::Vi& vi);
    void begin_sends(engine::Vi& vi);
    Status end_post(engine::Vi& vi, Status status);
    void leave_to_holder(engine::Vi& vi);
    void complete_post(engine::Vi& vi);
    bool send_small(engine::Vi& vi);
    bool send_pieces(engine::Vi& vi);
    bool send_common(engine::Vi& vi);
    void look_for_done(engine::ViQueue& queue);
    Done done_after_poll(engine::ViQueue& queue);
    static Done done_of(const queue::Taken& taken) {
        return {taken.descriptor, (taken.status & queue::status::error_mask) != 0
                                      ? Status::descriptor_error
                                      : Status::success};
    }
    void tell_of_receives(engine::Vi& vi);

    std::uint32_t first_generation_;  ///< of the names of what was not made yet
    std::deque<engine::Backlog> listeners_;
    std::deque<std::uint32_t> free_listeners_;
};

}  // namespace via::nic
