#include "agent/base_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "agent/test_support.hpp"

namespace via::agent::base_directory_test {
namespace {

using test::open_descriptors;
using test::TemporaryFolder;
using test::Variable;

/// A machine's places of its own.
class Base : public ::testing::Test {
protected:
    void log_in(mode_t mode = 0700) {
        ASSERT_EQ(mkdir(login_.c_str(), 0700), 0);
        ASSERT_EQ(chmod(login_.c_str(), mode), 0);
    }
    /// As a process with an open NIC does.
    File use(const std::string& base) {
        mkdir(base.c_str(), 0700);
        File held = hold_directory(base);
        EXPECT_TRUE(held.valid()) << base;
        return held;
    }
    std::string chosen() const {
        const auto found = base_directory(places_);
        EXPECT_TRUE(found) << found.error();
        return found.value_or("");
    }

    const Variable variable_{"XDG_RUNTIME_DIR", nullptr};
    const TemporaryFolder folder_;
    const StandardPlaces places_{folder_ / "run-", folder_ / "tmp-"};
    const std::string user_ = std::to_string(geteuid());
    const std::string login_ = places_.runtime + user_;
    const std::string in_login_ = login_ + "/openvia";
    const std::string in_tmp_ = places_.fallback + user_;
};

TEST_F(Base, TheLoginDirectoryComesFirst) {
    EXPECT_EQ(chosen(), in_tmp_);
    log_in();
    EXPECT_EQ(chosen(), in_login_) << "nobody else can take it";
    const Variable same("XDG_RUNTIME_DIR", login_.c_str());
    EXPECT_EQ(chosen(), in_login_);
}

TEST_F(Base, ALoginDirectoryThatOthersEnterDoesNotCount) {
    log_in(0755);
    EXPECT_EQ(chosen(), in_tmp_);
}

/// A server of cron's or of the system's start, and clients after the login; or a login that ended.
TEST_F(Base, WhereSomebodyIsAllMeet) {
    File early = use(in_tmp_);
    log_in();
    EXPECT_EQ(chosen(), in_tmp_);
    {
        const Variable after_login("XDG_RUNTIME_DIR", login_.c_str());
        EXPECT_EQ(chosen(), in_tmp_);
        const File late = use(in_tmp_);
        early.reset();
        EXPECT_EQ(chosen(), in_tmp_) << "there is still one";
    }
    EXPECT_EQ(chosen(), in_login_);
    const File now = use(in_login_), left_over = use(in_tmp_);
    EXPECT_EQ(chosen(), in_login_);
    EXPECT_EQ(other_bases(in_login_, places_), std::vector{in_tmp_});
}

TEST_F(Base, APlaceOfOnesOwnIsUsedAndMissesOthers) {
    const TemporaryFolder own;
    const File other = use(in_tmp_);
    const Variable wanted("XDG_RUNTIME_DIR", own.path().c_str());
    EXPECT_EQ(chosen(), own / "openvia");
    EXPECT_EQ(other_bases(own / "openvia", places_), std::vector{in_tmp_});
    EXPECT_TRUE(other_bases(in_tmp_, places_).empty());
}

TEST_F(Base, WhatIsHeldIsSparedByCleanersAndLetGo) {
    mkdir(in_tmp_.c_str(), 0700);
    const int before = open_descriptors();
    {
        const File first = use(in_tmp_), second = use(in_tmp_);
        const File cleaner(open(in_tmp_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        EXPECT_EQ(flock(cleaner.get(), LOCK_EX | LOCK_NB), -1);
        EXPECT_EQ(errno, EWOULDBLOCK);
    }
    EXPECT_EQ(open_descriptors(), before);
    EXPECT_TRUE(other_bases(in_login_, places_).empty());
    EXPECT_FALSE(hold_directory(folder_ / "none").valid());
}

}  // namespace
}  // namespace via::agent::base_directory_test
