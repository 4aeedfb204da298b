#include "agent/addresses.hpp"

#include <gtest/gtest.h>

namespace via::agent::addresses_test {
namespace {

TEST(Addresses, AreReadAsTheyAreWritten) {
    struct Case {
        const char* text;
        const char* back;
        unsigned length;
    };
    const Case cases[] = {
        {"10.1.2.3", "10.1.2.3:9741", 6},
        {"10.1.2.3:80", "10.1.2.3:80", 6},
        {"255.255.255.255:65535", "255.255.255.255:65535", 6},
        {"[::1]", "[::1]:9741", 18},
        {"[fe80::A]:1", "[fe80::a]:1", 18},
        {"[::ffff:10.0.0.1]:9741", "[::ffff:10.0.0.1]:9741", 18},
    };
    for (const Case& one : cases) {
        const auto address = parse_address(one.text);
        ASSERT_TRUE(address) << one.text;
        EXPECT_EQ(address->length, one.length);
        EXPECT_EQ(to_text(*address), one.back);
    }
    const auto address = parse_address("1.2.3.4:258");
    EXPECT_EQ(*address, ipv4_address({1, 2, 3, 4}, 258));
    EXPECT_EQ(address->bytes[4], 1) << "most significant byte first, as on the network";
    EXPECT_EQ(address->bytes[5], 2);
}

TEST(Addresses, WhatIsNoneIsRefused) {
    for (const char* text : {"",
                             "x",
                             "10",
                             "10.1.2",
                             "10.1.2.3.4",
                             "10.1.2.256",
                             "10.1.2.3:",
                             "10.1.2.3:0",
                             "10.1.2.3:65536",
                             "10.1.2.3:-1",
                             "10.1.2.3:+1",
                             "10.1.2.3:80x",
                             "10.1.2.3 ",
                             " 10.1.2.3",
                             "10.1.2.3:80:80",
                             ":80",
                             "::1",
                             "::1:80",
                             "[::1",
                             "::1]",
                             "[]",
                             "[10.1.2.3]",
                             "[::1]80",
                             "[::1]:",
                             "[::1]x:80",
                             "[::1%lo]",
                             "010.1.2.3",
                             "example.org"})
        EXPECT_FALSE(parse_address(text)) << text;
    EXPECT_FALSE(parse_address(std::string_view("10.1.2.3\0x", 10)));
}

TEST(Addresses, OfOtherLengthsAreShownAsBytes) {
    HostAddress address;
    EXPECT_EQ(to_text(address), "");
    address.bytes = {1, 0xAB};
    address.length = 2;
    EXPECT_EQ(to_text(address), "01ab");
}

TEST(Addresses, NamesOnThisMachineHaveTheirOwn) {
    EXPECT_EQ(to_text(address_of_name("")), "127.0.0.1:9741");
    // Part of the protocol between processes: another hash would part them.
    EXPECT_EQ(to_text(address_of_name("a")), to_text(*parse_shm_name("shm:a")));
    EXPECT_NE(to_text(address_of_name("a")), to_text(address_of_name("b")));
    EXPECT_EQ(*parse_shm_name("shm"), address_of_name(""));
    for (const char* name : {"a", "left", "right", "node-17", "x_y.z"}) {
        const HostAddress address = address_of_name(name);
        EXPECT_EQ(address.length, 6);
        EXPECT_EQ(address.bytes[0], 127);
        EXPECT_GE(address.bytes[1], 1) << "never that of the NIC without a name";
        EXPECT_LE(address.bytes[1], 254);
    }
    for (const char* text : {"", "shm:", "shm:/", "shm:..", "shm: a", "SHM", "shmx", "loopback"})
        EXPECT_FALSE(parse_shm_name(text)) << text;
}

TEST(Addresses, PlainNamesAreFitForFilesAndHosts) {
    for (const char* name : {"a", "A-1_b.c", "0", "_"}) EXPECT_TRUE(is_plain(name)) << name;
    EXPECT_TRUE(is_plain(std::string(40, 'n')));
    EXPECT_FALSE(is_plain(std::string(41, 'n')));
    for (const char* name : {"", ".", "..", "-a", ".a", "a/b", "a b", "a:b", "\xC3\xA4"})
        EXPECT_FALSE(is_plain(name)) << name;
}

TEST(Addresses, HostNamesHaveNoCase) {
    EXPECT_TRUE(same_host_name("Node-1", "nODE-1"));
    EXPECT_FALSE(same_host_name("node", "node1"));
    EXPECT_FALSE(same_host_name("node1", "node"));
    EXPECT_FALSE(same_host_name("[", "{"));
    EXPECT_TRUE(same_host_name("", ""));
}

}  // namespace
}  // namespace via::agent::addresses_test
