// How many bytes may be in flight: by delay, with loss as the fallback. Rounds are counted by
// packet numbers: one ends when a packet is acknowledged that was sent after it began.
#pragma once

#include <cstdint>

#include "base/time.hpp"

namespace via::device::datagram {

class Window {
public:
    /// `round_trip`: what the meeting suggests.
    void begin(std::uint32_t datagram_max, Duration round_trip);
    void set_datagram_max(std::uint32_t datagram_max);
    std::uint64_t bytes() const { return bytes_; }
    bool growing_fast() const { return fast_; }

    struct Acknowledged {
        std::uint64_t bytes = 0;      ///< newly
        std::uint32_t packets = 0;    ///< newly
        std::uint64_t largest = 0;    ///< number
        std::uint64_t next = 0;       ///< number that the next packet gets
        std::uint64_t in_flight = 0;  ///< bytes, before it came
        bool held_back = false;       ///< what was to be sent, by the window or the peer's room
        bool sampled = false;         ///< `round_trip` is a sample
        Duration round_trip{};
        Duration least{};
    };
    void on_ack(const Acknowledged& ack);
    /// Packets held for lost, after the acknowledgement that showed it.
    void on_lost(std::uint32_t packets);
    /// Nothing comes back any more.
    void collapse();

private:
    void end_round(const Acknowledged& ack);
    void shrink(Duration least);
    void shrink_to_used();
    void grow_slowly_from_here();
    std::uint64_t growth() const;
    std::uint64_t first_bytes() const;
    bool has_queue(Duration round_trip, Duration least) const;
    std::uint64_t least_bytes() const;
    void limit();

    std::uint64_t bytes_ = 0;
    std::uint32_t datagram_max_ = 0;
    bool is_near_ = false;  ///< the way
    bool fast_ = true;
    std::uint64_t round_end_ = 0;  ///< first number that belongs to the next round
    bool round_sampled_ = false;
    bool round_limited_ = false;    ///< at least half of the window was in use
    bool round_held_back_ = false;  ///< all of it
    std::uint64_t round_in_flight_ = 0;
    bool round_changed_ = false;  ///< the round before ended with a smaller window
    Duration round_least_{};
    std::uint32_t rounds_grown_ = 0;  ///< since it became smaller
    std::uint32_t rounds_without_cut_ = 0;
    std::uint32_t counted_ = 0;  ///< packets, for the rate of loss
    std::uint32_t lost_ = 0;
};

}  // namespace via::device::datagram
