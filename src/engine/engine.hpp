// The VI NIC as a pure machine: connections, outbound and inbound messages of all VIs. It knows no
// clock, thread, lock or device; frames, doorbells and moments come in, frames and completions go
// out. Every call is made by the holder of the NIC's turn, except where said otherwise.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/address.hpp"
#include "base/counters.hpp"
#include "base/limits.hpp"
#include "base/list.hpp"
#include "base/numbered_queue.hpp"
#include "base/status.hpp"
#include "base/time.hpp"
#include "engine/attempts.hpp"
#include "engine/frames.hpp"
#include "engine/listening.hpp"
#include "engine/mutation.hpp"
#include "engine/news.hpp"
#include "engine/paths.hpp"
#include "engine/refusals.hpp"
#include "engine/requests.hpp"
#include "engine/vi.hpp"
#include "engine/vi_table.hpp"
#include "memory/table.hpp"
#include "memory/translation_cache.hpp"
#include "wire/frame.hpp"

namespace via::engine {

/// A peer asks for one of our segments; its VI has the right to.
struct AttachQuestion {
    Vi* vi = nullptr;
    std::uint32_t number = 0;   ///< of the VI, so that another connection is not taken for it
    std::uint32_t message = 0;  ///< the peer's number of the question
    memory::MemoryHandle handle = 0;
    bool writable = false;
};

class Engine {
public:
    Engine(const NicLimits& limits, memory::MemoryTable& memory, Counters& counters,
           std::uint32_t first_generation = 0);

    /// From now on bytes are touched only when their pages are in this cache or come there.
    void set_translations(memory::TranslationCache& cache) {
        translations_ = &cache;
        short_ways_ = false;
    }

    // VIs ---------------------------------------------------------------------------------------
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
    std::uint32_t vis_with_tag(memory::ProtectionTag tag) const;
    bool is_bound(const queue::CompletionQueue& queue) const;
    /// True when a posted, not yet completed descriptor lies in the region or names it (VIPL 4.8).
    /// Sure only for a suspended region: no post that comes later can name it.
    bool uses_region(memory::MemoryHandle handle);
    /// Descriptors that uses_region() looked at so far.
    std::uint64_t looked_at() const { return looked_at_; }

    // Connecting (VIPL 4.19 to 4.21) --------------------------------------------------------------
    /// Who listens, and requests that were not answered.
    Requests& requests() { return requests_; }
    /// VI idle -> connect_pending until `deadline`; connect_on() or connect_failed() follows.
    Status begin_connect(Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                         std::span<const std::byte> data = {});
    /// The request that was just begun waits for a listener where the devices find the name: it is
    /// looked for again, as a peer is, when nobody takes requests at that moment.
    void insist(Vi& vi) { vi.insists = true; }
    /// The request that was just begun is made again for some milliseconds, within its time, where
    /// nobody takes requests: a server may be between two calls that wait.
    void look_again(Vi& vi, Time now) {
        vi.looks_left = looks_again;
        vi.looks_until = now + looks_longest;
    }
    /// The peer was found: sends the request. Ignored unless the VI is still pending.
    void connect_on(Vi& vi, PathId path);
    /// connect_pending -> idle with that outcome. Ignored unless pending.
    void connect_failed(Vi& vi, Status status);
    /// `data`: at most wire::private_length_max bytes, also below.
    Status accept(std::uint64_t connection, Vi& vi, std::span<const std::byte> data = {});
    Status reject(std::uint64_t connection, std::span<const std::byte> data = {});
    bool is_connection(std::uint64_t connection) { return requests_.find(connection) != nullptr; }

