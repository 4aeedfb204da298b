// The device's turn: events, timers, paths coming and going.
#include "device/datagram/datagram_device.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "device/datagram/mutation.hpp"
#include "device/datagram/path.hpp"
#include "device/datagram/search.hpp"

namespace via::device::datagram {

namespace {

constexpr std::uint32_t header_max = Frame::inline_max;
/// What a turn may send, and a datagram of the greatest length behind it.
constexpr std::uint32_t staging_bytes = 512 * 1024;

std::uint32_t payload_max(std::uint32_t datagram_max) {
    return datagram_max - wire::data_header_length - wire::frame_chunk_overhead -
           Path::frame_header_max;
}

}  // namespace

DatagramDevice::DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options)
    : port_(std::move(port)),
      options_(options),
      authenticates_(port_->authenticates()),
      capabilities_{payload_max(wire::packet_length_max), header_max, ~0U, false, true},
      shares_(*port_, options.paths_max, options.early_copies_max, options.tables_max),
      staging_(staging_bytes, burst_bytes) {
    may_have_reaped_ = false;
    VIA_ASSERT(options.instance != 0);
    capabilities_.retransmits = true;
    interface_max_ = port_->datagram_max();
    ready_.make_room(64);
    reaped_.make_room(64);
}

DatagramDevice::~DatagramDevice() {
    // What is left to say: peers learn what arrived before they learn that we left.
    const Time now = port_->now();
    for (const auto& path : paths_) {
        if (!path || path->stage != Path::Stage::up) continue;
        if (!path->owes_ack() && path->ack_unsure == 0) continue;
        for (int n = 0; n < last_acks; ++n) stage_ack(*path, now);
    }
    flush(now);
    for (const auto& path : paths_) {
        if (!path || path->stage != Path::Stage::up) continue;
        std::byte packet[wire::connecting_length_max];
        const std::uint32_t length =
            wire::emit_close(path->theirs, wire::CloseReason::left, wire::ConnectingBytes(packet));
        const Outgoing out{path->peer, packet, length, false};
        port_->send({&out, 1});
    }
    for (std::uint64_t n = ready_.begin(); n != ready_.end(); ++n)
        if (ready_[n].frame.share != nullptr) shares_.let_go(ready_[n].frame);
    const auto let_go = [this](const FrameOrder::Held& frame) { shares_.let_go(frame); };
    for (const auto& path : paths_)
        if (path) path->order.clear(let_go);
    std::for_each(lent_kept_.begin(), lent_kept_.end(), let_go);
    if (burst_taken_) port_->release();
    while (Path* path = ack_owed_.front()) List<Path, AckLink>::remove(*path);
    while (Path* path = waiting_.front()) List<Path, WaitLink>::remove(*path);
    while (Path* path = parted_.front()) end_parts(*path);
}

Status DatagramDevice::listen(const Discriminator& discriminator) {
    return port_->listen(discriminator);
}

void DatagramDevice::unlisten(const Discriminator& discriminator) {
    port_->unlisten(discriminator);
}

HostAddress DatagramDevice::peer_address(PathId id) const {
    const Path* path = path_at(id);
    VIA_ASSERT(path != nullptr);
    HostAddress address = path->peer;
    address.bytes[address.length - 2U] = static_cast<std::uint8_t>(path->offer.nic_port >> 8);
    address.bytes[address.length - 1U] = static_cast<std::uint8_t>(path->offer.nic_port);
    return address;
}

PathStatistics DatagramDevice::statistics(PathId id) const {
    const Path* path = path_at(id);
    return path == nullptr ? PathStatistics{} : path->statistics();
}

// Paths -------------------------------------------------------------------------------------------

/// A path to ourselves has two ends here: the one that asked, and the other.
Path* DatagramDevice::find_path(std::uint64_t instance, const HostAddress& peer,
                                bool asked_by_us) const {
    const auto found = by_instance_.find(whom(instance, peer, asked_by_us));
    return found == by_instance_.end() ? nullptr : path_at(found->second);
}

/// One that is up, by the identifier in packets to it.
Path* DatagramDevice::find_by_theirs(std::uint64_t theirs, const HostAddress& peer) const {
    const auto found = by_theirs_.find({peer, theirs});
    return found == by_theirs_.end() ? nullptr : path_at(found->second);
}

void DatagramDevice::forget_names(const Path& path) {
    identifiers_.remove(path.ours);
    port_->forget(path.ours);
    by_instance_.erase(whom(path.instance, path.peer, path.asked_by_us));
    // A peer may give several paths one identifier: its loss.
    const auto found = by_theirs_.find({path.peer, path.theirs});
    if (found != by_theirs_.end() && found->second == path.id) by_theirs_.erase(found);
}

