// The words by which peers see whether they may still use our memory: one per grant of a path.
#pragma once

#include <cstdint>
#include <vector>

#include "base/atomic.hpp"
#include "device/device.hpp"

namespace via::device {

/// Over words that lie wherever the peer can read them. They are never read back here.
class Grants {
public:
    Grants(Atomic<std::uint32_t>* words, std::uint32_t count) : words_(words), count_(count) {}

    /// Takes a word and sets it, to what no grant of it had before; no_grant: all are in use.
    GrantId take() {
        GrantId grant = no_grant;
        if (!free_.empty()) {
            grant = free_.back();
            free_.pop_back();
        } else if (values_.size() < count_) {
            grant = static_cast<GrantId>(values_.size());
            values_.push_back(0);
        } else {
            return no_grant;
        }
        values_[grant] += 2;  // odd: granted
        values_[grant] |= 1;
        words_[grant].store(values_[grant], std::memory_order_release);
        return grant;
    }
    void give_back(GrantId grant) {
        words_[grant].store(0, std::memory_order_release);
        free_.push_back(grant);
    }
    std::uint32_t value(GrantId grant) const { return values_[grant]; }
    const Atomic<std::uint32_t>* word(GrantId grant) const { return words_ + grant; }

private:
    Atomic<std::uint32_t>* words_;
    std::uint32_t count_;
    std::vector<std::uint32_t> values_;  ///< the last that a word had
    std::vector<GrantId> free_;
};

}  // namespace via::device
