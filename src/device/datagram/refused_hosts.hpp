// Hosts that lately said that nobody is at their port. Kernels say so a few times, and then once a
// second to each host: the next question may hear nothing of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>

#include "base/address.hpp"
#include "device/datagram/constants.hpp"

namespace via::device::datagram {

class RefusedHosts {
public:
    /// `delay`: between the query and what its host said.
    void note(const HostAddress& host, Duration delay, Time now) {
        const auto found = std::ranges::find(entries_, host, &Entry::host);
        Entry& entry = found != entries_.end() ? *found : entries_[next_++ % entries_.size()];
        entry = {host, delay, now};
    }
    void forget(const HostAddress& host) {
        const auto found = std::ranges::find(entries_, host, &Entry::host);
        if (found != entries_.end()) *found = {};
    }
    /// As it was noted; nothing: not lately.
    std::optional<Duration> delay_of(const HostAddress& host, Time now) const {
        const auto found = std::ranges::find(entries_, host, &Entry::host);
        if (found == entries_.end() || now - found->at >= refused_memory) return {};
        return found->delay;
    }

private:
    struct Entry {
        HostAddress host;
        Duration delay{};
        Time at{};
    };
    std::array<Entry, 16> entries_{};
    std::size_t next_ = 0;
};

}  // namespace via::device::datagram
