// Memory windows in C++.
#include "scene.hpp"

namespace via::test::windows_test {
namespace {

class Windows : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, Windows, testing::Values("loopback", "shm"));

TEST_P(Windows, ShowPeersPartOfARegionUntilTheyGo) {
    auto closed = must(MemoryRegion::allocate(far(), 4096));
    const auto region = must(MemoryRegion::allocate(near(), 4096));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.rdma_write = true, .rdma_read = true}));
    connect(asking, asked);
    auto descriptor = region.descriptor(0);
    region.bytes()[64] = std::byte{7};
    RemoteSegment gone;
    {
        MemoryWindow window = must(closed.window(100, 8, {.rdma_write = true, .rdma_read = true}));
        EXPECT_EQ(closed.bytes().data() + 100, window.bytes().data());
        gone = window.remote();
        MemoryWindow moved = std::move(window);
        EXPECT_EQ(0U, window.handle());  // NOLINT(bugprone-use-after-move): that it is empty
        EXPECT_EQ(gone.handle, moved.handle());
        must(asking.post_send(descriptor.rdma_write(gone, region.segment(64, 8))));
        must(asking.send_wait(patience));
        must(asking.post_send(descriptor.rdma_read(gone, region.segment(128, 8))));
        must(asking.send_wait(patience));
        EXPECT_EQ(std::byte{7}, region.bytes()[128]);
    }
    must(asking.post_send(descriptor.rdma_read(gone, region.segment(128, 8))));
    const auto refused = asking.send_wait(patience);
    ASSERT_FALSE(refused);
    EXPECT_EQ(VIP_DESCRIPTOR_ERROR, refused.error().code());
}

TEST_P(Windows, RevokeSaysHowItWent) {
    auto closed = must(MemoryRegion::allocate(far(), 4096));
    MemoryWindow window = must(closed.window(0, 4096, {.atomics = true}));
    must(window.revoke());
    EXPECT_EQ(0U, window.handle());
    EXPECT_EQ(VIP_INVALID_PARAMETER, closed.window(1, 4096, {.atomics = true}).error().code());
    EXPECT_EQ(VIP_INVALID_PARAMETER, closed.window(0, 8, {}).error().code());
}

}  // namespace
}  // namespace via::test::windows_test
