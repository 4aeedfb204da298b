// An access that is refused since registrations are exact to the byte, and is within the region's
// pages: the NICs of VIA's time registered by page, and a program may rely on that. The first such
// access is told, so that whoever ports the program finds the option for it.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "memory/table.hpp"

namespace via::engine {

struct PageMiss {
    std::uint64_t address;
    std::uint64_t length;
    memory::Bounds region;
};

class PageMisses {
public:
    explicit PageMisses(const memory::MemoryTable& memory) : memory_(memory) {}

    /// Of an access that was refused, for whatever reason. True: it is to be told.
    bool note(memory::MemoryHandle handle, std::uint64_t address, std::uint64_t length,
              memory::ProtectionTag tag, memory::Access access) noexcept {
        if (noted_ || !memory_.misses_by_a_page(handle, address, length, tag, access)) return false;
        noted_ = true;
        miss_ = PageMiss{address, length, memory_.bounds(handle)};
        return true;
    }
    bool any() const { return miss_.has_value(); }
    std::optional<PageMiss> take() { return std::exchange(miss_, std::nullopt); }

private:
    const memory::MemoryTable& memory_;
    std::optional<PageMiss> miss_;
    bool noted_ = false;
};

}  // namespace via::engine