    // Peer to peer (VIPL 4.22): of two VIs that ask for each other one asks, the other one waits to
    // be found. Who asks looks for the other again and again until the deadline.
    /// VI idle -> connect_pending. `asks`: it is this one; search_due() tells when to look.
    Status begin_peer_connect(Vi& vi, const NetAddress& local, const NetAddress& remote,
                              Time deadline, bool asks, std::span<const std::byte> data = {});
    /// Does a VI of this NIC wait to be found by `local`, at `remote`?
    bool is_awaited(const NetAddress& local, const NetAddress& remote);
    /// The devices let others find the VI, which waits from now on; next_forgotten() tells when no
    /// more.
    void set_listening(Vi& vi) {
        vi.listening = true;
        vi.asks = false;
    }
    /// Who waits for a connection, and looks for whom. Searches and what is forgotten:
    Attempts& attempts() { return attempts_; }
    /// Anything for attempts().next_search() or next_forgotten()?
    bool has_searches(Time now) const {
        return now >= attempts_.next() || attempts_.has_forgotten();
    }
    /// Anything that few turns have: deadlines, searches, fetches, questions, completions that wait
    /// for room? One look instead of many; settle() afterwards.
    bool has_rare(Time now) {
        attempts_.set_now(now);
        return news_.has_chores() || now >= attempts_.next();
    }
    void settle() {
        news_.settle_chores(has_fetches() || has_questions() || attempts_.has_forgotten() ||
                            !overrun_.empty());
    }
    /// The peer of a pending VI was not found: the attempt ends, or goes on if it is peer to peer
    /// or somebody is there who does not answer (timeout).
    void not_found(Vi& vi, Status status);
    /// Any state -> idle, both queues flushed (VIPL 3).
    void disconnect(Vi& vi);
    /// The NIC closes: every VI that is not idle is disconnected.
    void disconnect_all();
    /// Moment at which a connection attempt runs out; never() if none.
    Time next_deadline() const { return attempts_.next(); }
    /// Comparisons of pending VIs so far: what attempts cost those that go on.
    std::uint64_t deadline_comparisons() const { return attempts_.comparisons(); }
    /// `answers_may_wait`: to be received; then who sent his request has not waited in vain yet.
    void on_time(Time now, bool answers_may_wait = false) {
        attempts_.set_now(now);
        if (now >= attempts_.next()) expire(now, answers_may_wait);
    }

    // Paths ---------------------------------------------------------------------------------------
    /// `retransmits`: frames may be lost; on_reaped() tells of those that must arrive.
    void on_path_up(PathId path, std::uint32_t payload_max, const HostAddress& peer = {},
                    bool retransmits = false);
    /// Frames carry that much from now on; those under way keep their lengths.
    void on_path_changed(PathId path, std::uint32_t payload_max);
    /// The peer is gone: its connections are lost (VIPL 4.18).
    void on_path_down(PathId path);

    // The walk ------------------------------------------------------------------------------------
    /// Something was posted on `vi`, or its queues have something to flush.
    void on_doorbell(Vi& vi);
    FrameVerdict on_frame(PathId path, const ReceivedFrame& frame);
    /// Takes the one frame of a common message, which is_whole_send() found: the bytes of its
    /// payload, which count_received() must hear of. not_plain: nothing was done, it goes the
    /// general way, on_frame().
    static constexpr std::uint32_t not_plain = ~0U;
    std::uint32_t take_plain(PathId path, const std::byte* header, std::size_t header_length,
                             const std::byte* payload, std::size_t payload_length);
    void count_received(std::uint32_t messages, std::uint64_t bytes) {
        counters_.add(Counter::receives, messages);
        counters_.add(Counter::bytes_received, bytes);
    }
    /// What the next frame of `path` needs; false when nothing is to be sent now.
    bool next_frame(PathId path, FrameShape& shape);
    /// Fills that frame. next_frame() said true just before.
    void emit(PathId path, const FrameRoom& room);
    /// Posted on `vi` was one common message, whole in one frame, and nobody else wants to send on
    /// that path: it may go at once. False: as on_doorbell(), next_frame().
    bool next_is_plain(Vi& vi, FrameShape& shape);
    /// Fills that frame; the device publishes it, then plain_transmitted().
    void emit_plain(Vi& vi, const FrameRoom& room);
    void plain_transmitted(Vi& vi);
    /// The quickest, in place of all these: posted on `vi` was one common message that fits a
    /// frame, which a device may take in one call, and done when that has published it. Of one
    /// segment or none, or of two.
    template <bool two_pieces = false>
    bool next_is_quick(Vi& vi);
    const queue::WorkEntry& quick_entry() const { return *plain_; }
    void quick_sent(Vi& vi);
    /// Instead, where next_is_plain() found that no frame is needed.
    void carry_out_plain(Vi& vi);
    /// Bytes of the message that next_frame() said may go to the peer's memory without frames.
    bool goes_direct() const { return direct_ != nullptr; }
    /// Carries out the message for which next_frame() said just before that no frame is needed.
    void carry_out(PathId path);
    /// The frames emitted so far were published: completes what is done by that.
    void on_transmitted();
    /// What came of a frame that must arrive: the peer's NIC has it, or it is to be emitted again.
    void on_reaped(PathId path, std::uint32_t number, bool lost);

