// The memory that datagrams come in: buffers of 64 KiB, each counted by those that use it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/assert.hpp"

namespace via::device::udp {

class Buffers {
public:
    static constexpr std::size_t bytes = 65536;
    /// 16 MiB, of which only what datagrams filled is ever touched,
    static constexpr std::uint32_t count = 256;
    /// but for these, which are memory at once: to get that while datagrams come takes longer than
    /// they do.
    static constexpr std::uint32_t touched = 4;
    /// Buffers that nobody may keep, so that there is always one to receive in.
    static constexpr std::uint32_t spare = 32;
    static constexpr std::uint32_t none = ~0U;

    Buffers()
        : memory_(std::make_unique_for_overwrite<std::byte[]>(bytes * count)), buffers_(count) {
        std::fill_n(memory_.get(), bytes * touched, std::byte{});
        free_.reserve(count);
        for (std::uint32_t n = count; n > 0; --n) free_.push_back(n - 1);
    }

    std::byte* at(std::uint32_t buffer) const { return memory_.get() + bytes * buffer; }
    /// One in use, by its taker; the one let go last, since the cache still has it. Or none.
    std::uint32_t take() {
        if (free_.empty()) return none;
        const std::uint32_t buffer = free_.back();
        free_.pop_back();
        VIA_ASSERT(buffers_[buffer].uses == 0);
        buffers_[buffer] = {1, 0};
        return buffer;
    }
    /// The taker's use ends.
    void give_back(std::uint32_t buffer) { end_use(buffer); }

    bool keep(std::uint32_t buffer) {
        Buffer& kept = buffers_[buffer];
        if (kept.keeps == 0 && kept_ == count - spare) return false;
        if (kept.keeps++ == 0) ++kept_;
        ++kept.uses;
        return true;
    }
    void let_go(std::uint32_t buffer) {
        VIA_ASSERT(buffers_[buffer].keeps > 0);
        if (--buffers_[buffer].keeps == 0) --kept_;
        end_use(buffer);
    }

    std::uint32_t keeps_left() const { return count - spare - kept_; }

private:
    struct Buffer {
        std::uint32_t uses = 0;  ///< keeps included
        std::uint32_t keeps = 0;
    };
    void end_use(std::uint32_t buffer) {
        VIA_ASSERT(buffers_[buffer].uses > 0);
        if (--buffers_[buffer].uses == 0) free_.push_back(buffer);
    }

    std::unique_ptr<std::byte[]> memory_;
    std::vector<Buffer> buffers_;
    std::vector<std::uint32_t> free_;
    std::uint32_t kept_ = 0;
};

}  // namespace via::device::udp
