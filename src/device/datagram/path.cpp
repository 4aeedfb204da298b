#include "device/datagram/path.hpp"

#include <algorithm>

namespace via::device::datagram {

bool Path::window_allows(std::uint32_t packet_length) const {
    if (mutated(Mutation::ignore_window)) return true;
    const std::uint64_t taken = sent.in_flight() + staged_bytes;
    if (taken == 0) return true;
    return taken + packet_length <= window.bytes() &&
           sent.room_taken() + staged_room + room_of(packet_length) <= offer.receive_room;
}

std::uint64_t Path::packets_allowed(std::uint32_t packet_length) const {
    const auto fit = [](std::uint64_t room, std::uint64_t taken, std::uint32_t each) {
        return room > taken ? (room - taken) / each : 0;
    };
    return std::min(
        {fit(window.bytes(), sent.in_flight() + staged_bytes, packet_length),
         fit(offer.receive_room, sent.room_taken() + staged_room, room_of(packet_length)),
         pacer.packets_allowed(staged_bytes, packet_length)});
}

bool Path::has_rail_that_answers() const {
    return std::ranges::any_of(rails, [](const Path* rail) { return rail->answers(); });
}

bool Path::another_answers() const {
    return std::ranges::any_of(
        first->rails, [this](const Path* rail) { return rail != this && rail->answers(); });
}

std::uint32_t Path::payload_max_of_rails() const {
    const bool any = has_rail_that_answers();
    std::uint32_t least = any ? ~0U : payload_max();
    for (const Path* rail : rails)
        if (rail->answers()) least = std::min(least, rail->payload_max());
    return least;
}

Duration Path::probe_timeout() const {
    const Duration once = round_trip.smoothed() +
                          std::max(round_trip.deviation() * 4, deviation_least) +
                          std::min(microseconds(offer.ack_delay_us), believed_delay_max);
    const std::uint32_t doublings = std::min(timeouts, 20U);
    return std::min(once * (std::int64_t{1} << doublings), std::max(probe_timeout_max, once));
}

Duration Path::loss_delay() const {
    const Duration longer = std::max(round_trip.smoothed(), round_trip.latest());
    return std::max(Duration{longer.ns / 8 * 9}, loss_delay_least);
}

Time Path::next_question(const Patience& patience) const {
    if (mutated(Mutation::forget_probe_timeout) && sent.packets_in_flight() != 0)
        return Time::never();
    return std::max(last_heard, probe_base) + patience.question;
}

/// Of the oldest frame and how much of it came: another number when either changes.
std::uint64_t Path::oldest_waiting() const {
    return std::uint64_t{frames.oldest()} << 32 | (parts != nullptr ? parts->arrived_count() : 0);
}

void Path::note_stuck(Time now) {
    if (stuck.losses == 0 || stuck.what != oldest_waiting()) stuck = {oldest_waiting(), 0, now};
    ++stuck.losses;
}

void Path::extend_deadlines(Duration stood_still, Time now) {
    give_up = give_up + stood_still;
    last_heard = earlier(last_heard + stood_still, now);
    if (!suspected_until.is_never())
        suspected_until = earlier(suspected_until + stood_still, now + doubt_timeout());
    stuck.since = stuck.since + stood_still;
    if (sent.packets_in_flight() == 0) return;
    waits_from = std::max(waits_from, sent.packet(sent.oldest_in_flight()).sent) + stood_still;
}

bool Path::has_waited_too_long(Time now, const Patience& patience) {
    if (mutated(Mutation::forget_probe_timeout)) return false;
    if (sent.packets_in_flight() != 0 &&
        now >= std::max(waits_from, sent.packet(sent.oldest_in_flight()).sent) + patience.silence)
        return true;
    return frames.count() != 0 && stuck.losses >= stuck_losses_least &&
           stuck.what == oldest_waiting() && now >= stuck.since + patience.silence;
}

Time Path::deadline(Time now, const Patience& patience) const {
    if (stage == Stage::asking) return earlier(next_try, give_up);
    if (stage != Stage::up) return Time::never();
    Time next = loss_time;
    if (!is_mute) next = earlier(next, earlier(suspected_until, last_heard + patience.silence));
    if (asks_for_rails) next = earlier(next, next_try);
    if (sent.packets_in_flight() != 0 && !mutated(Mutation::forget_probe_timeout))
        next = earlier(next, probe_base + probe_timeout());
    if (staged_packets == 0) next = earlier(next, next_question(patience));
    if (owes_ack()) next = earlier(next, acks.latest());
    if (first->waited_for() && window_allows(first->wanted.length) && pacer.next_burst() > now)
        next = earlier(next, pacer.next_burst());
    return next;
}

PathStatistics Path::statistics() const {
    PathStatistics all = counts;
    all.packets_sent = sent.next_number();
    all.round_trip = round_trip.smoothed();
    all.round_trip_least = round_trip.known() ? round_trip.least() : Duration{};
    all.round_trip_deviation = round_trip.deviation();
    all.window = window.bytes();
    all.in_flight = sent.in_flight();
    all.datagram_max = datagram_max();
    all.packets_remembered = sent.remembered();
    all.frames_under_way = frames.count();
    all.frames_held = order.held();
    all.reordering = reordering;
    return all;
}

}  // namespace via::device::datagram
