// A NIC: the engine, its memory table and its devices, brought together by turn(). What VipOpenNic
// opens. Calls that change anything are made under the turn; post and done try to take it.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/counters.hpp"
#include "base/limits.hpp"
#include "base/time.hpp"
#include "device/device.hpp"
#include "engine/engine.hpp"
#include "memory/copy.hpp"
#include "memory/table.hpp"
#include "memory/translation_cache.hpp"
#include "nic/absent_device.hpp"
#include "nic/turn_lock.hpp"
#include "queue/completion_queue.hpp"

namespace via::nic {

/// What the agent does for the NIC outside the turn. Implementations may make system calls.
class Attendant {
public:
    virtual ~Attendant() = default;
    /// A turn made progress (completions, states, events) while somebody waits, or the program
    /// polls while the agent sleeps. Called without the turn, by whoever took it.
    virtual void attend() = 0;
    /// Posted work is left that no poll of the program may come to continue. Called without the
    /// turn.
    virtual void work_is_left() {}
    /// A poll moved nothing, and polls_rest says that it shall end so. Called without the turn.
    virtual void rest() {}
    /// A peer's message broke a rule and its connection ended. Called under the turn.
    virtual void refused(const char* /*why*/) {}
    /// Once: an access was refused that whole pages of its region would allow.
    virtual void missed_by_a_page(const engine::PageMiss& /*miss*/) {}
    /// Is there room for one more report()? While not, errors wait in the engine, which keeps each
    /// once per VI. Called under the turn.
    virtual bool wants_reports() { return true; }
    /// A completion queue that the program watches has entries. Called under the turn.
    virtual void entry_came(queue::CompletionQueue& /*queue*/) {}
    /// A completion queue is destroyed. Called under the turn.
    virtual void queue_goes(const queue::CompletionQueue& /*queue*/) {}
    /// In a listener that the program watches there are more requests or fewer than before. Called
    /// under the turn.
    virtual void requests_changed(engine::Backlog& /*backlog*/) {}
    /// A listener is destroyed. Called under the turn.
    virtual void listener_goes(const engine::Backlog& /*backlog*/) {}
    /// An error for the program. Called under the turn: must not call back.
    virtual void report(const engine::ErrorEvent& event) = 0;
    /// The present moment; read only while a deadline is pending.
    virtual Time now() = 0;
};

/// Why no VI can be had over a device of those capabilities; nullptr: it fits.
const char* misfit(const device::Capabilities& capabilities);

/// What one turn did.
struct Turn {
    std::uint32_t received = 0;  ///< frames; what is received leaves what is sent its share
    std::uint32_t sent = 0;
    bool progress = false;  ///< something completed or changed its state
    bool more = false;      ///< the bound was met: there is more to do
    std::uint32_t frames() const { return received + sent; }
};

class Nic {
public:
    /// Counters and attendant outlive the NIC. `name` is what was opened; `first_generation`
    /// differs between NICs, so that handles of one never fit another.
    Nic(std::string name, const NicLimits& limits, Counters& counters, Attendant& attendant,
        std::uint32_t first_generation = 0);
    ~Nic();

    /// One that fits (misfit()).
    void add_device(std::unique_ptr<device::Device> device);

    /// The NIC's own table is a cache of that shape from now on. Called once, before any device is
    /// added; the loader outlives the NIC and is called under the turn.
    void cache_translations(const memory::CacheShape& shape, memory::LineLoader& loader);

    const std::string& name() const { return name_; }
    const NicLimits& limits() const { return limits_; }
    engine::Engine& engine() { return engine_; }
    memory::MemoryTable& memory() { return memory_; }
    /// nullptr: the NIC's table holds every page of every region.
    memory::TranslationCache* translations() { return translations_.get(); }
    const memory::MemoryTable& memory() const { return memory_; }
    Counters& counters() { return counters_; }
    std::vector<std::unique_ptr<device::Device>>& devices() { return devices_; }

