#include "agent/dma_pins.hpp"

#include <gtest/gtest.h>

#include "agent/lock_test_support.hpp"
#include "agent/test_support.hpp"

namespace via::agent::dma_pins_test {
namespace {

using test::ChildSystem;
using test::FakeSystem;
using test::in_child;
using test::limit_locking;
using test::open_descriptors;
using test::page;
using test::Pages;
using test::status_bytes;

constexpr std::uint64_t gigabyte = 1ULL << 30;

std::string wrong_with(DmaPins& pins, std::uint64_t length = page) {
    const auto buffers = pins.pin(page, length);
    return buffers ? "nothing" : buffers.error();
}

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

TEST(DmaPins, LargeRegionsTakeSeveralBuffers) {
    FakeSystem system;
    DmaPins pins(system);
    const auto buffers = pins.pin(page, 2 * gigabyte + 1);
    ASSERT_TRUE(buffers);
    ASSERT_EQ(buffers->size(), 3U);
    EXPECT_EQ(system.buffers[buffers->at(0)], gigabyte);
    EXPECT_EQ(system.buffers[buffers->at(2)], 1U);
    pins.unpin(*buffers);
    EXPECT_TRUE(system.buffers.empty());
    EXPECT_EQ(pins.pin(page, 2 * gigabyte)->size(), 2U);
}

TEST(DmaPins, AFailureHalfWayLeavesNothing) {
    FakeSystem system;
    DmaPins pins(system);
    system.fail_update = [](std::uint64_t length) { return length == 1 ? EFAULT : 0; };
    EXPECT_TRUE(has(wrong_with(pins, 2 * gigabyte + 1), "not mapped"));
    EXPECT_TRUE(system.buffers.empty());
}

TEST(DmaPins, EveryRefusalIsNamed) {
    FakeSystem system;
    DmaPins pins(system);
    const int descriptors = open_descriptors();
    for (const int error : {EPERM, EACCES, ENOSYS}) {
        system.setup_error = error;
        EXPECT_TRUE(has(wrong_with(pins), "forbidden here")) << wrong_with(pins);
    }
    system.setup_error = EMFILE;
    EXPECT_TRUE(has(wrong_with(pins), strerror(EMFILE)));
    system.setup_error = 0;
    system.table_error = EINVAL;
    EXPECT_TRUE(has(wrong_with(pins), "no table of buffers"));
    EXPECT_EQ(open_descriptors(), descriptors) << "what failed leaves nothing open";
    system.table_error = 0;
    int error = 0;
    system.fail_update = [&](std::uint64_t) { return error; };
    error = EOPNOTSUPP;
    EXPECT_TRUE(has(wrong_with(pins), "a mapping of a file"));
    error = EINTR;
    EXPECT_TRUE(has(wrong_with(pins), strerror(EINTR)));
    error = ENOMEM;
    EXPECT_TRUE(has(wrong_with(pins), "not enough memory"));
    system.right = false;
    system.limit = 65536;
    EXPECT_TRUE(has(wrong_with(pins), "RLIMIT_MEMLOCK is 65536 bytes"));
    error = 0;
    EXPECT_TRUE(pins.pin(page, page)) << "later it works";
    EXPECT_EQ(open_descriptors(), descriptors + 1) << "one ring for all";
    EXPECT_TRUE(pins.pin(page, page));
    EXPECT_EQ(open_descriptors(), descriptors + 1);
}

TEST(DmaPins, BuffersMayRunOutAndComeBack) {
    FakeSystem system;
    DmaPins pins(system);
    const auto most = pins.pin(page, DmaPins::buffers_max * gigabyte);
    ASSERT_TRUE(most);
    EXPECT_TRUE(has(wrong_with(pins), "all 16384 buffers are in use"));
    pins.unpin(*most);
    EXPECT_TRUE(pins.pin(page, page));
}

TEST(DmaPins, WhatCannotBeLetGoIsToldAndItsPlaceNotUsedAgain) {
    FakeSystem system;
    DmaPins pins(system);
    const auto buffers = pins.pin(page, page);
    ASSERT_TRUE(buffers);
    system.fail_update = [](std::uint64_t length) { return length == 0 ? EINVAL : 0; };
    testing::internal::CaptureStderr();
    pins.unpin(*buffers);
    EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "stays pinned until the process ends"));
    EXPECT_NE(pins.pin(page, page)->front(), buffers->front());
}

TEST(DmaPins, AForkedChildLetsGoOfNothing) {
    FakeSystem system;
    DmaPins pins(system);
    const auto buffers = pins.pin(page, page);
    ASSERT_TRUE(buffers);
    system.is_child = true;
    pins.unpin(*buffers);
    EXPECT_EQ(system.buffers.size(), 1U) << "the ring is the parent's";
}

TEST(RealDmaPins, PinAndLetGo) {
    DmaPins pins(LockSystem::real());
    const Pages room(64);
    const std::uint64_t before = status_bytes("VmPin");
    const auto buffers = pins.pin(room.address(), room.length());
    if (!buffers) GTEST_SKIP() << buffers.error();
    EXPECT_GE(status_bytes("VmPin"), before + room.length());
    pins.unpin(*buffers);
    // Older kernels let go a little later, by themselves.
    for (int round = 0; round < 5000 && status_bytes("VmPin") != before; ++round) usleep(1000);
    EXPECT_EQ(status_bytes("VmPin"), before);
    const auto nowhere = pins.pin(room.address(1), 1ULL << 45);
    EXPECT_FALSE(nowhere);
}

TEST(RealDmaPins, TheLimitIsMetAndNamed) {
    const int outcome = in_child([] {
        if (!limit_locking(16 * page)) return 100;
        ChildSystem system;
        DmaPins pins(system);
        const Pages room(64);
        const auto buffers = pins.pin(room.address(), room.length());
        if (buffers) return 1;
        if (has(buffers.error(), "forbidden")) return 101;
        return has(buffers.error(), "RLIMIT_MEMLOCK is 65536 bytes") ? 0 : 2;
    });
    if (outcome == 100) GTEST_SKIP() << "no right to set limits here";
    if (outcome == 101) GTEST_SKIP() << "io_uring is forbidden here";
    EXPECT_EQ(outcome, 0);
}

}  // namespace
}  // namespace via::agent::dma_pins_test
