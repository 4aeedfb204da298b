#include "agent/locked_memory.hpp"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <algorithm>
#include <memory>
#include <new>
#include <utility>

#include "agent/process.hpp"
#include "base/atomic.hpp"

namespace via::agent {

using memory::PageRun;

namespace {

/// No program's memory lies beyond it; keeps pages times their size from wrapping.
constexpr unsigned address_bits = 63;

}  // namespace

// The process's locked pages ----------------------------------------------------------------------

LockedMemory::LockedMemory(LockSystem& system)
    : system_(system),
      page_bits_(system.page_bits()),
      areas_max_(system.mappings_max() / mappings_per_area),
      dma_(system) {}

namespace {

// Never destroyed: NICs may close while the process ends. No guard, which a thread of the parent
// may hold in a forked child.
constinit Atomic<LockedMemory*> memory_of_process{nullptr};
/// Kept as it is: its locks may be held for ever.
constinit Atomic<LockedMemory*> memory_of_parent{nullptr};

}  // namespace

LockedMemory& LockedMemory::of_process() {
    LockedMemory* memory = memory_of_process.load(std::memory_order_acquire);
    if (memory != nullptr) return *memory;
    auto made = std::make_unique<LockedMemory>(LockSystem::real());
    // The first one is everybody's.
    if (memory_of_process.compare_exchange_strong(memory, made.get(), std::memory_order_acq_rel))
        memory = made.release();
    return *memory;
}

void LockedMemory::begin_in_child() {
    memory_of_parent.store(memory_of_process.exchange(nullptr, std::memory_order_relaxed),
                           std::memory_order_relaxed);
}

/// Hands over the parts of `run`, in order, until `take` says no. They end at multiples of their
/// size, the same ones for locking and unlocking.
template <class Take>
bool LockedMemory::each_part(PageRun run, Take take) const {
    const std::uint64_t pages = part_bytes >> page_bits_;
    while (run.begin != run.end) {
        const PageRun part{run.begin, std::min(run.end, (run.begin / pages + 1) * pages)};
        if (!take(part)) return false;
        run.begin = part.end;
    }
    return true;
}

std::expected<void, LockedMemory::Failure> LockedMemory::lock(std::uint64_t address,
                                                              std::uint64_t length) {
    const PageRun run = memory::pages_of(address, length, page_bits_);
    const Failure refused{Refusal::by_kernel, ENOMEM};
    if (run.end > 1ULL << (address_bits - page_bits_) || exceeds_limit(run))
        return std::unexpected(refused);
    PageRun locked{run.begin, run.begin};
    std::expected<void, Failure> outcome;
    each_part(run, [&](PageRun part) {
        outcome = lock_part(part);
        if (outcome) locked.end = part.end;
        return outcome.has_value();
    });
    if (!outcome) each_part(locked, [&](PageRun part) { return unlock_part(part), true; });
    return outcome;
}

/// What the kernel would refuse at once as a whole is not made present part by part before.
bool LockedMemory::exceeds_limit(PageRun run) {
    if (run.pages() << page_bits_ <= part_bytes) return false;
    const std::uint64_t limit = system_.locked_bytes_max();
    if (limit == LockSystem::unlimited || system_.has_lock_right()) return false;
    const std::lock_guard guard(mutex_);
    try {
        ranges_.unlocked_in(run, runs_);
    } catch (const std::bad_alloc&) {
        return false;  // which shows again
    }
    std::uint64_t pages = ranges_.pages_locked();
    for (const PageRun& part : runs_) pages += part.pages();
    return pages > limit >> page_bits_;
}

/// On failure nothing has changed.
std::expected<void, LockedMemory::Failure> LockedMemory::lock_part(PageRun part) {
    const std::lock_guard guard(mutex_);
    std::size_t locked = 0;
    const auto undo = [&](Failure failure) {
        while (locked != 0) unlock_run(runs_[--locked]);
        return std::unexpected(failure);
    };
    try {
        const std::ptrdiff_t more = ranges_.unlocked_in(part, runs_);
        if (more > 0 && ranges_.runs_locked() + static_cast<std::size_t>(more) > areas_max_)
            return std::unexpected(Failure{Refusal::too_many_areas, 0});
        for (; locked < runs_.size(); ++locked)
            if (!lock_run(runs_[locked])) return undo({Refusal::by_kernel, errno});
        ranges_.lock(part);
    } catch (const std::bad_alloc&) {
        return undo({Refusal::out_of_memory, 0});
    }
    return {};
}

void LockedMemory::unlock(std::uint64_t address, std::uint64_t length) {
    if (system_.forked()) return;
    each_part(memory::pages_of(address, length, page_bits_),
              [&](PageRun part) { return unlock_part(part), true; });
}

void LockedMemory::unlock_part(PageRun part) {
    const std::lock_guard guard(mutex_);
    try {
        ranges_.unlock(part, runs_);
    } catch (const std::bad_alloc&) {
        log(1, "out of memory: %" PRIu64 " pages of memory stay locked", part.pages());
        return;
    }
    for (const PageRun& run : runs_) unlock_run(run);
}

/// A call that fails may have marked part of the run as locked.
bool LockedMemory::lock_run(PageRun run) {
    if (system_.mlock(run.begin << page_bits_, run.pages() << page_bits_) == 0) return true;
    const int error = errno;
    unlock_run(run);
    errno = error;
    return false;
}

void LockedMemory::unlock_run(PageRun run) {
    if (system_.munlock(run.begin << page_bits_, run.pages() << page_bits_) == 0) return;
    int error = errno;
    if (error == ENOMEM) {
        // The program has unmapped some of it. The kernel stopped there; the rest is still locked.
        error = 0;
        for (const PageRun& part : system_.mapped_in(run))
            if (system_.munlock(part.begin << page_bits_, part.pages() << page_bits_) < 0)
                error = errno;
    }
    if (error != 0)
        log(1, "%" PRIu64 " pages stay locked until they are unmapped (munlock: %s)", run.pages(),
            strerror(error));
}

std::uint64_t LockedMemory::bytes_locked() {
    const std::lock_guard guard(mutex_);
    return ranges_.pages_locked() << page_bits_;
}

bool LockedMemory::is_short(Failure failure, std::uint64_t address, std::uint64_t length) {
    if (failure.refusal != Refusal::by_kernel) return true;
    if (failure.error != ENOMEM) return failure.error == EAGAIN;
    const std::uint64_t begin = address >> page_bits_ << page_bits_;
    return system_.check_mapped(begin, address - begin + length) == 0;
}

std::string LockedMemory::why(Failure failure, std::uint64_t address, std::uint64_t length) {
    const std::uint64_t limit = system_.locked_bytes_max();
    const bool is_limited = limit != LockSystem::unlimited && !system_.has_lock_right();
    const auto limit_text = [&] {
        return "RLIMIT_MEMLOCK is " + std::to_string(limit) + " bytes, of which NICs have locked " +
               std::to_string(bytes_locked()) + "; raise it, or give the process CAP_IPC_LOCK";
    };
    if (failure.refusal == Refusal::too_many_areas)
        return std::to_string(areas_max_) +
               " separate areas are locked, as many as may be (vm.max_map_count is " +
               std::to_string(system_.mappings_max()) + "); register fewer and larger regions";
    if (failure.refusal == Refusal::out_of_memory) return "out of memory";
    const std::uint64_t begin = address >> page_bits_ << page_bits_;
    switch (failure.error) {
        case ENOMEM:
            if (const auto text = fault_of(system_.page_rights(begin, address + length)))
                return *text;
            if (is_limited) return limit_text();
            // A container's administrator seems to have the right, and has not.
            if (limit != LockSystem::unlimited && limit < bytes_locked() + length)
                return limit_text() + " outside of user namespaces";
            return "the process has too many mappings (vm.max_map_count is " +
                   std::to_string(system_.mappings_max()) + ")";
        case EPERM:
            if (limit == 0 && !system_.has_lock_right())
                return "RLIMIT_MEMLOCK is 0, and the process has no CAP_IPC_LOCK";
            return std::string("mlock: ") + strerror(failure.error) +
                   "; a filter of system calls (seccomp) or a security module forbids it";
        case EAGAIN:
            return "there is not enough memory to have all its pages at once";
        default:
            return std::string("mlock: ") + strerror(failure.error);
    }
}

// The regions of a NIC ----------------------------------------------------------------------------

Status RegionPins::pin(memory::MemoryHandle region, std::uint64_t address, std::uint64_t length) {
    if (policy_ == Pin::never) return Status::success;
    const bool may_fail = policy_ == Pin::prefer;
    const std::uint32_t index = memory::handle_index(region);
    Pinned pinned;
    pinned.address = address;
    pinned.length = length;
    try {
        {
            // First what needs memory: noting the region cannot fail when its pages are locked.
            const std::lock_guard guard(mutex_);
            if (ended_) return Status::success;
            if (index >= regions_.size()) regions_.resize(index + 1);
        }
        if (!keep(pinned)) return may_fail ? Status::success : Status::error_resource;
    } catch (const std::bad_alloc&) {
        if (may_fail) return Status::success;
        log(1, "NIC %s: out of memory for locking", nic_name_.c_str());
        return Status::error_resource;
    }
    pinned.region = region;
    {
        const std::lock_guard guard(mutex_);
        if (!ended_) std::swap(pinned, regions_[index]);
    }
    // Of the region that had the index before and was not unpinned yet, or ours of a closed NIC.
    let_go(pinned);
    return Status::success;
}

void RegionPins::unpin(memory::MemoryHandle region) {
    if (policy_ == Pin::never) return;
    Pinned pinned = take_out(region);
    let_go(pinned);
}

/// What is noted of the region, not noted any more; or nothing.
RegionPins::Pinned RegionPins::take_out(memory::MemoryHandle region) {
    const std::lock_guard guard(mutex_);
    const std::uint32_t index = memory::handle_index(region);
    if (index >= regions_.size() || regions_[index].region != region) return {};
    return std::exchange(regions_[index], Pinned{});
}

void RegionPins::end() {
    std::vector<Pinned> regions;
    {
        const std::lock_guard guard(mutex_);
        ended_ = true;
        regions.swap(regions_);
    }
    for (Pinned& pinned : regions) let_go(pinned);
}

bool RegionPins::keep(Pinned& pinned) {
    if (policy_ != Pin::dma) return lock(pinned);
    auto buffers = memory_.dma().pin(pinned.address, pinned.length);
    if (!buffers) {
        log(1, "NIC %s: cannot register %" PRIu64 " bytes at 0x%" PRIx64 " with pin=dma: %s",
            nic_name_.c_str(), pinned.length, pinned.address, buffers.error().c_str());
        return false;
    }
    pinned.buffers = std::move(*buffers);
    return true;
}

bool RegionPins::lock(const Pinned& pinned) {
    const auto locked = memory_.lock(pinned.address, pinned.length);
    if (locked) return true;
    if (told_.exchange(true) && policy_ == Pin::prefer) return false;
    const std::string why = memory_.why(locked.error(), pinned.address, pinned.length);
    log(1,
        policy_ == Pin::require ? "NIC %s: cannot register %" PRIu64 " bytes at 0x%" PRIx64
                                  " with pin=require: %s"
                                : "NIC %s: %" PRIu64 " registered bytes at 0x%" PRIx64
                                  " are not locked and may be "
                                  "swapped out: %s; this is said once (pin=never says nothing)",
        nic_name_.c_str(), pinned.length, pinned.address, why.c_str());
    return false;
}

void RegionPins::let_go(Pinned& pinned) {
    if (pinned.region == 0) return;
    pinned.region = 0;
    if (policy_ == Pin::dma) {
        memory_.dma().unpin(pinned.buffers);
    } else {
        memory_.unlock(pinned.address, pinned.length);
    }
}

}  // namespace via::agent