    // The turn ------------------------------------------------------------------------------------
    /// One round of work, bounded by the limits; the caller holds the turn and ends it with
    /// end_turn(). Order: doorbells, what devices received, time, what is to be sent.
    /// The answer stands until the next one.
    const Turn& turn(Time now);
    /// Lets the turn go, wakes whom it must, and looks at doorbells once more.
    /// `polling`: the program's own poll, which an agent asleep must hear of.
    [[gnu::always_inline]] void end_turn(bool polling = false) {
        finish_turn(polling);
        if (doorbells_.any()) [[unlikely]]
            answer_late(polling);
    }
    void take_turn() { lock_.take(); }
    bool try_take_turn() { return lock_.try_take_rarely(); }
    /// Sets bits of attention(). Progress made before is seen by the caller's next look, later one
    /// sees the bits. Not while holding the turn, or a lock that who holds it waits for.
    void call_for_attention(std::uint32_t bits) {
        attention_.fetch_or(bits);
        atomic_fence_after_rmw();
        if (!lock_.is_anothers()) return;
        take_turn();
        end_turn();
    }

    /// One try at a turn by the program's own thread. True when the turn made progress.
    bool poll();
    /// The same, but waits for the turn first: for posts on VIs that are not connected.
    void poll_surely();

    /// Runs `control` under the turn, then one round of work, so that what it caused goes out.
    template <class Control>
    auto with_turn(Control control) {
        lock_.take();
        struct End {
            Nic& nic;
            ~End() {
                nic.deadline_ = nic.engine_.next_deadline();
                nic.turn(nic.now_if_needed());
                nic.end_turn();
            }
        } end{*this};
        return control();
    }

    /// The same for control that causes nothing to be sent: without the round of work.
    template <class Control>
    auto holding_turn(Control control) {
        lock_.take();
        struct End {
            Nic& nic;
            ~End() { nic.end_turn(); }
        } end{*this};
        return control();
    }

    /// Earliest moment at which a turn is due; the caller holds the turn.
    Time next_deadline() const;
    /// True when a turn would find something; the caller holds the turn.
    bool has_work();

    /// Paths that were condemned and are not down yet. While there are any, each frame is asked
    /// whether it is of one.
    std::uint32_t condemned_paths() const { return condemned_paths_; }

    // Waiting and sleeping (the agent's side)
    // -------------------------------------------------------
    /// Bits of attention(): set by the agent before a full fence and a last look at the work.
    static constexpr std::uint32_t somebody_waits = 1;    ///< for completions, at least
    static constexpr std::uint32_t somebody_listens = 4;  ///< waits for anything but these
    static constexpr std::uint32_t anybody_waits = somebody_waits | somebody_listens;
    static constexpr std::uint32_t agent_sleeps = 2;
    static constexpr std::uint32_t polls_rest = 8;  ///< each that moves nothing
    Atomic<std::uint32_t>& attention() { return attention_; }
    /// Counts polls of the program; stands still when the program does.
    std::uint64_t polls() const { return counters_.get(Counter::polls); }
    /// Tells all peers how we sleep; the caller holds the turn.
    void arm(device::Sleep sleep);
    /// Who arm()ed sleeps until the next deadline, `latest` at the latest, and that is returned. A
    /// turn that brings an earlier one says that work is left. The caller holds the turn.
    Time sleep_until_deadline(Time latest) {
        return sleep_until_ = earlier(latest, next_deadline());
    }
    /// Somebody sleeps so, or did and has not arm()ed anew; for who holds the turn.
    bool is_slept_on() const { return sleep_until_ != Time{}; }
    /// The devices' work that needs system calls; the caller holds the turn.
    void service(Time now);

    /// Ends every connection and lets the devices go; the peers know. Calls that come late find a
    /// NIC without devices. The caller makes sure that nobody waits.
    void close();
    /// The process ends: the devices leave their peers, and nothing goes or comes any more. Calls
    /// find everything as it was, and RDMA to peers' segments goes nowhere, either. False: somebody
    /// has the turn, and nothing happened.
    bool leave();
    /// Who calls this interrupted a turn of its own thread.
    bool interrupts_turn() const { return lock_.is_callers(); }

    // Data path (any thread)
    // ------------------------------------------------------------------------
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

