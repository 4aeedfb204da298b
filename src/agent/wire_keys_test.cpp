#include "agent/wire_keys.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "agent/addresses.hpp"

namespace via::agent::wire_keys_test {
namespace {

const std::string digits(64, 'a');

std::string error_of(std::string_view text) {
    const auto keys = parse_wire_keys("f", text);
    return keys ? "" : keys.error();
}

TEST(WireKeysText, keys_in_their_order_and_comments) {
    const auto keys = parse_wire_keys(
        "f", "# ours\n\n  key " + std::string(64, '1') + "  # new\r\nkey\t" + digits);
    ASSERT_TRUE(keys) << keys.error();
    ASSERT_EQ(keys->keys.size(), 2U);
    EXPECT_EQ(keys->keys[0].key.bytes()[31], std::byte{0x11});
    EXPECT_EQ(keys->keys[1].key.bytes()[0], std::byte{0xAA});
    EXPECT_FALSE(keys->keys[0].until);
}

TEST(WireKeysText, keys_of_hosts_and_days_on_which_they_end) {
    const auto keys = parse_wire_keys("f", "own " + digits + " until 2027-03-01\nhost 10.1.2.3 " +
                                               std::string(64, '2') + "\nhost [fe80::7] " + digits +
                                               " until 1970-01-02 # over\n");
    ASSERT_TRUE(keys) << keys.error();
    EXPECT_TRUE(keys->keys.empty());
    ASSERT_EQ(keys->own.size(), 1U);
    EXPECT_EQ(keys->own[0].until, 1'803'859'200);
    ASSERT_EQ(keys->hosts.size(), 2U);
    EXPECT_EQ(host_text(keys->hosts[0].host), "10.1.2.3");
    EXPECT_EQ(to_text(keys->hosts[0].key), std::string(64, '2'));
    EXPECT_FALSE(keys->hosts[0].until);
    EXPECT_EQ(host_text(keys->hosts[1].host), "[fe80::7]");
    EXPECT_EQ(keys->hosts[1].until, 86400);
    EXPECT_EQ(day_of(1'803'859'200), "2027-03-01");
}

TEST(WireKeysText, what_is_wrong_is_told_with_file_and_line) {
    const std::string form =
        "a line is: key DIGITS, own DIGITS or host ADDRESS DIGITS, 64 hexadecimal digits in small "
        "letters, and perhaps until YYYY-MM-DD";
    EXPECT_EQ(error_of("host nowhere " + digits), "f:1: that is no address: 10.1.2.3 or [IPV6]");
    EXPECT_EQ(error_of("host 10.1.2.3 " + digits.substr(1)), "f:1: " + form);
    EXPECT_EQ(error_of("key " + digits + " until"), "f:1: " + form);
    EXPECT_EQ(error_of("key " + digits + " since 2027-03-01"), "f:1: " + form);
    for (const char* day : {"2027-02-29", "2027-3-1", "2027-03-01x", "tomorrow", "2027-13-01"})
        EXPECT_EQ(error_of("own " + digits + " until " + day), "f:1: there is no such day") << day;
    EXPECT_EQ(error_of("key " + digits + " until 2027-03-01 and more"), "f:1: " + form);
    EXPECT_EQ(error_of(""), "f: there is no key in it");
    EXPECT_EQ(error_of("# none\n"), "f: there is no key in it");
    EXPECT_EQ(error_of("key " + digits + "\nkey\n"), "f:2: " + form);
    EXPECT_EQ(error_of("key " + digits.substr(1)), "f:1: " + form);
    EXPECT_EQ(error_of("key " + digits + "a"), "f:1: " + form);
    EXPECT_EQ(error_of("key " + digits.substr(1) + "g"), "f:1: " + form);
    EXPECT_EQ(error_of("KEY " + digits), "f:1: " + form);
    std::string many;
    for (std::size_t n = 0; n <= wire_keys_max; ++n) many += "key " + digits + "\n";
    EXPECT_EQ(error_of(many), "f:9: there are more than 8 keys");
}

TEST(WireKeysText, no_error_shows_a_key) {
    const std::string secret = "deadbeef";
    for (const std::string& line : {"key " + secret, secret, "kye " + secret + digits})
        EXPECT_EQ(error_of(line).find(secret), std::string::npos);
}

TEST(WireKeys, what_protects_a_path_and_why) {
    const auto told = [](std::string_view text, Secure wanted = Secure::configured) {
        const auto keys = parse_wire_keys("f", text);
        EXPECT_TRUE(keys) << keys.error();
        return protection_of(*keys, wanted, *parse_address("10.1.2.3:7"), 100'000);
    };
    const std::string key = "key " + digits + "\n";
    const std::string own = "own " + digits + "\n";
    const std::string host = "host 10.1.2.3 " + digits;
    const std::string over = " until 1970-01-02\n";
    EXPECT_EQ(protection_of(std::nullopt, Secure::configured, {}, 0),
              "none: there is no key here (via keys new)");
    EXPECT_EQ(told(key, Secure::never), "none: secure=never");
    EXPECT_EQ(told(key), "sealed by the cluster's key (f)");
    EXPECT_EQ(told(key, Secure::prefer),
              "sealed by the cluster's key (f); not, if it has no key (secure=prefer)");
    EXPECT_EQ(told("key " + digits + over), "refused: the cluster's key has expired (f)");
    EXPECT_EQ(told(key + own + host), "sealed by the keys of both hosts: its key is trusted (f)");
    EXPECT_EQ(told(key + own + host + over), "refused: its key has expired (f)");
    EXPECT_EQ(told(key + host),
              "refused: there is no key of this host that is good (via keys new --host)");
    EXPECT_EQ(told(own + "host 10.1.2.4 " + digits),
              "refused: its key is not known (via keys trust)");
    EXPECT_EQ(told(own, Secure::prefer), "none: its key is not known (secure=prefer)");
}

class WireKeysFile : public testing::Test {
protected:
    void SetUp() override {
        std::string name = testing::TempDir() + "wire_keys.XXXXXX";
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        file_ = folder_ + "/sub/wire.keys";
    }
    void TearDown() override { std::filesystem::remove_all(folder_); }
    void make() const {
        std::filesystem::create_directories(folder_ + "/sub");
        std::ofstream(file_) << "key " << digits << "\n";
        ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
    }
    std::string refusal() const {
        const auto keys = read_wire_keys(file_);
        return keys ? "" : keys.error().substr(file_.size());
    }
    std::string folder_;
    std::string file_;
};

TEST_F(WireKeysFile, is_read_where_it_is_there) {
    const auto nothing = read_wire_keys(file_);
    ASSERT_TRUE(nothing);
    EXPECT_FALSE(*nothing);
    make();
    const auto keys = read_wire_keys(file_);
    ASSERT_TRUE(keys && *keys);
    EXPECT_EQ((*keys)->file, file_);
    EXPECT_EQ((*keys)->keys.size(), 1U);
}

TEST_F(WireKeysFile, is_made_for_its_owner_alone_and_grows) {
    secure::Secret first;
    first.room()[0] = std::byte{7};
    const mode_t before = umask(0);
    const auto added = add_wire_key(file_, WireKeyKind::cluster, {first, std::nullopt});
    umask(before);
    ASSERT_TRUE(added) << added.error();
    ASSERT_TRUE(add_wire_key(file_, WireKeyKind::cluster, {}));
    ASSERT_TRUE(add_wire_key(file_, WireKeyKind::own, {first, 86400}));
    ASSERT_TRUE(add_trusted_host(file_, {*parse_address("[fe80::7]"), {}, std::nullopt}));
    struct stat status{};
    ASSERT_EQ(stat(file_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    const auto keys = read_wire_keys(file_);
    ASSERT_TRUE(keys && *keys);
    ASSERT_EQ((*keys)->keys.size(), 2U);
    EXPECT_TRUE(std::ranges::equal((*keys)->keys[0].key.bytes(), first.bytes()));
    ASSERT_EQ((*keys)->own.size(), 1U);
    EXPECT_TRUE(std::ranges::equal((*keys)->own[0].key.bytes(), first.bytes()));
    EXPECT_EQ((*keys)->own[0].until, 86400);
    ASSERT_EQ((*keys)->hosts.size(), 1U);
    EXPECT_EQ(host_text((*keys)->hosts[0].host), "[fe80::7]");
    ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
    EXPECT_FALSE(add_wire_key(file_, WireKeyKind::cluster, {}))
        << "nor is one added where others read";
}

TEST_F(WireKeysFile, what_others_may_read_is_refused) {
    make();
    for (const mode_t mode : {0640U, 0604U, 0620U, 0602U, 0644U}) {
        ASSERT_EQ(chmod(file_.c_str(), mode), 0);
        EXPECT_EQ(refusal(), ": others may read or write it (chmod 600)");
    }
    ASSERT_EQ(chmod(file_.c_str(), 0400), 0);
    EXPECT_EQ(refusal(), "");
}

TEST_F(WireKeysFile, only_a_file_of_some_length_is_one) {
    std::filesystem::create_directories(folder_ + "/sub");
    ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), ": it is not a file");
    std::filesystem::remove(file_);
    std::filesystem::create_directories(file_);
    EXPECT_EQ(refusal(), ": it is not a file");
    std::filesystem::remove(file_);
    std::ofstream(file_) << '\n';
    std::filesystem::resize_file(file_, 17 << 20);
    ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), ": it is longer than 16 MiB");
}

}  // namespace
}  // namespace via::agent::wire_keys_test
