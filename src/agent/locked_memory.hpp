// The Locked Memory Manager: keeps registered memory in place. mlock does not nest in the kernel,
// so there is one manager per process, shared by all NICs, that counts and asks the kernel only for
// what changes. Its locks are not taken with a NIC's turn, since locking may wait for memory; only
// a NIC with a small table does so (LockedLines): its frames wait for just that.
#pragma once

#include <cstdint>
#include <expected>
#include <mutex>
#include <string>
#include <vector>

#include "agent/dma_pins.hpp"
#include "agent/lock_system.hpp"
#include "agent/nic_options.hpp"
#include "base/atomic.hpp"
#include "base/status.hpp"
#include "memory/handle.hpp"
#include "memory/page_ranges.hpp"

namespace via::agent {

/// A mutex whose holder, coming again at once, lets those before it who wait.
class FairMutex {
public:
    void lock() {
        const std::lock_guard guard(next_);
        holder_.lock();
    }
    void unlock() { holder_.unlock(); }

private:
    std::mutex next_;  ///< held while waiting for the other
    std::mutex holder_;
};

/// Pages that are locked, counted. Any thread. While the kernel makes pages present it holds a lock
/// of the process's memory, which malloc and page faults of all threads need. So it is asked for a
/// part at a time, and so long at most are threads kept waiting that lock something else.
class LockedMemory {
public:
    enum class Refusal {
        by_kernel,       ///< errno says why
        too_many_areas,  ///< more would use up the process's memory mappings
        out_of_memory,   ///< for counting
    };
    struct Failure {
        Refusal refusal;
        int error;  ///< errno
    };

    /// Every area may cost two mappings, and it shall not be more than a quarter of all.
    static constexpr std::uint64_t mappings_per_area = 8;
    /// Bytes that the kernel is asked for at a time.
    static constexpr std::uint64_t part_bytes = 16ULL << 20;

    explicit LockedMemory(LockSystem& system);
    /// The process's own; lives for ever.
    static LockedMemory& of_process();
    /// A forked child has no locks: of_process() is a new one from here on.
    static void begin_in_child();

    /// Locks the pages of [address, address + length), which is not empty and does not wrap, once
    /// more. On failure nothing has changed.
    std::expected<void, Failure> lock(std::uint64_t address, std::uint64_t length);
    /// Takes one lock of exactly this range back. Not in a forked child, which has no locks.
    void unlock(std::uint64_t address, std::uint64_t length);
    /// The failure in words; looks at limits and mappings as they are now.
    std::string why(Failure failure, std::uint64_t address, std::uint64_t length);

    /// Might it go when less were locked? Else it is this memory that cannot be.
    bool is_short(Failure failure, std::uint64_t address, std::uint64_t length);
    /// Bytes of the system's pages that lock() would lock.
    std::uint64_t page_bytes(std::uint64_t address, std::uint64_t length) const {
        return memory::pages_of(address, length, page_bits_).pages() << page_bits_;
    }

    DmaPins& dma() { return dma_; }
    std::uint64_t bytes_locked();
    std::uint64_t areas_max() const { return areas_max_; }

private:
    template <class Take>
    bool each_part(memory::PageRun run, Take take) const;
    bool exceeds_limit(memory::PageRun run);
    std::expected<void, Failure> lock_part(memory::PageRun part);
    void unlock_part(memory::PageRun part);
    bool lock_run(memory::PageRun run);
    void unlock_run(memory::PageRun run);

    LockSystem& system_;
    const unsigned page_bits_;
    const std::uint64_t areas_max_;
    FairMutex mutex_;
    memory::PageRanges ranges_;
    std::vector<memory::PageRun> runs_;  ///< of the call that holds the lock
    DmaPins dma_;
};

/// The pages of one NIC's regions, kept in place as its option `pin` says. Any thread.
class RegionPins {
public:
    RegionPins(LockedMemory& memory, Pin policy, std::string nic_name)
        : memory_(memory), policy_(policy), nic_name_(std::move(nic_name)) {}
    ~RegionPins() { end(); }
    RegionPins(const RegionPins&) = delete;
    RegionPins& operator=(const RegionPins&) = delete;

    /// For a region that was just registered. error_resource: its pages cannot be kept, though they
    /// must be; the log says why.
    Status pin(memory::MemoryHandle region, std::uint64_t address, std::uint64_t length);
    /// For one that was just deregistered, pinned or not.
    void unpin(memory::MemoryHandle region);
    /// Lets go of all regions; those that come later are not pinned. For a NIC that is closed.
    void end();

private:
    struct Pinned {
        memory::MemoryHandle region = 0;  ///< 0: nothing is pinned here
        std::uint64_t address = 0;
        std::uint64_t length = 0;
        std::vector<std::uint32_t> buffers;  ///< pin=dma
    };

    Pinned take_out(memory::MemoryHandle region);
    bool keep(Pinned& pinned);
    bool lock(const Pinned& pinned);
    void let_go(Pinned& pinned);

    LockedMemory& memory_;
    const Pin policy_;
    const std::string nic_name_;
    std::mutex mutex_;             ///< not held while pages are locked or unlocked
    std::vector<Pinned> regions_;  ///< by the handle's index
    bool ended_ = false;
    Atomic<bool> told_{false};  ///< of what pin=prefer could not do
};

}  // namespace via::agent
