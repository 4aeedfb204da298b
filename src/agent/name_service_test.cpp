#include "agent/name_service.hpp"

#include <gtest/gtest.h>

#include "agent/addresses.hpp"

namespace via::agent::name_service_test {
namespace {

/// A service whose resolver knows two hosts and counts what it is asked.
class NameServiceTest : public ::testing::Test {
protected:
    std::string find(std::string_view name, std::uint32_t index = 0) const {
        HostAddress address;
        const Status status = service.resolve(name, index, address);
        return status == Status::success ? to_text(address) : to_string(status);
    }
    std::string name_of(const char* text) const {
        std::string name;
        const Status status = service.name_of(*parse_address(text), name);
        return status == Status::success ? name : to_string(status);
    }
    static NameService::Resolver resolver(int& asked) {
        return {[&asked](const std::string& name, std::uint16_t) -> std::vector<HostAddress> {
                    ++asked;
                    if (name == "both" || name == "dns")
                        return {*parse_address("10.2.0.1"), *parse_address("10.2.0.2")};
                    return {};
                },
                [&asked](const HostAddress& address) -> std::string {
                    ++asked;
                    if (address == *parse_address("10.2.0.3")) return "dns\x1b[2J";
                    return address == *parse_address("10.2.0.1") ? "dns" : "";
                }};
    }
    static Neighbours neighbours() {
        return {[](std::string_view name) {
                    return name == "left" ? std::optional(address_of_name(name)) : std::nullopt;
                },
                [](const HostAddress& address) {
                    return address == address_of_name("left") ? "left" : "";
                },
                [] { return std::vector{address_of_name("left")}; }};
    }
    static HostTable table() {
        const std::vector<Source> sources = {
            {"hosts", false, true,
             "both = 10.1.0.1, [fe80::1], 10.1.0.2\nsix = [fe80::6]\nleft.alias = shm:left\n"}};
        return HostTable(sources, [](const std::string& text) { ADD_FAILURE() << text; });
    }

    int asked = 0;
    const HostAddress own = address_of_name("own");
    NameService service{own, {"own", "machine"}, table(), neighbours(), {}, resolver(asked)};
};

TEST_F(NameServiceTest, TheHostsFileComesFirst) {
    EXPECT_EQ(find("both", 0), "10.1.0.1:9741");
    EXPECT_EQ(find("BOTH", 1), "10.1.0.2:9741") << "an address of 18 bytes has no room here";
    EXPECT_EQ(find("both", 2), "error name service") << "and the resolver's do not follow";
    EXPECT_EQ(find("both", 0xFFFFFFFF), "error name service");
    EXPECT_EQ(asked, 0);
}

TEST_F(NameServiceTest, ThenTheOwnHostAndItsNeighbours) {
    EXPECT_EQ(find("own"), to_text(own));
    EXPECT_EQ(find("Machine"), to_text(own));
    EXPECT_EQ(find("machine", 1), "error name service");
    EXPECT_EQ(find("left"), to_text(address_of_name("left")));
    EXPECT_EQ(find("10.9.9.9:77"), "10.9.9.9:77") << "an address is its own name";
    EXPECT_EQ(asked, 0);
}

TEST_F(NameServiceTest, ThenTheResolver) {
    EXPECT_EQ(find("dns"), "10.2.0.1:9741");
    EXPECT_EQ(find("dns", 1), "10.2.0.2:9741");
    EXPECT_EQ(find("dns", 2), "error name service");
    EXPECT_EQ(find("nobody"), "error name service");
    EXPECT_EQ(asked, 4);
}

TEST_F(NameServiceTest, WhatNobodyCanBeCalledIsNotAskedFor) {
    for (const std::string& name :
         {std::string(), std::string("no.invalid"), std::string("INVALID."), std::string(254, 'n'),
          std::string(100000, 'n')})
        EXPECT_EQ(find(name), "error name service") << name.substr(0, 20);
    EXPECT_EQ(asked, 0);
}

TEST_F(NameServiceTest, AddressesLeadBack) {
    EXPECT_EQ(name_of("10.1.0.2"), "both");
    EXPECT_EQ(name_of(to_text(own).c_str()), "own");
    EXPECT_EQ(name_of(to_text(address_of_name("left")).c_str()), "left.alias") << "the file first";
    EXPECT_EQ(asked, 0);
    EXPECT_EQ(name_of("10.2.0.1"), "dns");
    EXPECT_EQ(asked, 1);
    EXPECT_EQ(name_of("10.2.0.2"), "error name service");
    EXPECT_EQ(name_of("10.2.0.1:80"), "error name service") << "the resolver knows no ports";
    EXPECT_EQ(asked, 2);
    std::string name;
    EXPECT_EQ(service.name_of(HostAddress{}, name), Status::error_name_service);
    EXPECT_EQ(asked, 2);
}

TEST_F(NameServiceTest, WhatWouldMoveATerminalsCursorIsNoName) {
    EXPECT_EQ(name_of("10.2.0.3"), "error name service");
    EXPECT_EQ(asked, 1) << "of the resolver, who says what the address's owner likes";
}

TEST_F(NameServiceTest, DiscoveryFindsTheOwnOneToo) {
    EXPECT_EQ(service.discover(), (std::vector{own, address_of_name("left")}));
    const NameService alone(own, {}, {}, {}, {}, resolver(asked));
    EXPECT_EQ(alone.discover(), std::vector{own});
    const NameService listed(address_of_name("left"), {}, {}, neighbours(), {}, resolver(asked));
    EXPECT_EQ(listed.discover(), std::vector{address_of_name("left")}) << "each once";
}

// As `ip` and `ping` write it: two interfaces may have one link-local address.
TEST(NameServiceLink, IsOursOrTheNameNobodys) {
    const HostAddress own = *parse_address("[fe80::1]");
    const NameService service(own, {}, {}, {}, {"eth0", 7});
    const auto find = [&](std::string_view name) {
        HostAddress address;
        const Status status = service.resolve(name, 0, address);
        return status == Status::success ? to_text(address) : to_string(status);
    };
    EXPECT_EQ(find("[fe80::2%eth0]"), "[fe80::2]:9741");
    EXPECT_EQ(find("[fe80::2%7]:80"), "[fe80::2]:80");
    EXPECT_EQ(find("fe80::2%eth0"), "[fe80::2]:9741") << "without brackets by the resolver";
    for (const char* other : {"[fe80::2%eth1]", "[fe80::2%]", "[fe80::2%eth0", "fe80::2%lo",
                              "fe80::2%8", "[fe80::2%eth0%eth0]", "%eth0", "%"})
        EXPECT_EQ(find(other), "error name service") << other;
    const NameService nowhere(own, {}, {}, {});
    HostAddress address;
    EXPECT_EQ(nowhere.resolve("[fe80::2%0]", 0, address), Status::error_name_service);
}

TEST(NameServiceResolver, KnowsWhatEverySystemKnows) {
    const NameService service(address_of_name("own"), {}, {}, {});
    HostAddress address;
    EXPECT_EQ(service.resolve("localhost", 0, address), Status::success);
    EXPECT_EQ(to_text(address), "127.0.0.1:9741");
    std::string name;
    EXPECT_EQ(service.name_of(address, name), Status::success);
    EXPECT_FALSE(name.empty());
}

}  // namespace
}  // namespace via::agent::name_service_test
