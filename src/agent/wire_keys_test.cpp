#include "agent/wire_keys.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

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
    EXPECT_EQ(keys->keys[0].bytes()[31], std::byte{0x11});
    EXPECT_EQ(keys->keys[1].bytes()[0], std::byte{0xAA});
}

TEST(WireKeysText, what_is_wrong_is_told_with_file_and_line) {
    const std::string form = "a line is: key and 64 hexadecimal digits in small letters";
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
    const auto added = add_wire_key(file_, first);
    umask(before);
    ASSERT_TRUE(added) << added.error();
    ASSERT_TRUE(add_wire_key(file_, secure::Secret()));
    struct stat status{};
    ASSERT_EQ(stat(file_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777U, 0600U);
    const auto keys = read_wire_keys(file_);
    ASSERT_TRUE(keys && *keys);
    ASSERT_EQ((*keys)->keys.size(), 2U);
    EXPECT_TRUE(std::ranges::equal((*keys)->keys[0].bytes(), first.bytes()));
    ASSERT_EQ(chmod(file_.c_str(), 0644), 0);
    EXPECT_FALSE(add_wire_key(file_, secure::Secret())) << "nor is one added where others read";
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
    std::ofstream(file_) << std::string(17 * 1024, '\n');
    ASSERT_EQ(chmod(file_.c_str(), 0600), 0);
    EXPECT_EQ(refusal(), ": it is longer than 16 KiB");
}

}  // namespace
}  // namespace via::agent::wire_keys_test