    // Shared segments (attach.cpp) ----------------------------------------------------------------
    /// Asks the peer for its segment. The number of the question: vi.attaches_decided reaches it
    /// when there is an answer. invalid_state: not connected; error_resource: one is under way.
    Result<std::uint32_t> begin_attach(Vi& vi, memory::MemoryHandle handle, std::uint64_t address,
                                       bool writable);
    /// The outcome; ends the question. timeout: there is no answer yet. On success the VI's RDMA to
    /// the segment goes through `import` from now on. reject: the peer gives no right.
    Status take_attach(Vi& vi, std::uint32_t number, Import& import);
    /// No VI uses the segment that we have at `base` any more.
    void release_import(const std::byte* base);
    /// The paths' memory goes, and with it the words that say which segments may still be used.
    void release_imports();
    /// Would on_attached() with these answer a question that stands?
    bool expects_attachment(PathId path, std::uint64_t cookie) {
        return asker(path, cookie) != nullptr;
    }
    /// A peer's offer came in.
    void on_attached(PathId path, std::uint64_t cookie, Attachment attachment);
    /// Anything for next_question() or next_parted()?
    bool has_questions() const { return !questions_.empty() || !parted_.empty(); }
    /// A question of a peer, to be answered by an offer or a refusal. False: none.
    bool next_question(AttachQuestion& question);
    /// The connection of the question still stands.
    static bool is_current(const AttachQuestion& question) {
        return question.vi->number() == question.number &&
               question.vi->state_now() == ViState::connected;
    }
    void refuse_attach(const AttachQuestion& question, wire::AttachRefusal why);
    /// The number of a VI whose connection ended, and with it its peer's grants. False: none.
    bool next_parted(std::uint32_t& number) {
        if (parted_.empty()) [[likely]]
            return false;
        number = parted_.back();
        parted_.pop_back();
        return true;
    }

    // Messages fetched from the sender's memory (pull.cpp) ----------------------------------------
    /// The message of which next_frame() just said that it is fetchable shall be fetched.
    void let_fetch(PathId path, FrameShape& shape);
    /// Where proofs begin: no other process's are likely to be the same.
    void begin_proofs(std::uint64_t secret) { proof_ = secret; }
    /// A VI with a message to fetch, or nullptr; the next one each time.
    Vi* next_fetch();
    bool has_fetches() { return !fetches_.empty(); }
    /// What to copy now, at most `bytes_max`. False: the message was refused, nothing is to be
    /// done.
    bool next_piece(Vi& vi, std::uint64_t bytes_max, FetchPiece& piece);
    void piece_ended(Vi& vi, const FetchPiece& piece, Status status);

    // Results -------------------------------------------------------------------------------------
    /// Counts completions and state changes; whoever waits looks again when it moved.
    std::uint64_t progress() const { return news_.progress(); }
    /// Errors and what the program watches.
    News& news() { return news_; }
    /// A fault that only the NIC saw, for the program's error handler.
    void report(Vi& vi, ErrorCode code) { news_.report(vi, code); }
    /// Flushes the queues of connections that ended while frames were made. Each turn, behind the
    /// devices' notify(), if there are news.
    void flush_late();
    /// Completions that wait for room in their queues enter.
    void pump() {
        if (!overrun_.empty()) pump_overrun();
    }
    /// Completions wait in this queue since it was made smaller.
    void watch(queue::CompletionQueue& queue) {
        if (std::find(overrun_.begin(), overrun_.end(), &queue) == overrun_.end())
            overrun_.push_back(&queue);
        news_.chore_came();
    }
    /// The queue is about to be destroyed.
    void forget(const queue::CompletionQueue& queue);
    /// What a frame's refusal was about, for the log; of the last refused or hostile verdict.
    const char* last_refusal() const { return refusals_.last(); }
    /// The ways to peers, and which of them have something to send.
    Paths& paths() { return paths_; }

private:
    enum class Piece : std::uint8_t {
        notice,
        ack,
        credit,
        attach,
        read_reply,
        message,
        pull,
        again,
    };

