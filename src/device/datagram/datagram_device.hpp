// A device made of a port: it turns datagrams, which may be lost, doubled, damaged or reordered,
// into frames that arrive once and in order, and says what came of each (docs/design/protocol.md).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/list.hpp"
#include "base/numbered_queue.hpp"
#include "device/datagram/allowance.hpp"
#include "device/datagram/constants.hpp"
#include "device/datagram/deadlines.hpp"
#include "device/datagram/early_frames.hpp"
#include "device/datagram/frame_order.hpp"
#include "device/datagram/identifier_table.hpp"
#include "device/datagram/port.hpp"
#include "device/datagram/refused_hosts.hpp"
#include "device/datagram/shares.hpp"
#include "device/datagram/staging.hpp"
#include "device/datagram/whom.hpp"
#include "device/device.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

struct DatagramOptions {
    std::uint64_t instance = 0;  ///< random, of this opening; not 0
    /// Secret and random; proofs for askers and connection identifiers are made of them.
    std::array<std::uint64_t, 2> cookie_key{};
    std::array<std::uint64_t, 2> identifier_key{};
    Duration silence = seconds(5);  ///< patience with a peer that says nothing
    std::uint32_t paths_max = 4096;
    /// Bytes of frames that came early and were copied, since the port kept no more buffers.
    std::size_t early_copies_max = 16 << 20;
    /// Bytes of all paths' tables of packets and frames, beyond what each has in any case.
    std::size_t tables_max = 64 << 20;
};

struct Path;
struct SentPacket;
struct AckLink;
struct WaitLink;
struct PartsLink;

/// What a path has done and how it stands.
struct PathStatistics {
    std::uint64_t packets_sent = 0;
    std::uint64_t packets_received = 0;
    std::uint64_t packets_lost = 0;
    std::uint64_t packets_spurious = 0;  ///< held for lost, acknowledged after all
    std::uint64_t acks_alone = 0;        ///< packets sent for an acknowledgement only
    std::uint64_t frames_sent = 0;
    std::uint64_t frames_again = 0;     ///< of these, sent another time
    std::uint64_t frames_in_parts = 0;  ///< of these, cut when packets were longer
    std::uint64_t probe_timeouts = 0;
    Duration round_trip{};        ///< smoothed; 0: not known
    Duration round_trip_least{};  ///< of the last 10 s
    Duration round_trip_deviation{};
    std::uint64_t window = 0;     ///< congestion window, bytes
    std::uint64_t in_flight = 0;  ///< bytes
    std::uint32_t datagram_max = 0;
    std::uint32_t packets_remembered = 0;  ///< of those sent
    std::uint32_t frames_under_way = 0;    ///< that must arrive, not acknowledged
    std::uint32_t frames_held = 0;         ///< arrived before one that is missing
    std::uint32_t reordering = 0;          ///< packets by which a later one may overtake
};

class DatagramDevice final : public Device {
public:
    /// Datagrams that were dropped, by reason, and what else concerns no single path.
    struct Totals {
        std::uint64_t datagrams = 0;
        std::uint64_t truncated = 0;
        std::uint64_t checksum = 0;
        std::uint64_t version = 0;
        std::uint64_t kind = 0;
        std::uint64_t contents = 0;
        std::uint64_t unknown_connection = 0;
        std::uint64_t wrong_address = 0;  ///< a path's packet from somewhere else
        std::uint64_t old_hello = 0;
        std::uint64_t bad_cookie = 0;
        std::uint64_t duplicate_packets = 0;
        std::uint64_t duplicate_frames = 0;
        std::uint64_t no_room = 0;  ///< frames ahead of a missing one that could not be kept
        std::uint64_t retries = 0;  ///< cookies given
        std::uint64_t refusals = 0;
        std::uint64_t queries_dropped = 0;  ///< more than are looked up in a second
        std::uint64_t paths_made = 0;
        std::uint64_t paths_looked_at = 0;  ///< of many, for what a stranger sent
    };

    DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options);
    ~DatagramDevice() override;

    const Capabilities& capabilities() const override { return capabilities_; }
    const HostAddress& address() const override { return port_->nic_address(); }

    void resolve(const NetAddress& remote, std::uint64_t cookie) override;
    Status listen(const Discriminator& discriminator) override;
    void unlisten(const Discriminator& discriminator) override;
    HostAddress peer_address(PathId path) const override;

    bool reserve(PathId path, std::uint32_t header_length, std::uint32_t payload_length,
                 FrameSlot& slot) override;
    void transmit(PathId path) override;
    void abandon(PathId path) override;
    /// Hands what was transmitted to the port, in one burst.
    std::uint32_t notify() override;

    std::size_t reap(std::span<Reaped> reaped) override;
    std::size_t receive(std::span<Frame> frames) override;
    bool release() override;
    void condemn(PathId path, const char* reason) override;

    bool next_event(PathEvent& event) override;
    Time next_deadline() const override;
    void service(Time now) override;
    std::uint64_t take_own_frames() override { return port_->take_own_frames(); }
    void arm(Sleep sleep) override;
    void set_waiting_for_room(PathId path) override;
    bool has_work() override;
    int wait_handle() const override { return port_->wait_handle(); }
    std::size_t wake_words(std::span<WakeWord> words) override;
    std::size_t wake_descriptors(std::span<WakeDescriptor> descriptors) const override {
        return port_->wake_descriptors(descriptors);
    }

    Port& port() { return *port_; }
    const Totals& totals() const { return totals_; }
    PathStatistics statistics(PathId path) const;

