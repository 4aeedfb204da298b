// Memory windows: which peers may touch which bytes of a region, by a handle of its own. All calls
// are made by the holder of the turn, as every access of a peer is: so what was ended is used by
// nobody when end() returns, and no slot is ever read while it changes.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "memory/handle.hpp"

namespace via::memory {

/// Bytes [begin, end) of a region, and what whom may do there.
struct Window {
    MemoryHandle region = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    ProtectionTag tag = no_tag;
    std::uint32_t rights = 0;  ///< bits of Region::right_of(), of peers only
};

/// Owns the windows by handle. A slot takes 32 bytes, and is made when no other one has rested long
/// enough: so a handle comes again after handle_generation_max times as many windows as rest, at
/// the earliest.
class WindowTable {
public:
    /// Windows that are made after a slot's last one, if there is room, before it gets another.
    static constexpr std::uint32_t rest = 1U << 16;

    explicit WindowTable(std::uint32_t windows_max, std::uint32_t rest_min = rest);

    /// error_resource: the table is full, or there is no memory.
    Result<MemoryHandle> add(const Window& window);
    /// False: there is none of that handle (any more), and `was` is as it was.
    bool remove(MemoryHandle handle, Window& was);
    /// The window of that handle; of none region is 0.
    Window find(MemoryHandle handle) const;

    std::uint32_t size() const { return size_; }

private:
    struct Slot {
        std::uint32_t handle = 0;          ///< bit 31 zero: there is no window now
        std::uint32_t region_or_next = 0;  ///< the latter while it rests
        std::uint64_t begin = 0;
        std::uint64_t end = 0;
        std::uint64_t tag_and_rights = 0;  ///< a tag has 48 bits
    };
    static_assert(sizeof(Slot) == 32);
    static constexpr unsigned rights_at = 56;
    static constexpr std::uint32_t chunk_bits = 10;
    static constexpr std::uint32_t chunk_slots = 1U << chunk_bits;
    static constexpr std::uint32_t none = ~0U;

    Slot& slot_at(std::uint32_t index) const {
        return chunks_[index >> chunk_bits][index & (chunk_slots - 1)];
    }
    /// nullptr: there is none of that handle.
    Slot* slot_of(MemoryHandle handle) const;
    std::uint32_t take_slot();

    std::uint32_t windows_max_;
    std::uint32_t rest_min_;
    std::uint32_t size_ = 0;
    std::uint32_t made_ = 0;  ///< slots
    std::uint32_t resting_ = 0;
    std::uint32_t resting_first_ = none;  ///< in the order of their release
    std::uint32_t resting_last_ = none;
    std::vector<std::unique_ptr<Slot[]>> chunks_;
};

}  // namespace via::memory