    // Control (waits for the turn)
    // --------------------------------------------------------------------
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
    HostAddress peer_address(engine::PathId path) const;
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
    queue::CompletionQueue* completion_queue(std::uint64_t name) const;
    std::uint64_t completion_queue_name(const queue::CompletionQueue& queue) const;
    /// error_resource while a VI is bound to it.
    Status destroy_completion_queue(std::uint64_t name);
    Status resize_completion_queue(std::uint64_t name, std::uint32_t entries);
    Result<memory::MemoryHandle> register_memory(std::uint64_t address, std::uint64_t length,
                                                 const memory::MemoryAttributes& attributes);
    /// error_resource while posted descriptors use the region, as for deregister().
    /// May peers change words of the region by atomic operations? When it returns none is under way
    /// that may no more. invalid_parameter: no region, or one that may not be written.
    Status allow_atomics(memory::MemoryHandle handle, std::uint64_t address, bool allowed);
    Status change_region(memory::MemoryHandle handle, std::uint64_t address,
                         const memory::MemoryAttributes& attributes);
    Status deregister(memory::MemoryHandle handle, std::uint64_t address);

    // Shared segments (segments.cpp)
    // ------------------------------------------------------------------------
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
    struct alignas(32) Path {
        device::Device* device = nullptr;
        device::PathId local = 0;
        bool waiting_for_room = false;
        bool condemned = false;
    };
    static constexpr std::uint32_t paths_per_device_bits = 12;
    /// Segments that a post can read, VIPL's least (1.9).
    static constexpr std::uint32_t segments_read_max = 252;

    /// The engine's time. The clock is read only while it waits for a moment; devices read their
    /// own.
    Time now_if_needed() {
        return deadline_.is_never() ? last_now_ : (last_now_ = attendant_.now());
    }
    engine::PathId path_id(std::size_t device, device::PathId local) const {
        return static_cast<engine::PathId>(device << paths_per_device_bits) | local;
    }
    /// A number that devices may have: others would be another device's path.
    static constexpr bool is_path(device::PathId local) {
        return local >> paths_per_device_bits == 0;
    }
    /// A grant to a segment, for one connection of a VI of ours.
    struct Grant {
        std::uint32_t vi;
        engine::PathId path;
        device::GrantId id;
        bool writable;
    };
    struct Segment {
        SharedMemory memory;
        memory::MemoryHandle handle = 0;  ///< 0: not registered any more
        std::vector<Grant> grants;
    };
    void answer_questions();
    void end_grants(std::uint32_t vi);
    void offer(const engine::AttachQuestion& question);
    void revoke(memory::MemoryHandle handle, bool registered);
    Status end_region(memory::MemoryHandle handle, std::uint64_t address);
    enum class Polled : std::uint8_t { not_at_all, in_vain, with_progress };
    Polled try_poll();
    Polled moved_nothing(Polled how) {
        if ((attention_.load(std::memory_order_relaxed) & polls_rest) != 0) [[unlikely]]
            attendant_.rest();
        return how;
    }
    void report_events();
    bool sleeper_is_late();
    void look_for_peers(Time now);
    Status listen(const Discriminator& discriminator);
    void take(std::size_t device, device::PathEvent& event);
    engine::PathId take_found(std::uint64_t cookie);
    static Status what_it_means(const engine::Vi& vi, Status status, const device::Device& device);
    void reap_from(std::size_t device);
    void take_events(device::Device& device, std::size_t index);
    void judge(device::Device& device, const device::Frame& frame, engine::PathId id,
               engine::FrameVerdict verdict);
    std::uint32_t take_frame(device::Device& device, std::size_t index, const device::Frame& frame);
    std::uint32_t take_frames(device::Device& device, std::size_t index, std::size_t count,
                              std::uint32_t& turn_bytes);
    bool are_messages(std::size_t count) const;
    void receive_from(device::Device& device, std::size_t index, Turn& turn);
    void turn_rarely(Time now, Turn& turn);
    bool looks_first(Time now);
    void send_on_all(Turn& turn);
    void run_turn(Time now, Turn& turn);
    /// end_turn() but for the doorbells.
    [[gnu::always_inline]] void finish_turn(bool polling) {
        if (engine_.news().any() || published_ || work_left_ || silent_ || may_be_late())
            [[unlikely]]
            return finish_eventful_turn(polling);
        let_turn_go(polling ? agent_sleeps : 0);
    }
    [[gnu::noinline]] void finish_eventful_turn(bool polling);
    /// `heard`: by whom, besides those who wait if there was progress.
    [[gnu::always_inline]] void let_turn_go(std::uint32_t heard) {
        if (std::exchange(progress_seen_, engine_.progress()) != engine_.progress())
            heard |= somebody_waits;
        lock_.release();  // a full fence: who waits now sees our progress, or we see the waiting
        if ((attention_.load(std::memory_order_relaxed) & heard) != 0) [[unlikely]]
            attendant_.attend();
    }
    /// Somebody sleeps until a deadline, and there may be an earlier one now.
    [[gnu::always_inline]] bool may_be_late() const {
        if (!is_slept_on()) return false;
        if (deadline_ < sleep_until_ || engine_.next_deadline() < sleep_until_) return true;
        for (const auto& device : devices_)
            if (device->may_have_deadline()) return true;
        return false;
    }
    [[gnu::noinline]] void answer_late(bool polling);
    void send_on(engine::PathId path, Turn& turn);
    void fetch(Turn& turn);
    template <bool receive, std::size_t count>
    bool post_plain(engine::Vi& vi, queue::Descriptor* descriptor, memory::MemoryHandle handle,
                    queue::ControlSegment control,
                    const std::array<queue::Segment, count>& segments,
                    const memory::Region& region);
    template <bool receive>
    void note_refused(engine::Vi& vi, const queue::ControlSegment& control,
                      const queue::Segment* segments) noexcept;
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
    bool send_quickly(engine::Vi& vi);
    bool send_pieces(engine::Vi& vi);
    bool send_plain(engine::Vi& vi);
    void look_for_done(queue::WorkQueue& work);
    Done done_after_poll(engine::ViQueue& queue);
    static Done done_of(const queue::Taken& taken) {
        return {taken.descriptor, (taken.status & queue::status::error_mask) != 0
                                      ? Status::descriptor_error
                                      : Status::success};
    }
    void tell_of_receives(engine::Vi& vi);

