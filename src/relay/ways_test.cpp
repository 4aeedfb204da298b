#include "relay/ways.hpp"

#include "relay/table_test.hpp"

namespace via::relay::test::ways_test {
namespace {

TEST(Ways, the_fastest_is_first) {
    const Ways some = ways(
        "# a host with two relays\n"
        "way 1 2 8 900   # slow\n"
        "way 1 2 9 300\n"
        "\n"
        "way 1 3 3 50\n"
        "way 7 2 2 20\n"
        "relay 8\nrelay 9\n");
    const Ways::Nexts from = some.from(host(1, 5));
    ASSERT_EQ(from.size(), 2U);
    EXPECT_EQ(from.at(HostOnly(host(2, 1))), (std::vector<HostAddress>{host(9, 0), host(8, 0)}));
    EXPECT_EQ(from.at(HostOnly(host(3, 1))), (std::vector<HostAddress>{host(3, 0)}));
    ASSERT_NE(some.fastest(host(2, 4)), nullptr);
    EXPECT_EQ(some.fastest(host(2, 4))->own, host(7, 0));
    EXPECT_EQ(some.fastest(host(4, 4)), nullptr);
    EXPECT_EQ(some.own().size(), 2U);
    EXPECT_TRUE(some.is_relay(host(9, relay_port)));
    EXPECT_FALSE(some.is_relay(host(9, 9741))) << "another program of that host";
    EXPECT_FALSE(some.is_relay(host(1, relay_port)));
    EXPECT_FALSE(some.is_relay(HostAddress{}));
}

TEST(Ways, what_is_wrong_is_told_with_its_line) {
    const struct {
        const char* text;
        const char* wanted;
    } all[] = {
        {"way 1 2 3 4\nway 1 2\n", "test:2: want \"way OWN TO NEXT NANOSECONDS\""},
        {"relay\n", "test:1: want"},
        {"road 1 2 3 4\n", "not \"road\""},
        {"way 1 2 x 4\n", "test:1: \"x\" is no address"},
        {"way 1 2 3 4x\n", "test:1: \"4x\" is no number"},
        {"way 1 2 3 -4\n", "is no number"},
        {"\n\nrelay \x01y\n", "test:3: \"?y\" is no address"},
    };
    for (const auto& one : all) {
        const auto read = Ways::parse(one.text, "test", parse_number);
        ASSERT_FALSE(read) << one.text;
        EXPECT_NE(read.error().find(one.wanted), std::string::npos) << read.error();
    }
    EXPECT_EQ(ways("").size(), 0U);
    EXPECT_EQ(ways("way 1 2 3 4").size(), 1U) << "the last line needs no end";
}

}  // namespace
}  // namespace via::relay::test::ways_test
