// SPDX-License-Identifier: Apache-2.0
/**
 * @file via/registration_cache.hpp
 * @brief Registrations that are kept for the next time: via::RegistrationCache.
 */
#pragma once

#include <via/memory.hpp>

#include <algorithm>
#include <cassert>
#include <functional>
#include <vector>

namespace via {

/** @cond */
namespace detail {

/// A registration that the cache holds.
struct CachedRegion {
    std::byte* begin = nullptr;
    std::byte* end = nullptr;
    VIP_MEM_HANDLE handle = 0;
    VIP_PROTECTION_HANDLE tag = nullptr;
    bool rdma_write = false;
    bool rdma_read = false;
    bool found = false;        ///< look-ups may find it; else it goes with its last lease
    std::uint32_t leases = 0;  ///< while 0, it is in the list of those that nobody uses
    std::uint32_t newer = 0;   ///< in that list
    std::uint32_t older = 0;

    std::size_t size() const noexcept { return static_cast<std::size_t>(end - begin); }
    bool serves(std::byte* from, std::byte* to, const MemoryRights& rights) const noexcept {
        const bool local = !rights.rdma_write && !rights.rdma_read;
        return begin <= from && to <= end &&
               tag == (rights.tag != nullptr ? rights.tag->handle() : nullptr) &&
               (local || (rdma_write == rights.rdma_write && rdma_read == rights.rdma_read));
    }
};

/// What a cache and its leases share. All its memory is there from the start.
class CacheStorage {
public:
    CacheStorage(VIP_NIC_HANDLE nic, std::uint32_t entries, std::size_t bytes)
        : nic_(nic), bytes_max_(bytes), regions_(entries + std::size_t{1}) {
        free_.reserve(entries);
        for (std::uint32_t index = entries; index != 0; --index) free_.push_back(index);
        sorted_.reserve(entries);
        ends_.reserve(entries);
    }
    ~CacheStorage() {
        clear();
        assert(regions_.size() - 1 == free_.size() && "leases end before their cache");
    }
    CacheStorage(const CacheStorage&) = delete;
    CacheStorage& operator=(const CacheStorage&) = delete;

    CachedRegion& at(std::uint32_t index) noexcept { return regions_[index]; }

    /// A region that covers the range, or 0. Sorted by their begins, with the furthest end of all
    /// up to each, regions need to be looked at only while one of them may still cover it.
    std::uint32_t find(std::byte* from, std::byte* to, const MemoryRights& rights) const noexcept {
        auto place = static_cast<std::size_t>(
            std::upper_bound(sorted_.begin(), sorted_.end(), from,
                             [this](std::byte* address, std::uint32_t index) {
                                 return std::less<>()(address, regions_[index].begin);
                             }) -
            sorted_.begin());
        for (; place != 0 && !std::less<>()(ends_[place - 1], to); --place)
            if (regions_[sorted_[place - 1]].serves(from, to, rights)) return sorted_[place - 1];
        return 0;
    }

    Expected<std::uint32_t> add(std::span<std::byte> range, const MemoryRights& rights) {
        if (!make_room(range.size()))
            return std::unexpected(
                Error(VIP_ERROR_RESOURCE, "RegistrationCache::lease",
                      "the cache is full of regions that are leased, or the range is longer than "
                      "its bound. End leases, or give the cache more room"));
        VIP_MEM_ATTRIBUTES attributes{};
        attributes.Ptag = rights.tag != nullptr ? rights.tag->handle() : nullptr;
        attributes.EnableRdmaWrite = rights.rdma_write ? VIP_TRUE : VIP_FALSE;
        attributes.EnableRdmaRead = rights.rdma_read ? VIP_TRUE : VIP_FALSE;
        VIP_MEM_HANDLE handle = 0;
        VIP_RETURN code = VIP_SUCCESS;
        do code = VipRegisterMem(nic_, range.data(), range.size(), &attributes, &handle);
        while (code == VIP_ERROR_RESOURCE && drop_oldest());
        if (code != VIP_SUCCESS) return failure(code, "VipRegisterMem");
        const std::uint32_t index = free_.back();
        free_.pop_back();
        CachedRegion& region = regions_[index];
        region = {};
        region.begin = range.data();
        region.end = range.data() + range.size();
        region.handle = handle;
        region.tag = attributes.Ptag;
        region.rdma_write = rights.rdma_write;
        region.rdma_read = rights.rdma_read;
        region.found = true;
        bytes_ += region.size();
        ++registrations_;
        link(index);
        sorted_.insert(std::upper_bound(sorted_.begin(), sorted_.end(), region.begin,
                                        [this](std::byte* address, std::uint32_t other) {
                                            return std::less<>()(address, regions_[other].begin);
                                        }),
                       index);
        count_ends();
        return index;
    }

