#include "agent/elsewhere.hpp"

#include <sys/socket.h>
#include <sys/stat.h>

#include <fstream>

#include "agent/base_directory.hpp"
#include "agent/statistics.hpp"
#include "agent/test_support.hpp"

namespace via::agent::elsewhere_test {
namespace {

using test::TemporaryFolder;

class ElsewhereTest : public testing::Test {
protected:
    std::string make(const std::string& path) {
        std::string at;
        for (const char letter : path + "/") {
            if (letter == '/' && !at.empty()) mkdir(at.c_str(), 0700);
            at += letter;
        }
        return path;
    }
    /// As the kernel shows it.
    void bind(const std::string& path, const char* flags = "00010000") {
        std::ofstream(table_, std::ios::app)
            << "0000000000000000: 00000002 00000000 " << flags << " 0005 01 12345 " << path << "\n";
    }
    std::vector<Elsewhere> look() {
        return nics_elsewhere(host_, {folder_ / "run/", folder_ / "tmp-"}, table_.c_str());
    }

    const TemporaryFolder folder_;
    const std::string table_ = folder_ / "unix";
    const std::string host_ = make(folder_ / "mine/openvia/12345678-1");
    const std::string other_ = make(folder_ / "other dir/openvia");
};

TEST_F(ElsewhereTest, WhoWasGivenAnotherPlaceIsFound) {
    make(host_ + "/shm-127.0.0.1-9741");
    bind(host_ + "/shm-127.0.0.1-9741/new-7-00000000000000aa");
    std::ofstream(host_ + "/shm-127.0.0.1-9741/nic-7-00000000000000aa");
    bind(other_ + "/12345678-1/shm-127.0.0.1-9741/new-8-00000000000000bb");
    bind(other_ + "/12345678-1/new-stat-8-00000000000000cc");
    bind(other_ + "/12345678-1/shm-127.0.0.2-9741/new-8-00000000000000dd", "00000000");
    const auto found = look();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].base, other_);
    EXPECT_FALSE(found[0].hidden);
    EXPECT_EQ(found[0].folders, std::vector<std::string>{"shm-127.0.0.1-9741"});
    EXPECT_EQ(found[0].text(), other_);
}

TEST_F(ElsewhereTest, OtherHostsAndOtherUsersAreNotOurs) {
    bind(other_ + "/12345678-2/new-stat-8-00000000000000cc");
    bind(folder_ / "gone/12345678-1/new-stat-8-00000000000000cc");
    bind("/12345678-1/new-stat-8-00000000000000cc");
    bind("/run/dbus/socket");
    bind("@abstract/12345678-1/x");
    EXPECT_TRUE(look().empty());
}

TEST_F(ElsewhereTest, ADirectoryOfAnotherUserIsNotOurs) {
    if (geteuid() != 0) GTEST_SKIP() << "only the administrator can give folders away";
    ASSERT_EQ(chown(other_.c_str(), 4711, 4711), 0);
    bind(other_ + "/12345678-1/new-stat-8-00000000000000cc");
    EXPECT_TRUE(look().empty());
}

/// PrivateTmp, or a container that shares the network: the same name is another directory.
TEST_F(ElsewhereTest, AnotherDirectoryOfTheSameNameIsTold) {
    bind(host_ + "/new-stat-8-00000000000000cc");
    auto found = look();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_TRUE(found[0].hidden);
    EXPECT_NE(found[0].text().find("private"), std::string::npos);
    std::ofstream(host_ + "/stat-8-00000000000000cc");
    EXPECT_TRUE(look().empty());
    // That of a login, which a unit without it does not see.
    bind((folder_ / "run/") + std::to_string(geteuid()) + "/openvia/12345678-1/new-stat-8-00cc");
    EXPECT_EQ(look().size(), 1U);
}

TEST_F(ElsewhereTest, TheKernelShowsSuchSockets) {
    const std::string theirs = make(other_ + "/12345678-1");
    auto open = Statistics::open(theirs, "shm");
    ASSERT_TRUE(open) << open.error();
    auto found = nics_elsewhere(host_);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].base, other_);
    (*open)->retire();
    EXPECT_TRUE(nics_elsewhere(host_).empty());
}

TEST_F(ElsewhereTest, WithoutTheKernelsListNobodyIsFound) {
    EXPECT_TRUE(nics_elsewhere(host_, {}, "/nowhere/unix").empty());
}

}  // namespace
}  // namespace via::agent::elsewhere_test
