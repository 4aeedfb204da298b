// Shared receive queues in C++.
#include "scene.hpp"

namespace via::test::shared_receives_test {
namespace {

class SharedReceives : public Scene {};
INSTANTIATE_TEST_SUITE_P(Media, SharedReceives, testing::Values("loopback", "shm"));

TEST_P(SharedReceives, AreTakenByTheViWithTheMessage) {
    auto pool = must(BufferPool::create(far(), {.buffers = 2, .size = 64}));
    auto shared = must(SharedReceiveQueue::create(far()));
    auto asking = must(Vi::create(near()));
    auto asked = must(Vi::create(far(), {.shared = &shared}));
    auto other = must(Vi::create(far(), {.shared = &shared}));
    connect(asking, asked);
    must(shared.post(pool.take()));
    must(shared.post(pool.take()));
    EXPECT_FALSE(shared.post(pool.take())) << "the pool is empty";
    must(shared.arm(2));
    EXPECT_EQ(VIP_TIMEOUT, shared.wait(0ms).error().code());
    const auto region = must(MemoryRegion::allocate(near(), 4096));
    auto descriptor = region.descriptor(0);
    write_text(region.bytes().subspan(64), "shared");
    must(asking.post_send(descriptor.send(region.segment(64, 6))));
    auto completion = must(asked.receive_wait(patience));
    EXPECT_TRUE(asked.owns(completion));
    EXPECT_EQ("shared", text_of_bytes(pool.reclaim(completion).bytes()).substr(0, 6));
    must(shared.wait(patience));
    const VIA_SHARED_RECV_STATE state = must(shared.state());
    EXPECT_EQ(1U, state.Posted);
    EXPECT_EQ(2U, state.Vis);
    EXPECT_EQ(VIP_ERROR_RESOURCE, shared.destroy().error().code()) << "VIs take from it";
}

}  // namespace
}  // namespace via::test::shared_receives_test