    void lease(std::uint32_t index) noexcept {
        if (regions_[index].leases++ == 0) unlink(index);
    }
    void end_lease(std::uint32_t index) noexcept {
        if (--regions_[index].leases != 0) return;
        link(index);
        if (!regions_[index].found) drop(index);
    }

    void invalidate(const std::byte* from, const std::byte* to) noexcept {
        const std::less<> before;
        std::erase_if(sorted_, [&](std::uint32_t index) {
            CachedRegion& region = regions_[index];
            if (!before(region.begin, to) || !before(from, region.end)) return false;
            region.found = false;
            return true;
        });
        count_ends();
        drop_what_is_not_found();
    }
    void clear() noexcept {
        for (const std::uint32_t index : sorted_) regions_[index].found = false;
        sorted_.clear();
        count_ends();
        drop_what_is_not_found();
    }

    std::size_t regions() const noexcept { return regions_.size() - 1 - free_.size(); }
    std::size_t bytes() const noexcept { return bytes_; }
    std::uint64_t registrations() const noexcept { return registrations_; }

private:
    bool make_room(std::size_t size) noexcept {
        if (size > bytes_max_) return false;
        while (free_.empty() || bytes_ > bytes_max_ - size)
            if (!drop_oldest()) return false;
        return true;
    }
    /// The one that nobody uses for the longest time. One that a posted descriptor still uses
    /// stays (VIPL 4.8), and the next has its turn.
    bool drop_oldest() noexcept {
        for (std::uint32_t index = regions_[0].newer; index != 0; index = regions_[index].newer) {
            if (!deregister(index)) continue;
            std::erase(sorted_, index);
            count_ends();
            forget(index);
            return true;
        }
        return false;
    }
    void drop_what_is_not_found() noexcept {
        for (std::uint32_t index = regions_[0].newer; index != 0;) {
            const std::uint32_t next = regions_[index].newer;
            if (!regions_[index].found) drop(index);
            index = next;
        }
    }
    void drop(std::uint32_t index) noexcept {
        if (deregister(index)) forget(index);
    }
    bool deregister(std::uint32_t index) noexcept {
        const CachedRegion& region = regions_[index];
        return VipDeregisterMem(nic_, region.begin, region.handle) != VIP_ERROR_RESOURCE;
    }
    void forget(std::uint32_t index) noexcept {
        unlink(index);
        bytes_ -= regions_[index].size();
        free_.push_back(index);
    }
    /// The list is a ring through place 0: its newer is the oldest, its older the newest.
    void link(std::uint32_t index) noexcept {
        CachedRegion& region = regions_[index];
        region.newer = 0;
        region.older = regions_[0].older;
        regions_[region.older].newer = index;
        regions_[0].older = index;
    }
    void unlink(std::uint32_t index) noexcept {
        const CachedRegion& region = regions_[index];
        regions_[region.older].newer = region.newer;
        regions_[region.newer].older = region.older;
    }
    void count_ends() noexcept {
        ends_.clear();
        std::byte* furthest = nullptr;
        for (const std::uint32_t index : sorted_) {
            if (std::less<>()(furthest, regions_[index].end)) furthest = regions_[index].end;
            ends_.push_back(furthest);
        }
    }

    VIP_NIC_HANDLE nic_;
    std::size_t bytes_max_;
    std::size_t bytes_ = 0;
    std::uint64_t registrations_ = 0;
    std::vector<CachedRegion> regions_;  ///< 0 is the list's own
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> sorted_;  ///< those that can be found, by their begins
    std::vector<std::byte*> ends_;       ///< furthest end of all in sorted_ up to there
};

}  // namespace detail
/** @endcond */

/**
 * The right to use a cached region, counted: while a lease lives its region stays registered.
 * Move-only. Keep it until all descriptors that name the region are done, and until the peer has
 * finished its RDMA there. The cache must outlive it. Threads: as its cache.
 */
class RegistrationLease {
public:
    /** Nothing. */
    RegistrationLease() noexcept = default;
    ~RegistrationLease() { end(); }
    /** Moves; `other` is nothing afterwards. */
    RegistrationLease(RegistrationLease&& other) noexcept
        : storage_(std::exchange(other.storage_, nullptr)), index_(other.index_) {}
    /** Exchanges the two: what this was ends with `other`. */
    RegistrationLease& operator=(RegistrationLease&& other) noexcept {
        std::swap(storage_, other.storage_);
        std::swap(index_, other.index_);
        return *this;
    }

    /** False: nothing. Then call nothing below but end(). */
    explicit operator bool() const noexcept { return storage_ != nullptr; }