/// nullptr: there are too many.
Path* DatagramDevice::make_path(std::uint64_t instance, const HostAddress& peer, bool asked_by_us) {
    Share* share = shares_.add_path(peer, asked_by_us);
    if (share == nullptr) return nullptr;
    if (free_ids_.empty()) {
        free_ids_.push_back(static_cast<PathId>(paths_.size()));
        paths_.emplace_back();
    }
    const PathId id = free_ids_.back();
    free_ids_.pop_back();
    paths_[id] = std::make_unique<Path>();
    Path& path = *paths_[id];
    path.id = id;
    path.instance = instance;
    path.peer = peer;
    path.share = share;
    path.asked_by_us = asked_by_us;
    path.ours = new_identifier();
    identifiers_.add(path.ours, id);
    by_instance_.insert_or_assign(whom(instance, peer, asked_by_us), id);
    return &path;
}

/// For a newcomer whom there is no path left for: of the peer that has most the oldest path goes
/// over which we never had a connection. True: there will be room when its down event was taken.
bool DatagramDevice::make_way(const HostAddress& newcomer) {
    Path* victim = nullptr;
    totals_.paths_looked_at += paths_.size();
    for (const auto& path : paths_) {
        if (!path || path->stage != Path::Stage::up || path->asked_by_us || path->carried) continue;
        if (victim == nullptr || path->share->paths > victim->share->paths ||
            (path->share->paths == victim->share->paths && path->made < victim->made))
            victim = path.get();
    }
    // Who has as many gains nothing by it: nobody's paths take turns.
    if (victim == nullptr || victim->share->paths <= shares_.paths_of(newcomer) + 1) return false;
    leave(*victim, wire::CloseReason::left);
    return true;
}

void DatagramDevice::free_path(Path& path) {
    const PathId id = path.id;
    shares_.narrow(*path.share, path.tables);
    shares_.remove_path(*path.share);
    paths_[id].reset();
    free_ids_.push_back(id);
}

/// The path is over; frames that it brought, and what it had of ours, are handed up before that is
/// told.
void DatagramDevice::go_down(Path& path) {
    VIA_ASSERT(path.stage != Path::Stage::ending);
    const bool was_up = path.stage == Path::Stage::up;
    path.stage = Path::Stage::ending;
    if (unsettled_ == &path) {
        unsettled_ = nullptr;
        ack_noted_ = false;
    }
    forget_names(path);
    deadlines_.remove(path.id);
    List<Path, AckLink>::remove_if_linked(path);
    List<Path, WaitLink>::remove_if_linked(path);
    staging_.drop(path.id);
    end_parts(path);
    shares_.narrow(*path.share, path.order.bytes_charged());
    path.order.clear([this](const FrameOrder::Held& frame) { shares_.let_go(frame); });
    if (!was_up) return free_path(path);
    push_event({PathEventKind::down, path.id});
}

void DatagramDevice::condemn(PathId id, const char* /*reason*/) {
    Path* path = path_at(id);
    if (path == nullptr) return;
    settle();
    ready_.filter([&](const Ready& ready) {
        if (ready.path != id) return true;
        if (ready.frame.share != nullptr) shares_.let_go(ready.frame);
        return false;
    });
    path->ready = 0;
    if (path->stage != Path::Stage::up) return;  // the peer was faster: its down event stands there
    leave(*path, wire::CloseReason::broke_the_protocol);
    flush(port_->now());
}

/// Ends a path that is up, and says so: a peer whom we do not hear may hear us.
void DatagramDevice::leave(Path& path, wire::CloseReason why) {
    std::byte packet[wire::connecting_length_max];
    const std::uint32_t length = wire::emit_close(path.theirs, why, wire::ConnectingBytes(packet));
    stage_connecting(path.peer, {packet, length});
    go_down(path);
}

// The turn ----------------------------------------------------------------------------------------

bool DatagramDevice::next_event(PathEvent& event) {
    if (!looked_) {
        looked_ = true;
        begin_turn();
    }
    if (events_.empty()) return false;
    const PathEventKind kind = events_.front().kind;
    Path* path = kind == PathEventKind::unresolved ? nullptr : path_at(events_.front().path);
    if (kind == PathEventKind::down && (path->ready != 0 || has_reaped(path->id))) return false;
    event = std::move(events_.front());
    events_.pop_front();
    if (kind == PathEventKind::up || kind == PathEventKind::resolved) path->announced = true;
    if (kind == PathEventKind::down) free_path(*path);
    return true;
}

bool DatagramDevice::has_reaped(PathId id) const {
    for (std::uint64_t n = reaped_.begin(); n != reaped_.end(); ++n)
        if (reaped_[n].path == id) return true;
    return false;
}

