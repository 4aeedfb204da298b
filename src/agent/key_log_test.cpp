#include "agent/key_log.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace via::agent::key_log_test {
namespace {

LoggedKey example() {
    LoggedKey key{0x0123'4567'89AB'CDEF, secure::CipherKind::aes_256_gcm, 64, {}};
    for (std::byte& byte : key.key.room()) byte = std::byte{0x5A};
    return key;
}

TEST(KeyLog, a_line_says_all_of_a_direction) {
    std::string line = to_line(example());
    EXPECT_EQ(line, "sealed 0123456789abcdef aes-256-gcm 64 " +
                        std::string("5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a") +
                        "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a\n");
    line.pop_back();
    const auto read = parse_logged_key(line);
    ASSERT_TRUE(read);
    EXPECT_EQ(to_line(*read), to_line(example()));
}

TEST(KeyLog, other_lines_are_none) {
    std::string line = to_line(example());
    line.pop_back();
    for (std::size_t length = 0; length < line.size(); ++length)
        EXPECT_FALSE(parse_logged_key(std::string_view(line).substr(0, length))) << length;
    for (const char* const wrong :
         {"# a comment", "sealed 0123456789abcdef des 64 00", "CLIENT_RANDOM 00 00"})
        EXPECT_FALSE(parse_logged_key(wrong)) << wrong;
    EXPECT_FALSE(parse_logged_key(line + "0"));
    line.replace(line.find(" 64 "), 4, " 0 ");
    EXPECT_FALSE(parse_logged_key(line)) << "a key is for some packets";
}

struct KeyLogFile : testing::Test {
    std::string folder = [] {
        std::string name = testing::TempDir() + "via-key-log-XXXXXX";
        EXPECT_NE(mkdtemp(name.data()), nullptr);
        return name;
    }();
    std::string path = folder + "/log";
    ~KeyLogFile() override { std::filesystem::remove_all(folder); }

    std::string refusal() const {
        const auto file = open_key_log(path);
        return file ? "" : file.error();
    }
};

TEST_F(KeyLogFile, a_new_one_is_for_its_owner_alone) {
    const mode_t before = umask(0);
    EXPECT_EQ(refusal(), "");
    umask(before);
    struct stat status{};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    EXPECT_EQ(refusal(), "") << "the next one appends";
}

TEST_F(KeyLogFile, one_that_others_may_read_is_refused) {
    std::ofstream(path).put('\n');
    ASSERT_EQ(chmod(path.c_str(), 0640), 0);
    EXPECT_EQ(refusal(), path + ": others may read or write it (chmod 600)");
    std::filesystem::remove(path);
    std::filesystem::create_symlink("/dev/null", path);
    EXPECT_NE(refusal(), "");
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_NE(refusal(), "");
}

}  // namespace
}  // namespace via::agent::key_log_test
