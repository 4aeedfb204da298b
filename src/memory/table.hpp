// The translation and protection table: from a handle, an address and a length to bytes, or a
// refusal (VIPL 4.6 to 4.8). Addresses are the program's own virtual addresses, so translation is
// the check itself.
//
// Threads: add, remove, change, the tag calls and all that is about windows are made by the holder
// of the turn. check() of regions, query() and live() may run at the same time in any thread: a
// slot is read between two looks at its handle, and generations never repeat, so a torn read is
// always seen.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/atomic.hpp"
#include "base/status.hpp"
#include "memory/handle.hpp"
#include "memory/windows.hpp"

namespace via::memory {

/// The NIC counts in pages of this size, whatever the system has: never more than the system's.
constexpr std::uint32_t table_page_bits = 12;
constexpr std::uint64_t table_page_length = 1ULL << table_page_bits;

struct MemoryAttributes {
    ProtectionTag tag = no_tag;
    bool rdma_write = false;  ///< a peer may write here
    bool rdma_read = false;   ///< a peer may read here
    bool writable = true;     ///< all its pages may be written; stays as it was registered
    bool atomics = false;     ///< a peer may change words by atomic operations; allow_atomics()
};

/// Addresses [begin, end) of a region.
struct Bounds {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;

    /// All pages that hold some of it, as far as addresses go.
    Bounds whole_pages() const {
        const std::uint64_t last = table_page_length - 1;
        return {begin & ~last, end > ~last ? end : (end + last) & ~last};
    }
};

/// `local` reads; `local_write` is what a receive, an RDMA read or a descriptor's status need.
enum class Access : std::uint8_t { local, local_write, remote_write, remote_read, remote_atomic };

/// What the table said of a region at one moment; of none it allows nothing.
struct Region {
    MemoryHandle handle = 0;
    std::uint32_t rights = 0;
    std::uint64_t begin = 1;
    std::uint64_t end = 0;
    ProtectionTag tag = no_tag;

    /// MemoryTable::check() at that moment.
    [[gnu::always_inline]] bool allows(std::uint64_t address, std::uint64_t length,
                                       ProtectionTag vi_tag, Access access) const {
        return covers(address, length) && grants(access) &&
               (access == Access::local || access == Access::local_write
                    ? serves(vi_tag)
                    : vi_tag == no_tag || vi_tag == tag);
    }
    [[gnu::always_inline]] bool grants(Access access) const {
        return access == Access::local || (rights & right_of(access)) != 0;
    }
    /// May a VI of that tag use it for its own descriptors and data? What has no tag serves all VIs
    /// of the NIC; their peers reach it only by a VI that has none either.
    [[gnu::always_inline]] bool serves(ProtectionTag vi_tag) const {
        return vi_tag == no_tag || vi_tag == tag || tag == no_tag;
    }
    [[gnu::always_inline]] bool covers(std::uint64_t address, std::uint64_t length) const {
        return address >= begin && address <= end && length <= end - address;
    }
    static constexpr std::uint32_t right_of(Access access) {
        switch (access) {
            case Access::remote_write:
                return 1U;
            case Access::remote_read:
                return 2U;
            case Access::local_write:
                return 4U;
            case Access::remote_atomic:
                return 8U;
            case Access::local:
                break;
        }
        return 0;
    }
};

class MemoryTable {
public:
    /// `tag_uses_max`: of one index.
    explicit MemoryTable(std::uint32_t regions_max, std::uint32_t tags_max,
                         std::uint64_t tag_uses_max = tag_generation_max,
                         std::uint32_t windows_max = 1U << handle_index_bits);

    /// From now on add() grants the whole pages that hold some of what is registered.
    void grant_whole_pages() { whole_pages_ = true; }

    /// Registers [address, address + length). length > 0, no wrap, and RDMA write only where it is
    /// writable, else invalid_parameter; an unknown tag: invalid_ptag; table full, or no memory for
    /// more of it: error_resource.
    Result<MemoryHandle> add(std::uint64_t address, std::uint64_t length,
                             const MemoryAttributes& attributes);
    /// True when `handle` is a live region that was registered from `address` on.
    bool is_region(MemoryHandle handle, std::uint64_t address) const;
    /// Makes the region refuse every further check. Then whoever checked before can be waited for
    /// and looked through; resume() takes it back, remove() ends the region.
    void suspend(MemoryHandle handle);
    void resume(MemoryHandle handle);
    /// Ends a suspended region; the caller has made sure that nobody uses it.
    void remove(MemoryHandle handle);
    /// What is granted of a region that is live or suspended; for the holder of the turn.
    Bounds bounds(MemoryHandle handle) const;
    /// Of a region that is suspended, so that nobody is granted anything by what was. RDMA write
    /// to one that is not writable: invalid_parameter. The right to atomic operations stays.
    Status change(MemoryHandle handle, const MemoryAttributes& attributes);
    Status query(MemoryHandle handle, std::uint64_t address, MemoryAttributes& attributes) const;
    /// Gives a live region the right to atomic operations of peers, or takes it away. One that is
    /// not writable cannot have it: invalid_parameter.
    Status allow_atomics(MemoryHandle handle, bool allowed);

