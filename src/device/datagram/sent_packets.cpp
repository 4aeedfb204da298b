#include "device/datagram/sent_packets.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace via::device::datagram {

void SentPackets::push(Time now, std::uint32_t length, bool wants_ack, std::uint64_t named_below,
                       bool length_probe, bool asks_only) {
    const std::uint64_t frames_begin =
        packets_.empty()
            ? frames_.begin()
            : packets_[packets_.end() - 1].frames_begin + packets_[packets_.end() - 1].frames;
    SentPacket& packet = packets_.add();
    packet.sent = now;
    packet.frames_begin = frames_begin;
    packet.frames = static_cast<std::uint16_t>(frames_.end() - packet.frames_begin);
    packet.named_below = named_below;
    packet.length = length;
    packet.state = wants_ack ? SentState::in_flight : SentState::over;
    packet.length_probe = length_probe;
    packet.asks_only = asks_only;
    if (!wants_ack) return retire();  // nobody else does where nothing is sent but such
    in_flight_ += length;
    room_taken_ += room_of(length);
    ++packets_in_flight_;
}

void SentPackets::leave_flight(const SentPacket& packet) {
    VIA_ASSERT(packets_in_flight_ != 0 && in_flight_ >= packet.length);
    in_flight_ -= packet.length;
    room_taken_ -= room_of(packet.length);
    --packets_in_flight_;
}

std::uint64_t SentPackets::oldest_in_flight() {
    first_in_flight_ = std::max(first_in_flight_, packets_.begin());
    while (first_in_flight_ < packets_.end() &&
           packets_[first_in_flight_].state != SentState::in_flight)
        ++first_in_flight_;
    return first_in_flight_;
}

void SentPackets::retire() {
    while (!packets_.empty()) {
        const SentPacket& packet = packets_.front();
        if (packet.state == SentState::in_flight) return;
        if (packet.state == SentState::lost &&
            largest_ < packets_.begin() + spurious_distance_max && !is_crowded())
            return;
        forget_oldest();
    }
}

void SentPackets::forget_oldest() {
    for (std::uint32_t n = packets_.front().frames; n != 0; --n) frames_.pop_front();
    packets_.pop_front();
}

}  // namespace via::device::datagram
