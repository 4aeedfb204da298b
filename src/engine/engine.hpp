// The VI NIC as a pure machine: connections, outbound and inbound messages of all VIs. It knows no
// clock, thread, lock or device; frames, doorbells and moments come in, frames and completions go
// out. Every call is made by the holder of the NIC's turn, except where said otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"
#include "base/counters.hpp"
#include "base/limits.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "engine/completions.hpp"
#include "engine/connecting.hpp"
#include "engine/connections.hpp"
#include "engine/credits.hpp"
#include "engine/frames.hpp"
#include "engine/inbound.hpp"
#include "engine/mutation.hpp"
#include "engine/news.hpp"
#include "engine/outbound.hpp"
#include "engine/paths.hpp"
#include "engine/refusals.hpp"
#include "engine/requests.hpp"
#include "engine/segments.hpp"
#include "engine/shared_receives.hpp"
#include "engine/translations.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"
#include "memory/table.hpp"

namespace via::engine {

/// Owns the parts, the life of VIs, and the common message's fast path through all of them.
class Engine {
public:
    Engine(const NicLimits& limits, memory::MemoryTable& memory, Counters& counters,
           std::uint32_t first_generation = 0);

    /// From now on bytes are touched only when their pages are in this cache or come there.
    void set_translations(memory::TranslationCache& cache) {
        translations_.set(cache);
        connections_.go_the_general_way();
    }

    // The parts -----------------------------------------------------------------------------------
    News& news() { return completions_.news(); }
    Completions& completions() { return completions_; }
    Paths& paths() { return paths_; }
    Requests& requests() { return requests_; }
    Connecting& connecting() { return connecting_; }
    Connections& connections() { return connections_; }
    Segments& segments() { return segments_; }
    SharedReceives& shared_receives() { return shared_receives_; }
    const SharedReceives& shared_receives() const { return shared_receives_; }
    Credits& credits() { return credits_; }
    Outbound& outbound() { return outbound_; }
    Inbound& inbound() { return inbound_; }

    // VIs -----------------------------------------------------------------------------------------
    /// error_resource: limit reached or no memory. The queues may be nullptr: none bound.
    Result<Vi*> create_vi(const ViAttributes& attributes, queue::CompletionQueue* send_queue,
                          queue::CompletionQueue* receive_queue);
    /// invalid_state unless idle; error_resource while descriptors are posted or not taken.
    Status destroy_vi(Vi& vi);
    /// An idle VI only; no post reads the attributes meanwhile.
    Status set_attributes(Vi& vi, const ViAttributes& attributes);
    /// The VI at `index`, existing or not; nullptr beyond the table. Any thread.
    Vi* vi_at(std::uint32_t index) const { return vis_.at(index); }
    std::uint32_t vi_count() const { return vis_.count(); }
    /// Shared receive queues count, too.
    std::uint32_t vis_with_tag(memory::ProtectionTag tag) const;
    bool is_bound(const queue::CompletionQueue& queue) const;
    /// True when a posted, not yet completed descriptor lies in the region or names it (VIPL 4.8).
    /// Sure only for a suspended region: no post that comes later can name it.
    bool uses_region(memory::MemoryHandle handle);
    /// Descriptors that uses_region() looked at so far.
    std::uint64_t looked_at() const { return looked_at_; }

    // Calls of the program that go straight to a part ---------------------------------------------
    /// `data`: at most wire::private_length_max bytes, also below.
    Status accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data = {}) {
        return connecting_.accept(connection, vi, data);
    }
    Status reject(std::uint64_t connection, std::span<const std::byte> data = {}) {
        return connecting_.reject(connection, data);
    }
    /// Any state -> idle, both queues flushed (VIPL 3).
    void disconnect(Vi& vi) { connecting_.disconnect(vi); }
    /// The NIC closes: every VI that is not idle is disconnected.
    void disconnect_all();
    /// A fault that only the NIC saw, for the program's error handler.
    void report(Vi& vi, ErrorCode code) { news().report(vi, code); }
    /// Completions wait in this queue since it was made smaller.
    void watch(queue::CompletionQueue& queue) { completions_.watch(queue); }
    /// Where proofs begin: no other process's are likely to be the same.
    void begin_proofs(std::uint64_t secret) { outbound_.begin_proofs(secret); }
    /// Counts completions and state changes; whoever waits looks again when it moved.
    std::uint64_t progress() const { return completions_.news().progress(); }
    /// What a frame's refusal was about, for the log; of the last refused or hostile verdict.
    const char* last_refusal() const { return refusals_.last(); }

