// The memory of a simulated program, and what it looked like when the program wrote it last: so
// that every byte that somebody else changes is seen.
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

    /// Calls changed(offset, length) for every run of bytes that differs from the last look.
    template <class Callback>
    void look(Callback changed) {
        for (std::uint64_t block = 0; block < length(); block += look_unit)
            if (differs(block)) look_closely(block, changed);
    }

private:
    struct Free {
        void operator()(void* pointer) const { std::free(pointer); }
    };
    static constexpr std::uint64_t look_unit = 4096;

    bool differs(std::uint64_t block) const;
    template <class Callback>
    void look_closely(std::uint64_t block, Callback changed) {
        for (std::uint64_t at = block; at < block + look_unit;) {
            if (memory_.get()[at] == before_[at]) {
                ++at;
                continue;
            }
            const std::uint64_t begin = at;
            for (; at < block + look_unit && memory_.get()[at] != before_[at]; ++at)
                before_[at] = memory_.get()[at];
            changed(begin, at - begin);
        }
    }

    std::unique_ptr<std::byte, Free> memory_;
    std::vector<std::byte> before_;
    Blocks blocks_;
};

}  // namespace via::sim
