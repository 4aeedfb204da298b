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
    void look_in_vain() {
        looks(looks_in_vain_max);
        ASSERT_EQ(looks(10 * looks_left_out_max), 10U);
    }
    /// What looking that often in vain must bring about anew.
    void expect_looks_again() {
        EXPECT_EQ(looks(looks_in_vain_max), looks_in_vain_max);
        EXPECT_EQ(looks(10 * looks_left_out_max), 10U);
    }
};

TEST_F(Looking, every_turn_looks_until_many_looks_were_in_vain) {
    b.device->service(network.now);
    EXPECT_EQ(looks(looks_in_vain_max), looks_in_vain_max);
    EXPECT_EQ(looks(looks_left_out_max - 1), 0U);
    EXPECT_EQ(looks(1), 1U) << "the last of as many turns";
    EXPECT_EQ(looks(100 * looks_left_out_max), 100U);
}

TEST_F(Looking, whoever_sleeps_and_is_woken_looks_at_once) {
    look_in_vain();
    b.device->service(network.now);
    expect_looks_again();
}

TEST_F(Looking, whoever_was_told_of_work_looks_at_once) {
    look_in_vain();
    EXPECT_FALSE(b.device->has_work());
    EXPECT_EQ(looks(looks_left_out_max - 1), 0U) << "nothing was found";
    looks(1);
    a.send("news");
    network.now = network.now + milliseconds(1);
    EXPECT_TRUE(b.device->has_work());
    EXPECT_EQ(looks(1), 1U);
    EXPECT_EQ(b.received, std::vector<std::string>{"news"});
}

TEST_F(Looking, whoever_sends_looks_for_the_answer) {
    look_in_vain();
    b.send("question");
    expect_looks_again();
}

TEST_F(Looking, a_look_that_finds_something_is_followed_by_others) {
    look_in_vain();
    a.send("news");
    network.now = network.now + milliseconds(1);
    EXPECT_EQ(looks(looks_left_out_max), 1U);
    EXPECT_EQ(b.received, std::vector<std::string>{"news"});
    EXPECT_EQ(looks(looks_in_vain_max), looks_in_vain_max);
}

}  // namespace
}  // namespace via::device::datagram::test::looking_test
