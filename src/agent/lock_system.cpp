#include "agent/lock_system.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>

#include "agent/process.hpp"
#include "posix/not_cancelled.hpp"

namespace via::agent {

namespace {

constexpr std::uint64_t mappings_usual = 65530;  // the kernel's DEFAULT_MAX_MAP_COUNT

}  // namespace

unsigned LockSystem::page_bits() {
    static const auto bits =
        static_cast<unsigned>(__builtin_ctzl(static_cast<unsigned long>(sysconf(_SC_PAGESIZE))));
    return bits;
}

int LockSystem::mlock(std::uint64_t address, std::uint64_t length) {
    return static_cast<int>(syscall(SYS_mlock, address, length));
}
int LockSystem::munlock(std::uint64_t address, std::uint64_t length) {
    return static_cast<int>(syscall(SYS_munlock, address, length));
}
int LockSystem::populate(std::uint64_t address, std::uint64_t length) {
    const std::uint64_t begin = address >> page_bits() << page_bits();
    return static_cast<int>(
        syscall(SYS_madvise, begin, address - begin + length, MADV_POPULATE_WRITE));
}
int LockSystem::check_mapped(std::uint64_t address, std::uint64_t length) {
    return static_cast<int>(syscall(SYS_msync, address, length, MS_ASYNC));
}

PageRights LockSystem::page_rights(std::uint64_t begin, std::uint64_t end) {
    Mappings mappings;
    return agent::page_rights(mappings, begin, end);
}

std::vector<memory::PageRun> LockSystem::mapped_in(memory::PageRun run) {
    const posix::NotCancelled not_cancelled;  // lines are locked under the turn
    std::vector<memory::PageRun> mapped;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        char* rest = nullptr;
        const std::uint64_t begin = std::strtoull(line.c_str(), &rest, 16) >> page_bits();
        if (*rest != '-') continue;
        const std::uint64_t end = std::strtoull(rest + 1, nullptr, 16) >> page_bits();
        if (begin < run.end && run.begin < end)
            mapped.push_back({std::max(begin, run.begin), std::min(end, run.end)});
    }
    return mapped;
}

std::uint64_t LockSystem::locked_bytes_max() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
    return limit.rlim_cur;
}

bool LockSystem::has_lock_right() {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    return syscall(SYS_capget, &header, sets) == 0 && (sets[0].effective >> CAP_IPC_LOCK & 1) != 0;
}

std::uint64_t LockSystem::mappings_max() {
    const posix::NotCancelled not_cancelled;
    std::uint64_t count = 0;
    std::ifstream file("/proc/sys/vm/max_map_count");
    return file >> count ? count : mappings_usual;
}

int LockSystem::io_uring_setup(unsigned entries, io_uring_params* parameters) {
    return static_cast<int>(syscall(SYS_io_uring_setup, entries, parameters));
}
int LockSystem::io_uring_register(int ring, unsigned operation, void* argument, unsigned count) {
    return static_cast<int>(syscall(SYS_io_uring_register, ring, operation, argument, count));
}

bool LockSystem::forked() { return agent::forked(); }

LockSystem& LockSystem::real() {
    static LockSystem& system = *new LockSystem;  // NICs may close while the process ends
    return system;
}

}  // namespace via::agent
