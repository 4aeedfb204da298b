#include "memory/table.hpp"

#include <new>

#include "base/assert.hpp"

namespace via::memory {

namespace {

std::uint32_t tag_index(ProtectionTag tag) {
    return static_cast<std::uint32_t>(tag & ((1U << tag_index_bits) - 1));
}

std::uint32_t rights_of(const MemoryAttributes& attributes) {
    return (attributes.rdma_write ? Region::right_of(Access::remote_write) : 0U) |
           (attributes.rdma_read ? Region::right_of(Access::remote_read) : 0U) |
           (attributes.writable ? Region::right_of(Access::local_write) : 0U) |
           (attributes.atomics ? Region::right_of(Access::remote_atomic) : 0U);
}

}  // namespace

MemoryTable::MemoryTable(std::uint32_t regions_max, std::uint32_t tags_max,
                         std::uint64_t tag_uses_max, std::uint32_t windows_max)
    : regions_max_(regions_max),
      tags_max_(tags_max),
      tag_uses_max_(tag_uses_max),
      chunks_(std::make_unique<Atomic<Slot*>[]>((regions_max + chunk_slots - 1) / chunk_slots)),
      windows_(windows_max) {
    VIA_ASSERT(regions_max > 0 && regions_max <= 1U << handle_index_bits);
    VIA_ASSERT(tags_max < 1U << tag_index_bits);
    storage_.reserve((regions_max + chunk_slots - 1) / chunk_slots);
}

std::uint32_t MemoryTable::take_slot() {
    if (free_first_ != none) {
        const std::uint32_t index = free_first_;
        free_first_ = slot_at(index).next_free;
        if (free_first_ == none) free_last_ = none;
        return index;
    }
    if (slots_made_ == regions_max_) return none;
    const std::uint32_t chunk = slots_made_ >> chunk_bits;
    if (chunk == storage_.size()) {
        std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[chunk_slots]);
        if (slots == nullptr) return none;
        storage_.push_back(std::move(slots));
        chunks_[chunk].store(storage_.back().get(), std::memory_order_release);
    }
    return slots_made_++;
}

Result<MemoryHandle> MemoryTable::add(std::uint64_t address, std::uint64_t length,
                                      const MemoryAttributes& attributes) {
    if (length == 0 || address + length < address ||
        (attributes.rdma_write && !attributes.writable))
        return std::unexpected(Status::invalid_parameter);
    if (attributes.tag != no_tag && !is_tag(attributes.tag))
        return std::unexpected(Status::invalid_ptag);
    const std::uint32_t index = take_slot();
    if (index == none) return std::unexpected(Status::error_resource);
    Slot& slot = slot_at(index);
    const MemoryHandle handle = make_handle(index, ++slot.generation);
    Bounds granted{address, address + length};
    if (whole_pages_) granted = granted.whole_pages();
    slot.address.store(address, std::memory_order_relaxed);
    slot.begin.store(granted.begin, std::memory_order_relaxed);
    slot.end.store(granted.end, std::memory_order_relaxed);
    slot.tag.store(attributes.tag, std::memory_order_relaxed);
    slot.rights.store(rights_of(attributes), std::memory_order_relaxed);
    slot.handle.store(handle, std::memory_order_release);
    count_tag(attributes.tag, 1);
    ++regions_;
    return handle;
}

bool MemoryTable::is_region(MemoryHandle handle, std::uint64_t address) const {
    if (!live(handle)) return false;
    const std::uint64_t registered = find(handle)->address.load(std::memory_order_relaxed);
    atomic_fence(std::memory_order_acquire);
    return registered == address && live(handle);
}

void MemoryTable::suspend(MemoryHandle handle) {
    VIA_ASSERT(live(handle));
    find(handle)->suspended = true;
    find(handle)->handle.store(0, std::memory_order_seq_cst);
}

void MemoryTable::resume(MemoryHandle handle) {
    find(handle)->suspended = false;
    find(handle)->handle.store(handle, std::memory_order_release);
}

void MemoryTable::remove(MemoryHandle handle) {
    Slot* const found = find(handle);
    VIA_ASSERT(found != nullptr && found->handle.load(std::memory_order_relaxed) == 0);
    atomic_fence(
        std::memory_order_release);  // who sees the next region's fields sees this one gone
    Slot& slot = *found;
    slot.suspended = false;
    count_tag(slot.tag.load(std::memory_order_relaxed), -1);
    --regions_;
    if (slot.generation == handle_generation_max) return;  // retired: no handle ever repeats
    slot.next_free = none;
    const std::uint32_t index = handle_index(handle);
    if (free_last_ == none) {
        free_first_ = index;
    } else {
        slot_at(free_last_).next_free = index;
    }
    free_last_ = index;
}

Bounds MemoryTable::bounds(MemoryHandle handle) const {
    const Slot* const slot = find(handle);
    VIA_ASSERT(slot != nullptr);
    return {slot->begin.load(std::memory_order_relaxed), slot->end.load(std::memory_order_relaxed)};
}

Status MemoryTable::change(MemoryHandle handle, const MemoryAttributes& attributes) {
    Slot* const found = find(handle);
    if (found == nullptr || (!found->suspended && !live(handle))) return Status::invalid_parameter;
    if (attributes.tag != no_tag && !is_tag(attributes.tag)) return Status::invalid_ptag;
    Slot& slot = *found;
    MemoryAttributes granted = attributes;
    const std::uint32_t rights = slot.rights.load(std::memory_order_relaxed);
    granted.writable = (rights & Region::right_of(Access::local_write)) != 0;
    granted.atomics = (rights & Region::right_of(Access::remote_atomic)) != 0;
    if (granted.rdma_write && !granted.writable) return Status::invalid_parameter;
    count_tag(slot.tag.load(std::memory_order_relaxed), -1);
    count_tag(attributes.tag, 1);
    slot.tag.store(attributes.tag, std::memory_order_relaxed);
    slot.rights.store(rights_of(granted), std::memory_order_release);
    return Status::success;
}

