#include "sim/arena.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"

namespace via::sim {

std::optional<std::uint64_t> Blocks::take(std::uint64_t length) {
    const std::uint64_t wanted = std::max(unit, (length + unit - 1) / unit * unit);
    std::uint64_t at = begin_;
    for (const auto& [begin, end] : used_) {
        if (begin - at >= wanted) break;
        at = end;
    }
    if (end_ - at < wanted) return std::nullopt;
    used_[at] = at + wanted;
    return at;
}

void Blocks::give_back(std::uint64_t begin) {
    const auto erased = used_.erase(begin);
    VIA_ASSERT(erased == 1);
}

Arena::Arena(std::uint64_t length)
    : memory_(static_cast<std::byte*>(std::aligned_alloc(look_unit, length))),
      before_(length),
      blocks_(0, length) {
    VIA_ASSERT(length % look_unit == 0 && memory_ != nullptr);
    std::memset(memory_.get(), 0, length);
}

void Arena::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    VIA_ASSERT(offset + bytes.size() <= length());
    if (bytes.empty()) return;
    std::memcpy(memory_.get() + offset, bytes.data(), bytes.size());
    std::memcpy(before_.data() + offset, bytes.data(), bytes.size());
}

bool Arena::differs(std::uint64_t block) const {
    return std::memcmp(memory_.get() + block, before_.data() + block, look_unit) != 0;
}

}  // namespace via::sim