    static constexpr std::uint32_t looks_again = 4;  ///< after 1, 2, 4 and 8 ms
    /// Not where it took so long to hear that nobody is there: on a network, whose host says so now
    /// and then only.
    static constexpr Duration looks_longest = milliseconds(100);
    // connection.cpp
    FrameVerdict on_accept(Path& path, const wire::Header& header, const std::byte* payload,
                           std::size_t length);
    FrameVerdict on_refuse(Path& path, const wire::Header& header, const std::byte* payload,
                           std::size_t length);
    FrameVerdict on_disconnect(Path& path, const wire::Header& header);
    wire::ConnectMessage describe(const Vi& vi) const;
    Notice request_of(const Vi& vi);
    Notice acceptance_of(const Vi& vi, std::uint32_t remote_number,
                         std::span<const std::byte> data);
    void start_pending(Vi& vi, const NetAddress& local, const NetAddress& remote, Time deadline,
                       std::span<const std::byte> data);
    void enter_connected(Vi& vi, PathId path, const wire::ConnectMessage& message);
    void leave(Vi& vi, ViState state);
    void pending_ended(Vi& vi, Status status);
    void expire(Time now, bool answers_may_wait);

    // peer.cpp
    FrameVerdict on_peer_request(Path& path, const std::byte* payload, std::size_t length);
    void search_later(Vi& vi);
    bool looks_once_more(Vi& vi);

    // credit.cpp
    void begin_credits(Vi& vi, const wire::ConnectMessage& message);
    /// Tells the peer of receives when it may soon have used up what it knows of.
    void grant(Vi& vi);
    void emit_credit(Vi& vi, const FrameRoom& room);
    FrameVerdict on_credit(Vi& vi, const wire::Header& header);

    // pull.cpp
    void emit_pull(Vi& vi, const FrameRoom& room);
    FrameVerdict on_pulled(Vi& vi, const wire::Header& header);
    static void give_back(Pull& pull, std::uint64_t bytes, FetchPiece& piece);
    static bool read_pull(const wire::Header& header, const std::byte* payload, std::size_t length,
                          Pull& pull);
    void end_fetch(Vi& vi, bool fetched);

    // attach.cpp
    Vi* asker(PathId path, std::uint64_t cookie);
    void emit_attach(Vi& vi, const FrameRoom& room);
    void attach_ended(Vi& vi, Status status);
    FrameVerdict on_attach_request(Vi& vi, const wire::Header& header, std::size_t length);
    FrameVerdict on_attach_refuse(Vi& vi, const wire::Header& header);
    /// Where the entry's RDMA goes without frames; nullptr: by frames.
    static std::byte* imported(const Vi& vi, const queue::WorkEntry& entry);
    void copy_imported(Vi& vi, const queue::WorkEntry& entry);

    // completion.cpp
    void complete(Vi& vi, ViQueue& queue, std::uint32_t status_bits);
    void complete_current(Vi& vi, ViQueue& queue, queue::WorkEntry& entry,
                          std::uint32_t status_bits);
    /// The completion queue hears of what complete() just ended.
    [[gnu::always_inline]] void enter(Vi& vi, ViQueue& queue) {
        const queue::Completion completion = completion_of(vi, queue);
        const std::uint32_t nth = queue.work.completed_count();
        queue::CompletionQueue& completions = *queue.completions;
        if (!completions.push_at_once(completion, nth)) [[unlikely]]
            enter_behind(completion, nth, completions);
        if (mutated(Mutation::enter_completion_twice)) (void)completions.push(completion, nth);
        if (completions.watched()) [[unlikely]]
            news_.signal(completions);
    }
    static queue::Completion completion_of(const Vi& vi, const ViQueue& queue) {
        return {(std::uint64_t{vi.generation.load(std::memory_order_relaxed)} << 16) | vi.index,
                &queue == &vi.receive};
    }
    [[gnu::noinline]] void enter_behind(const queue::Completion& completion, std::uint32_t nth,
                                        queue::CompletionQueue& completions);
    void pump_overrun();
    void complete_receive(Vi& vi, std::uint32_t status_bits, std::uint32_t length,
                          const std::uint32_t* immediate);
    void drain_sends(Vi& vi);
    void flush(Vi& vi);
    void flush_queue(Vi& vi, ViQueue& queue);
    void complete_faulty_receives(Vi& vi);
    /// Behind complete_receive(), when what became of the message is counted or on its way to the
    /// peer: a fault may end the connection.
    void complete_faults_behind(Vi& vi) {
        if (vi.receive_faults.load(std::memory_order_relaxed) != vi.receive_faults_completed &&
            vi.state_now() == ViState::connected)
            complete_faulty_receives(vi);
    }
    /// Ends a connection for a fault found here; the peer hears `kind` with `message` and `code`.
    void fail(Vi& vi, wire::FrameKind kind, std::uint32_t message, std::uint32_t code);
    void break_off(Vi& vi);
    void break_off_sending(Vi& vi);
    void flush_behind(Vi& vi, const Path& path);
    void lose(Vi& vi);

