// Which numbers have come: each counts once, and one that is too old to be known counts as seen.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace via::secure {

class ReplayWindow {
public:
    /// Numbers below the greatest that are told apart: twice what a path has under way at most, so
    /// no reordering of what is under way is taken for a replay.
    static constexpr std::uint64_t size = 32768;

    /// May this one be new?
    bool is_new(std::uint64_t number) const {
        if (number >= end_) return true;
        return end_ - number <= size && (word_of(number) & bit_of(number)) == 0;
    }

    /// Authenticated and new: it counts from now on.
    void note(std::uint64_t number) {
        if (number >= end_) advance(number);
        words_[number / bits % words_.size()] |= bit_of(number);
    }

private:
    static constexpr std::uint64_t bits = 64;

    static std::uint64_t bit_of(std::uint64_t number) { return std::uint64_t{1} << number % bits; }
    std::uint64_t word_of(std::uint64_t number) const {
        return words_[number / bits % words_.size()];
    }
    /// Words that numbers up to `number` come to for the first time are empty.
    void advance(std::uint64_t number) {
        const std::uint64_t first = (end_ + bits - 1) / bits;
        const std::uint64_t last = number / bits;
        const std::uint64_t begin =
            last >= words_.size() ? std::max(first, last - words_.size() + 1) : first;
        for (std::uint64_t word = begin; word <= last; ++word) words_[word % words_.size()] = 0;
        end_ = number + 1;
    }

    /// One word more than `size` needs: the newest one is seldom full.
    std::array<std::uint64_t, size / bits + 1> words_{};
    std::uint64_t end_ = 0;  ///< the greatest number that came, and one
};

}  // namespace via::secure