void DatagramDevice::begin_turn() {
    settle();
    // First: what came while nobody looked was not late.
    if (ready_.empty())
        poll();
    else
        looked_at_ = port_->now();
    const Time now = looked_at_;
    hear_troubles(now);
    run_timers(now);
    if (blocked_ && port_->has_room()) blocked_ = false;
    // A turn asks again for room if it still wants it.
    for (Path* path = waiting_.front(); path != nullptr;) {
        Path* const next = waiting_.next(*path);
        if (has_room_for_wanted(*path)) List<Path, WaitLink>::remove(*path);
        path = next;
    }
    if (!rest_waits_on()) flush(now);
}

void DatagramDevice::run_due_timers(Time before, Time now) {
    const Time due = std::max(earlier(deadlines_.next(), search_deadline_), before);
    if (now - due >= stood_still_least && !mutated(Mutation::give_up_unasked))
        forgive(now - due, now);
    if (now >= search_deadline_) run_searches(now);
    PathId id;
    // Each once: what cannot be done now is not tried again before the next turn.
    for (std::size_t left = paths_.size(); left != 0 && deadlines_.take_due(now, id); --left) {
        on_deadline(*paths_[id], now);
        if (Path* path = path_at(id)) reschedule(*path, now);
    }
}

/// While nobody ran us nobody was asked: that is no part of anybody's silence. What came meanwhile
/// may have been taken already, and counts from now.
void DatagramDevice::forgive(Duration stood_still, Time now) {
    for (const auto& path : paths_) {
        if (!path) continue;
        path->give_up = path->give_up + stood_still;
        path->last_heard = earlier(path->last_heard + stood_still, now);
        if (!path->suspected_until.is_never())
            path->suspected_until =
                earlier(path->suspected_until + stood_still, now + path->doubt_timeout());
        path->forgive(stood_still);
    }
    for (Search& search : searches_) search.give_up = search.give_up + stood_still;
}

void DatagramDevice::on_deadline(Path& path, Time now) {
    if (path.stage == Path::Stage::asking) {
        if (now >= path.give_up) return give_up(path, Status::timeout);  // it listens, we were told
        if (now >= path.next_try) say_hello(path, now);
        return;
    }
    if (path.stage != Path::Stage::up) return;
    const bool is_silent = now >= path.last_heard + options_.silence;
    if (blocked_ && !is_silent && now >= path.suspected_until)
        path.suspected_until = now + path.doubt_timeout();  // the question has not left yet
    if (is_silent || now >= path.suspected_until) {
        // A program that stood still looks first at what came meanwhile, but not for ever.
        if (path.over_since.is_never()) path.over_since = now;
        if (!port_->has_work() || now >= path.over_since + last_look_max)
            return leave(path, wire::CloseReason::left);
    }
    // It talks, and takes nothing; or it never gets what all the rest waits for.
    if (path.waits_in_vain(now, options_.silence)) return leave(path, wire::CloseReason::left);
    if (now >= path.loss_time) detect_losses(path, now);
    if (path.sent.packets_in_flight() != 0 && now >= path.probe_base + path.probe_timeout() &&
        !mutated(Mutation::forget_probe_timeout)) {
        on_probe_timeout(path, now);
    } else if (path.staged_packets == 0 && now >= path.next_question(options_.silence)) {
        path.probe_base = now;
        stage_ping(path, 0, now);
    }
    if (path.owes_ack() && now >= path.ack_since + ack_delay_max) path.ack_now = true;
}

void DatagramDevice::reschedule(Path& path, Time now) {
    deadlines_.at_latest(path.id, path.deadline(now, options_.silence));
}

/// What strangers may have caused is looked up; what our own host says is of all paths that lead
/// there.
void DatagramDevice::hear_troubles(Time now) {
    Trouble trouble;
    while (port_->next_trouble(trouble)) {
        if (trouble.is_ours) {
            for (auto next = searches_.begin(); next != searches_.end();)
                end_refused(*next++, trouble, now);
            for (std::size_t n = 0; n < paths_.size(); ++n)
                if (paths_[n] && paths_[n]->peer == trouble.to)
                    hear_trouble(*paths_[n], trouble, now);
            continue;
        }
        if (Search* const search = search_of(trouble.connection))
            end_refused(*search, trouble, now);
        Path* path = path_at(identifiers_.find(trouble.connection));
        if (path == nullptr) path = find_by_theirs(trouble.connection, trouble.to);
        if (path != nullptr && path->peer == trouble.to) hear_trouble(*path, trouble, now);
    }
}

