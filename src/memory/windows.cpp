#include "memory/windows.hpp"

#include <new>

#include "base/assert.hpp"
#include "base/atomic.hpp"

namespace via::memory {

WindowTable::WindowTable(std::uint32_t windows_max, std::uint32_t rest_min)
    : windows_max_(windows_max), rest_min_(rest_min) {
    VIA_ASSERT(windows_max <= 1U << handle_index_bits);
}

WindowTable::Slot* WindowTable::slot_of(MemoryHandle handle) const {
    const std::uint32_t index = handle_index(handle);
    if (!is_window(handle) || index >= made_) return nullptr;
    Slot& slot = slot_at(index);
    VIA_MODEL_READ(&slot, sizeof slot);
    return slot.handle == handle ? &slot : nullptr;
}

std::uint32_t WindowTable::take_slot() {
    const bool rested = resting_ != 0 && (resting_ >= rest_min_ || made_ == windows_max_);
    if (rested) {
        const std::uint32_t index = resting_first_;
        resting_first_ = slot_at(index).region_or_next;
        if (--resting_ == 0) resting_last_ = none;
        return index;
    }
    if (made_ == windows_max_) return none;
    if (made_ >> chunk_bits == chunks_.size()) {
        std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[chunk_slots]);
        if (slots == nullptr) return none;
        chunks_.push_back(std::move(slots));
    }
    return made_++;
}

Result<MemoryHandle> WindowTable::add(const Window& window) {
    const std::uint32_t index = take_slot();
    if (index == none) return std::unexpected(Status::error_resource);
    Slot& slot = slot_at(index);
    VIA_MODEL_WRITE(&slot, sizeof slot);
    const std::uint32_t before = slot.handle >> handle_index_bits;
    slot.handle = make_window_handle(index, before % handle_generation_max + 1);
    slot.region_or_next = window.region;
    slot.begin = window.begin;
    slot.end = window.end;
    slot.tag_and_rights = window.tag | std::uint64_t{window.rights} << rights_at;
    ++size_;
    return slot.handle;
}

bool WindowTable::remove(MemoryHandle handle, Window& was) {
    Slot* const slot = slot_of(handle);
    if (slot == nullptr) return false;
    was = find(handle);
    VIA_MODEL_WRITE(slot, sizeof *slot);
    slot->handle &= ~window_bit;
    slot->region_or_next = none;
    const std::uint32_t index = handle_index(handle);
    if (resting_ == 0) {
        resting_first_ = index;
    } else {
        slot_at(resting_last_).region_or_next = index;
    }
    resting_last_ = index;
    ++resting_;
    --size_;
    return true;
}

Window WindowTable::find(MemoryHandle handle) const {
    const Slot* const slot = slot_of(handle);
    if (slot == nullptr) return {};
    return {slot->region_or_next, slot->begin, slot->end,
            slot->tag_and_rights & ((1ULL << rights_at) - 1),
            static_cast<std::uint32_t>(slot->tag_and_rights >> rights_at)};
}

}  // namespace via::memory
