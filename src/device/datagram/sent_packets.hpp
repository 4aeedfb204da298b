// Packets that were sent, by number, and the frames that each carried (RFC 9002).
#pragma once

#include <cstdint>

#include "base/numbered_queue.hpp"
#include "base/time.hpp"
#include "device/datagram/constants.hpp"
#include "wire/packet.hpp"

namespace via::device::datagram {

enum class SentState : std::uint8_t {
    over,       ///< acknowledged, or nobody waits for that
    in_flight,  ///
    lost,       ///< held for it; an acknowledgement may still come
};

struct SentPacket {
    Time sent{};
    std::uint64_t frames_begin = 0;  ///< where its frames' numbers stand
    std::uint64_t named_below = 0;   ///< its acknowledgement told of numbers below; 0: it had none
    std::uint32_t length = 0;        ///< bytes
    std::uint16_t frames = 0;        ///< that must arrive
    SentState state = SentState::over;
    bool length_probe = false;
    bool asks_only = false;  ///< a sign of life was wanted, and nothing else
};

class SentPackets {
public:
    std::uint64_t next_number() const { return packets_.end(); }
    std::uint64_t in_flight() const { return in_flight_; }    ///< bytes
    std::uint64_t room_taken() const { return room_taken_; }  ///< of the peer's
    std::uint32_t packets_in_flight() const { return packets_in_flight_; }
    std::uint32_t remembered() const { return static_cast<std::uint32_t>(packets_.size()); }
    std::uint64_t largest_acknowledged() const { return largest_; }

    /// The next packet has this frame, too.
    void add_frame(std::uint32_t frame) { frames_.push_back(frame); }
    /// A packet with the frames added since the last one.
    void push(Time now, std::uint32_t length, bool wants_ack, std::uint64_t named_below,
              bool length_probe, bool asks_only = false);
    SentPacket& packet(std::uint64_t number) { return packets_[number]; }
    /// Its number; next_number(): nothing is in flight.
    std::uint64_t oldest_in_flight();
    std::uint32_t frame(const SentPacket& packet, std::uint32_t n) const {
        return frames_[packet.frames_begin + n];
    }

    /// True when the acknowledgement names nothing but what was sent.
    bool plausible(const wire::Ack& ack) const { return ack.largest < packets_.end(); }
    /// Calls `arrived(number, packet, was_lost)` for each packet of which it is news.
    template <class Arrived>
    void acknowledge(const wire::Ack& ack, Arrived arrived);
    /// Calls `lost(number, packet)` for each packet to be held for lost: `reordering` or more
    /// before the largest acknowledged one, or sent before it and `delay` ago. Returns when the
    /// next one is.
    template <class Lost>
    Time detect_lost(Time now, Duration delay, std::uint32_t reordering, Lost lost);
    /// Forgets what nothing can be learned of any more.
    void retire();
    /// Too many behind the oldest in flight: the peer has us acknowledge, and does not itself.
    bool is_crowded() const { return packets_.size() - packets_in_flight_ > remembered_max_; }
    /// How many are remembered behind the oldest in flight; grows to packets_remembered_max.
    std::uint32_t remembered_max() const { return remembered_max_; }
    void remember(std::uint32_t max) { remembered_max_ = max; }
    /// What a path with a connection sends at once, a burst of answers for example, needs no
    /// memory then.
    void make_room() {
        packets_.make_room(64);
        frames_.make_room(64);
    }
    /// Holds the oldest in flight for lost, as detect_lost() does, and forgets it.
    template <class Lost>
    void give_up_oldest(Lost lost);

    /// The same of all that are in flight.
    template <class Lost>
    void give_up_all(Lost lost);

private:
    void leave_flight(const SentPacket& packet);
    void forget_oldest();

    NumberedQueue<SentPacket> packets_;
    NumberedQueue<std::uint32_t> frames_;
    std::uint64_t in_flight_ = 0;
    std::uint64_t room_taken_ = 0;
    std::uint32_t packets_in_flight_ = 0;
    std::uint64_t first_in_flight_ = 0;  ///< none before it is
    std::uint64_t largest_ = 0;
    bool any_acknowledged_ = false;
    std::uint32_t remembered_max_ = packets_remembered_least;
};

template <class Arrived>
void SentPackets::acknowledge(const wire::Ack& ack, Arrived arrived) {
    if (!any_acknowledged_ || ack.largest > largest_) largest_ = ack.largest;
    any_acknowledged_ = true;
    std::uint64_t number = ack.largest + 1;  // one above the next to be looked at
    for (std::uint32_t n = 0; n < ack.count; ++n) {
        const wire::AckRange& range = ack.ranges[n];
        if (number <= packets_.begin() + range.missing) return;
        number -= range.missing;
        for (std::uint32_t left = range.there; left != 0; --left) {
            if (number == packets_.begin()) return;
            SentPacket& packet = packets_[--number];
            if (packet.state == SentState::over) continue;
            const bool was_lost = packet.state == SentState::lost;
            if (!was_lost) leave_flight(packet);
            packet.state = SentState::over;
            arrived(number, packet, was_lost);
        }
    }
}

template <class Lost>
Time SentPackets::detect_lost(Time now, Duration delay, std::uint32_t reordering, Lost lost) {
    if (!any_acknowledged_) return Time::never();
    Time next = Time::never();
    oldest_in_flight();
    for (std::uint64_t n = first_in_flight_; n < largest_ && n < packets_.end(); ++n) {
        SentPacket& packet = packets_[n];
        if (packet.state != SentState::in_flight) continue;
        if (largest_ - n < reordering && packet.sent + delay > now) {
            next = earlier(next, packet.sent + delay);
            continue;
        }
        leave_flight(packet);
        packet.state = SentState::lost;
        lost(n, packet);
    }
    return next;
}

template <class Lost>
void SentPackets::give_up_oldest(Lost lost) {
    const std::uint64_t number = oldest_in_flight();
    if (number == packets_.end()) return;
    SentPacket& packet = packets_[number];
    leave_flight(packet);
    packet.state = SentState::lost;
    lost(number, packet);
    retire();
}

template <class Lost>
void SentPackets::give_up_all(Lost lost) {
    for (std::uint64_t n = oldest_in_flight(); n < packets_.end(); ++n) {
        SentPacket& packet = packets_[n];
        if (packet.state != SentState::in_flight) continue;
        leave_flight(packet);
        packet.state = SentState::lost;
        lost(n, packet);
    }
    retire();
}

}  // namespace via::device::datagram