/// Nobody is there whom it asks, or there is no way: if several questions in a row meet that.
void DatagramDevice::end_refused(Search& search, const Trouble& trouble, Time now) {
    if (trouble.kind != TroubleKind::port_unreachable && trouble.kind != TroubleKind::no_way)
        return;
    if (search.path != Search::no_path || search.refused || search.remote.host != trouble.to)
        return;
    search.refused = true;
    if (trouble.kind == TroubleKind::port_unreachable) {
        refused_.note(trouble.to, now - search.asked, now);
        expect_silence(search, now - search.asked, now);
    }
    if (++search.refusals < refusals_max) return;
    // A host that says that nobody has the port is there, and its NIC may yet be opened.
    const Status status =
        trouble.kind == TroubleKind::port_unreachable ? Status::no_match : Status::not_reachable;
    end_search(search.question, {PathEventKind::unresolved, 0, status});
}

/// A hint, perhaps forged by who sees our packets: of a path that is up it ends nothing.
void DatagramDevice::hear_trouble(Path& path, const Trouble& trouble, Time now) {
    const bool up = path.stage == Path::Stage::up;
    if (!trouble.is_of(path.ours) && !(up && trouble.is_of(path.theirs))) return;
    if (trouble.kind == TroubleKind::too_long) {
        if (up && path.datagram_max() > trouble.length) hear_of_length(path, trouble, now);
        return;
    }
    if (trouble.kind != TroubleKind::port_unreachable) return;
    if (path.stage == Path::Stage::asking) return search_again(path, now);
    if (up) doubt(path, now);
}

/// Our own host sends no longer ones, that is known. What the network says is a hint: that packets
/// of this length go through was proven, so it takes packets that are lost to disprove it, but one
/// round trip of such less; and who is asked at once tells sooner that they are.
void DatagramDevice::hear_of_length(Path& path, const Trouble& trouble, Time now) {
    if (trouble.is_ours) return fall_back(path, trouble.length);
    path.length_hint = trouble.length;
    if (path.long_timeouts != 0) return;
    path.long_timeouts = 1;
    stage_ping(path, 0, now);
}

/// Asks it for a sign of life, as if it had answered until now; unless one comes soon, it is down.
void DatagramDevice::doubt(Path& path, Time now) {
    if (!path.suspected_until.is_never()) return;
    path.timeouts = 0;
    path.suspected_until = now + path.doubt_timeout();
    stage_ping(path, 0, now);
    reschedule(path, now);
}

Time DatagramDevice::next_deadline() const {
    Time next = earlier(earlier(deadlines_.next(), search_deadline_), port_->next_deadline());
    if (unsettled_ == nullptr) return next;
    // What was heard may tell of losses: then at once.
    if (ack_noted_) return earlier(next, looked_at_);
    return earlier(next, unsettled_->deadline(looked_at_, options_.silence));
}

void DatagramDevice::arm(Sleep sleep) {
    settle();
    // Whom a packet wakes was not away.
    if (asleep_ && sleep == Sleep::awake) looked_at_ = port_->now();
    asleep_ = sleep != Sleep::awake;
    port_->arm(sleep);
}

void DatagramDevice::service(Time now) {
    settle();
    looks_in_vain_ = 0;
    port_->service(now);
    look_at_interface(now);
    hear_troubles(now);
    run_timers(now);
    flush(now);
}

void DatagramDevice::set_waiting_for_room(PathId id) {
    Path* path = path_at(id);
    if (path == nullptr || path->stage != Path::Stage::up || path->waited_for()) return;
    waiting_.push_back(*path);
    reschedule(*path, port_->now());
}

bool DatagramDevice::has_work() {
    settle();
    if (!events_.empty() || !ready_.empty() || !reaped_.empty()) return true;
    if ((!ack_owed_.empty() || !staging_.empty() || has_parts_to_send()) && !blocked_) return true;
    for (Path* path = waiting_.front(); path != nullptr; path = waiting_.next(*path))
        if (has_room_for_wanted(*path)) return true;
    const Time due = earlier(deadlines_.next(), search_deadline_);
    if (!due.is_never() && port_->now() >= due) return true;
    if ((!blocked_ || !port_->has_room()) && !port_->has_work()) return false;
    looks_in_vain_ = 0;
    return true;
}

std::size_t DatagramDevice::wake_words(std::span<WakeWord> words) {
    return words.size() + 1;  // there are none: sleep on the handle
}

std::size_t DatagramDevice::reap(std::span<Reaped> reaped) {
    if (ack_noted_) settle_now();
    std::size_t count = 0;
    for (; count < reaped.size() && !reaped_.empty(); ++count) {
        reaped[count] = reaped_.front();
        reaped_.pop_front();
    }
    may_have_reaped_ = !reaped_.empty();
    return count;
}

}  // namespace via::device::datagram