    std::string name_;
    NicLimits limits_;
    Counters& counters_;
    Attendant& attendant_;
    TurnLock lock_;
    Atomic<std::uint32_t> attention_{0};
    Doorbells<engine::Vi> doorbells_;
    memory::MemoryTable memory_;
    std::unique_ptr<memory::TranslationCache> translations_;
    engine::Engine engine_;
    std::vector<std::unique_ptr<device::Device>> devices_;
    std::vector<char> retransmitting_;  ///< by device: reap() has something to say
    AbsentDevice absent_;               ///< of all paths after leave()
    std::vector<Path> paths_;
    std::uint32_t condemned_paths_ = 0;  ///< of these
    /// Somebody who begins to listen does so on the first device first. So whoever was found on
    /// another one is looked for on the first once more: it may not have listened there before.
    struct Found {
        std::uint64_t cookie;
        engine::PathId path;
    };
    std::vector<Found> found_;
    std::vector<Segment> segments_;    ///< of ours
    std::vector<Attachment> imports_;  ///< of peers
    device::PathEvent event_{};        ///< the one being taken
    std::array<device::Frame, 16> frames_;
    device::FrameSlot plain_slot_;  ///< of a common message
    std::array<device::Reaped, 64> reaped_;
    /// Slots and queues live as long as the NIC: a late pop finds an empty queue, not freed memory.
    struct CompletionQueueSlot {
        Atomic<std::uint32_t> generation{0};  ///< odd: exists
        std::unique_ptr<queue::CompletionQueue> queue;
    };
    std::unique_ptr<CompletionQueueSlot[]> completion_queues_;
    std::uint32_t completion_queues_made_ = 0;
    std::uint32_t first_generation_;  ///< of the names of what was not made yet
    std::deque<engine::Backlog> listeners_;
    std::deque<std::uint32_t> free_listeners_;
    std::deque<std::uint32_t> free_completion_queues_;
    Time sleep_until_{};      ///< when the sleeper looks by itself; none: nobody sleeps
    Turn turn_;               ///< the last one
    bool work_left_ = false;  ///< by the last turn: a bound was met, or back-pressure without sleep
    bool silent_ = false;     ///< some device's frames come without a wake-up
    bool published_ = false;  ///< this turn published something others may sleep for
    std::uint64_t progress_seen_ = 0;
    Time last_now_{};
    Time deadline_ = Time::never();  ///< the engine's, after the last turn or call
    Time late_for_ = Time::never();  ///< the last of these that a turn found passed
    Time late_since_{};              ///< when that was
};

}  // namespace via::nic
