// When what is staged waits for the next look, so that it shares a packet, or a call of the kernel,
// with what the program posts until then.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/time.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

/// Owns how the program posts, and so whether what it posted last may wait.
class SendPolicy {
public:
    /// The program posted something.
    void handed_over() { ++hands_over_; }
    /// The port was looked at. Who posted many does so again, though not each time.
    void looked() {
        if (hands_over_ != 0)
            hands_over_before_ = std::max(std::exchange(hands_over_, 0), hands_over_before_ / 2);
    }
    /// A whole burst of a longer message left.
    void burst_left() { burst_left_ = true; }

    /// Who posts many small messages between two looks will look again soon, and they share a
    /// packet until then; so do those of one who sends them in quick succession without an answer,
    /// or else each would go on paying for a packet and its acknowledgement. The first of them do
    /// not wait. The end of a long message does not wait: a call is made for what stands before it
    /// anyhow. Of a small packet; `in_a_row`: packets without an answer before it, the last of
    /// which left `since_last()` ago.
    template <class SinceLast>
    bool holds_small(bool ends_long_message, std::uint32_t in_a_row, SinceLast since_last) const {
        return posts_many() || (!ends_long_message && in_a_row + 1 >= in_a_row_least &&
                                since_last() <= quick_succession);
    }
    /// The rest of a long message, whose whole bursts left: it fills a burst with the next one of
    /// those that a program posts between two looks. A call of the kernel for itself costs a third
    /// of a whole burst's; a copy of more than some packets would, too. Asked once for each burst.
    bool may_hold_rest() { return std::exchange(burst_left_, false) && posts_many(); }
    static bool holds_rest(std::size_t packets, std::uint64_t in_flight) {
        return packets <= rest_packets_max && keeps_rest(in_flight);
    }
    /// After a look. Where it brought acknowledgements, messages are done, and the program of a
    /// stream posts the next ones before it looks again.
    static bool keeps_rest(std::uint64_t in_flight) { return in_flight >= burst_bytes; }

private:
    bool posts_many() const { return std::max(hands_over_, hands_over_before_) >= in_a_row_least; }

    std::uint32_t hands_over_ = 0;         ///< since the last look
    std::uint32_t hands_over_before_ = 0;  ///< between looks before, halved with each
    bool burst_left_ = false;
};

}  // namespace via::device::datagram
