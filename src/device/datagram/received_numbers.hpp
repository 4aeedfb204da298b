// Which packet numbers arrived: what makes duplicates known, and what an acknowledgement says.
#pragma once

#include <array>
#include <cstdint>

#include "wire/packet.hpp"

namespace via::device::datagram {

class ReceivedNumbers {
public:
    bool empty() const { return count_ == 0; }
    std::uint64_t largest() const { return ranges_[0].last; }
    /// Arrived before, or so old that nobody knows any more.
    bool seen(std::uint64_t number) const;
    /// The number behind all that arrived: most are.
    bool is_next(std::uint64_t number) const {
        return count_ != 0 && number == ranges_[0].last + 1;
    }
    /// The same as add() of it, and of those behind it: nothing is missing that was not missed.
    void add_next(std::uint32_t count = 1) { ranges_[0].last += count; }
    /// A number not seen before. True: it shows that others are missing that were not missed yet.
    bool add(std::uint64_t number);
    /// Ranges from the largest number down; not for an empty set.
    void fill(wire::Ack& ack) const;
    /// The peer knows what arrived below: it is not named any more.
    void known_below(std::uint64_t number);

private:
    struct Range {
        std::uint64_t first;
        std::uint64_t last;
    };
    void open(std::uint32_t at, std::uint64_t number);

    std::array<Range, wire::ack_ranges_max> ranges_;  ///< the newest first
    std::uint32_t count_ = 0;
    std::uint64_t floor_ = 0;        ///< all below count as seen
    std::uint64_t named_floor_ = 0;  ///< ranges that end below are not named
};

}  // namespace via::device::datagram
