// What is said of programs into which the system will not load the library.
#include "notes.hpp"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace via::sockets {
namespace notes_test {
namespace {

constexpr uid_t somebody = 65534;

/// A program of this test's own, and whether a child that is set up so hears a reason with `word`.
class WhyNotLoaded : public testing::Test {
protected:
    void SetUp() override {
        if (geteuid() != 0) GTEST_SKIP() << "takes the administrator, who becomes another user";
        folder_ =
            std::filesystem::temp_directory_path() / ("via-notes-" + std::to_string(getpid()));
        std::filesystem::create_directory(folder_);
        ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
        program_ = folder_ / "program";
        std::filesystem::copy_file("/proc/self/exe", program_);
    }
    void TearDown() override {
        if (!folder_.empty()) std::filesystem::remove_all(folder_);
    }

    template <class Setup>
    bool hears(const std::string& word, const Setup& setup) const {
        const pid_t child = fork();
        if (child == 0) {
            const bool ready = setup();
            const std::string why = why_not_loaded(program_);
            const bool right = word.empty() ? why.empty() : why.find(word) != std::string::npos;
            _exit(ready && right ? 0 : 1);
        }
        int ended = -1;
        return waitpid(child, &ended, 0) == child && ended == 0;
    }
    void belongs(uid_t user, gid_t group, mode_t mode) const {
        ASSERT_EQ(chown(program_.c_str(), user, group), 0);
        ASSERT_EQ(chmod(program_.c_str(), mode), 0);
    }

    std::filesystem::path folder_, program_;
};

bool as_it_is() { return true; }
bool as_somebody() { return setgid(somebody) == 0 && setuid(somebody) == 0; }

TEST_F(WhyNotLoaded, RightsOfAnotherUserCount) {
    belongs(0, 0, 04755);
    EXPECT_TRUE(hears("", as_it_is)) << "rights that its user has";
    EXPECT_TRUE(hears("set-user-ID", as_somebody));
    belongs(somebody, somebody, 04755);
    EXPECT_TRUE(hears("set-user-ID", as_it_is));
    EXPECT_TRUE(hears("", as_somebody));
}

TEST_F(WhyNotLoaded, RightsOfAnotherGroupCountWhereItMayRunIt) {
    belongs(0, somebody, 02755);
    EXPECT_TRUE(hears("set-group-ID", as_it_is));
    belongs(0, somebody, 02745);
    EXPECT_TRUE(hears("", as_it_is)) << "a lock's mark";
}

TEST_F(WhyNotLoaded, CapabilitiesOfTheFileCountButForTheAdministrator) {
    vfs_cap_data may{};
    may.magic_etc = VFS_CAP_REVISION_2;
    may.data[0].permitted = 1u << CAP_NET_RAW;
    if (setxattr(program_.c_str(), "security.capability", &may, XATTR_CAPS_SZ_2, 0) < 0)
        GTEST_SKIP() << "no right to give a file capabilities, or no place for them";
    EXPECT_TRUE(hears("given capabilities", as_somebody));
    EXPECT_TRUE(hears("", as_it_is));
}

TEST_F(WhyNotLoaded, WhoMayGetNoMoreRightsGetsNone) {
    belongs(somebody, somebody, 04755);
    EXPECT_TRUE(hears("", [] { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0; }));
}

TEST_F(WhyNotLoaded, AScriptHasItsInterpretersRights) {
    std::ofstream(program_) << "#!/bin/sh\n";
    belongs(somebody, somebody, 04755);
    EXPECT_TRUE(hears("", as_it_is));
}

TEST_F(WhyNotLoaded, WhoHasAnotherUsersRightsAlreadyLoadsNothing) {
    EXPECT_TRUE(hears("another user's rights", [] { return seteuid(somebody) == 0; }));
}

}  // namespace
}  // namespace notes_test
}  // namespace via::sockets