    // outbound.cpp
    static bool has_to_send(const Vi& vi);
    static bool is_alone(Vi& vi);
    bool next_of_vi(Vi& vi, const Path& path, FrameShape& shape);
    static std::uint32_t length_of_write(Vi& vi, const Path& path);
    bool next_of_message(Vi& vi, const Path& path, FrameShape& shape);
    static bool may_run(const Vi& vi, const Path& path);
    std::uint32_t frames_of_message(Vi& vi, const Path& path) const;
    void next_of_reply(Vi& vi, const Path& path, bool alone, FrameShape& shape);
    [[gnu::noinline]] bool reach_next(Vi& vi, FrameShape& shape);
    bool message_may_start(Vi& vi);
    void fail_current_send(Vi& vi, std::uint32_t fault);
    void emit_next(Path& path, const FrameRoom& room);
    static void fill(const FrameRoom& room, queue::ByteWalk& walk, std::uint32_t payload_length);
    void emit_notice(Path& path, const FrameRoom& room);
    void emit_ack(Vi& vi, const FrameRoom& room);
    void emit_read_reply(Vi& vi, const FrameRoom& room);
    [[gnu::noinline]] void emit_refusal(Vi& vi, wire::Header& header, ErrorCode event,
                                        const FrameRoom& room);
    static void answered(Vi& vi);
    void emit_message(Vi& vi, const FrameRoom& room);
    void mark_acknowledged(Vi& vi, std::uint32_t below);
    static void placed_below(Vi& vi, std::uint32_t message);
    FrameVerdict on_ack(Vi& vi, const wire::Header& header);
    FrameVerdict take_of_meeting(Path& path, const wire::Header& header, const std::byte* payload,
                                 std::size_t length);
    FrameVerdict act_on(Path& path, const wire::Header& header, const std::byte* payload,
                        std::size_t length);
    FrameVerdict on_skip(PathId path, const wire::Header& header);
    FrameVerdict on_nak(Vi& vi, const wire::Header& header);

    // recovery.cpp
    void emit_recorded(Path& path, const FrameRoom& room);
    void emit_run(Path& path, Vi& vi, const FrameRoom& room);
    void note_source(Path& path, FrameRecord& record);
    bool next_lost(Path& path, FrameShape& shape);
    static void skip(FrameRecord& record, bool over);
    bool is_refused(const FrameRecord& record);
    void refuse(FrameRecord& record);
    bool can_repeat(const FrameRecord& record);
    static queue::ByteWalk walk_of(const FrameRecord& record);
    void emit_again(Path& path, const FrameRoom& room);
    void on_delivered(const FrameRecord& record);
    static bool fits_in(Vi& vi, const wire::Header& header);
    static void give_up_placing(Vi& vi);

    // plain.cpp
    static constexpr std::uint64_t short_way_of(PathId path, std::uint32_t number) {
        return std::uint64_t{path} << 32 | number;
    }
    bool next_goes_direct(Vi& vi);
    /// Its RDMA waits for the answer to a question for a segment.
    static bool waits_for_segment(const Vi& vi) {
        return vi.attach && vi.attach->status == Status::not_done &&
               !mutated(Mutation::direct_before_answer);
    }
    /// Writes of its go by frames, and may not be placed yet.
    static bool waits_for_writes(const Vi& vi) {
        return vi.write_by_frames && !mutated(Mutation::direct_past_writes);
    }
    void record_plain(Vi& vi, Path& path, std::uint32_t number);
    bool take_inner(PathId path, const ReceivedFrame& frame);
    static void place_inner(std::byte* to, const std::byte* from, std::size_t length);
    static void place_run(const ReceivedFrame& frame, queue::ByteWalk& scatter);
    bool take_inner_write(Vi& vi, const ReceivedFrame& frame);
    bool take_inner_reply(Vi& vi, const ReceivedFrame& frame);
    FrameVerdict take_singly(PathId path, const ReceivedFrame& frame);

