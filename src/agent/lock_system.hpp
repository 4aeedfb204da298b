// Every system call that keeps memory in place, in one table, so that a test can make each of them
// fail. The methods behave as the calls of the same name: -1 and errno on failure. Addresses are
// numbers: the program's, never dereferenced.
#pragma once

#include <cstdint>
#include <vector>

#include "agent/page_rights.hpp"
#include "memory/page_ranges.hpp"

struct io_uring_params;  // NOLINT(readability-identifier-naming): the kernel's

namespace via::agent {

class LockSystem {
public:
    static constexpr std::uint64_t unlimited = ~0ULL;

    virtual ~LockSystem() = default;

    virtual unsigned page_bits();
    /// Past the sanitizers, which would do nothing instead.
    virtual int mlock(std::uint64_t address, std::uint64_t length);
    virtual int munlock(std::uint64_t address, std::uint64_t length);
    /// Makes the pages that it touches present and writable (madvise, MADV_POPULATE_WRITE).
    virtual int populate(std::uint64_t address, std::uint64_t length);
    /// 0 when all of it is mapped, else ENOMEM. Touches nothing (msync, MS_ASYNC).
    virtual int check_mapped(std::uint64_t address, std::uint64_t length);
    /// Of [begin, end). Throws bad_alloc.
    virtual PageRights page_rights(std::uint64_t begin, std::uint64_t end);
    /// The parts of `run` that are mapped, from /proc/self/maps; none when that cannot be read.
    virtual std::vector<memory::PageRun> mapped_in(memory::PageRun run);

    /// RLIMIT_MEMLOCK in bytes, or unlimited.
    virtual std::uint64_t locked_bytes_max();
    /// Has the process CAP_IPC_LOCK, to which no limit applies?
    virtual bool has_lock_right();
    /// vm.max_map_count; where it cannot be read, the kernel's own default.
    virtual std::uint64_t mappings_max();

    virtual int io_uring_setup(unsigned entries, io_uring_params* parameters);
    virtual int io_uring_register(int ring, unsigned operation, void* argument, unsigned count);

    /// True in a child that was forked after the library came to life.
    virtual bool forked();

    /// The real one; lives for ever.
    static LockSystem& real();
};

}  // namespace via::agent
