// The cache of registrations: what it finds, what it lets go, and when.
#include <map>
#include <random>
#include <vector>

#include "scene.hpp"

using namespace via;
using namespace via::test;

namespace registration_cache_test {
namespace {

class Cache : public testing::Test {
protected:
    std::span<std::byte> bytes(std::size_t from, std::size_t length) {
        return std::span(memory).subspan(from, length);
    }
    /// Is the handle that of a live region which begins there?
    bool registered(VIP_MEM_HANDLE handle, std::size_t begin) const {
        VIP_MEM_ATTRIBUTES attributes;
        return VipQueryMem(nic.handle(), const_cast<std::byte*>(memory.data()) + begin, handle,
                           &attributes) == VIP_SUCCESS;
    }
    Nic nic = must(Nic::open("loopback"));
    std::vector<std::byte> memory = std::vector<std::byte>(1 << 16);
};

TEST_F(Cache, FindsWhatCoversTheRange) {
    RegistrationCache cache(nic);
    const VIP_MEM_HANDLE handle = must(cache.lease(bytes(1000, 1000))).handle();
    EXPECT_TRUE(registered(handle, 1000)) << "it stays, though nobody uses it";
    EXPECT_EQ(handle, must(cache.lease(bytes(1000, 1000))).handle());
    EXPECT_EQ(handle, must(cache.lease(bytes(1999, 1))).handle());
    EXPECT_EQ(handle, must(cache.lease(bytes(1500, 100))).handle());
    EXPECT_EQ(1U, cache.registrations());
    EXPECT_NE(handle, must(cache.lease(bytes(999, 2))).handle());
    EXPECT_NE(handle, must(cache.lease(bytes(1999, 2))).handle());
    EXPECT_EQ(3U, cache.registrations());
    EXPECT_EQ(3U, cache.regions());
    EXPECT_EQ(1004U, cache.bytes());
}

TEST_F(Cache, RightsForPeersAreJustThoseAskedFor) {
    const auto tag = must(ProtectionTag::create(nic));
    RegistrationCache cache(nic);
    const auto all = bytes(0, 100);
    const VIP_MEM_HANDLE open =
        must(cache.lease(all, {.rdma_write = true, .rdma_read = true})).handle();
    EXPECT_EQ(open, must(cache.lease(all)).handle()) << "its own use needs no rights";
    const VIP_MEM_HANDLE readable = must(cache.lease(all, {.rdma_read = true})).handle();
    EXPECT_NE(open, readable) << "who may read is not let in where writing is allowed";
    EXPECT_NE(readable, must(cache.lease(all, {.rdma_write = true})).handle());
    EXPECT_EQ(readable, must(cache.lease(all, {.rdma_read = true})).handle());
    VIP_MEM_ATTRIBUTES attributes;
    ASSERT_EQ(VIP_SUCCESS, VipQueryMem(nic.handle(), all.data(), readable, &attributes));
    EXPECT_EQ(VIP_FALSE, attributes.EnableRdmaWrite);
    EXPECT_EQ(VIP_TRUE, attributes.EnableRdmaRead);
    const VIP_MEM_HANDLE tagged = must(cache.lease(all, {.tag = &tag})).handle();
    ASSERT_EQ(VIP_SUCCESS, VipQueryMem(nic.handle(), all.data(), tagged, &attributes));
    EXPECT_EQ(tag.handle(), attributes.Ptag);
    EXPECT_EQ(tagged, must(cache.lease(all, {.tag = &tag})).handle());
    EXPECT_NE(tagged, must(cache.lease(all)).handle());
}

TEST_F(Cache, LetsGoWhatWasNotUsedForTheLongestTime) {
    RegistrationCache cache(nic, {.regions = 3});
    VIP_MEM_HANDLE handles[4];
    for (std::size_t n = 0; n < 3; ++n) handles[n] = must(cache.lease(bytes(n * 100, 10))).handle();
    static_cast<void>(must(cache.lease(bytes(0, 10))));  // the first was used again
    handles[3] = must(cache.lease(bytes(300, 10))).handle();
    EXPECT_TRUE(registered(handles[0], 0));
    EXPECT_FALSE(registered(handles[1], 100));
    EXPECT_TRUE(registered(handles[2], 200));
    EXPECT_TRUE(registered(handles[3], 300));
    EXPECT_EQ(3U, cache.regions());
}

TEST_F(Cache, IsBoundInBytes) {
    RegistrationCache cache(nic, {.bytes = 1000});
    const VIP_MEM_HANDLE first = must(cache.lease(bytes(0, 500))).handle();
    const VIP_MEM_HANDLE second = must(cache.lease(bytes(500, 500))).handle();
    EXPECT_TRUE(registered(first, 0));
    const auto third = must(cache.lease(bytes(1000, 501)));
    EXPECT_FALSE(registered(first, 0));
    EXPECT_FALSE(registered(second, 500));
    EXPECT_EQ(501U, cache.bytes());
    const auto refused = cache.lease(bytes(0, 1001));
    ASSERT_FALSE(refused);
    EXPECT_EQ(VIP_ERROR_RESOURCE, refused.error().code());
    EXPECT_TRUE(registered(third.handle(), 1000)) << "nothing was evicted for it";
}

TEST_F(Cache, NothingLeasedEverGoes) {
    RegistrationCache cache(nic, {.regions = 2});
    auto first = must(cache.lease(bytes(0, 10)));
    auto again = must(cache.lease(bytes(5, 5)));
    auto second = must(cache.lease(bytes(100, 10)));
    EXPECT_EQ(first.handle(), again.handle());
    EXPECT_FALSE(cache.lease(bytes(200, 10)));
    first.end();
    EXPECT_FALSE(cache.lease(bytes(200, 10))) << "one lease of two has ended";
    const VIP_MEM_HANDLE handle = again.handle();
    EXPECT_TRUE(registered(handle, 0));
    again = RegistrationLease();
    EXPECT_TRUE(registered(handle, 0));
    EXPECT_TRUE(cache.lease(bytes(200, 10)));
    EXPECT_FALSE(registered(handle, 0));
    EXPECT_TRUE(registered(second.handle(), 100));
}

TEST_F(Cache, InvalidatingIsExactAndWaitsForLeases) {
    RegistrationCache cache(nic);
    const VIP_MEM_HANDLE before = must(cache.lease(bytes(0, 100))).handle();
    auto within = must(cache.lease(bytes(100, 100)));
    const VIP_MEM_HANDLE idle = must(cache.lease(bytes(150, 100))).handle();
    const VIP_MEM_HANDLE behind = must(cache.lease(bytes(250, 100))).handle();
    cache.invalidate(bytes(100, 150));
    EXPECT_TRUE(registered(before, 0)) << "it ends where the range begins";
    EXPECT_TRUE(registered(behind, 250)) << "it begins where the range ends";
    EXPECT_FALSE(registered(idle, 150));
    const VIP_MEM_HANDLE old = within.handle();
    EXPECT_TRUE(registered(old, 100)) << "somebody uses it";
    EXPECT_NE(old, must(cache.lease(bytes(100, 100))).handle()) << "but nobody else finds it";
    within.end();
    EXPECT_FALSE(registered(old, 100));
    cache.invalidate(bytes(99, 1));
    EXPECT_FALSE(registered(before, 0));
    cache.clear();
    EXPECT_EQ(0U, cache.regions());
    EXPECT_EQ(0U, cache.bytes());
}

TEST_F(Cache, WhatADescriptorStillUsesGoesLater) {
    auto vi = must(Vi::create(nic));
    const auto room = must(MemoryRegion::allocate(nic, 64));
    RegistrationCache cache(nic, {.regions = 2});
    const VIP_MEM_HANDLE used = [&] {
        const auto lease = must(cache.lease(bytes(0, 10)));
        must(vi.post_receive(room.descriptor(0).receive(lease.segment(bytes(0, 10)))));
        return lease.handle();  // too early: it should live until the receive is done
    }();
    static_cast<void>(must(cache.lease(bytes(100, 10))));
    EXPECT_TRUE(cache.lease(bytes(200, 10))) << "the next one went";
    EXPECT_TRUE(registered(used, 0));
    cache.invalidate(bytes(0, 10));
    EXPECT_TRUE(registered(used, 0));
    must(vi.disconnect());
    static_cast<void>(vi.receive_done());
    cache.clear();
    EXPECT_FALSE(registered(used, 0));
    EXPECT_EQ(0U, cache.regions());
}

TEST_F(Cache, OfAClosedNicIsOver) {
    auto other = std::optional(must(Nic::open("loopback")));
    RegistrationCache cache(*other);
    static_cast<void>(must(cache.lease(bytes(0, 10))));
    other.reset();
    cache.clear();
    EXPECT_EQ(0U, cache.regions());
    EXPECT_FALSE(cache.lease(bytes(0, 10)));
}

/// Random calls, against a model that knows every region: what is found covers the range, what is
/// leased lives, and no more is registered than the bounds allow.
TEST_F(Cache, ManyRandomCallsAgreeWithAModel) {
    constexpr std::uint32_t regions_max = 20;
    constexpr std::size_t bytes_max = 30'000;
    RegistrationCache cache(nic, {.regions = regions_max, .bytes = bytes_max});
    struct Region {
        std::size_t begin;
        std::size_t end;
        bool invalid;
    };
    std::map<VIP_MEM_HANDLE, Region> known;
    std::vector<RegistrationLease> leases;
    std::mt19937 random(1);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    std::uint64_t refused = 0;
    for (int step = 0; step < 50'000; ++step) {
        const std::size_t begin = below(60'000);
        const std::size_t length = 1 + below(below(4) == 0 ? 5000 : 300);
        switch (below(20)) {
            case 0:
                cache.invalidate(bytes(begin, length));
                for (auto& [handle, region] : known)
                    region.invalid |= region.begin < begin + length && begin < region.end;
                break;
            case 1:
            case 2:
            case 3:
            case 4:
            case 5:
                if (!leases.empty()) {
                    std::swap(leases[below(leases.size())], leases.back());
                    leases.pop_back();
                }
                break;
            default: {
                const std::uint64_t before = cache.registrations();
                auto lease = cache.lease(bytes(begin, length));
                if (!lease) {
                    ASSERT_EQ(VIP_ERROR_RESOURCE, lease.error().code());
                    ++refused;
                    break;
                }
                if (cache.registrations() != before)
                    known[lease->handle()] = {begin, begin + length, false};
                const Region& region = known.at(lease->handle());
                ASSERT_FALSE(region.invalid);
                ASSERT_LE(region.begin, begin);
                ASSERT_GE(region.end, begin + length);
                if (leases.size() < 15) leases.push_back(std::move(*lease));
            }
        }
        ASSERT_LE(cache.regions(), regions_max);
        ASSERT_LE(cache.bytes(), bytes_max);
        for (const RegistrationLease& lease : leases)
            ASSERT_TRUE(registered(lease.handle(), known.at(lease.handle()).begin));
        std::size_t live = 0;
        if (step % 100 == 0) {
            for (const auto& [handle, region] : known) live += registered(handle, region.begin);
            ASSERT_EQ(live, cache.regions());
            std::erase_if(known, [&](const auto& each) {
                return !registered(each.first, each.second.begin);
            });
        }
    }
    EXPECT_GT(refused, 0U);
    leases.clear();
}

}  // namespace
}  // namespace registration_cache_test
