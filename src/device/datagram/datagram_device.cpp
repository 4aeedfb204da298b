// The device's turn: what comes, timers, what leaves, and the calls of device.hpp.
#include "device/datagram/datagram_device.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "device/datagram/mutation.hpp"
#include "wire/bytes.hpp"

namespace via::device::datagram {

namespace {

constexpr std::uint32_t header_max = Frame::inline_max;

std::uint32_t payload_max(std::uint32_t datagram_max) {
    return datagram_max - wire::data_header_length - wire::frame_chunk_overhead -
           Path::frame_header_max;
}

}  // namespace

DatagramDevice::DatagramDevice(std::unique_ptr<Port> port, const DatagramOptions& options)
    : Device({payload_max(wire::packet_length_max), header_max, ~0U, false, true},
             port->nic_address()),
      port_(std::move(port)),
      options_(options),
      interface_max_(port_->datagram_max()),
      paths_(*port_, options_, totals_),
      parts_(paths_.shares(), outbox_.staging()),
      recovery_(*port_, paths_, outbox_, parts_, polls_, events_, may_have_reaped_),
      sending_(*port_, paths_, outbox_, parts_, recovery_, polls_),
      packing_(*port_, paths_, outbox_, parts_, recovery_, sending_),
      receiving_(*port_, paths_, outbox_, recovery_, polls_, totals_),
      meeting_(*port_, options_, paths_, outbox_, parts_, recovery_, events_, totals_) {
    may_have_reaped_ = false;
    VIA_ASSERT(options.instance != 0);
}

DatagramDevice::~DatagramDevice() {
    // What is left to say: peers learn what arrived before they learn that we left.
    const Time now = port_->now();
    paths_.for_each([&](Path& path) {
        if (path.stage != Path::Stage::up || (!path.owes_ack() && !path.acks.is_unsure())) return;
        for (int n = 0; n < last_acks; ++n) outbox_.acknowledge(path, now);
    });
    sending_.flush(now);
    paths_.for_each([&](const Path& path) {
        if (path.stage != Path::Stage::up) return;
        std::byte packet[wire::connecting_length_max];
        const std::uint32_t length =
            wire::emit_close(path.theirs, wire::CloseReason::left, wire::ConnectingBytes(packet));
        const Outgoing out{path.peer, packet, length, false};
        port_->send({&out, 1});
    });
    if (burst_taken_) port_->release();
}

void DatagramDevice::resolve(const NetAddress& remote, std::uint64_t cookie) {
    const Time now = port_->now();
    meeting_.resolve(remote, cookie, now);
    sending_.flush(now);
}

Status DatagramDevice::listen(const Discriminator& discriminator) {
    return port_->listen(discriminator);
}

void DatagramDevice::unlisten(const Discriminator& discriminator) {
    port_->unlisten(discriminator);
}

HostAddress DatagramDevice::peer_address(PathId id) const {
    const Path* path = paths_.at(id);
    VIA_ASSERT(path != nullptr);
    return with_port(path->peer, path->offer.nic_port);
}

PathStatistics DatagramDevice::statistics(PathId id) const {
    const Path* path = paths_.at(id);
    return path == nullptr ? PathStatistics{} : path->statistics();
}

Way DatagramDevice::way_of(const Path& path) const {
    const PathStatistics all = path.statistics();
    const HostAddress next = port_->next_to(path.peer);
    Way way;
    way.path = path.first->id;
    way.state = path.is_mute     ? WayState::mute
                : path.answers() ? WayState::answers
                                 : WayState::doubtful;
    way.own = port_->rail_address(port_->rail_to(path.peer));
    way.peer = path.peer;
    if (next != path.peer) way.over = next;
    way.round_trip = all.round_trip;
    way.packets = all.packets_sent;
    way.bytes = all.bytes_sent;
    return way;
}

std::size_t DatagramDevice::report_ways(std::vector<Way>& to, std::size_t max) const {
    std::size_t count = 0;
    const auto add = [&](const Path& path) {
        if (path.stage != Path::Stage::up) return;
        ++count;
        if (to.size() < max) to.push_back(way_of(path));
    };
    paths_.for_each([&](const Path& path) {
        if (path.is_rail_of_another()) return;
        for (const Path* rail : path.rails) add(*rail);
    });
    return count;
}

// Frames ------------------------------------------------------------------------------------------

bool DatagramDevice::reserve(PathId id, std::uint32_t header_length, std::uint32_t payload_length,
                             FrameSlot& slot) {
    Path* path = paths_.at(id);
    VIA_ASSERT(path != nullptr);
    return path->stage == Path::Stage::up &&
           packing_.reserve(*path, header_length, payload_length, slot);
}

void DatagramDevice::transmit(PathId id) {
    if (Path* path = paths_.at(id)) packing_.transmit(*path);
}

std::uint32_t DatagramDevice::notify() {
    sending_.flush_posted();
    return 0;  // nobody is woken: a packet wakes its receiver by itself
}

std::size_t DatagramDevice::reap(std::span<Reaped> reaped) { return recovery_.reap(reaped); }

std::size_t DatagramDevice::receive(std::span<Frame> frames) {
    VIA_ASSERT(!receiving_.lends());  // the frames of the last call were given back
    if (!std::exchange(looked_, false) && !receiving_.has_ready()) poll();
    const std::size_t count = receiving_.hand_up(frames);
    if (outbox_.owes_acks() && outbox_.find_late_acks(polls_.number(), polls_.at()))
        sending_.flush(polls_.at());
    return count;
}

bool DatagramDevice::release() {
    receiving_.release();
    if (burst_taken_ && !receiving_.has_ready()) {
        port_->release();
        burst_taken_ = false;
    }
    return outbox_.has_due_acks();
}

void DatagramDevice::close_for_violation(PathId id, const char* /*reason*/) {
    Path* path = paths_.at(id);
    if (path == nullptr) return;
    recovery_.settle();
    receiving_.drop(*path);
    if (path->stage != Path::Stage::up) return;  // the peer was faster: its down event stands there
    meeting_.leave(*path, wire::CloseReason::broke_the_protocol);
    sending_.flush(port_->now());
}

void DatagramDevice::set_waiting_for_room(PathId id) {
    Path* path = path_up(id);
    if (path == nullptr || path->waited_for()) return;
    packing_.wait(*path);
    for (const Path* rail : path->rails) paths_.reschedule(*rail, port_->now());
}

// The turn ----------------------------------------------------------------------------------------

bool DatagramDevice::next_event(PathEvent& event) {
    if (!std::exchange(looked_, true)) begin_turn();
    if (events_.empty()) return false;
    const PathEventKind kind = events_.front().kind;
    Path* path = kind == PathEventKind::unresolved ? nullptr : paths_.at(events_.front().path);
    if (kind == PathEventKind::down && (path->ready != 0 || recovery_.has_reaped_of(path->id)))
        return false;
    event = std::move(events_.front());
    events_.pop_front();
    if (kind == PathEventKind::up || kind == PathEventKind::resolved) path->announced = true;
    if (kind == PathEventKind::down) paths_.free(*path);
    return true;
}

void DatagramDevice::begin_turn() {
    recovery_.settle();
    // First: what came while nobody looked was not late.
    if (receiving_.has_ready())
        polls_.passed(port_->now());
    else
        poll();
    const Time now = polls_.at();
    hear_network_errors(now);
    run_timers(now);
    if (sending_.is_blocked()) sending_.look_for_room();
    packing_.end_waiting();
    if (outbox_.has_to_leave() || !parts_.empty()) sending_.flush_after_look(now);
}

void DatagramDevice::service(Time now) {
    recovery_.settle();
    polls_.expect_news();
    port_->service(now);
    look_at_interface(now);
    hear_network_errors(now);
    run_timers(now);
    sending_.flush(now);
}

/// That it carries less shows by what does not go out.
void DatagramDevice::look_at_interface(Time now) {
    const std::uint32_t before = std::exchange(interface_max_, port_->datagram_max());
    if (interface_max_ <= before) return;
    paths_.for_each([&](Path& path) {
        if (path.stage == Path::Stage::up) recovery_.raise_length(path, now);
    });
}

// Time --------------------------------------------------------------------------------------------

void DatagramDevice::run_due_timers(Time before, Time now) {
    const Time due = std::max(next_timer(), before);
    if (now - due >= stood_still_least && !mutated(Mutation::give_up_unasked))
        extend_deadlines(now - due, now);
    if (now >= meeting_.searches().deadline()) meeting_.run_searches(now);
    paths_.run_due(now, [&](Path& path) { on_deadline(path, now); });
}

/// While nobody ran us nobody was asked: that is no part of anybody's silence. What came meanwhile
/// may have been taken already, and counts from now.
void DatagramDevice::extend_deadlines(Duration stood_still, Time now) {
    paths_.for_each([&](Path& path) { path.extend_deadlines(stood_still, now); });
    meeting_.searches().extend_deadlines(stood_still);
}

void DatagramDevice::on_deadline(Path& path, Time now) {
    if (path.stage == Path::Stage::asking) return meeting_.on_deadline(path, now);
    if (path.stage != Path::Stage::up) return;
    if (path.asks_for_rails) meeting_.ask_for_rails(path, now);
    const Patience& patience = paths_.patience();
    const bool is_silent = path.is_silent(now, patience);
    if (is_silent && sending_.is_blocked() && now < path.last_heard + patience.silence) {
        path.suspected_until = now + path.doubt_timeout();  // the question has not left yet
    } else if (is_silent && !meeting_.goes_on_without(path, now)) {
        // A program that stood still looks first at what came meanwhile, but not for ever.
        if (path.over_since.is_never()) path.over_since = now;
        if (!port_->has_work() || now >= path.over_since + last_look_max)
            return meeting_.leave(path, wire::CloseReason::left);
    }
    // It talks, and takes nothing; or it never gets what all the rest waits for.
    if (path.has_waited_too_long(now, patience))
        return meeting_.leave(path, wire::CloseReason::left);
    if (now >= path.loss_time) recovery_.detect_losses(path, now);
    if (path.sent.packets_in_flight() != 0 && now >= path.probe_base + path.probe_timeout() &&
        !mutated(Mutation::forget_probe_timeout)) {
        recovery_.on_probe_timeout(path, now);
    } else if (path.staged_packets == 0 && now >= path.next_question(patience)) {
        path.probe_base = now;
        outbox_.ping(path);
    }
    if (path.owes_ack()) path.acks.on_time(now);
}

Time DatagramDevice::next_deadline() const {
    return earlier(earlier(next_timer(), port_->next_deadline()), recovery_.deadline());
}

// Sleeping ----------------------------------------------------------------------------------------

void DatagramDevice::arm(Sleep sleep) {
    recovery_.settle();
    // Whom a packet wakes was not away.
    if (polls_.is_asleep() && sleep == Sleep::awake) polls_.passed(port_->now());
    polls_.set_asleep(sleep != Sleep::awake);
    port_->arm(sleep);
}

bool DatagramDevice::has_work() {
    recovery_.settle();
    if (!events_.empty() || receiving_.has_ready() || recovery_.has_reaped()) return true;
    if (sending_.has_to_send() || packing_.has_wanted_room()) return true;
    const Time due = next_timer();
    if (!due.is_never() && port_->now() >= due) return true;
    if ((!sending_.is_blocked() || !port_->has_room()) && !port_->has_work()) return false;
    polls_.expect_news();
    return true;
}

std::size_t DatagramDevice::wake_words(std::span<WakeWord> words) {
    return words.size() + 1;  // there are none: sleep on the handle
}

// What comes --------------------------------------------------------------------------------------

void DatagramDevice::poll() {
    VIA_ASSERT(!receiving_.has_ready());
    recovery_.settle();
    if (!polls_.is_worthwhile(outbox_.owes_acks())) return polls_.passed(port_->now());
    if (burst_taken_) port_->release();
    const std::size_t count = port_->receive(incoming_);
    burst_taken_ = count != 0;
    sending_.looked();
    if (!burst_taken_) return polls_.found_nothing(port_->moment());
    polls_.found(port_->now(), port_->came());
    const Time now = polls_.at();
    const std::span<const Incoming> burst = std::span(incoming_).first(count);
    for (std::size_t n = 0; n < count;) {
        const std::size_t taken = receiving_.take_common(burst, n, now);
        n += std::max<std::size_t>(taken, 1);
        totals_.datagrams += std::max<std::size_t>(taken, 1);
        if (taken != 0) continue;
        recovery_.settle();
        on_datagram(burst[n - 1], now);
    }
    if (receiving_.has_ready()) return;
    port_->release();
    burst_taken_ = false;
}

void DatagramDevice::on_datagram(const Incoming& in, Time now) {
    wire::PacketPrefix prefix;
    wire::PacketError error = in.authentic
                                  ? wire::parse_authentic_prefix({in.bytes, in.length}, prefix)
                                  : wire::parse_prefix({in.bytes, in.length}, prefix);
    if (error == wire::PacketError::checksum && mutated(Mutation::forget_checksum)) {
        error = wire::PacketError::none;
        prefix.kind = wire::get<wire::PacketKind>(in.bytes + 5);
        prefix.connection = wire::get<std::uint64_t>(in.bytes + 8);
    }
    switch (error) {
        case wire::PacketError::none:
            break;
        case wire::PacketError::truncated:
            ++totals_.truncated;
            return;
        case wire::PacketError::checksum:
            ++totals_.checksum;
            return;
        case wire::PacketError::version:
            ++totals_.version;
            return meeting_.answer_stranger(in, prefix.connection, wire::PacketKind::unsupported,
                                            now);
        case wire::PacketError::kind:
            ++totals_.kind;
            return;
        case wire::PacketError::contents:
            ++totals_.contents;
            return;
    }
    if (prefix.kind == wire::PacketKind::data) return on_data(in, prefix.connection, now);
    meeting_.take(in, prefix, now);
}

void DatagramDevice::on_data(const Incoming& in, std::uint64_t connection, Time now) {
    Path* path = paths_.by_ours(connection);
    if (path == nullptr && mutated(Mutation::accept_any_connection))
        paths_.for_each([&](Path& any) {
            if (any.stage == Path::Stage::up && any.peer == in.from) path = &any;
        });
    if (path == nullptr) {
        ++totals_.unknown_connection;
        return meeting_.answer_stranger(in, connection, wire::PacketKind::close, now);
    }
    if (path->peer != in.from && !mutated(Mutation::skip_address_check)) {
        ++totals_.wrong_address;
        return;
    }
    if (path->stage != Path::Stage::up) return;  // its welcome was lost; this will come again
    if (!receiving_.read({in.bytes, in.length})) {
        ++totals_.contents;
        return;
    }
    if (!receiving_.take(*path, in, now)) return;
    const wire::Ack* const ack = receiving_.ack();
    if (ack == nullptr) return;
    if (!path->sent.plausible(*ack))
        return close_for_violation(path->first->id, "acknowledges what was not sent");
    recovery_.hear(*path, *ack, now);
}

/// What strangers may have caused is looked up; what our own host says is of all paths that lead
/// there.
void DatagramDevice::hear_network_errors(Time now) {
    NetworkError& error = network_error_;
    while (port_->next_network_error(error)) {
        meeting_.searches().on_network_error(error, now);
        if (error.is_ours) {
            paths_.for_each([&](Path& path) {
                if (path.peer == error.to) on_network_error(path, error, now);
            });
            continue;
        }
        Path* path = paths_.by_ours(error.connection);
        if (path == nullptr) path = paths_.by_theirs(error.connection, error.to);
        if (path != nullptr && path->peer == error.to) on_network_error(*path, error, now);
    }
}

/// A hint, perhaps forged by who sees our packets: of a path that is up it ends nothing.
void DatagramDevice::on_network_error(Path& path, const NetworkError& error, Time now) {
    const bool up = path.stage == Path::Stage::up;
    if (!error.is_of(path.ours) && !(up && error.is_of(path.theirs))) return;
    if (error.kind == NetworkErrorKind::too_long) {
        if (up) recovery_.on_too_long(path, error);
        return;
    }
    if (error.kind != NetworkErrorKind::port_unreachable) return;
    if (path.stage == Path::Stage::asking)
        return path.is_rail_of_another() ? void() : meeting_.search_again(path, now);
    if (up) meeting_.doubt(path, now);
}

}  // namespace via::device::datagram