    // inbound.cpp
    FrameVerdict on_message(Vi& vi, const wire::Header& header, const std::byte* payload,
                            std::size_t length);
    FrameVerdict on_placed(Vi& vi, const wire::Header& header, std::size_t length);
    FrameVerdict check_sequence(Vi& vi, const wire::Header& header, std::size_t length);
    std::uint32_t why_too_short(const Vi& vi, const queue::Cursor& receive, std::uint32_t length);
    bool match_receive(Vi& vi);
    bool check_target(Vi& vi, const wire::Header& header, std::size_t length);
    void place_payload(Vi& vi, const wire::Header& header, const std::byte* payload,
                       std::size_t length);
    void finish_message(Vi& vi, const wire::Header& header);
    FrameVerdict on_read_request(Vi& vi, const wire::Header& header, std::size_t length);
    [[gnu::noinline]] FrameVerdict on_atomic(Vi& vi, const wire::Header& header,
                                             const std::byte* payload, std::size_t length);
    bool may_change(Vi& vi, const wire::Header& header);
    FrameVerdict refuse_atomic(Vi& vi, const wire::Header& header);
    static bool find_read(Vi& vi, queue::Cursor& at);
    FrameVerdict on_read_reply(Vi& vi, const wire::Header& header, const std::byte* payload,
                               std::size_t length);
    void refuse_receive(Vi& vi, const wire::Header& header);
    void refuse_message(Vi& vi, const wire::Header& header, wire::NakCode code, ErrorCode event);
    FrameVerdict break_rule(Vi& vi, const wire::Header& header, const char* why);

    /// Before bytes are touched that the table allowed: are their pages in the NIC's table, or come
    /// they now? Nothing is touched when not.
    bool reach(memory::MemoryHandle handle, std::uint64_t address, std::uint64_t length) {
        if (translations_ == nullptr) [[likely]]
            return true;
        return translations_->reach(handle, address, length);
    }
    /// The same for the next bytes of a descriptor's segments.
    bool reach(const queue::ByteWalk& walk, std::uint64_t length) {
        if (translations_ == nullptr) [[likely]]
            return true;
        return reach_segments(walk, length);
    }
    [[gnu::noinline]] bool reach_segments(queue::ByteWalk walk, std::uint64_t length);

    bool is_occupied(const Vi& vi);
    bool has_credit(Vi& vi);

    NicLimits limits_;
    memory::MemoryTable& memory_;
    memory::TranslationCache* translations_ = nullptr;  ///< nullptr: the table holds every page
    Counters& counters_;
    News news_;
    ViTable vis_;
    Paths paths_;
    Refusals refusals_;
    Requests requests_;
    Attempts attempts_;
    std::vector<queue::CompletionQueue*> overrun_;  ///< queues in which completions wait
    std::vector<Vi*> late_flushes_;
    std::vector<Vi*> emitted_;    ///< VIs whose sends may complete once published
    Piece next_ = Piece::notice;  ///< what next_frame() found, for emit()
    std::uint32_t next_length_ = 0;
    bool next_allowed_ = false;          ///< the memory that the next answer to a read comes from
    queue::WorkEntry* plain_ = nullptr;  ///< what next_is_plain() found
    std::byte* direct_ = nullptr;        ///< where the current message's bytes go without frames
    std::vector<AttachQuestion> questions_;
    List<Vi, FetchLink> fetches_;
    std::uint64_t proof_ = 0;            ///< no message's was the same
    std::vector<std::uint32_t> parted_;  ///< VIs whose connections had grants and ended
    std::uint64_t looked_at_ = 0;
    bool short_ways_;  ///< the common message may go them (plain.hpp)
};

}  // namespace via::engine
