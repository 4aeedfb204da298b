#include "device/datagram/recovery.hpp"

#include <algorithm>
#include <utility>

#include "device/datagram/mutation.hpp"

namespace via::device::datagram {

std::uint32_t longest_packet(const Port& port) {
    return std::clamp(port.datagram_max(), wire::packet_length_min, wire::packet_length_max);
}

// Outcomes ----------------------------------------------------------------------------------------

std::size_t Recovery::reap(std::span<Reaped> reaped) {
    if (ack_noted_) settle_now();
    std::size_t count = 0;
    for (; count < reaped.size() && !reaped_.empty(); ++count) {
        reaped[count] = reaped_.front();
        reaped_.pop_front();
    }
    may_have_reaped_ = !reaped_.empty();
    return count;
}

bool Recovery::has_reaped_of(PathId path) const {
    for (std::uint64_t n = reaped_.begin(); n != reaped_.end(); ++n)
        if (reaped_[n].path == path) return true;
    return false;
}

void Recovery::report(Path& path, std::uint32_t frame, bool lost) {
    if (lost && mutated(Mutation::never_report_loss)) return;
    may_have_reaped_ = true;
    Reaped& reaped = reaped_.add();
    reaped.path = path.id;
    reaped.number = frame;
    reaped.lost = lost;
    if (!lost && mutated(Mutation::double_report)) reaped_.push_back({path.id, frame, lost});
}

// Acknowledgements --------------------------------------------------------------------------------

Time Recovery::deadline() const {
    if (unsettled_ == nullptr) return Time::never();
    // What was heard may tell of losses: then at once.
    return ack_noted_ ? polls_.at() : unsettled_->deadline(polls_.at(), paths_.patience());
}

/// Which packets came, and so which frames; then what that tells. False: nothing new.
bool Recovery::hear(Path& path, const wire::Ack& ack, const Moment& moment) {
    const Time now = moment.came;
    Path& first = *path.first;
    News news;
    path.sent.acknowledge(ack, [&](std::uint64_t number, const SentPacket& packet, bool was_lost) {
        for (std::uint32_t n = 0; n < packet.frames; ++n)
            if (first.frames.arrived(path.sent.frame(packet, n)))
                report(first, path.sent.frame(packet, n), false);
        if (packet.frames == 0 && first.parts != nullptr) first.parts->arrived(path.key_of(number));
        if (packet.named_below != 0) {
            path.received.known_below(packet.named_below);
            path.acks.was_heard(packet.named_below);
        }
        if (packet.length > wire::packet_length_min) path.long_timeouts = 0;
        if (was_lost) {
            ++path.counts.packets_spurious;
            const std::uint64_t distance = ack.largest - number + 1;
            path.reordering = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(distance, path.reordering, reordering_greatest));
            path.reordering_since = now;
            return;
        }
        news.bytes += packet.length;
        ++news.packets;
        news.traffic = news.traffic || !packet.asks_only;
        if (packet.length_probe) news.longer = path.length.arrived(packet.length) || news.longer;
        if (number != ack.largest) return;
        news.sampled = true;
        news.sample = now - packet.sent;
        path.newest_arrived = packet.sent;
    });
    if (first.parts != nullptr) {
        const std::uint32_t frame = first.parts->frame();
        if (parts_.end_if_arrived(first)) report(first, frame, false);
    }
    if (news.packets == 0) return false;
    const bool answers_again = std::exchange(path.timeouts, 0) != 0;
    if (path.has_other_rails()) {
        path.probe_base = now;  // while it goes on there is no doubt
        if (answers_again) tell_length(path);
    }
    path.probe_credit = 0;
    if (news.sampled) path.round_trip.add(news.sample, microseconds(ack.delay), moment.late, now);
    conclude(path, news, moment);
    return true;
}

/// What an acknowledgement tells of the way: its length, its room, what was lost on it.
void Recovery::conclude(Path& path, const News& news, const Moment& moment) {
    const Time now = moment.came;
    Window::Acknowledged seen;
    seen.bytes = news.bytes;
    seen.packets = news.packets;
    seen.largest = path.sent.largest_acknowledged();
    seen.next = moment.next;
    seen.in_flight = moment.in_flight;
    seen.held_back = path.held_back;
    seen.sampled = news.sampled;
    seen.round_trip = path.round_trip.latest();
    seen.least = path.round_trip.least();
    path.held_back = false;
    path.window.on_ack(seen);
    if (news.longer) length_changed(path);
    detect_losses(path, now);
    path.sent.retire();
    // After one late answer the mean is too long for many more, and pace would be slow for nothing.
    path.pacer.set_pace(path.window.bytes(),
                        std::min(path.round_trip.smoothed(), path.round_trip.latest()),
                        path.datagram_max());
    if (news.traffic) {  // an idle path probes nothing
        if (now >= path.length_raised + length_raise_interval) raise_length(path, now);
        outbox_.probe_length(path);
    }
    paths_.reschedule(path, now);
}

// Losses ------------------------------------------------------------------------------------------

