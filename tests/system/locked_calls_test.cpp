// What the kernel keeps locked for a process that registers memory (VIPL 4.2, 4.3, 4.6).
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <via/via.h>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::locked_calls_test {

namespace {

constexpr std::size_t page = 4096;

std::size_t locked_bytes() {
    return static_cast<std::size_t>(read_number("/proc/self/status", "VmLck")) * 1024;
}

/// From now on the process may lock so much. False: it may not even say so.
bool limit_locking(std::size_t bytes) {
    const rlimit limit{bytes, bytes};
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) < 0 || syscall(SYS_capget, &header, sets) < 0)
        return false;
    sets[0].effective &= ~(1U << CAP_IPC_LOCK);
    sets[0].permitted &= ~(1U << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, sets) == 0;
}

VIP_RETURN register_pages(Nic& nic, std::byte* at, std::size_t count, VIP_MEM_HANDLE& handle) {
    return VipRegisterMem(nic.handle(), at, count * page, nullptr, &handle);
}

/// Fresh pages.
class Room {
public:
    explicit Room(std::size_t count) : bytes_(count * page) {
        void* at =
            mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require_call(at != MAP_FAILED, "mmap");
        at_ = static_cast<std::byte*>(at);
    }
    ~Room() { munmap(at_, bytes_); }
    Room(const Room&) = delete;
    Room& operator=(const Room&) = delete;
    std::byte* at(std::size_t number) const { return at_ + number * page; }

private:
    std::size_t bytes_;
    std::byte* at_ = nullptr;
};

/// 16 pages may be locked.
void be_limited(Parent& parent) {
    const bool limited = limit_locking(16 * page);
    parent.say(limited ? "limited" : "no right");
    if (!limited) return;
    const Room room(64);
    VIP_MEM_HANDLE first = 0;
    VIP_MEM_HANDLE second = 0;
    VIP_MEM_HANDLE third = 0;
    Nic must_lock("shm,pin=require");
    Nic may_lock("shm");
    OK(register_pages(must_lock, room.at(0), 16, first));
    require(locked_bytes() == 16 * page, "the region is locked");
    require(register_pages(must_lock, room.at(8), 16, second) == VIP_ERROR_RESOURCE,
            "what cannot be locked is refused");
    OK(register_pages(must_lock, room.at(4), 8, second));
    OK(register_pages(may_lock, room.at(8), 16, third));
    require(locked_bytes() == 16 * page, "what failed left nothing");
    OK(VipDeregisterMem(must_lock.handle(), room.at(0), first));
    require(locked_bytes() == 8 * page, "what the second region needs stays locked");
    OK(VipDeregisterMem(may_lock.handle(), room.at(8), third));
    require(locked_bytes() == 8 * page, "what was not locked is not unlocked");
    must_lock.close();
    require(locked_bytes() == 0, "a closed NIC holds nothing");
    parent.say("done");
}
const Role limited_role("limited locker", be_limited);

/// Has all rights that the test has.
void be_locker(Parent& parent) {
    const Room room(64);
    VIP_MEM_HANDLE handle = 0;
    VIP_MEM_HANDLE all = 0;
    Nic one("shm,pin=prefer");
    Nic other("shm:other");
    Nic never("shm:third,pin=never");
    OK(register_pages(never, room.at(32), 32, handle));
    OK(ViaRegisterAll(one.handle(), &all));
    require(locked_bytes() == 0, "neither locks anything");
    OK(register_pages(one, room.at(0), 16, handle));
    if (locked_bytes() == 0) return parent.say("no right");
    OK(register_pages(other, room.at(8), 16, handle));
    require(locked_bytes() == 24 * page, "both lock");
    one.close();
    require(locked_bytes() == 16 * page, "the other NIC's pages stay");
    const pid_t child = fork();
    require_call(child >= 0, "fork");
    if (child == 0) {
        const bool refused =
            VipDeregisterMem(other.handle(), room.at(8), handle) == VIP_INVALID_STATE &&
            VipCloseNic(other.handle()) == VIP_INVALID_STATE;
        _exit(refused ? 0 : 1);
    }
    require(reap(child) == 0, "a forked child is refused");
    require(locked_bytes() == 16 * page, "the parent keeps its locks");
    OK(VipDeregisterMem(other.handle(), room.at(8), handle));
    require(locked_bytes() == 0, "all is unlocked");
    parent.say("done");
}
const Role locker_role("locker", be_locker);

TEST(LockedMemory, IsBoundedAndWhatMustBeLockedIsRefused) {
    const Host host;
    Child child("limited locker");
    if (child.hear() == "no right") GTEST_SKIP() << "no right to set limits here";
    child.expect("done");
    child.join();
}

TEST(LockedMemory, NestsOverNicsAndAForkLeavesIt) {
    const Host host;
    Child child("locker");
    const std::string answer = child.hear();
    child.join();
    if (answer == "no right") GTEST_SKIP() << "nothing can be locked here";
    EXPECT_EQ(answer, "done");
}

}  // namespace

}  // namespace system_test::locked_calls_test
