// More memory registered than may be locked: a NIC with a small table locks what it uses, when it
// uses it (docs/design/memory.md, "Translation").
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <via/via.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "support/child.hpp"
#include "support/host.hpp"
#include "support/vipl.hpp"

namespace system_test::vast_memory_test {

namespace {

constexpr std::uint64_t vast = 8ULL << 30;
constexpr std::uint64_t lock_limit = 64ULL << 20;
constexpr std::size_t places = 6000;
constexpr std::size_t length_max = 6000;
constexpr std::uint64_t slot_length = 16384;  ///< places do not overlap
constexpr const char* small_table =
    "shm,pin=require,table_entries=1024,table_line=8,table_ways=4,table_replacement=lru";

/// RLIMIT_MEMLOCK of this process from now on, to which it has no exception; 0: not possible.
std::uint64_t limit_locking() {
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) < 0) return 0;
    const rlimit wanted{lock_limit, lock_limit};
    if (setrlimit(RLIMIT_MEMLOCK, &wanted) == 0) limit = wanted;
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[2]{};
    if (syscall(SYS_capget, &header, sets) < 0) return 0;
    sets[0].effective &= ~(1U << CAP_IPC_LOCK);
    sets[0].permitted &= ~(1U << CAP_IPC_LOCK);
    return syscall(SYS_capset, &header, sets) < 0 ? 0 : std::min(limit.rlim_cur, lock_limit);
}

std::uint64_t locked_bytes() {
    return static_cast<std::uint64_t>(read_number("/proc/self/status", "VmLck")) * 1024;
}

