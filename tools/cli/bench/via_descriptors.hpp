// Descriptors in an arena: how messages of so many segments are laid out (VIPL 1.2, 4.10).
#pragma once

#include <vipl.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "bench/link.hpp"
#include "bench/via_port.hpp"

namespace via::bench {

// 0, 1, ... count - 1 and again, without a division.
class Turn {
public:
    explicit Turn(std::uint32_t count = 1, std::uint64_t first = 0)
        : count_(count), now_(static_cast<std::uint32_t>(first % count)) {}
    std::uint32_t now() const { return now_; }
    void pass() { now_ = now_ + 1 == count_ ? 0 : now_ + 1; }

private:
    std::uint32_t count_;
    std::uint32_t now_;
};

// So many of one kind, one behind the other, each with room for an address and its segments.
class DescriptorRing {
public:
    DescriptorRing() = default;
    // At `base`, zeroed. end() is behind them.
    DescriptorRing(std::byte* base, std::uint64_t count, std::uint32_t segments)
        : base_(base), bytes_(count * descriptor_stride(segments)) {
        shift_ = std::countr_zero(descriptor_stride(segments));
        std::memset(base, 0, bytes_);
    }
    VIP_DESCRIPTOR* at(std::uint64_t slot) const {
        return reinterpret_cast<VIP_DESCRIPTOR*>(base_ + (slot << shift_));
    }
    std::byte* end() const { return base_ + bytes_; }
    bool has(const VIP_DESCRIPTOR* descriptor) const { return offset_of(descriptor) < bytes_; }
    std::uint64_t slot_of(const VIP_DESCRIPTOR* descriptor) const {
        return offset_of(descriptor) >> shift_;
    }

private:
    // Of what lies before the base: more than bytes_.
    std::uint64_t offset_of(const VIP_DESCRIPTOR* descriptor) const {
        return reinterpret_cast<std::uint64_t>(descriptor) - reinterpret_cast<std::uint64_t>(base_);
    }

    std::byte* base_ = nullptr;
    std::uint64_t bytes_ = 0;
    int shift_ = 6;
};

// Segment `number` of a descriptor, counted from behind its 32 bytes of control.
template <class Segment>
Segment& segment_of(VIP_DESCRIPTOR& descriptor, std::uint32_t number) {
    constexpr std::size_t control_bytes = 32;
    auto* const at = reinterpret_cast<std::byte*>(&descriptor) + control_bytes + 16 * number;
    return *reinterpret_cast<Segment*>(at);
}

// A message's bytes as pieces, `first` segments behind the control segment. All of one buffer, one
// behind the other; as long as each other, give or take a byte.
inline void set_pieces(const ViaPort& port, VIP_DESCRIPTOR& descriptor, std::uint32_t first,
                       std::byte* buffer, const Question& question) {
    const std::uint32_t pieces = question.size == 0 ? 0 : question.segments;
    for (std::uint64_t n = 0; n < pieces; ++n) {
        const std::uint64_t from = question.size * n / pieces;
        const std::uint64_t to = question.size * (n + 1) / pieces;
        segment_of<VIP_DATA_SEGMENT>(descriptor, first + static_cast<std::uint32_t>(n)) =
            port.local(buffer + from, to - from);
    }
    descriptor.CS.SegCount = static_cast<VIP_UINT16>(first + pieces);
    descriptor.CS.Length = static_cast<VIP_UINT32>(question.size);
}

}  // namespace via::bench