    // Time ----------------------------------------------------------------------------------------
    /// Moment at which a connection attempt runs out; never() if none.
    Time next_deadline() const { return connecting_.attempts().next(); }
    /// Anything for attempts().next_search() or next_forgotten()?
    bool has_searches(Time now) const {
        return now >= next_deadline() || connecting_.attempts().has_forgotten();
    }
    /// Anything that few turns have: deadlines, searches, pulls, questions, completions that wait
    /// for room? One look instead of many; settle() afterwards.
    bool has_rare(Time now) {
        connecting_.attempts().set_now(now);
        return news().has_chores() || now >= next_deadline();
    }
    void settle() {
        news().settle_chores(inbound_.has_pulls() || segments_.has_questions() ||
                             connecting_.attempts().has_forgotten() || completions_.any_waits() ||
                             shared_receives_.anybody_waits());
    }
    /// `answers_may_wait`: to be received; then who sent his request has not waited for nothing
    /// yet.
    void on_time(Time now, bool answers_may_wait = false) {
        connecting_.on_time(now, answers_may_wait);
    }

    // Paths ---------------------------------------------------------------------------------------
    /// `retransmits`: frames may be lost; on_reaped() tells of those that must arrive.
    void on_path_up(PathId path, std::uint32_t payload_max, const HostAddress& peer = {},
                    bool retransmits = false);
    /// Frames carry that much from now on; those under way keep their lengths.
    void on_path_changed(PathId path, std::uint32_t payload_max);
    /// The peer is gone: its connections are lost (VIPL 4.18).
    void on_path_down(PathId path);

    // What comes ----------------------------------------------------------------------------------
    /// Something was posted on `vi`, or its queues have something to flush.
    void on_doorbell(Vi& vi);
    FrameVerdict on_frame(PathId path, const ReceivedFrame& frame);

    // The fast path (fast_path.hpp)
    // -------------------------------------------------------------------
    /// Takes the one frame of a common message, which is_whole_send() found: the bytes of its
    /// payload, which count_received() must hear of. not_common: nothing was done, it goes the
    /// general way, on_frame().
    static constexpr std::uint32_t not_common = ~0U;
    std::uint32_t take_common(PathId path, const std::byte* header, std::size_t header_length,
                              const std::byte* payload, std::size_t payload_length);
    void count_received(std::uint32_t messages, std::uint64_t bytes) {
        counters_.add(Counter::receives, messages);
        counters_.add(Counter::bytes_received, bytes);
    }
    /// Posted on `vi` was one common message, whole in one frame, and nobody else wants to send on
    /// that path: it may go at once. False: as on_doorbell(), next_frame().
    bool next_is_common(Vi& vi, FrameShape& shape);
    /// Fills that frame; the device publishes it, then common_transmitted().
    void emit_common(Vi& vi, const FrameRoom& room);
    void common_transmitted(Vi& vi);
    /// The quickest, in place of all these: posted on `vi` was one common message that fits a
    /// frame, which a device may take in one call, and done when that has published it. Of one
    /// segment or none, or of two.
    template <bool two_pieces = false>
    bool next_is_small(Vi& vi);
    const queue::WorkEntry& small_entry() const { return *common_; }
    void small_sent(Vi& vi);
    /// Instead, where next_is_common() found that no frame is needed.
    void carry_out_common(Vi& vi);

private:
    FrameVerdict take_of_meeting(Path& path, const wire::Header& header, const std::byte* payload,
                                 std::size_t length);
    FrameVerdict act_on(Path& path, const wire::Header& header, const std::byte* payload,
                        std::size_t length);
    FrameVerdict take_singly(PathId path, const ReceivedFrame& frame);
    bool next_goes_direct(Vi& vi);
    void record_common(Vi& vi, Path& path, std::uint32_t number);
    bool is_occupied(const Vi& vi);
    bool has_credit(Vi& vi);

    NicLimits limits_;
    memory::MemoryTable& memory_;
    Counters& counters_;
    queue::WorkEntry* common_ = nullptr;  ///< what next_is_common() found
    std::byte* direct_ = nullptr;         ///< where its bytes go without a frame
    std::uint64_t looked_at_ = 0;
    // Each knows those before it only.
    Translations translations_;
    ViTable vis_;
    Completions completions_;
    Paths paths_;
    Refusals refusals_;
    Requests requests_;
    SharedReceives shared_receives_;
    Credits credits_;
    Segments segments_;
    Connections connections_;
    Outbound outbound_;
    Inbound inbound_;
    Connecting connecting_;
};

}  // namespace via::engine