/// 8 GiB of address space, registered for everything.
struct Vast {
    explicit Vast(Nic& nic)
        : at(static_cast<std::byte*>(mmap(nullptr, vast, PROT_READ | PROT_WRITE,
                                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
        require_call(at != MAP_FAILED, "mmap of 8 GiB");
        // Huge pages would make each page that is touched cost two megabytes.
        madvise(at, vast, MADV_NOHUGEPAGE);
        VIP_MEM_ATTRIBUTES attributes{};
        attributes.EnableRdmaWrite = attributes.EnableRdmaRead = VIP_TRUE;
        answer = VipRegisterMem(nic.handle(), at, vast, &attributes, &handle);
    }
    ~Vast() { munmap(at, vast); }
    Vast(const Vast&) = delete;
    Vast& operator=(const Vast&) = delete;

    std::byte* at;
    VIP_RETURN answer;
    VIP_MEM_HANDLE handle = 0;
};

struct Place {
    std::uint64_t offset;
    std::size_t length;
};

/// All over the memory but for its very beginning, none of them touching another.
std::vector<Place> draw_places(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::set<std::uint64_t> slots;
    std::vector<Place> drawn;
    while (drawn.size() < places) {
        const std::uint64_t slot = 1 + random() % (vast / slot_length - 1);
        if (!slots.insert(slot).second) continue;
        const std::size_t length = 1 + random() % length_max;
        drawn.push_back({slot * slot_length + random() % (slot_length - length), length});
    }
    return drawn;
}

/// What the target tells.
struct Page {
    std::uint64_t address;
    VIP_MEM_HANDLE handle;
};

/// The most that was ever seen to be locked, and what came of it.
struct Witness {
    void look() { most = std::max(most, locked_bytes()); }
    void judge(Nic& nic, std::uint64_t limit) {
        look();
        require(most <= limit / 4 * 3,
                "at most three quarters of the limit are locked, not " + std::to_string(most));
        require(most > limit / 2, "much is locked, not " + std::to_string(most));
        const auto count = [&](const char* name) {
            VIP_UINT64 value = 0;
            OK(ViaReadCounter(nic.handle(), name, &value));
            return value;
        };
        require(count("translation_misses") >= places, "each place is loaded");
        require(count("translation_evictions") > places, "the table is small");
        require(count("translation_hits") >= places, "each place is found when it is used again");
    }
    std::uint64_t most = 0;
};

Wants wants() {
    Wants wants;
    wants.length = length_max;
    wants.sends = 1;
    wants.level = VIP_SERVICE_RELIABLE_RECEPTION;  // written means in memory, not on the way
    return wants;
}

void be_target(Parent& parent) {
    const std::uint64_t limit = limit_locking();
    parent.say(limit < 4ULL << 20 ? "no limit" : "limited");
    Nic nic(small_table);
    Vast memory(nic);
    OK(memory.answer);
    require(locked_bytes() == 0, "registering locks nothing");
    parent.shared<Page>() = {reinterpret_cast<std::uint64_t>(memory.at), memory.handle};
    End end(nic, wants());
    parent.say("registered");
    end.accept("vast");
    Witness witness;
    // The initiator writes, then we look.
    unsigned polls = 0;
    const auto serve = [&](const char* until_told) {
        until(until_told, [&] {
            require(!end.received(), "no message comes");
            if (++polls % 64 == 0) witness.look();
            return parent.ready();
        });
        parent.expect(until_told);
    };
    serve("written");
    const std::vector<Place> all = draw_places(1);
    for (std::size_t n = 0; n < places; ++n)
        require(holds(memory.at + all[n].offset, all[n].length, n), "every byte is there");
    parent.say("right");
    serve("read");
    witness.judge(nic, limit);
    OK(VipDeregisterMem(nic.handle(), memory.at, memory.handle));
    end.disconnect();
    nic.close();
    require(locked_bytes() == 0, "nothing stays locked");
}
const Role target_role("vast target", be_target);

/// One RDMA operation from or to our own vast memory.
void transfer(End& end, const Vast& own, std::uint64_t offset, const Place& place,
              const Page& target, VIP_UINT16 operation) {
    auto& descriptor = *reinterpret_cast<VIP_DESCRIPTOR*>(own.at);
    descriptor = {};
    descriptor.CS.SegCount = 2;
    descriptor.CS.Control = operation;
    descriptor.CS.Length = static_cast<VIP_UINT32>(place.length);
    descriptor.DS[0].Remote.Data.AddressBits = target.address + place.offset;
    descriptor.DS[0].Remote.Handle = target.handle;
    descriptor.DS[1].Local.Data.Address = own.at + offset;
    descriptor.DS[1].Local.Handle = own.handle;
    descriptor.DS[1].Local.Length = static_cast<VIP_UINT32>(place.length);
    OK(VipPostSend(end.vi(), &descriptor, own.handle));
    VIP_DESCRIPTOR* done = nullptr;
    OK(VipSendWait(end.vi(), watchdog_ms, &done));
}

void be_initiator(Parent& parent) {
    const std::uint64_t limit = limit_locking();
    const Page target{std::stoull(parent.argument(0)),
                      static_cast<VIP_MEM_HANDLE>(std::stoul(parent.argument(1)))};
    Nic nic(small_table);
    Vast own(nic);
    OK(own.answer);
    End end(nic, wants());
    end.connect("vast");
    const std::vector<Place> theirs = draw_places(1);
    const std::vector<Place> ours = draw_places(2);
    Witness witness;
    const auto place_of = [&](std::size_t n) {  // for bytes of any of their lengths
        return ours[n].offset / slot_length * slot_length + n % 64;
    };
    for (std::size_t n = 0; n < places; ++n) {
        fill(own.at + place_of(n), theirs[n].length, n);
        for (int times = 0; times < 2; ++times)
            transfer(end, own, place_of(n), theirs[n], target, VIP_CONTROL_OP_RDMAWRITE);
        if (n % 16 == 0) witness.look();
    }
    parent.say("written");
    parent.expect("read");
    for (std::size_t n = places; n-- != 0;) {
        const std::uint64_t here = place_of((n * 7 + 1) % places);
        std::memset(own.at + here, 0, theirs[n].length);
        transfer(end, own, here, theirs[n], target, VIP_CONTROL_OP_RDMAREAD);
        require(holds(own.at + here, theirs[n].length, n), "what was written is read");
        if (n % 16 == 0) witness.look();
    }
    witness.judge(nic, limit);
    parent.say("read");
    parent.expect("end");
}
const Role initiator_role("vast initiator", be_initiator);

TEST(VastMemory, EightGigabytesAreUsedUnderALimitOf64MegabytesAtMost) {
    Host host;
    Child target("vast target");
    if (target.hear() != "limited") GTEST_SKIP() << "RLIMIT_MEMLOCK cannot be set";
    target.expect("registered");
    const Page page = target.shared<Page>();
    Child initiator("vast initiator",
                    {.arguments = {std::to_string(page.address), std::to_string(page.handle)}});
    initiator.expect("written");
    target.say("written");
    target.expect("right");
    initiator.say("read");
    initiator.expect("read");
    target.say("read");
    target.join();  // it looks at its receives until the end, so the initiator stays
    initiator.say("end");
    initiator.join();
}

void be_refused(Parent& parent) {
    const std::uint64_t limit = limit_locking();
    Nic nic("shm,pin=require");
    Vast memory(nic);
    parent.say(limit == 0 ? "no limit" : name_of(memory.answer));
}
const Role refused_role("vast refused", be_refused);

TEST(VastMemory, WithoutASmallTableItIsTooMuch) {
    Host host;
    Child child("vast refused");
    const std::string answer = child.hear();
    if (answer == "no limit") GTEST_SKIP() << "RLIMIT_MEMLOCK cannot be set";
    EXPECT_EQ(answer, "ERROR_RESOURCE");
    child.join();
}

}  // namespace

}  // namespace system_test::vast_memory_test
