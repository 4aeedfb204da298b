#include "device/datagram/window.hpp"

#include <algorithm>

#include "device/datagram/constants.hpp"

namespace via::device::datagram {

void Window::begin(std::uint32_t datagram_max) {
    datagram_max_ = datagram_max;
    bytes_ = std::min<std::uint64_t>(std::uint64_t{window_packets_first} * datagram_max,
                                     std::max<std::uint64_t>(window_bytes_first, least_bytes()));
    fast_ = true;
}

void Window::set_datagram_max(std::uint32_t datagram_max) {
    datagram_max_ = datagram_max;
    limit();
}

std::uint64_t Window::least_bytes() const {
    return std::uint64_t{window_packets_least} * datagram_max_;
}

void Window::limit() { bytes_ = std::max(bytes_, least_bytes()); }

bool Window::has_queue(Duration round_trip, Duration least) const {
    const std::int64_t target = std::max(queue_target_least.ns, least.ns / queue_target_divisor);
    return round_trip.ns - least.ns > target;
}

void Window::on_ack(const Acknowledged& ack) {
    counted_ += ack.packets;
    round_limited_ = round_limited_ || ack.window_limited;
    if (ack.sampled) {
        round_least_ = round_sampled_ ? std::min(round_least_, ack.round_trip) : ack.round_trip;
        round_sampled_ = true;
    }
    if (fast_ && round_limited_ && !(round_sampled_ && has_queue(round_least_, ack.least)))
        bytes_ += ack.bytes;
    if (ack.largest >= round_end_) end_round(ack);
}

void Window::end_round(const Acknowledged& ack) {
    if (round_sampled_) {
        if (has_queue(round_least_, ack.least)) {
            fast_ = false;
            const std::int64_t target =
                ack.least.ns + std::max(queue_target_least.ns, ack.least.ns / queue_target_divisor);
            const auto part = static_cast<unsigned __int128>(bytes_) *
                              static_cast<std::uint64_t>(target) /
                              static_cast<std::uint64_t>(round_least_.ns);
            bytes_ = std::max(bytes_ / 2, static_cast<std::uint64_t>(part));
        } else if (!fast_ && round_limited_) {
            bytes_ += datagram_max_;
        }
        limit();
    }
    if (counted_ >= loss_packets_counted) counted_ = lost_ = 0;
    round_end_ = ack.next;
    round_sampled_ = round_limited_ = round_cut_ = false;
}

void Window::on_lost(std::uint32_t packets) {
    counted_ += packets;
    lost_ += packets;
    if (round_cut_ || lost_ * 100 <= loss_percent * std::max(counted_, loss_packets_counted))
        return;
    round_cut_ = true;
    fast_ = false;
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
