// The memory of a simulated program, and what it looked like when the program wrote it last: so
// that every byte that somebody else changes is seen. Where the NIC may write, each look sees it at
// once. Elsewhere nothing ever changes if all is well, so that it is enough that some of it is
// looked at each time, and all of it before it is used for something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace via::sim {

/// Which parts of a stretch of memory are in use; first fit, in units of 64 bytes.
class Blocks {
public:
    static constexpr std::uint64_t unit = 64;

    Blocks(std::uint64_t begin, std::uint64_t length) : begin_(begin), end_(begin + length) {}

    /// A block of at least `length` bytes (at least one unit), or nothing.
    std::optional<std::uint64_t> take(std::uint64_t length);
    void give_back(std::uint64_t begin);
    bool empty() const { return used_.empty(); }

private:
    std::uint64_t begin_;
    std::uint64_t end_;
    std::map<std::uint64_t, std::uint64_t> used_;  ///< begin to end
};

class Arena {
public:
    explicit Arena(std::uint64_t length);

    std::uint64_t length() const { return before_.size(); }
    Blocks& blocks() { return blocks_; }
    std::uint64_t address(std::uint64_t offset) const {
        return reinterpret_cast<std::uint64_t>(memory_.get()) + offset;
    }
    std::byte* at(std::uint64_t offset) { return memory_.get() + offset; }
    std::span<const std::byte> bytes(std::uint64_t offset, std::uint64_t length) const {
        return {memory_.get() + offset, length};
    }
    /// Where a pointer into the arena points to.
    std::uint64_t offset_of(const void* pointer) const {
        return static_cast<std::uint64_t>(static_cast<const std::byte*>(pointer) - memory_.get());
    }

    /// The program writes.
    void write(std::uint64_t offset, std::span<const std::byte> bytes);

    /// The NIC may write there from now on; as often as it was opened it must be closed.
    void open(std::uint64_t begin, std::uint64_t length);
    void close(std::uint64_t begin, std::uint64_t length);

    /// Calls changed(offset, length) for every run of bytes that differs from the last look: in all
    /// that is open, and in a part of the rest, so that so many looks see everything.
    static constexpr std::uint64_t looks_for_all = 64;
    template <class Callback>
    void look(Callback changed) {
        const std::uint64_t pages = open_units_.size();
        const std::uint64_t begin = turn_ * pages / looks_for_all;
        turn_ = (turn_ + 1) % looks_for_all;
        const std::uint64_t end = turn_ == 0 ? pages : turn_ * pages / looks_for_all;
        for (std::uint64_t page = 0; page < pages; ++page)
            if (differs_in(page, page >= begin && page < end ? all_units : open_units_[page]))
                look_closely(page * page_length, (page + 1) * page_length, changed);
    }
    /// The same for some of it, open or not.
    template <class Callback>
    void look_at(std::uint64_t begin, std::uint64_t length, Callback changed) {
        if (differs(begin, length)) look_closely(begin, begin + length, changed);
    }

private:
    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    static constexpr std::uint64_t unit = 64;
    static constexpr std::uint64_t page_length = unit * 64;  ///< a bit for each unit
    static constexpr std::uint64_t all_units = ~std::uint64_t{0};

    bool differs(std::uint64_t begin, std::uint64_t length) const;
    bool differs_in(std::uint64_t page, std::uint64_t units) const;
    template <class Callback>
    void look_closely(std::uint64_t begin_of_all, std::uint64_t end, Callback changed) {
        for (std::uint64_t at = begin_of_all; at < end;) {
            // Of a page mostly a few bytes are other ones.
            if (at % unit == 0 && at + unit <= end && !differs(at, unit)) {
                at += unit;
                continue;
            }
            if (memory_.get()[at] == before_[at]) {
                ++at;
                continue;
            }
            const std::uint64_t begin = at;
            for (; at < end && memory_.get()[at] != before_[at]; ++at)
                before_[at] = memory_.get()[at];
            changed(begin, at - begin);
        }
    }

    std::unique_ptr<std::byte, Free> memory_;
    std::vector<std::byte> before_;
    Blocks blocks_;
    std::vector<std::uint16_t> open_;        ///< for each unit: how often
    std::vector<std::uint64_t> open_units_;  ///< for each page: which of its units are
    std::uint64_t turn_ = 0;                 ///< which part of the rest is next
};

}  // namespace via::sim
