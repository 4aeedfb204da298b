#include "wire.hpp"

#include <linux/if_ether.h>
#include <netinet/in.h>

#include <algorithm>

#include <fmt/format.h>

namespace weather {

namespace {

/// Of Ethernet, behind which corruption is done; and of IPv4 and UDP too.
constexpr std::size_t ethernet_bytes = 14;
constexpr std::size_t headers_bytes = ethernet_bytes + 20 + 8;

/// ARP, and ICMPv6, by which IPv6 does the same: who has lost one of these asks again a second
/// later, which would be all that is seen.
bool looks_for_neighbours(std::span<const std::byte> frame) {
    if (frame.size() <= ethernet_bytes + 6) return true;
    const auto type =
        std::to_integer<unsigned>(frame[12]) << 8 | std::to_integer<unsigned>(frame[13]);
    return type == ETH_P_ARP ||
           (type == ETH_P_IPV6 && frame[ethernet_bytes + 6] == std::byte{IPPROTO_ICMPV6});
}

}  // namespace

/// A frame outside a burst begins one so rarely that all of them together are the share to be lost.
/// Bursts are at most twice as long as in the mean: longer ones would be a cable that is out.
bool Wire::is_lost() {
    if (burst_left_ > 0) {
        --burst_left_;
        return true;
    }
    const double share = weather_.loss_percent / 100;
    const double mean = std::max(weather_.burst_frames, 1.0);
    if (!happens(100 * share / (mean * (1 - share) + share))) return false;
    burst_left_ = random_() % static_cast<std::uint64_t>(2 * mean - 1);
    return true;
}

/// As often a bit turns over, which the sums of IP and UDP notice, as two words of the payload
/// change places, which those sums never notice.
void Wire::corrupt(Bytes& frame) {
    if (frame.size() <= ethernet_bytes) return;
    ++corrupted_;
    const std::size_t words = frame.size() > headers_bytes ? (frame.size() - headers_bytes) / 2 : 0;
    if (words > 1 && random_() % 2 == 0) {
        std::byte* const one = &frame[headers_bytes + random_() % words * 2];
        std::byte* const other = &frame[headers_bytes + random_() % words * 2];
        if (!std::equal(one, one + 2, other)) {
            std::swap_ranges(one, one + 2, other);
            return;
        }
    }
    const std::size_t at = ethernet_bytes + random_() % (frame.size() - ethernet_bytes);
    frame[at] ^= std::byte{1} << random_() % 8;
}

void Wire::carry(std::span<const std::byte> frame, std::int64_t now_ns) {
    std::int64_t leaves = std::max(now_ns, free_ns_);
    if (weather_.megabits > 0) {
        const double ns_per_byte = 8000 / weather_.megabits;
        if (static_cast<double>(leaves - now_ns) > ns_per_byte * weather_.queue_bytes) {
            ++overflowed_;
            return;
        }
        leaves += static_cast<std::int64_t>(ns_per_byte * static_cast<double>(frame.size()));
        free_ns_ = leaves;
    }
    double delay_us = weather_.delay_us;
    if (happens(weather_.reorder_percent)) {
        ++held_;
        delay_us += chance_(random_) * weather_.held_us;
    }
    Bytes bytes(frame.begin(), frame.end());
    if (happens(weather_.corrupt_percent)) corrupt(bytes);
    frames_.emplace(leaves + static_cast<std::int64_t>(delay_us * 1000), std::move(bytes));
}

void Wire::enter(std::span<const std::byte> frame, std::int64_t now_ns) {
    if (looks_for_neighbours(frame)) {
        frames_.emplace(now_ns + static_cast<std::int64_t>(weather_.delay_us * 1000),
                        Bytes(frame.begin(), frame.end()));
        return;
    }
    if (is_lost()) {
        ++lost_;
        return;
    }
    carry(frame, now_ns);
    if (!happens(weather_.duplicate_percent)) return;
    ++duplicated_;
    carry(frame, now_ns);
}

std::string Wire::told() const {
    return fmt::format(
        "{} carried, {} lost, {} dropped by a full queue, {} duplicated, {} corrupted, {} held "
        "back",
        carried_, lost_, overflowed_, duplicated_, corrupted_, held_);
}

}  // namespace weather
