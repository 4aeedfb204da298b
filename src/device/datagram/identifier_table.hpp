// Connection identifiers of ours, and the path that each belongs to. They are random, which makes
// them their own hash.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"

namespace via::device::datagram {

class IdentifierTable {
public:
    static constexpr std::uint32_t none = ~0U;

    /// `identifier` is not 0 and not there yet.
    void add(std::uint64_t identifier, std::uint32_t path) {
        if (entries_.size() < 2 * ++count_) grow();
        insert({identifier, path});
    }
    std::uint32_t find(std::uint64_t identifier) const {
        if (entries_.empty() || identifier == 0) return none;
        for (std::size_t at = slot(identifier);; at = next(at)) {
            if (entries_[at].identifier == identifier) return entries_[at].path;
            if (entries_[at].identifier == 0) return none;
        }
    }
    /// It is there.
    void remove(std::uint64_t identifier) {
        VIA_ASSERT(find(identifier) != none);
        std::size_t at = slot(identifier);
        while (entries_[at].identifier != identifier) at = next(at);
        entries_[at] = {};
        --count_;
        // Those behind it that were pushed on may have come nearer to their places.
        for (at = next(at); entries_[at].identifier != 0; at = next(at)) {
            const Entry moved = entries_[at];
            entries_[at] = {};
            insert(moved);
        }
    }

private:
    struct Entry {
        std::uint64_t identifier = 0;
        std::uint32_t path = none;
    };
    std::size_t slot(std::uint64_t identifier) const {
        return static_cast<std::size_t>(identifier & (entries_.size() - 1));
    }
    std::size_t next(std::size_t at) const { return (at + 1) & (entries_.size() - 1); }
    void insert(const Entry& entry) {
        std::size_t at = slot(entry.identifier);
        while (entries_[at].identifier != 0) at = next(at);
        entries_[at] = entry;
    }
    void grow() {
        std::vector<Entry> former(entries_.empty() ? 16 : entries_.size() * 2);
        former.swap(entries_);
        for (const Entry& entry : former)
            if (entry.identifier != 0) insert(entry);
    }

    std::vector<Entry> entries_;  ///< a power of two, at most half full
    std::size_t count_ = 0;
};

}  // namespace via::device::datagram
