#include "device/datagram/received_numbers.hpp"

#include <algorithm>
#include <limits>

#include "base/assert.hpp"
#include "device/datagram/mutation.hpp"

namespace via::device::datagram {

bool ReceivedNumbers::seen(std::uint64_t number) const {
    if (number < floor_) return true;
    for (std::uint32_t n = 0; n < count_; ++n)
        if (number >= ranges_[n].first) return number <= ranges_[n].last;
    return false;
}

/// A range of its own for the number, before the one that stands at `at`.
void ReceivedNumbers::open(std::uint32_t at, std::uint64_t number) {
    if (count_ == ranges_.size()) {
        const std::uint64_t forgotten = ranges_[count_ - 1].last;
        floor_ = forgotten + 1;
        if (at == count_) {  // older than all that is remembered
            floor_ = number + 1;
            return;
        }
        --count_;
    }
    std::copy_backward(ranges_.begin() + at, ranges_.begin() + count_,
                       ranges_.begin() + count_ + 1);
    ranges_[at] = {number, number};
    ++count_;
}

bool ReceivedNumbers::add(std::uint64_t number) {
    named_floor_ = std::min(named_floor_, number);
    const bool gap = number > (count_ == 0 ? 0 : ranges_[0].last + 1);
    std::uint32_t at = 0;
    while (at < count_ && number < ranges_[at].first) ++at;
    const bool joins_older = at < count_ && ranges_[at].last + 1 == number;
    const bool joins_newer = at > 0 && ranges_[at - 1].first == number + 1;
    if (joins_older && joins_newer) {
        ranges_[at - 1].first = ranges_[at].first;
        std::copy(ranges_.begin() + at + 1, ranges_.begin() + count_, ranges_.begin() + at);
        --count_;
    } else if (joins_older) {
        ranges_[at].last = number;
    } else if (joins_newer) {
        ranges_[at - 1].first = number;
    } else {
        open(at, number);
    }
    return gap;
}

void ReceivedNumbers::fill(wire::Ack& ack) const {
    VIA_ASSERT(count_ != 0);
    constexpr std::uint64_t most = std::numeric_limits<std::uint32_t>::max();
    ack.largest = ranges_[0].last;
    ack.count = 0;
    if (mutated(Mutation::ack_without_gaps)) {
        ack.ranges[ack.count++] = {0, static_cast<std::uint32_t>(ack.largest + 1)};
        return;
    }
    for (std::uint32_t n = 0; n < count_; ++n) {
        const std::uint64_t missing = n == 0 ? 0 : ranges_[n - 1].first - ranges_[n].last - 1;
        const std::uint64_t there = ranges_[n].last - ranges_[n].first + 1;
        if (missing > most || (n != 0 && ranges_[n].last < named_floor_)) return;
        ack.ranges[ack.count++] = {static_cast<std::uint32_t>(missing),
                                   static_cast<std::uint32_t>(std::min(there, most))};
        if (there > most) return;
    }
}

void ReceivedNumbers::known_below(std::uint64_t number) {
    named_floor_ = std::max(named_floor_, number);
}

}  // namespace via::device::datagram