private:
    struct Search;
    struct Ready;

    // The turn (datagram_device.cpp)
    bool has_reaped(PathId id) const;
    void begin_turn();
    void run_timers(Time now) {
        const Time before = std::exchange(timers_ran_, now);
        if (now >= deadlines_.next() || now >= search_deadline_) run_due_timers(before, now);
    }
    /// `before`: when they ran the last time.
    void run_due_timers(Time before, Time now);
    void forgive(Duration stood_still, Time now);
    void on_deadline(Path& path, Time now);
    void hear_troubles(Time now);
    void end_refused(Search& search, const Trouble& trouble, Time now);
    void expect_silence(Search& search, Duration delay, Time now);
    void hear_trouble(Path& path, const Trouble& trouble, Time now);
    void hear_of_length(Path& path, const Trouble& trouble, Time now);
    void doubt(Path& path, Time now);
    void reschedule(Path& path, Time now);
    void settle_later(Path& path);
    void settle() {
        if (unsettled_ != nullptr) settle_now();
    }
    void settle_now();
    /// True when there was one to be heard, which may make room. For reserve(): nothing is staged.
    bool settles_ack_of(const Path& path) {
        if (!ack_noted_ || unsettled_ != &path) return false;
        reserving_ = true;
        settle_now();
        reserving_ = false;
        return true;
    }
    Path* path_at(PathId id) const { return id < paths_.size() ? paths_[id].get() : nullptr; }
    Whom whom(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) const {
        return {peer, instance, asked_by_us && instance == options_.instance};
    }
    Path* find_path(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) const;
    Path* find_by_theirs(std::uint64_t theirs, const HostAddress& peer) const;
    void forget_names(const Path& path);
    Path* make_path(std::uint64_t instance, const HostAddress& peer, bool asked_by_us);
    bool make_way(const HostAddress& newcomer);
    void free_path(Path& path);
    void go_down(Path& path);
    void leave(Path& path, wire::CloseReason why);
    void push_event(const PathEvent& event) { events_.push_back(event); }

    // Meeting (meeting.cpp)
    std::uint64_t new_identifier();
    wire::PathOffer our_offer() const;
    std::uint64_t last_attempt(std::uint64_t instance, const HostAddress& peer) const;
    void note_attempt(std::uint64_t instance, const HostAddress& peer, std::uint64_t attempt);
    void run_searches(Time now);
    void ask_where(Search& search, Time now);
    bool meet_at_home(Search& search, Time now);
    template <class Which>
    void end_searches(Which which, PathEvent event);
    void end_search(std::uint64_t question, PathEvent event);
    Search* search_of(std::uint64_t question);
    void tell_searches(const Path& path, const PathEvent& event);
    void search_again(Path& path, Time now);
    void give_up(Path& path, Status status);
    void say_hello(Path& path, Time now);
    void welcome(const Path& path);
    void come_up(Path& path, const wire::PathOffer& offer, std::uint64_t theirs, Time now);
    void meet(Search& search, const HostAddress& data, std::uint64_t instance, Time now);
    std::uint64_t hash_of(const HostAddress& asker) const;
    bool may_look_up(const HostAddress& asker, Time now);
    void on_query(const Incoming& in, std::uint64_t connection, Time now);
    void on_answer(const Incoming& in, std::uint64_t connection, Time now);
    void on_hello(const Incoming& in, std::uint64_t connection, Time now);
    void on_good_hello(const Incoming& in, std::uint64_t connection, const wire::Hello& hello,
                       Time now);
    void on_retry(const Incoming& in, std::uint64_t connection, Time now);
    void on_welcome(const Incoming& in, std::uint64_t connection, Time now);
    void on_refuse(const Incoming& in, std::uint64_t connection, Time now);
    void on_unsupported(const Incoming& in, std::uint64_t connection);
    void on_close(const Incoming& in, std::uint64_t connection, Time now);
    void answer_stranger(const Incoming& in, std::uint64_t connection, wire::PacketKind kind,
                         Time now);
    Path* asking_path(const Incoming& in, std::uint64_t connection) const;

    // Receiving (receiving.cpp)
    bool is_worth_a_look();
    Time came_since(Time before);
    void poll();
    void on_datagram(const Incoming& in, Time now);
    void on_data(const Incoming& in, std::uint64_t connection, Time now);
    bool read_chunks(std::span<const std::byte> packet);
    bool keep_early(Path& path, const Incoming& in);
    bool has_place_for(Path& path, std::uint32_t frame);
    void drop_early();
    void place_frames(Path& path, const Incoming& in, bool whole);
    void sort_frames(const Path& path);
    void hand_up(Path& path, const FrameOrder::Held& frame);
    void take_next(Path& path, const FrameOrder::Held& frame);
    void note_arrival(Path& path, std::uint32_t length, bool more, bool gap, Time now);
    void acknowledge_in_time(Path& path) const;
    void on_ack(Path& path, const wire::Ack& ack, Time now);
    /// When an acknowledgement came, and what was under way then.
    struct AckMoment {
        Time came{};
        Duration late{};  ///< our part of the round trip, at most
        std::uint64_t in_flight = 0;
        std::uint64_t next = 0;
    };
    AckMoment moment_of(const Path& path, Time now) const;
    /// What an acknowledgement told.
    struct News {
        std::uint64_t bytes = 0;
        std::uint32_t packets = 0;
        bool traffic = false;  ///< some asked for more than a sign of life
        bool longer = false;   ///< longer packets go through
        bool sampled = false;  ///< `sample` is a round trip
        Duration sample{};
    };
    bool hear(Path& path, const wire::Ack& ack, const AckMoment& moment);
    void conclude(Path& path, const News& news, const AckMoment& moment);
    void note_ack(Path& path, const wire::Ack& ack, Time now);
    void detect_losses(Path& path, Time now);
    void on_lost(Path& path, std::uint64_t number, const SentPacket& packet);
    void lose_frame(Path& path, std::uint32_t frame, std::uint64_t packet);
    void report(Path& path, std::uint32_t frame, bool lost);
    void length_changed(Path& path);
    void fall_back(Path& path, std::uint32_t hint);
    void raise_length(Path& path, Time now);
    void look_at_interface(Time now);
    void send_late_acks(Time now);
    void deliver(const Ready& ready, Frame& frame);
    static void part(Ready& ready, Frame& frame, std::uint32_t count);

    // A frame in parts (parts.cpp)
    bool may_begin_parts(const Path& path, std::uint32_t frame, std::uint32_t length) const;
    bool reserve_parts(Path& path, std::uint32_t header_length, std::uint32_t length,
                       FrameSlot& slot);
    void stage_parts(Path& path);
    void stage_all_parts();
    bool has_parts_to_send();
    void end_parts_that_arrived(Path& path);
    void end_parts(Path& path);
    bool take_part(Path& path);

    // The common packet's short way (lone.cpp)
    Path* take_common(const Incoming& in, Time now);
    std::uint32_t take_run(Path& path, std::size_t first, std::size_t end);
    bool send_lone(Time now);

    // Sending (sending.cpp)
    StagedPacket* packet_for(Path& path, std::uint32_t chunk_length, bool is_new);
    bool within_pace(Path& path, std::uint32_t packet_length);
    bool has_frame_room(Path& path);
    bool widen(Path& path, std::size_t bytes);
    bool remember_more(Path& path);
    bool may_begin(Path& path, std::uint32_t packet_length, bool is_new);
    bool has_room_for_wanted(Path& path);
    void stage_connecting(const HostAddress& to, std::span<const std::byte> packet,
                          bool from_host_port = false);
    bool append_ack(Path& path, StagedPacket& packet, std::uint32_t limit, Time now);
    void stage_ack(Path& path, Time now);
    bool stage_ping(Path& path, std::uint32_t packet_length, Time now);
    void stage_length_probe(Path& path, Time now);
    void stage_acks(Time now);
    static std::uint64_t oldest_with_frames(Path& path);
    void on_probe_timeout(Path& path, Time now);
    void make_run(Path& path, StagedPacket& packet, std::uint32_t frame_length, FrameSlot& slot);
    static bool speaks_of_a_connection(std::span<const std::byte> packet);
    void seal(StagedPacket& packet, Time now);
    void record(const StagedPacket& packet, Time now);
    void record_one(Path& path, const StagedPacket& packet, std::uint32_t n, Time now);
    std::size_t fill_burst(std::size_t end, Time now, std::size_t& n, std::size_t& first_new);
    bool posts_many() const { return std::max(hands_over_, hands_over_before_) >= in_a_row_least; }
    bool may_hold();
    bool may_hold_rest();
    bool rest_waits_on();
    void pad(Path& path, StagedPacket& packet, std::uint32_t length);
    /// Must an acknowledgement leave, even if nothing else does?
    bool has_due_acks() { return !ack_owed_.empty() && find_due_ack(); }
    bool find_due_ack();
    void flush(Time now) {
        if (!parted_.empty()) stage_all_parts();
        if (!staging_.empty() || has_due_acks()) flush_all(now);
    }
    void flush_all(Time now);
    void send_before(std::size_t end, Time now);

    std::unique_ptr<Port> port_;
    DatagramOptions options_;
    const bool authenticates_;  ///< the port does
    Capabilities capabilities_;
    Totals totals_;

    Shares shares_;
    std::vector<std::unique_ptr<Path>> paths_;
    std::vector<PathId> free_ids_;
    IdentifierTable identifiers_;
    PathsByWhom by_instance_;  ///< those that are not over
    PathsByWhom by_theirs_;    ///< those that are up, by the identifiers that we send to
    Time timers_ran_{};
    Deadlines deadlines_;
    std::deque<PathEvent> events_;
    List<Path, AckLink> ack_owed_;
    List<Path, WaitLink> waiting_;
    List<Path, PartsLink> parted_;

    std::list<Search> searches_;
    std::map<std::uint64_t, std::list<Search>::iterator> questions_;  ///< by their identifiers
    Time search_deadline_ = Time::never();
    RefusedHosts refused_;
    std::uint64_t identifiers_made_ = 0;
    std::uint64_t attempts_made_ = 0;
    struct Attempt {
        std::uint64_t instance;
        HostAddress peer;
        std::uint64_t attempt;
    };
    std::vector<Attempt> attempts_;  ///< the last of each instance that asked; the oldest go
    std::map<Whom, std::size_t> attempt_of_;  ///< where it stands there
    std::size_t oldest_attempt_ = 0;
    Time strangers_since_{};
    std::uint32_t strangers_answered_ = 0;
    Allowance strangers_queries_{strangers_queries, strangers_queries_at_once};
    Allowance peers_queries_{peers_queries, peers_queries_at_once};
    Allowance ways_made_{ways_made, ways_made_at_once};

    std::array<Incoming, 64> incoming_;
    bool burst_taken_ = false;  ///< the port has bytes of ours until its release()
    bool looked_ = false;       ///< in this turn
    std::uint64_t look_ = 0;
    std::uint32_t looks_in_vain_ = 0;
    std::uint32_t looks_left_out_ = 0;
    Time looked_at_{};
    Time left_ = Time::never();  ///< the last look before an absence whose packets are being read
    Time returned_{};            ///< from it
    Time came_{};                ///< not before that did what is being read come
    std::uint32_t interface_max_ = 0;  ///< datagram that our interface carried when we last looked
    struct FrameChunk {
        std::span<const std::byte> bytes;
        std::uint32_t number;
        bool reliable;
    };
    std::vector<FrameChunk> chunk_frames_;  ///< of the packet at hand
    struct FramePart {
        std::uint32_t number = 0;
        std::uint32_t at = 0;
        std::uint32_t whole = 0;
        std::span<const std::byte> bytes;  ///< none: there is no part
    } chunk_part_;                         ///< of the packet at hand
    EarlyFrames early_;                    ///< of its frames those that are kept
    wire::Chunk chunk_;  ///< its acknowledgement is the packet's, where that has one
    bool chunk_has_ack_ = false;
    bool chunk_wants_ack_ = false;
    Path* unsettled_ = nullptr;  ///< took or sent a common packet: settle() does the rest
    bool ack_noted_ = false;     ///< an acknowledgement of it is to be heard
    wire::Ack noted_ack_;
    AckMoment noted_;
    NumberedQueue<Ready> ready_;
    std::array<const std::byte*, 64> payloads_;  ///< of frames of runs; places as in incoming_
    std::vector<FrameOrder::Held> lent_kept_;    ///< kept frames that were handed up
    NumberedQueue<Reaped> reaped_;

    Staging staging_;
    wire::Ack ack_to_send_;  ///< being written; here, since to clear one costs more than to fill it
    std::array<Outgoing, 64> burst_;
    bool blocked_ = false;                 ///< the port took less than all
    bool reserving_ = false;               ///< packets are being filled that transmit() is to find
    bool burst_left_ = false;              ///< a whole one of a longer message, since notify()
    bool asleep_ = false;                  ///< nobody looks by itself
    std::uint32_t hands_over_ = 0;         ///< calls of notify() since the last look
    std::uint32_t hands_over_before_ = 0;  ///< the same between looks before, halved with each
};

}  // namespace via::device::datagram