Status MemoryTable::query(MemoryHandle handle, std::uint64_t address,
                          MemoryAttributes& attributes) const {
    const Slot* slot = find(handle);
    if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle ||
        slot->address.load(std::memory_order_relaxed) != address)
        return Status::invalid_parameter;
    const std::uint32_t rights = slot->rights.load(std::memory_order_relaxed);
    const ProtectionTag tag = slot->tag.load(std::memory_order_relaxed);
    atomic_fence(std::memory_order_acquire);
    if (slot->handle.load(std::memory_order_relaxed) != handle) return Status::invalid_parameter;
    attributes.tag = tag;
    attributes.rdma_write = (rights & Region::right_of(Access::remote_write)) != 0;
    attributes.rdma_read = (rights & Region::right_of(Access::remote_read)) != 0;
    attributes.writable = (rights & Region::right_of(Access::local_write)) != 0;
    attributes.atomics = (rights & Region::right_of(Access::remote_atomic)) != 0;
    return Status::success;
}

Status MemoryTable::allow_atomics(MemoryHandle handle, bool allowed) {
    if (!live(handle)) return Status::invalid_parameter;
    Slot& slot = *find(handle);
    const std::uint32_t rights = slot.rights.load(std::memory_order_relaxed);
    constexpr std::uint32_t right = Region::right_of(Access::remote_atomic);
    if (allowed && (rights & Region::right_of(Access::local_write)) == 0)
        return Status::invalid_parameter;
    slot.rights.store(allowed ? rights | right : rights & ~right, std::memory_order_release);
    return Status::success;
}

Result<MemoryHandle> MemoryTable::bind_window(MemoryHandle handle, std::uint64_t address,
                                              std::uint64_t length,
                                              const MemoryAttributes& attributes) {
    const Region region = look(handle);
    if (region.handle == 0 || length == 0 || !region.covers(address, length))
        return std::unexpected(Status::invalid_parameter);
    // All memory of the process: some of it may not be mapped when a peer's bytes come.
    if (find(handle)->address.load(std::memory_order_relaxed) == 0)
        return std::unexpected(Status::invalid_parameter);
    if (attributes.tag != no_tag && !is_tag(attributes.tag))
        return std::unexpected(Status::invalid_ptag);
    const std::uint32_t rights = rights_of(attributes) & ~Region::right_of(Access::local_write);
    const bool changes = attributes.rdma_write || attributes.atomics;
    if (rights == 0 || (changes && !region.grants(Access::local_write)))
        return std::unexpected(Status::invalid_parameter);
    const auto window = windows_.add({handle, address, address + length, attributes.tag, rights});
    if (window) count_tag(attributes.tag, 1);
    return window;
}

Status MemoryTable::end_window(MemoryHandle handle) {
    Window was;
    if (!windows_.remove(handle, was)) return Status::invalid_parameter;
    count_tag(was.tag, -1);
    return Status::success;
}

/// No descriptor of ours may use a window, so nobody but peers has rights there.
bool MemoryTable::check_window(MemoryHandle handle, std::uint64_t address, std::uint64_t length,
                               ProtectionTag vi_tag, Access access) const {
    const Window window = windows_.find(handle);
    const Region granted{window.region, window.rights, window.begin, window.end, window.tag};
    return access != Access::local && live(window.region) &&
           granted.allows(address, length, vi_tag, access);
}

Result<ProtectionTag> MemoryTable::create_tag() {
    std::uint32_t index = 0;
    if (!free_tags_.empty()) {
        index = free_tags_.back();
        free_tags_.pop_back();
    } else if (tags_.size() < tags_max_) {
        index = static_cast<std::uint32_t>(tags_.size());
        // Room for all to come back: that a tag ends needs no memory.
        if (free_tags_.capacity() <= index) free_tags_.reserve(2 * tags_.size() + 8);
        tags_.emplace_back();
    } else {
        return std::unexpected(Status::error_resource);
    }
    Tag& tag = tags_[index];
    tag.used = true;
    ++tag.generation;
    return (tag.generation << tag_index_bits) | index;
}

bool MemoryTable::is_tag(ProtectionTag tag) const {
    const std::uint32_t index = tag_index(tag);
    return tag != no_tag && index < tags_.size() && tags_[index].used &&
           tags_[index].generation == tag >> tag_index_bits;
}

Status MemoryTable::destroy_tag(ProtectionTag tag, std::uint32_t vis_with_tag) {
    if (!is_tag(tag)) return Status::invalid_parameter;
    Tag& slot = tags_[tag_index(tag)];
    if (slot.regions != 0 || vis_with_tag != 0) return Status::error_resource;
    slot.used = false;
    if (slot.generation < tag_uses_max_)  // else retired: no handle ever repeats
        free_tags_.push_back(tag_index(tag));
    return Status::success;
}

void MemoryTable::count_tag(ProtectionTag tag, int change) {
    if (tag == no_tag) return;
    tags_[tag_index(tag)].regions += static_cast<std::uint32_t>(change);
}

}  // namespace via::memory