    /** The region's handle. The region may be longer than what was asked for. */
    VIP_MEM_HANDLE handle() const noexcept { return storage_->at(index_).handle; }
    /** Bytes of the range that was asked for, as a descriptor names them. */
    Segment segment(std::span<std::byte> bytes) const noexcept {
        return {bytes.data(), detail::segment_length(bytes.size()), handle()};
    }
    /** The same, as a peer's descriptors name them. */
    RemoteSegment remote(std::span<std::byte> bytes) const noexcept {
        return {reinterpret_cast<std::uintptr_t>(bytes.data()), bytes.size(), handle(), 0};
    }

    /** Ends it now. */
    void end() noexcept {
        if (storage_ != nullptr) std::exchange(storage_, nullptr)->end_lease(index_);
    }

private:
    friend class RegistrationCache;
    RegistrationLease(detail::CacheStorage* storage, std::uint32_t index) noexcept
        : storage_(storage), index_(index) {
        storage->lease(index);
    }

    detail::CacheStorage* storage_ = nullptr;
    std::uint32_t index_ = 0;
};

/** Bounds of a cache. */
struct RegistrationCacheOptions {
    std::uint32_t regions = 1024;               /**< kept at most, 1 or more */
    std::size_t bytes = std::size_t{256} << 20; /**< of all of them together, at most */
};

/**
 * Registrations of a program's memory, kept for the next time: for libraries that are handed
 * buffers and do not know which of them will come again. A range that was used recently costs no
 * call of the library and no system call, and allocates nothing; another one is registered, for
 * which the regions go that nobody uses, least recently used first.
 *
 * **You must invalidate()** a range before its addresses stop meaning the same memory: before
 * munmap, mremap, shmdt, mmap with MAP_FIXED over it, sbrk downwards, and before free or delete
 * whose allocator gives pages back to the system (glibc does: large blocks at once, others when the
 * heap's end is trimmed). Otherwise a later lease of the same addresses gets the old registration,
 * whose locked pages are no longer the program's. Before memory that peers may reach by RDMA is
 * used for something else, in the same pages too: they can reach it as long as it is cached. There
 * are no hooks that would do it for you. Writing to the memory, fork and mprotect need nothing.
 *
 * What a peer may do with a region of the cache it may do with all of it, and as long as the cache
 * keeps it: lease rights for peers only where that is meant.
 *
 * Threads: a cache and its leases belong to one thread at a time, as a std::map does; threads may
 * have a cache each over the same NIC.
 *
 * Order of destruction: after its leases, before its NIC and the tags it was used with. Leases stay
 * valid when the cache is moved; one that was moved from gives none.
 */
class RegistrationCache {
public:
    /** An empty cache. Allocates all that it will ever need. */
    explicit RegistrationCache(const Nic& nic, const RegistrationCacheOptions& options = {})
        : storage_(std::make_unique<detail::CacheStorage>(nic.handle(), options.regions,
                                                          options.bytes)) {}

    /**
     * A region that covers the range, carries the tag and has just these rights for peers (any, if
     * none are asked for). A cached one, if there is one, otherwise the range itself, registered.
     * @param range  not empty
     * @return VIP_ERROR_RESOURCE: neither the cache nor the NIC has room, though all went that
     *         could; otherwise as MemoryRegion::of. Of a cache that was moved from:
     *         VIP_INVALID_PARAMETER
     */
    [[nodiscard]] Expected<RegistrationLease> lease(std::span<std::byte> range,
                                                    const MemoryRights& rights = {}) {
        if (!storage_ || detail::is_moved_from(rights.tag))
            return detail::failure(VIP_INVALID_PARAMETER, "VipRegisterMem");
        std::uint32_t index = storage_->find(range.data(), range.data() + range.size(), rights);
        if (index == 0) {
            const Expected<std::uint32_t> added = storage_->add(range, rights);
            if (!added) return std::unexpected(added.error());
            index = *added;
        }
        return RegistrationLease(storage_.get(), index);
    }

    /**
     * No later lease gets a region that has a byte in this range. What nobody uses is deregistered
     * now, what is leased when its last lease ends.
     */
    void invalidate(std::span<const std::byte> range) noexcept {
        if (storage_) storage_->invalidate(range.data(), range.data() + range.size());
    }
    /** The same for all. */
    void clear() noexcept {
        if (storage_) storage_->clear();
    }

    /** Regions that are registered now. */
    std::size_t regions() const noexcept { return storage_ ? storage_->regions() : 0; }
    /** Their bytes. */
    std::size_t bytes() const noexcept { return storage_ ? storage_->bytes() : 0; }
    /** How many were ever registered: leases that found none. */
    std::uint64_t registrations() const noexcept {
        return storage_ ? storage_->registrations() : 0;
    }
    /** Whether it is one still: false once it was moved from. */
    explicit operator bool() const noexcept { return storage_ != nullptr; }

private:
    std::unique_ptr<detail::CacheStorage> storage_;
};

}  // namespace via