void Recovery::detect_losses(Path& path, Time now) {
    if (path.reordering > reordering_least && now - path.reordering_since >= seconds(1)) {
        --path.reordering;
        path.reordering_since = now;
    }
    std::uint32_t lost = 0;
    bool long_lost = false;
    path.loss_time = path.sent.detect_lost(
        now, path.loss_delay(), path.reordering,
        [&](std::uint64_t number, const SentPacket& packet) {
            on_lost(path, number, packet);
            if (packet.length_probe) return;
            ++lost;
            long_lost =
                long_lost || (packet.length > wire::packet_length_min && number >= path.long_mark);
        });
    if (lost == 0) return;
    path.counts.packets_lost += lost;
    path.window.on_lost(lost);
    if (!long_lost) return;
    path.long_mark = path.sent.next_number();  // once in a round trip
    if (++path.long_timeouts >= long_timeouts_max) fall_back(path);
}

void Recovery::give_up_oldest(Path& path) {
    path.sent.give_up_oldest([&](std::uint64_t lost, const SentPacket& what) {
        ++path.counts.packets_lost;
        on_lost(path, lost, what);
    });
}

/// What it carried is to be sent again.
void Recovery::on_lost(Path& path, std::uint64_t number, const SentPacket& packet) {
    if (packet.length_probe) return path.length.lost(packet.length);
    for (std::uint32_t n = 0; n < packet.frames; ++n)
        lose_frame(path, path.sent.frame(packet, n), number);
    Path& first = *path.first;
    if (packet.frames == 0 && first.parts != nullptr && first.parts->lost(path.key_of(number)))
        first.note_stuck(port_.now());
}

/// Unless it was sent again since, or had come.
void Recovery::lose_frame(Path& path, std::uint32_t frame, std::uint64_t packet) {
    Path& first = *path.first;
    if (!first.frames.lost(frame, path.key_of(packet))) return;
    report(first, frame, true);
    if (frame == first.frames.oldest()) first.note_stuck(port_.now());
}

/// The oldest packet in flight with a frame that was not sent since; next_number(): none has.
std::uint64_t Recovery::oldest_with_frames(Path& path) {
    for (std::uint64_t number = path.sent.oldest_in_flight(); number < path.sent.next_number();
         ++number) {
        const SentPacket& packet = path.sent.packet(number);
        if (packet.state != SentState::in_flight) continue;
        for (std::uint32_t n = 0; n < packet.frames; ++n)
            if (path.first->frames.is_in(path.sent.frame(packet, n), path.key_of(number)))
                return number;
    }
    return path.sent.next_number();
}

void Recovery::on_probe_timeout(Path& path, Time now) {
    ++path.timeouts;
    ++path.counts.probe_timeouts;
    path.probe_base = now;
    path.probe_credit = probe_packets;
    if (path.timeouts >= timeouts_to_collapse) path.window.collapse();
    port_.doubt(path.peer, path.newest_arrived);
    if (path.another_answers()) return leave_rail(path);
    const SentPacket oldest = path.sent.packet(path.sent.oldest_in_flight());
    if (oldest.length > wire::packet_length_min && !oldest.length_probe &&
        ++path.long_timeouts >= long_timeouts_max)
        fall_back(path);
    outbox_.ping(path);
    const std::uint64_t number = oldest_with_frames(path);
    if (number == path.sent.next_number()) return;
    const SentPacket& packet = path.sent.packet(number);
    for (std::uint32_t n = 0; n < packet.frames; ++n)
        lose_frame(path, path.sent.frame(packet, n), number);
}

/// What is under way on it leaves by the others; it is asked for a sign of life, and used again
/// when there is one.
void Recovery::leave_rail(Path& path) {
    path.sent.give_up_all([&](std::uint64_t number, const SentPacket& packet) {
        if (!packet.asks_only && !packet.length_probe) ++path.counts.packets_lost;
        if (!mutated(Mutation::keep_what_was_left)) on_lost(path, number, packet);
    });
    path.loss_time = Time::never();
    outbox_.ping(path);
    if (path.timeouts == 1) tell_length(path);
}

// Length ------------------------------------------------------------------------------------------

void Recovery::length_changed(Path& path) {
    path.window.set_datagram_max(path.datagram_max());
    tell_length(path);
}

/// What a frame may be long: of rails, on each that is in use.
void Recovery::tell_length(const Path& path) {
    const Path& first = *path.first;
    events_.push_back({PathEventKind::changed, first.id});
    events_.back().payload_max = first.payload_max_of_rails();
}

/// Long packets do not go through: what every way carries does. `hint`: what may be tried first;
/// 0: what the network said.
void Recovery::fall_back(Path& path, std::uint32_t hint) {
    const std::uint32_t told = std::exchange(path.length_hint, 0);
    if (hint == 0) hint = told;
    path.long_timeouts = 0;
    path.long_mark = path.sent.next_number();
    if (path.datagram_max() <= wire::packet_length_min) return;
    path.length.begin(wire::packet_length_min, path.length.limit(), hint);
    length_changed(path);
}

/// Our own host sends no longer ones, that is known. What the network says is a hint: that packets
/// of this length go through was proven, so it takes packets that are lost to disprove it, but one
/// round trip of such less; and who is asked at once tells sooner that they are.
void Recovery::on_too_long(Path& path, const NetworkError& error) {
    if (path.datagram_max() <= error.length) return;
    if (error.is_ours) return fall_back(path, error.length);
    path.length_hint = error.length;
    if (path.long_timeouts != 0) return;
    path.long_timeouts = 1;
    outbox_.ping(path);
}

void Recovery::raise_length(Path& path, Time now) {
    path.length_raised = now;
    path.length.raise(longest_packet(port_));
}

}  // namespace via::device::datagram
