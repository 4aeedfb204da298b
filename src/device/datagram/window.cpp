#include "device/datagram/window.hpp"

#include <algorithm>

#include "device/datagram/constants.hpp"

namespace via::device::datagram {

void Window::begin(std::uint32_t datagram_max, Duration round_trip) {
    datagram_max_ = datagram_max;
    is_near_ = round_trip < near_least;
    bytes_ = first_bytes();
    fast_ = true;
}

void Window::set_datagram_max(std::uint32_t datagram_max) {
    datagram_max_ = datagram_max;
    limit();
}

std::uint64_t Window::least_bytes() const {
    return std::uint64_t{window_packets_least} * datagram_max_;
}

std::uint64_t Window::first_bytes() const {
    if (is_near_) return std::max(window_bytes_first_near, least_bytes());
    return std::min<std::uint64_t>(std::uint64_t{window_packets_first} * datagram_max_,
                                   std::max<std::uint64_t>(window_bytes_first, least_bytes()));
}

void Window::limit() { bytes_ = std::clamp(bytes_, least_bytes(), window_bytes_max); }

bool Window::has_queue(Duration round_trip, Duration least) const {
    const std::int64_t target = std::max(queue_target_least.ns, least.ns / queue_target_divisor);
    return round_trip.ns - least.ns > target;
}

void Window::on_ack(const Acknowledged& ack) {
    if (ack.largest >= round_end_) end_round(ack);  // what this one says belongs to the next
    counted_ += ack.packets;
    round_held_back_ = round_held_back_ || ack.held_back;
    round_limited_ = round_limited_ || ack.held_back || ack.in_flight * 2 >= bytes_;
    round_in_flight_ = std::max(round_in_flight_, ack.in_flight);
    if (ack.sampled) {
        round_least_ = round_sampled_ ? std::min(round_least_, ack.round_trip) : ack.round_trip;
        round_sampled_ = true;
    }
    if (fast_ && round_limited_ && !(round_sampled_ && has_queue(round_least_, ack.least)))
        bytes_ = std::min(bytes_ + ack.bytes, window_bytes_max);
}

void Window::end_round(const Acknowledged& ack) {
    // What came in the round trip after a change was sent before it.
    const bool changed = round_changed_;
    round_changed_ = false;
    if (round_sampled_ && !changed) {
        if (!has_queue(round_least_, ack.least)) {
            if (!fast_ && round_limited_) {
                bytes_ += growth();
                ++rounds_grown_;
            }
        } else if (round_held_back_) {
            shrink(ack.least);
        } else {
            shrink_to_used();
        }
        limit();
    }
    if (counted_ >= loss_packets_counted) counted_ = lost_ = 0;
    round_end_ = ack.next;
    round_sampled_ = round_limited_ = round_held_back_ = false;
    round_in_flight_ = 0;
    if (rounds_without_cut_ != 0) --rounds_without_cut_;
}

/// What the window does not hold back makes no queue: others do, or the peer is late. Only what is
/// not in use goes.
void Window::shrink_to_used() {
    bytes_ = std::min(bytes_, std::max(round_in_flight_ * 2, first_bytes()));
}

/// One packet a round trip shares a link fairly; more where that finds no queue for long, as CUBIC
/// does: most often a host was late, and the way is as wide as ever.
std::uint64_t Window::growth() const {
    const std::uint64_t steps = rounds_grown_ / growth_rounds;
    return std::min(std::uint64_t{datagram_max_} * (1 + steps * steps), bytes_);
}

/// The window became smaller.
void Window::grow_slowly_from_here() {
    fast_ = false;
    round_changed_ = true;
    rounds_grown_ = 0;
}

/// To what lets the queue run dry for a moment: then all flows see how short the way is, those too
/// that never saw it without a queue. Delay alone leaves more than loss: a host that is late by
/// milliseconds looks like a queue, too.
void Window::shrink(Duration least) {
    grow_slowly_from_here();
    const auto parts = static_cast<std::uint64_t>(least.ns * 1024 / round_least_.ns);
    const std::uint64_t left =
        std::min(bytes_, std::uint64_t{window_packets_delayed} * datagram_max_);
    bytes_ = std::max({left, bytes_ / 2, bytes_ * parts / 1024 / 8 * 7});
}

void Window::on_lost(std::uint32_t packets) {
    if (rounds_without_cut_ != 0) return;  // they were sent before the cut
    counted_ += packets;
    lost_ += packets;
    if (lost_ * 100 <= loss_percent * std::max(counted_, loss_packets_counted)) return;
    rounds_without_cut_ = 2;  // the rest of this one, and the next
    grow_slowly_from_here();
    counted_ = lost_ = 0;
    bytes_ = bytes_ * 7 / 10;
    limit();
}

void Window::collapse() {
    bytes_ = least_bytes();
    fast_ = true;
    counted_ = lost_ = 0;
}

}  // namespace via::device::datagram
