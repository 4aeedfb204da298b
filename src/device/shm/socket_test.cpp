// What a peer says on the socket of a path that stands.
#include <gtest/gtest.h>

#include "device/shm/test_support.hpp"

namespace via::device::shm::test::socket_test {
namespace {

struct ShmSocket : testing::Test {
    void SetUp() override {
        ASSERT_TRUE(liar.enter(node->name()));
        node.turn();
        ASSERT_TRUE(node.has(PathEventKind::up));
        node.events.clear();
    }
    void expect_down() {
        Frame frames[1];
        EXPECT_EQ(node->receive(frames), 0U);
        node.turn();
        EXPECT_TRUE(node.has(PathEventKind::down));
    }
    /// One message in a turn; false: the path is gone.
    bool offer_segment() {
        SegmentOffer offer = make_segment_offer(segment.memory().length, 1, true);
        offer.granted = 1;
        liar.send_bytes(&offer, sizeof offer, {segment.memory().descriptor});
        node.turn();
        const bool lives = !node.has(PathEventKind::down);
        if (lives) node.events.clear();
        return lives;
    }

    Directory directory;
    Node node{directory};
    Liar liar{directory};
    TestSegment segment{10000};
};

TEST_F(ShmSocket, AGoodbyeIsHeardThoughOurOwnWordsWereNotRead) {
    // The greeting was never read, so closing resets the connection.
    const Farewell goodbye = make_goodbye("out of memory");
    ASSERT_TRUE(liar.send_bytes(&goodbye, sizeof goodbye));
    ::close(liar.socket);
    liar.socket = -1;
    node.turn();
    EXPECT_TRUE(node.reported("leaves us: out of memory"));
    expect_down();
}

TEST_F(ShmSocket, AGoodbyeIsTheEndThoughTheSocketStaysOpen) {
    const Farewell goodbye = make_goodbye("for ever");
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(liar.send_bytes(&goodbye, sizeof goodbye));
    node.turn();
    EXPECT_EQ(node.reports.size(), 1U) << "it leaves once";
    expect_down();
}

TEST_F(ShmSocket, SegmentsThatNobodyAskedForCountAsWakeUps) {
    node.expects_segments = false;
    int offers = 1;
    while (offers < 1100 && offer_segment()) ++offers;
    EXPECT_EQ(offers, 1001) << "the limit is 1000 in a second";
    EXPECT_TRUE(node.reported("wakes us"));
}

TEST_F(ShmSocket, SegmentsThatWereAskedForAreNews) {
    int offers = 0;
    while (offers < 1100 && offer_segment()) ++offers;
    EXPECT_EQ(offers, 1100);
}

}  // namespace
}  // namespace via::device::shm::test::socket_test
