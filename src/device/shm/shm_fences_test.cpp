// Which peers a heavy fence is made for before a sleep, and that they are woken all the same.
#include <gtest/gtest.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "base/asymmetric_fence.hpp"
#include "device/shm/test_support.hpp"

namespace via::device::shm::test::shm_fences_test {
namespace {

int fences_made = 0;

/// This process makes heavy fences. The kernel may lack them: there is one thread here.
class ShmFences : public ::testing::Test {
protected:
    ShmFences() {
        fences_made = 0;
        syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0);
        set_heavy_fence(FenceReach::host, [] {
            ++fences_made;
            syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
        });
    }
    ~ShmFences() override { set_heavy_fence(FenceReach::host, nullptr); }
};

TEST_F(ShmFences, one_is_made_before_a_sleep_that_peers_may_end) {
    Directory directory;
    Node a(directory), b(directory);
    b->arm(Sleep::on_handle);
    EXPECT_EQ(fences_made, 0) << "without a peer";
    b->arm(Sleep::awake);
    const Paths paths = connect(a, b);
    b->arm(Sleep::on_handle);
    EXPECT_EQ(fences_made, 1);
    EXPECT_FALSE(b->has_work());
    ASSERT_TRUE(send(*a, paths.from, 24, 8, 1));
    EXPECT_EQ(a->notify(), 1U);
    EXPECT_TRUE(b.wait());
    b->arm(Sleep::awake);
    EXPECT_EQ(fences_made, 1);
}

/// Who comes has these features; how many heavy fences our next sleep makes.
int fences_before_a_sleep(std::uint32_t features) {
    Directory directory;
    Node node(directory);
    Liar peer(directory);
    EXPECT_TRUE(peer.connect(node->name()));
    Hello hello = peer.hello();
    hello.features = features;
    EXPECT_TRUE(peer.greet(hello, peer.make_memory()));
    EXPECT_TRUE(turn_until({&node}, [&] { return node.has(PathEventKind::up); }));
    Hello answer{};
    const auto bytes = peer.hear();
    EXPECT_EQ(bytes.size(), sizeof answer);
    std::memcpy(&answer, bytes.data(), std::min(bytes.size(), sizeof answer));
    EXPECT_EQ(answer.features, has_heavy_fence(FenceReach::host) ? features : 0) << "of both";
    const int before = fences_made;
    node->arm(Sleep::on_handle);
    return fences_made - before;
}

TEST_F(ShmFences, none_is_made_for_peers_that_make_full_ones) {
    EXPECT_EQ(fences_before_a_sleep(feature_asymmetric_fences), 1);
    EXPECT_EQ(fences_before_a_sleep(0), 0);
    // We cannot make any: the peer hears of that, and makes full ones.
    set_heavy_fence(FenceReach::host, nullptr);
    EXPECT_EQ(fences_before_a_sleep(feature_asymmetric_fences), 0);
}

}  // namespace
}  // namespace via::device::shm::test::shm_fences_test