    /// Gives peers rights to [address, address + length), by a handle that they name instead of the
    /// region's: those of `attributes`, whatever rights and tag the region has. Ends with the
    /// region, but for its handle, which is the caller's until end_window(). invalid_parameter: no
    /// live region, bytes that are not all the region's, a region of all memory, no right at all,
    /// or one to change what is not writable; invalid_ptag: no such tag; error_resource: the table
    /// is full.
    Result<MemoryHandle> bind_window(MemoryHandle region, std::uint64_t address,
                                     std::uint64_t length, const MemoryAttributes& attributes);
    /// When it returns no peer reaches anything by that handle. invalid_parameter: there is no such
    /// window (any more).
    Status end_window(MemoryHandle handle);
    /// What bind_window() was told; region 0: there is no such window (any more).
    Window window(MemoryHandle handle) const { return windows_.find(handle); }
    /// Windows that were bound and not ended.
    std::uint32_t windows() const { return windows_.size(); }
    /// The region that a handle leads to: a window's, or itself. 0: there is no such window.
    MemoryHandle region_of(MemoryHandle handle) const {
        return is_window(handle) ? windows_.find(handle).region : handle;
    }

    Result<ProtectionTag> create_tag();
    /// error_resource while a region or window carries it or `vis_with_tag` is not zero.
    Status destroy_tag(ProtectionTag tag, std::uint32_t vis_with_tag);
    bool is_tag(ProtectionTag tag) const;

    /// May a VI with `vi_tag` touch [address, address + length) of `handle` this way? Exact to the
    /// byte, but for grant_whole_pages(). A VI without a tag may use memory of any tag, and memory
    /// without one is there for the local access of every VI (VIPL 4.7). Length 0 asks for the
    /// handle and the tag only, anywhere within or at the end of the region. `handle` may be a
    /// window's, for a peer's access; then the holder of the turn asks.
    [[gnu::always_inline]] bool check(MemoryHandle handle, std::uint64_t address,
                                      std::uint64_t length, ProtectionTag vi_tag,
                                      Access access) const {
        if (is_window(handle)) [[unlikely]]
            return check_window(handle, address, length, vi_tag, access);
        return look(handle).allows(address, length, vi_tag, access);
    }

    /// Of what check() refuses: is all that is wrong that it ends in the region's pages, and not in
    /// the region?
    bool misses_by_a_page(MemoryHandle handle, std::uint64_t address, std::uint64_t length,
                          ProtectionTag vi_tag, Access access) const {
        Region region = look(handle);
        if (region.handle == 0 || region.covers(address, length)) return false;
        const Bounds pages = Bounds{region.begin, region.end}.whole_pages();
        region.begin = pages.begin;
        region.end = pages.end;
        return region.allows(address, length, vi_tag, access);
    }

    /// The region as it is now; for several questions in a row.
    [[gnu::always_inline]] Region look(MemoryHandle handle) const {
        const Slot* slot = find(handle);
        if (slot == nullptr || slot->handle.load(std::memory_order_acquire) != handle) return {};
        const Region region{handle, slot->rights.load(std::memory_order_relaxed),
                            slot->begin.load(std::memory_order_relaxed),
                            slot->end.load(std::memory_order_relaxed),
                            slot->tag.load(std::memory_order_relaxed)};
        atomic_fence(std::memory_order_acquire);
        return slot->handle.load(std::memory_order_relaxed) == handle ? region : Region{};
    }

    /// True while the region exists and is not suspended.
    bool live(MemoryHandle handle) const {
        const Slot* slot = find(handle);
        return slot != nullptr && slot->handle.load(std::memory_order_acquire) == handle;
    }

    std::uint32_t regions() const { return regions_; }

private:
    struct Slot {
        Atomic<std::uint32_t> handle{0};  ///< 0: free
        Atomic<std::uint32_t> rights{0};
        Atomic<std::uint64_t> begin{0};
        Atomic<std::uint64_t> end{0};
        Atomic<std::uint64_t> tag{0};
        Atomic<std::uint64_t> address{
            0};  ///< as it was registered; what is granted is from begin on
        std::uint32_t next_free = 0;
        std::uint16_t generation = 0;
        bool suspended = false;
    };
    static constexpr std::uint32_t chunk_bits = 10;
    static constexpr std::uint32_t chunk_slots = 1U << chunk_bits;
    static constexpr std::uint32_t none = ~0U;

    struct Tag {
        std::uint64_t generation = 0;
        std::uint32_t regions = 0;  ///< and windows
        bool used = false;
    };

    const Slot* find(MemoryHandle handle) const {
        const std::uint32_t index = handle_index(handle);
        const Slot* chunk = handle == 0 || index >= regions_max_
                                ? nullptr
                                : chunks_[index >> chunk_bits].load(std::memory_order_acquire);
        return chunk == nullptr ? nullptr : chunk + (index & (chunk_slots - 1));
    }
    Slot* find(MemoryHandle handle) {
        return const_cast<Slot*>(static_cast<const MemoryTable*>(this)->find(handle));
    }
    Slot& slot_at(std::uint32_t index) {
        return storage_[index >> chunk_bits][index & (chunk_slots - 1)];
    }
    [[gnu::noinline]] bool check_window(MemoryHandle handle, std::uint64_t address,
                                        std::uint64_t length, ProtectionTag vi_tag,
                                        Access access) const;
    std::uint32_t take_slot();
    void count_tag(ProtectionTag tag, int change);

    std::uint32_t regions_max_;
    std::uint32_t tags_max_;
    std::uint64_t tag_uses_max_;
    bool whole_pages_ = false;
    std::uint32_t regions_ = 0;
    std::uint32_t slots_made_ = 0;
    std::uint32_t free_first_ = none;  ///< slots are reused in order of release
    std::uint32_t free_last_ = none;
    std::vector<std::unique_ptr<Slot[]>> storage_;
    std::unique_ptr<Atomic<Slot*>[]> chunks_;
    std::vector<Tag> tags_;
    std::vector<std::uint32_t> free_tags_;
    WindowTable windows_;
};

}  // namespace via::memory
