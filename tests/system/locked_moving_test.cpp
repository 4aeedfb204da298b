// Pages that do not move: the kernel compacts memory, which moves pages to other frames. Locked
// ones move, too; those of pin=dma must not.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>

#include "support/host.hpp"
#include "support/pressure.hpp"
#include "support/vipl.hpp"

namespace system_test::locked_moving_test {

namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t pages = 4096;

/// Memory of small pages that nobody has touched.
class Untouched {
public:
    Untouched() {
        void* at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        require_call(at != MAP_FAILED, "mmap");
        data_ = static_cast<std::byte*>(at);
        madvise(at, bytes, MADV_NOHUGEPAGE);  // fails where there are no huge ones
    }
    ~Untouched() { munmap(data_, bytes); }
    Untouched(const Untouched&) = delete;
    Untouched& operator=(const Untouched&) = delete;

    static constexpr std::size_t bytes = pages * page;
    std::byte* data() const { return data_; }
    void touch(std::size_t number) const { data_[number * page] = std::byte{1}; }

private:
    std::byte* data_;
};

VIP_MEM_HANDLE register_memory(Nic& nic, const Untouched& memory) {
    VIP_MEM_HANDLE handle = 0;
    OK(VipRegisterMem(nic.handle(), memory.data(), Untouched::bytes, nullptr, &handle));
    return handle;
}

std::size_t count_moved(const std::vector<std::uint64_t>& before,
                        const std::vector<std::uint64_t>& after) {
    std::size_t moved = 0;
    for (std::size_t n = 0; n < before.size(); ++n) moved += before[n] != after[n];
    return moved;
}

/// Empty: this process may not see them.
std::vector<std::uint64_t> frames_of(const Untouched& memory) {
    return frames(reinterpret_cast<std::uint64_t>(memory.data()), Untouched::bytes);
}

TEST(LockedPages, OfPinDmaDoNotMoveWhenMemoryIsCompacted) {
    const Host host;
    VIP_NIC_HANDLE probe = nullptr;
    ASSERT_EQ(VipOpenNic("shm,pin=dma", &probe), VIP_SUCCESS);
    const Untouched pinned;
    const Untouched locked;
    VIP_MEM_HANDLE pinned_handle = 0;
    if (VipRegisterMem(probe, pinned.data(), page, nullptr, &pinned_handle) != VIP_SUCCESS) {
        VipCloseNic(probe);
        GTEST_SKIP() << "memory cannot be pinned here; the log says why";
    }
    OK(VipCloseNic(probe));
    {
        // Between what is registered lies what will be free: something to tidy up.
        const Untouched between;
        for (std::size_t n = 0; n < pages; ++n) {
            pinned.touch(n);
            between.touch(n);
            locked.touch(n);
        }
    }
    Nic dma("shm,pin=dma");
    Nic prefer("shm,pin=prefer");
    const VIP_MEM_HANDLE pinned_region = register_memory(dma, pinned);
    const VIP_MEM_HANDLE locked_region = register_memory(prefer, locked);
    const auto pinned_before = frames_of(pinned);
    const auto locked_before = frames_of(locked);
    if (pinned_before.empty()) GTEST_SKIP() << "no right to see page frames (CAP_SYS_ADMIN)";
    std::ofstream compact("/proc/sys/vm/compact_memory");
    if (!(compact << "1" << std::flush)) GTEST_SKIP() << "no right to compact memory";
    EXPECT_EQ(count_moved(pinned_before, frames_of(pinned)), 0U);
    const std::size_t moved = count_moved(locked_before, frames_of(locked));
    OK(VipDeregisterMem(dma.handle(), pinned.data(), pinned_region));
    OK(VipDeregisterMem(prefer.handle(), locked.data(), locked_region));
    if (moved == 0)
        GTEST_SKIP() << "pinned pages did not move, but neither did others: compacting found "
                        "nothing to do, so this shows little";
    std::printf("%zu of %zu locked pages moved, and none of the pinned ones\n", moved, pages);
}

}  // namespace

}  // namespace system_test::locked_moving_test
