#include "agent/process.hpp"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <regex>

#include "agent/test_support.hpp"

namespace via::agent::process_test {
namespace {

using test::fork_past_handlers;
using test::in_child;
using test::TemporaryFolder;
using test::Variable;

TEST(Process, AForkedChildIsMadeReadyBeforeForkReturns) {
    ASSERT_TRUE(remember_process());
    EXPECT_EQ(process_state(), ProcessState::own);
    const auto is_ready = [] { return process_state() == ProcessState::child ? 0 : 1; };
    EXPECT_EQ(in_child(is_ready), 0);
    EXPECT_EQ(in_child([&] { return in_child(is_ready); }), 0) << "a grandchild, too";
    EXPECT_EQ(process_state(), ProcessState::own) << "the child's fate is not the parent's";
}

TEST(Process, AChildMadePastTheHandlersIsLost) {
    ASSERT_TRUE(remember_process());
    EXPECT_EQ(in_child([] { return forked() ? 0 : 1; }, fork_past_handlers), 0);
    EXPECT_EQ(in_child([] { return in_child([] { return forked() ? 0 : 1; }, fork); },
                       fork_past_handlers),
              0)
        << "and so are its own";
    EXPECT_EQ(in_child([] { return remember_process() && forked() ? 0 : 1; }, fork_past_handlers),
              0)
        << "a child that tries stays lost";
    EXPECT_FALSE(forked());
}

TEST(Process, RememberingAgainChangesNothing) {
    ASSERT_TRUE(remember_process());
    ASSERT_TRUE(remember_process());
    EXPECT_EQ(process_state(), ProcessState::own);
}

/// What must run in a process that has done nothing yet: `forked` and `log` remember their first
/// call. The test program starts itself anew with FRESH_PROCESS set, and ends before any test.
struct Fresh {
    const char* name;
    int (*run)();
};

constexpr std::size_t many_lines = 1000;

constexpr Fresh fresh[] = {
    // A child of a program that had not used the library may use it.
    {"fork before use",
     [] { return in_child([] { return !forked() && remember_process() && !forked() ? 0 : 1; }); }},
    {"three levels",
     [] {
         log(0, "it is %s", "broken");
         log(1, "it is %d", 7);
         log(2, "by the way");
         return 0;
     }},
    {"many lines",
     [] {
         for (std::size_t n = 0; n < many_lines; ++n) log(1, "line");
         const time_t then = time(nullptr);
         while (time(nullptr) == then) usleep(10'000);  // the clock is the thing waited for
         log(1, "last");
         return 0;
     }},
    {"unread",
     [] {
         int ends[2];
         if (pipe(ends) != 0 || dup2(ends[1], STDERR_FILENO) < 0) return 1;
         const auto flags = [&](int end, int wanted) { return fcntl(end, F_SETFL, wanted) == 0; };
         const std::string filler(4096, 'x');
         if (!flags(ends[1], O_NONBLOCK)) return 2;
         while (write(ends[1], filler.data(), filler.size()) > 0) {
         }
         if (!flags(ends[1], 0)) return 3;
         for (int n = 0; n < 3; ++n) log(1, "nobody reads it");
         if ((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) != 0) return 4;
         std::string read_all(1 << 20, '\0');
         if (!flags(ends[0], O_NONBLOCK)) return 5;
         while (read(ends[0], read_all.data(), read_all.size()) > 0) {
         }
         log(1, "read");
         const ssize_t length = read(ends[0], read_all.data(), read_all.size());
         if (length <= 0) return 6;
         read_all.resize(static_cast<std::size_t>(length));
         if (!read_all.ends_with("read (and 3 more lines left out)\n")) return 7;
         close(ends[0]);
         log(1, "a pipe without a reader ends nobody");
         return 0;
     }},
    {"hostile line",
     [] {
         log(1, "%s", "a\x1b[2Jb\nc\r\x7f \xc2\x9b \xc3\xa4");
         return 0;
     }},
    {"long line",
     [] {
         log(1, "%s", std::string(10'000, 'x').c_str());
         log(1, "next");
         return 0;
     }},
};

[[maybe_unused]] const bool started_anew = [] {
    const char* name = getenv("FRESH_PROCESS");
    for (const Fresh& one : fresh)
        if (name != nullptr && strcmp(name, one.name) == 0) _exit(one.run());
    return name != nullptr;
}();

int in_fresh_process(const char* name) {
    return in_child([name] {
        setenv("FRESH_PROCESS", name, 1);
        alarm(60);  // ends a test that hangs
        execl("/proc/self/exe", "test", nullptr);
        return 99;
    });
}

TEST(Process, IsNotForkedBeforeItWasRemembered) {
    EXPECT_EQ(in_fresh_process("fork before use"), 0);
}

class Log : public ::testing::Test {
protected:
    void run(const char* name, const char* level) {
        const Variable to("OPENVIA_LOG", path_.c_str());
        const Variable wanted("OPENVIA_LOG_LEVEL", level);
        ASSERT_EQ(in_fresh_process(name), 0);
    }
    std::vector<std::string> lines() const {
        std::vector<std::string> lines;
        std::ifstream file(path_);
        for (std::string line; std::getline(file, line);) lines.push_back(line);
        return lines;
    }
    TemporaryFolder folder_;
    const std::string path_ = folder_ / "log";
};

TEST_F(Log, SaysWhoAndHowBad) {
    run("three levels", "2");
    const auto said = lines();
    ASSERT_EQ(said.size(), 3U);
    const auto matches = [](const std::string& line, const char* pattern) {
        return std::regex_match(line, std::regex(std::string(R"(openvia\[\d+\]: )") + pattern));
    };
    EXPECT_TRUE(matches(said[0], "error: it is broken")) << said[0];
    EXPECT_TRUE(matches(said[1], "warning: it is 7")) << said[1];
    EXPECT_TRUE(matches(said[2], "info: by the way")) << said[2];
}

TEST_F(Log, TheLevelDecidesAndIsOneByDefault) {
    std::size_t expected = 0;
    for (const auto& [level, wanted] :
         {std::pair<const char*, std::size_t>{"0", 1}, {"1", 2}, {"2", 3}, {nullptr, 2}}) {
        run("three levels", level);
        expected += wanted;
        EXPECT_EQ(lines().size(), expected) << (level == nullptr ? "none" : level);
    }
}

TEST_F(Log, ALevelThatIsNoneStaysOneAndIsToldOnce) {
    std::size_t expected = 0;
    for (const char* level : {"", "warning", "3", "-1", "1x", " 1", "99999999999"}) {
        testing::internal::CaptureStderr();
        run("three levels", level);
        const std::string said = testing::internal::GetCapturedStderr();
        expected += 2;
        EXPECT_EQ(lines().size(), expected) << level;
        EXPECT_NE(said.find("OPENVIA_LOG_LEVEL is \"" + std::string(level) + "\", which is none"),
                  said.npos)
            << said;
        EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
    }
}

TEST_F(Log, AtMostTwentyLinesASecondAndTheRestIsCounted) {
    run("many lines", nullptr);
    const auto said = lines();
    std::size_t left_out = 0;
    std::smatch match;
    for (const std::string& line : said)
        if (std::regex_search(line, match, std::regex(R"( \(and (\d+) more lines left out\)$)")))
            left_out += std::stoul(match[1]);
    EXPECT_EQ(said.size() + left_out, many_lines + 1) << "every line is there or counted";
    EXPECT_GE(said.size(), 21U);
    EXPECT_LE(said.size(), 201U);  // on a machine that needs ten seconds for the lines
    EXPECT_NE(said.back().find("warning: last"), std::string::npos);
}

TEST_F(Log, LongLinesAreCutNotSpilled) {
    run("long line", nullptr);
    const auto said = lines();
    ASSERT_EQ(said.size(), 2U);
    EXPECT_LT(said[0].size(), 512U);
    EXPECT_GT(said[0].size(), 400U);
    EXPECT_NE(said[1].find("warning: next"), std::string::npos);
}

TEST_F(Log, NothingInALineMovesATerminalsCursor) {
    run("hostile line", nullptr);
    const auto said = lines();
    ASSERT_EQ(said.size(), 1U);
    EXPECT_TRUE(said[0].ends_with(": a?[2Jb?c?? \xc2? \xc3\xa4")) << said[0];
}

TEST_F(Log, FollowsNoLinkAndFallsBackToStandardError) {
    ASSERT_EQ(symlink((folder_ / "target").c_str(), path_.c_str()), 0);
    testing::internal::CaptureStderr();
    run("three levels", "0");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("error: it is broken"), std::string::npos) << said;
    EXPECT_NE(said.find("cannot open OPENVIA_LOG (" + path_ + "): "), std::string::npos) << said;
    EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 2) << "each once: " << said;
    EXPECT_FALSE(std::filesystem::exists(folder_ / "target"));
}

TEST(LogOnStandardError, ThatNobodyReadsIsCounted) { EXPECT_EQ(in_fresh_process("unread"), 0); }

TEST_F(Log, APipeThatNobodyReadsStopsNobody) {
    ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
    testing::internal::CaptureStderr();
    run("three levels", "0");
    const std::string said = testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("cannot open OPENVIA_LOG (" + path_ + "): "), std::string::npos) << said;
    EXPECT_NE(said.find("error: it is broken"), std::string::npos) << said;
}

TEST_F(Log, IsForItsOwnerOnly) {
    run("three levels", nullptr);
    struct stat status{};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 077, 0U);
}

TEST_F(Log, MayBeWrittenByItsOwnersLaterProgramsWhateverTheUmask) {
    const mode_t mask = umask(0777);
    run("three levels", nullptr);
    umask(mask);
    struct stat status{};
    ASSERT_EQ(stat(path_.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
}

}  // namespace
}  // namespace via::agent::process_test
