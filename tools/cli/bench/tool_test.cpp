#include "bench/tool.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include "bench/clock.hpp"

namespace via::bench::tool_test {
namespace {

constexpr std::int64_t patience_ns = 20'000'000'000;

Result<std::string> run(const std::string& script, std::int64_t within_ns = patience_ns) {
    Tool tool("the shell");
    if (auto started = tool.start({"/bin/sh", "-c", script}, {"WORD=of mine"}, "some input");
        !started) {
        return std::unexpected(started.error());
    }
    return tool.finish(within_ns);
}

TEST(Tool, BothStreamsAreCaught) {
    const auto printed = run("echo out; echo \"$WORD\" >&2; cat");
    ASSERT_TRUE(printed.has_value()) << printed.error().what;
    EXPECT_EQ(*printed, "out\nof mine\nsome input");
}

TEST(Tool, FailuresTellWhatWasPrinted) {
    const auto printed = run("printf 'no\\n\\n   luck\\033'; exit 3");
    ASSERT_FALSE(printed.has_value());
    EXPECT_EQ(printed.error().what, "the shell failed: no luck ");
}

TEST(Tool, TimeAndOutputAreBounded) {
    const std::int64_t start_ns = now_ns();
    EXPECT_FALSE(run("exec sleep 1000", 1'000'000).has_value());
    EXPECT_FALSE(run("exec yes").has_value());
    EXPECT_LT(now_ns() - start_ns, 2 * patience_ns) << "whoever is cut short is ended";
}

TEST(Tool, WhatItLostToOthersOnItsProcessorIsTold) {
    cpu_set_t before;
    CPU_ZERO(&before);
    ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
    cpu_set_t one = before;
    for (unsigned cpu = 0, seen = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &one) && seen++ > 0) CPU_CLR(cpu, &one);
    }
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    const std::string spin = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    Tool first("the shell");
    Tool second("the shell");
    ASSERT_TRUE(first.start({"/bin/sh", "-c", spin}));
    ASSERT_TRUE(second.start({"/bin/sh", "-c", spin}));
    EXPECT_TRUE(first.finish(patience_ns));
    EXPECT_TRUE(second.finish(patience_ns));
    ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
    EXPECT_GT(first.lost_ns() + second.lost_ns(), 1'000'000);
}

TEST(Tool, AProgramThatIsNotThereIsNamedWithItsPackage) {
    EXPECT_TRUE(find_program("sh", "dash", "./dev setup").has_value());
    const auto none = find_program("no-such-program", "its-package", "./dev setup --peers");
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().what,
              "there is no program no-such-program: install Debian's package its-package "
              "('./dev setup --peers' does)");
}

}  // namespace
}  // namespace via::bench::tool_test
