// For the tests of locked memory: a kernel that only keeps book, and what the real one says.
#pragma once

#include <errno.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "agent/lock_system.hpp"

namespace via::agent::test {

constexpr std::uint64_t page = 4096;

/// Books pages and buffers; fails where a test says so.
class FakeSystem : public LockSystem {
public:
    unsigned page_bits() override { return 12; }
    int mlock(std::uint64_t address, std::uint64_t length) override {
        ++locks;
        // As the kernel does: what was marked before the failure stays marked.
        const int error = fail_lock ? fail_lock(address / page) : 0;
        const std::uint64_t done = error == 0 ? length : length / 2 / page * page;
        for (std::uint64_t at = address; at < address + done; at += page) locked.insert(at / page);
        return answer(error);
    }
    int munlock(std::uint64_t address, std::uint64_t length) override {
        ++unlocks;
        for (std::uint64_t at = address; at < address + length; at += page) {
            if (unmapped.contains(at / page)) return answer(ENOMEM);
            locked.erase(at / page);
        }
        return answer(unlock_error);
    }
    int populate(std::uint64_t, std::uint64_t length) override {
        populated.push_back(length);
        return answer(0);
    }
    int check_mapped(std::uint64_t address, std::uint64_t length) override {
        const auto hole = unmapped.lower_bound(address / page);
        return answer(hole != unmapped.end() && *hole * page < address + length ? ENOMEM : 0);
    }
    PageRights page_rights(std::uint64_t begin, std::uint64_t end) override {
        PageRights rights;
        const auto hole = unmapped.lower_bound(begin / page);
        if (hole != unmapped.end() && *hole * page < end) rights.unmapped = *hole * page;
        return rights;
    }
    std::vector<memory::PageRun> mapped_in(memory::PageRun run) override {
        std::vector<memory::PageRun> mapped;
        for (std::uint64_t at = run.begin; at < run.end; ++at)
            if (!unmapped.contains(at)) mapped.push_back({at, at + 1});
        return mapped;
    }
    std::uint64_t locked_bytes_max() override { return limit; }
    bool has_lock_right() override { return right; }
    std::uint64_t mappings_max() override { return mappings; }
    int io_uring_setup(unsigned, io_uring_params*) override {
        if (setup_error != 0) return answer(setup_error);
        return memfd_create("via-fake-ring", MFD_CLOEXEC);  // a descriptor that can be closed
    }
    int io_uring_register(int, unsigned operation, void* argument, unsigned count) override {
        if (operation == IORING_REGISTER_BUFFERS2)
            return answer(count == sizeof(io_uring_rsrc_register) ? table_error : EINVAL);
        if (operation != IORING_REGISTER_BUFFERS_UPDATE) return answer(EINVAL);
        const auto& update = *static_cast<io_uring_rsrc_update2*>(argument);
        const auto& bytes = *reinterpret_cast<const iovec*>(update.data);
        const int error = fail_update ? fail_update(bytes.iov_len) : 0;
        if (error != 0) return answer(error);
        if (bytes.iov_len == 0) {
            buffers.erase(update.offset);
        } else if (bytes.iov_len > 1ULL << 30) {
            return answer(EFAULT);
        } else {
            buffers[update.offset] = bytes.iov_len;
        }
        return 1;
    }
    bool forked() override { return is_child; }

    std::set<std::uint64_t> locked;    ///< pages
    std::set<std::uint64_t> unmapped;  ///< pages
    std::map<std::uint32_t, std::uint64_t> buffers;
    std::vector<std::uint64_t> populated;  ///< bytes of each call
    unsigned locks = 0;
    unsigned unlocks = 0;
    std::function<int(std::uint64_t first_page)> fail_lock;
    std::function<int(std::uint64_t length)> fail_update;
    int unlock_error = 0;
    int setup_error = 0;
    int table_error = 0;
    std::uint64_t limit = unlimited;
    bool right = true;
    bool is_child = false;
    std::uint64_t mappings = 65530;

private:
    static int answer(int error) {
        errno = error;
        return error == 0 ? 0 : -1;
    }
};

/// The real kernel, for a child of a test program that has used the library already.
class ChildSystem : public LockSystem {
    bool forked() override { return false; }
};

/// Bytes that /proc/self/status tells: "VmLck", "VmPin".
inline std::uint64_t status_bytes(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
        if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
    return ~0ULL;
}

/// Sets the limit, and gives up the right to pass it.
inline bool limit_locking(std::uint64_t bytes) {
    const rlimit limit{bytes, bytes};
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || syscall(SYS_capget, &header, sets) < 0)
        return false;
    sets[0].effective &= ~(1U << CAP_IPC_LOCK);
    sets[0].permitted &= ~(1U << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, sets) == 0;
}

/// Fresh pages of the program.
class Pages {
public:
    explicit Pages(std::uint64_t count)
        : length_(count * page),
          at_(mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
    ~Pages() { munmap(at_, length_); }
    Pages(const Pages&) = delete;
    Pages& operator=(const Pages&) = delete;

    std::uint64_t address(std::uint64_t number = 0) const {
        return reinterpret_cast<std::uint64_t>(at_) + number * page;
    }
    std::uint64_t length() const { return length_; }
    void unmap(std::uint64_t number, std::uint64_t count) const {
        munmap(reinterpret_cast<void*>(address(number)), count * page);
    }

private:
    std::uint64_t length_;
    void* at_;
};

}  // namespace via::agent::test
