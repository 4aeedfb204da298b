// Looks are left out where many found nothing, and only there: what comes is found all the same.
#include "device/datagram/constants.hpp"
#include "device/datagram/device_pair_test.hpp"

namespace via::device::datagram::test::looking_test {
namespace {

struct Looking : Carrying {
    /// Looks at the port that `turns` turns of b make.
    std::size_t looks(std::uint32_t turns) {
        const std::size_t before = b.port().looks;
        for (std::uint32_t n = 0; n < turns; ++n) b.turn();
        return b.port().looks - before;
    }
    void poll_empty() {
        looks(empty_polls_max);
        ASSERT_EQ(looks(10 * polls_left_out_max), 10U);
    }
    /// What so many empty polls must bring about anew.
    void expect_looks_again() {
        EXPECT_EQ(looks(empty_polls_max), empty_polls_max);
        EXPECT_EQ(looks(10 * polls_left_out_max), 10U);
    }
};

TEST_F(Looking, every_turn_looks_until_many_polls_were_empty) {
    b.device->service(network.now);
    EXPECT_EQ(looks(empty_polls_max), empty_polls_max);
    EXPECT_EQ(looks(polls_left_out_max - 1), 0U);
    EXPECT_EQ(looks(1), 1U) << "the last of as many turns";
    EXPECT_EQ(looks(100 * polls_left_out_max), 100U);
}

TEST_F(Looking, a_sleeper_that_is_woken_looks_at_once) {
    poll_empty();
    b.device->service(network.now);
    expect_looks_again();
}

TEST_F(Looking, who_was_told_of_work_looks_at_once) {
    poll_empty();
    EXPECT_FALSE(b.device->has_work());
    EXPECT_EQ(looks(polls_left_out_max - 1), 0U) << "nothing was found";
    looks(1);
    a.send("news");
    network.now = network.now + milliseconds(1);
    EXPECT_TRUE(b.device->has_work());
    EXPECT_EQ(looks(1), 1U);
    EXPECT_EQ(b.received, std::vector<std::string>{"news"});
}

TEST_F(Looking, a_sender_looks_for_the_answer) {
    poll_empty();
    b.send("question");
    expect_looks_again();
}

TEST_F(Looking, a_look_that_finds_something_is_followed_by_others) {
    poll_empty();
    a.send("news");
    network.now = network.now + milliseconds(1);
    EXPECT_EQ(looks(polls_left_out_max), 1U);
    EXPECT_EQ(b.received, std::vector<std::string>{"news"});
    EXPECT_EQ(looks(empty_polls_max), empty_polls_max);
}

}  // namespace
}  // namespace via::device::datagram::test::looking_test
