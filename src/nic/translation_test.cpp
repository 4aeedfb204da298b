// The memory table behind a NIC: who translates takes no lock while others register; a small table
// of the NIC's own forgets what is deregistered.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "nic/nic.hpp"

namespace via::nic::translation_test {
namespace {

using memory::Access;
using memory::MemoryHandle;

struct NobodyAttends final : Attendant {
    void attend() override {}
    void report(const engine::ErrorEvent&) override {}
    Time now() override { return {}; }
};

/// The n-th region that is registered: neighbours differ in place, length, tag and rights.
struct Region {
    explicit Region(std::uint32_t n)
        : begin(0x1000 + std::uint64_t{n} % 61 * 64),
          length(100 + n % 7),
          tag(n % 2),
          writable(n % 3 == 0) {}
    std::uint64_t begin;
    std::uint64_t length;
    std::size_t tag;
    bool writable;
};

TEST(Translation, TakesNoLockWhileRegionsComeAndGo) {
    constexpr std::uint64_t enough = 10'000;
    constexpr std::uint32_t rounds_max = 4'000'000;
    NobodyAttends attendant;
    Counters counters{};
    Nic nic("test", {}, counters, attendant);
    const memory::ProtectionTag tags[] = {nic.memory().create_tag().value(),
                                          nic.memory().create_tag().value()};
    Atomic<std::uint64_t> newest{0};  // handle and number of the region registered last
    Atomic<std::uint64_t> allowed{0};
    Atomic<std::uint64_t> stale{0};
    Atomic<bool> ended{false};
    const auto may = [&](std::uint64_t name, std::uint64_t address, std::uint64_t length,
                         std::size_t tag, Access access) {
        return nic.memory().check(static_cast<MemoryHandle>(name >> 32), address, length, tags[tag],
                                  access);
    };
    const auto translate = [&] {
        std::uint64_t before = 0;
        while (!ended.load()) {
            const std::uint64_t now = newest.load();
            for (const std::uint64_t name : {now, before}) {
                if (name == 0) continue;
                const Region region(static_cast<std::uint32_t>(name));
                // Nothing but what that very region allowed, whatever is in its place by now.
                ASSERT_FALSE(may(name, region.begin, region.length + 1, region.tag, Access::local));
                ASSERT_FALSE(may(name, region.begin - 1, 1, region.tag, Access::local));
                ASSERT_FALSE(may(name, region.begin, 1, 1 - region.tag, Access::local));
                ASSERT_FALSE(may(name, region.begin, 1, region.tag, Access::remote_read));
                const bool written = may(name, region.begin, 1, region.tag, Access::remote_write);
                ASSERT_TRUE(region.writable || !written);
                Atomic<std::uint64_t>& count =
                    may(name, region.begin, region.length, region.tag, Access::local) ? allowed
                                                                                      : stale;
                count.fetch_add(1, std::memory_order_relaxed);
            }
            before = now;
        }
    };
    std::thread translators[] = {std::thread(translate), std::thread(translate)};
    std::uint32_t round = 0;
    while ((allowed.load() < enough || stale.load() < enough) && ++round < rounds_max) {
        const Region region(round);
        const auto handle = nic.register_memory(region.begin, region.length,
                                                {tags[region.tag], region.writable, false});
        ASSERT_TRUE(handle.has_value());
        newest.store((std::uint64_t{*handle} << 32) | round);
        EXPECT_EQ(nic.deregister(*handle, region.begin), Status::success);
        EXPECT_FALSE(nic.memory().check(*handle, region.begin, 1, memory::no_tag, Access::local));
    }
    ended.store(true);
    for (std::thread& translator : translators) translator.join();
    EXPECT_GE(allowed.load(), enough) << round;
    EXPECT_GE(stale.load(), enough) << round;
}

struct Noting final : memory::LineLoader {
    bool load(const memory::Line& line) override {
        loaded.push_back(line.name);
        return true;
    }
    void evicted(const memory::LineName&) override {}
    void forget(MemoryHandle handle) override { forgotten.push_back(handle); }
    std::vector<memory::LineName> loaded;
    std::vector<MemoryHandle> forgotten;
};

TEST(Translation, ASmallTableForgetsWhatIsDeregistered) {
    NobodyAttends attendant;
    Counters counters{};
    Noting agent;
    Nic nic("test", {}, counters, attendant);
    EXPECT_EQ(nic.translations(), nullptr) << "off by default";
    nic.cache_translations({4, 1, 4}, agent);
    const MemoryHandle handle = nic.register_memory(0x10000, 0x4000, {}).value();
    EXPECT_TRUE(agent.loaded.empty()) << "registering loads nothing";
    EXPECT_TRUE(nic.translations()->reach(handle, 0x11000, 1));
    EXPECT_EQ(agent.loaded, (std::vector<memory::LineName>{{handle, 0x11}}));
    EXPECT_EQ(nic.deregister(handle, 0x10001), Status::invalid_parameter);
    EXPECT_TRUE(agent.forgotten.empty());
    EXPECT_EQ(nic.deregister(handle, 0x10000), Status::success);
    EXPECT_EQ(agent.forgotten, (std::vector<MemoryHandle>{handle}));
    const MemoryHandle next = nic.register_memory(0x10000, 0x4000, {}).value();
    EXPECT_TRUE(nic.translations()->reach(next, 0x11000, 1));
    EXPECT_EQ(agent.loaded.size(), 2U) << "the next region has lines of its own";
    EXPECT_EQ(counters.get(Counter::translation_evictions), 0U);
}

}  // namespace
}  // namespace via::nic::translation_test
