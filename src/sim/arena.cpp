#include "sim/arena.hpp"

#include <algorithm>
#include <bit>
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
    : memory_(static_cast<std::byte*>(std::aligned_alloc(page_length, length))),
      before_(length),
      blocks_(0, length),
      open_(length / unit),
      open_units_(length / page_length) {
    VIA_ASSERT(length % page_length == 0 && memory_ != nullptr);
    std::memset(memory_.get(), 0, length);
}

void Arena::write(std::uint64_t offset, std::span<const std::byte> bytes) {
    VIA_ASSERT(offset + bytes.size() <= length());
    if (bytes.empty()) return;
    std::memcpy(memory_.get() + offset, bytes.data(), bytes.size());
    std::memcpy(before_.data() + offset, bytes.data(), bytes.size());
}

void Arena::open(std::uint64_t begin, std::uint64_t length) {
    if (length == 0) return;
    VIA_ASSERT(begin + length <= this->length());
    for (std::uint64_t at = begin / unit; at <= (begin + length - 1) / unit; ++at)
        if (++open_[at] == 1) open_units_[at / 64] |= std::uint64_t{1} << at % 64;
}

void Arena::close(std::uint64_t begin, std::uint64_t length) {
    if (length == 0) return;
    for (std::uint64_t at = begin / unit; at <= (begin + length - 1) / unit; ++at) {
        VIA_ASSERT(open_[at] != 0);
        if (--open_[at] == 0) open_units_[at / 64] &= ~(std::uint64_t{1} << at % 64);
    }
}

bool Arena::differs(std::uint64_t begin, std::uint64_t length) const {
    return std::memcmp(memory_.get() + begin, before_.data() + begin, length) != 0;
}

/// Is there a difference in those units of the page?
bool Arena::differs_in(std::uint64_t page, std::uint64_t units) const {
    while (units != 0) {
        const auto first = static_cast<unsigned>(std::countr_zero(units));
        const auto count = static_cast<unsigned>(std::countr_one(units >> first));
        const std::uint64_t at = page * page_length + first * unit;
        if (differs(at, count * unit)) return true;
        units &= ~(all_units >> (64 - count) << first);
    }
    return false;
}

}  // namespace via::sim
